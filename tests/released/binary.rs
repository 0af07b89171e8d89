//! The operator's binary, which is all that the image holds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{Release, VERSION, here, run};

/// The size limit, because a node pulls the binary whenever a replica starts there.
const MOST_BYTES: usize = 20_000_000;

/// Checks the operator of every platform, and runs the one for this machine.
pub(crate) fn operators(release: &Release) -> Result<()> {
    for platform in release.platforms("wfe-operator", "")? {
        let path = release.file(&format!("wfe-operator_{VERSION}_{platform}"));
        let bytes = tells_nothing_of_its_builder(&path)?;
        ensure!(bytes < MOST_BYTES, "{} has {bytes} bytes", path.display());
        is_static_and_stripped(&path)?;
        if platform == here() {
            let root = release.work.join("operator-root");
            fs::create_dir_all(&root)?;
            fs::copy(&path, root.join("wfe-operator"))?;
            runs_alone(&root)?;
        }
        println!("wfe-operator for {platform}: static, stripped, {bytes} bytes");
    }
    Ok(())
}

/// Checks that the binary names no directory of the machine that built it. Returns its size in bytes.
pub(crate) fn tells_nothing_of_its_builder(path: &Path) -> Result<usize> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let home = std::env::var("HOME").unwrap_or_default() + "/.cargo";
    for private in [home, wfe_testkit::repository().to_string_lossy().into_owned()] {
        let found = bytes.windows(private.len()).any(|part| part == private.as_bytes());
        ensure!(!found, "{} names {private}", path.display());
    }
    Ok(bytes.len())
}

fn is_static_and_stripped(path: &Path) -> Result<()> {
    let parts = ["--wide", "--program-headers", "--dynamic", "--sections"];
    let headers = run(Command::new("readelf").args(parts).arg(path))?;
    for word in ["INTERP", "(NEEDED)", ".symtab"] {
        ensure!(!headers.contains(word), "{} has {word}: {headers}", path.display());
    }
    Ok(())
}

/// Checks that the binary prints its version in a root that holds nothing else.
pub(crate) fn runs_alone(root: &Path) -> Result<()> {
    let mode = fs::metadata(root.join("wfe-operator"))?.permissions().mode() & 0o777;
    ensure!(mode == 0o755, "wfe-operator has the mode {mode:o}");
    let held: Vec<_> = fs::read_dir(root)?.collect::<Result<_, _>>()?;
    ensure!(held.len() == 1, "the root holds more than wfe-operator: {held:?}");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--root"]).arg(root).args(["/wfe-operator", "--version"]);
    let said = run(&mut command)?;
    ensure!(said.trim() == format!("wfe-operator {VERSION}"), "{said}");
    Ok(())
}
