//! The Krew manifest, checked by the rules of Krew's own validator, and installed as by Krew. The validator itself is
//! not run, because its module is not available everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{Release, VERSION, here, plugin, run};

const NAME: &str = "wfe";

/// The limit in Krew's index, which keeps the list of plugins readable.
const LONGEST_SHORT_DESCRIPTION: usize = 50;
const LONGEST_LINE: usize = 80;

/// A plugin manifest. Like Krew, the test refuses unknown fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugin {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    version: String,
    homepage: String,
    short_description: String,
    description: String,
    platforms: Vec<Platform>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Platform {
    selector: Selector,
    uri: String,
    sha256: String,
    bin: String,
    files: Vec<FileMove>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMove {
    from: String,
    to: String,
}

/// Checks the manifest, and installs the plugin from the archives beside it.
pub(crate) fn manifest(release: &Release) -> Result<()> {
    let text = fs::read_to_string(release.file(&format!("{NAME}.yaml"))).context("no Krew manifest")?;
    let Plugin { api_version, kind, metadata, spec } = serde_saphyr::from_str(&text)?;
    assert_eq!((api_version.as_str(), kind.as_str()), ("krew.googlecontainertools.github.com/v1alpha2", "Plugin"));
    assert_eq!(metadata.name, NAME, "the name of its file");
    assert_eq!(spec.version, format!("v{VERSION}"));
    ensure!(spec.homepage.starts_with("https://"), "homepage {}", spec.homepage);
    let short = &spec.short_description;
    ensure!((1..=LONGEST_SHORT_DESCRIPTION).contains(&short.len()), "shortDescription {short:?}");
    ensure!(spec.description.lines().all(|line| line.len() <= LONGEST_LINE), "{}", spec.description);

    let mut described = BTreeSet::new();
    for platform in &spec.platforms {
        described.insert(installs(release, platform)?);
    }
    assert_eq!(described.len(), spec.platforms.len(), "one platform twice: {described:?}");
    assert_eq!(described, release.platforms("kubectl-wfe", ".tar.gz")?.into_iter().collect());
    println!("Krew manifest: {described:?}");
    Ok(())
}

/// Installs as Krew does: finds the archive of this name, checks its sum, unpacks it, and moves the files that the
/// manifest names. Returns the platform.
fn installs(release: &Release, platform: &Platform) -> Result<String> {
    let labels: Vec<_> = platform.selector.match_labels.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let [("arch", arch), ("os", os)] = labels[..] else { anyhow::bail!("a selector of {labels:?}") };
    let name = platform.uri.rsplit('/').next().unwrap_or_default();
    let archive = release.file(name);
    let sum = run(Command::new("sha256sum").arg(&archive))?;
    assert_eq!(sum.split(' ').next(), Some(platform.sha256.as_str()), "the sum of {name}");

    let (unpacked, to) = (release.unpack(name)?, release.work.join(format!("krew-{os}-{arch}")));
    for FileMove { from, to: target } in &platform.files {
        // The trailing dot is dropped, because a directory of that name cannot be created.
        let target: PathBuf = to.join(target).components().collect();
        fs::create_dir_all(&target)?;
        fs::copy(unpacked.join(from), target.join(from)).with_context(|| format!("{name} has no {from}"))?;
    }
    plugin::holds(&to, &["LICENSE", &platform.bin])?;
    let platform = format!("{os}_{arch}");
    if platform == here() {
        plugin::is_a_plugin(&to)?;
    }
    Ok(platform)
}
