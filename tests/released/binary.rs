//! The static binaries, which are the only content of the image.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{Release, VERSION, here, run};

/// The programs in the image.
pub(crate) const PROGRAMS: [&str; 2] = ["wfe-operator", "kubectl-wfe"];

/// The size limit of one binary. It is low, because a node pulls the binaries when the first replica starts there.
const MOST_BYTES: usize = 20_000_000;

/// Checks the programs of every platform, and runs those for this machine.
pub(crate) fn programs(release: &Release) -> Result<()> {
    let platforms = release.platforms(PROGRAMS[0], "")?;
    for platform in &platforms {
        let root = release.work.join(format!("programs-{platform}"));
        fs::create_dir_all(&root)?;
        for name in PROGRAMS {
            let path = release.file(&format!("{name}_{VERSION}_{platform}"));
            let bytes = tells_nothing_of_its_builder(&path)?;
            ensure!(bytes < MOST_BYTES, "{} has {bytes} bytes, and the limit is {MOST_BYTES}", path.display());
            is_static_and_stripped(&path)?;
            fs::copy(&path, root.join(name))?;
            println!("{name} for {platform}: static, stripped, {bytes} bytes");
        }
        if *platform == here() {
            run_alone(&root)?;
        }
    }
    Ok(())
}

/// Checks that the binary contains no path of the machine that built it. Returns the size in bytes.
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

/// Checks that each program prints its version in a root directory that contains nothing else.
pub(crate) fn run_alone(root: &Path) -> Result<()> {
    let held: Vec<_> = fs::read_dir(root)?.collect::<Result<_, _>>()?;
    ensure!(held.len() == PROGRAMS.len(), "the root holds more than the programs: {held:?}");
    for name in PROGRAMS {
        let mode = fs::metadata(root.join(name))?.permissions().mode() & 0o777;
        ensure!(mode == 0o755, "{name} has the mode {mode:o}");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--root"]).arg(root).args([&format!("/{name}"), "--version"]);
        let said = run(&mut command)?;
        ensure!(said.trim() == format!("{name} {VERSION}"), "{said}");
    }
    Ok(())
}
