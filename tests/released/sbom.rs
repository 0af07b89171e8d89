//! The SBOMs. They must list what the compiler has put into each binary, according to the list that `cargo auditable`
//! stores in the binary.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{Release, VERSION, run};

/// A crate: name and version.
type Crate = (String, String);

/// Compares both lists for the operator and for `kubectl-wfe`, on every platform.
pub(crate) fn all(release: &Release) -> Result<()> {
    for platform in release.platforms("wfe-operator", "")? {
        let name = format!("wfe-operator_{VERSION}_{platform}");
        describes(release, &name, &release.file(&name), "wfe-operator")?;
    }
    for platform in release.platforms("kubectl-wfe", ".tar.gz")? {
        let name = format!("kubectl-wfe_{VERSION}_{platform}");
        let binary = release.unpack(&format!("{name}.tar.gz"))?.join("kubectl-wfe");
        describes(release, &name, &binary, "kubectl-wfe")?;
    }
    Ok(())
}

fn describes(release: &Release, name: &str, binary: &Path, root: &str) -> Result<()> {
    let file = release.file(&format!("{name}.cdx.json"));
    let text = fs::read_to_string(file).with_context(|| format!("no SBOM of {name}"))?;
    let here = wfe_testkit::repository();
    ensure!(!text.contains(&*here.to_string_lossy()), "the SBOM of {name} names {}", here.display());
    let sbom: Value = serde_json::from_str(&text)?;
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    assert_eq!(sbom["metadata"]["component"]["name"], root);
    let mut described: BTreeSet<Crate> = crates(&sbom["components"])?;
    described.insert((root.to_owned(), VERSION.to_owned()));
    for component in sbom["components"].as_array().into_iter().flatten() {
        ensure!(component["purl"].is_string(), "{component:#} cannot be looked up");
    }

    let list: Value = serde_json::from_str(&run(Command::new("rust-audit-info").arg(binary))?)?;
    let packages = list["packages"].as_array().context("the binary has no list of what is in it")?;
    let listed = crates(&list["packages"])?;
    let runs = packages.iter().filter(|package| package["kind"] != "build").cloned().collect();
    let runs = crates(&Value::Array(runs))?;
    let missing: Vec<_> = runs.difference(&described).collect();
    ensure!(missing.is_empty(), "{name} has crates that its SBOM does not name: {missing:?}");
    let unknown: Vec<_> = described.difference(&listed).collect();
    ensure!(unknown.is_empty(), "the SBOM of {name} names crates that are not in it: {unknown:?}");
    println!("SBOM of {name}: {} crates, of which {} are in what runs", described.len(), runs.len());
    Ok(())
}

fn crates(list: &Value) -> Result<BTreeSet<Crate>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name_and_version = |one: &Value| Some((text(&one["name"])?, text(&one["version"])?));
    let list = list.as_array().context("no list of crates")?;
    list.iter().map(|one| name_and_version(one).with_context(|| format!("no crate: {one:#}"))).collect()
}
