//! The archives of `kubectl-wfe`, used as by a person without Krew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use wfe_testkit::{Assets, Tekton, repository};

use crate::{Release, VERSION, binary, here, run};

/// Unpacks all archives, and calls the plugin for this machine through kubectl.
pub(crate) fn archives(release: &Release) -> Result<()> {
    for platform in release.platforms("kubectl-wfe", ".tar.gz")? {
        let dir = release.unpack(&format!("kubectl-wfe_{VERSION}_{platform}.tar.gz"))?;
        holds(&dir, &["LICENSE", "kubectl-wfe"])?;
        ensure!(fs::read(dir.join("LICENSE"))? == fs::read(repository().join("LICENSE"))?, "another licence");
        let bytes = binary::tells_nothing_of_its_builder(&dir.join("kubectl-wfe"))?;
        if platform == here() {
            is_a_plugin(&dir)?;
        }
        println!("kubectl-wfe for {platform}: {bytes} bytes");
    }
    Ok(())
}

/// Checks that the directory contains exactly these files.
pub(crate) fn holds(dir: &Path, files: &[&str]) -> Result<()> {
    let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names: BTreeSet<_> = names.collect::<Result<_>>()?;
    ensure!(names == files.iter().map(ToString::to_string).collect(), "{} holds {names:?}", dir.display());
    Ok(())
}

/// Checks that kubectl finds the plugin in this directory.
pub(crate) fn is_a_plugin(dir: &Path) -> Result<()> {
    let kubectl = Assets::find(Tekton::None)?.program("kubectl");
    let wfe = |args: &[&str]| run(Command::new(&kubectl).env("PATH", dir).arg("wfe").args(args));
    let said = wfe(&["--version"])?;
    ensure!(said.trim_end().ends_with(VERSION), "{said}");
    let said = wfe(&["explain", "--help"])?;
    ensure!(said.contains("Usage: kubectl wfe explain"), "{said}");
    Ok(())
}
