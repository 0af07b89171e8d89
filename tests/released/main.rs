//! Checks the files of `make release` as their users do: compares sums, unpacks, installs and runs. The program builds
//! nothing, and depends only on the names of the files that `.ci/release` writes.

// This is a program for tests: what it prints is its output, and an error ends it.
#![allow(clippy::print_stdout)]

mod binary;
mod image;
mod krew;
mod plugin;
mod sbom;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMS: &str = "SHA256SUMS";

/// Fails if a file of a release is wrong.
#[derive(Debug, Parser)]
struct Arguments {
    /// The directory in which the release was built.
    dist: PathBuf,
}

/// The files of a release, and a directory for unpacked files. That directory is deleted when this value is dropped.
struct Release {
    dist: PathBuf,
    work: PathBuf,
}

impl Drop for Release {
    fn drop(&mut self) {
        // If the removal fails, the files stay in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.work);
    }
}

impl Release {
    fn file(&self, name: &str) -> PathBuf {
        self.dist.join(name)
    }

    fn names(&self) -> Result<BTreeSet<String>> {
        let entries = fs::read_dir(&self.dist).with_context(|| format!("{} cannot be read", self.dist.display()))?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Returns the platforms, such as `linux_amd64`, for which a file with this name and extension exists.
    fn platforms(&self, name: &str, end: &str) -> Result<Vec<String>> {
        let prefix = format!("{name}_{VERSION}_");
        let names = self.names()?;
        let platform = |file: &String| file.strip_prefix(&prefix)?.strip_suffix(end).map(str::to_owned);
        let platforms: Vec<_> = names.iter().filter_map(platform).filter(|rest| !rest.contains('.')).collect();
        ensure!(!platforms.is_empty(), "no {prefix}*{end}: there are {names:?}");
        Ok(platforms)
    }

    /// Unpacks an archive of the release into a new directory.
    fn unpack(&self, name: &str) -> Result<PathBuf> {
        let to = self.work.join(name);
        unpack(&self.file(name), &to)?;
        Ok(to)
    }
}

fn unpack(archive: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    run(Command::new("tar").args(["--extract", "--file"]).arg(archive).arg("--directory").arg(to))?;
    Ok(())
}

/// Runs a command that must succeed, and returns its standard output.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the platform of this machine, whose binaries this machine can run.
fn here() -> String {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    format!("{}_{architecture}", std::env::consts::OS)
}

/// Checks that every file has a sum, and that every sum is right.
fn sums(release: &Release) -> Result<()> {
    run(Command::new("sha256sum").args(["--check", "--strict", "--quiet", SUMS]).current_dir(&release.dist))?;
    let text = fs::read_to_string(release.file(SUMS))?;
    let mut summed: BTreeSet<_> = text.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned())).collect();
    summed.insert(SUMS.to_owned());
    assert_eq!(summed, release.names()?, "the files with a sum, and those that are there");
    println!("sums: {} files", summed.len() - 1);
    Ok(())
}

/// Checks that Helm renders the chart with the image of this release.
fn chart(release: &Release) -> Result<()> {
    let mut helm = Command::new(wfe_testkit::helm()?);
    helm.args(["template", "wfe-operator"]).arg(release.file(&format!("wfe-operator-{VERSION}.tgz")));
    let rendered = run(helm.env("HOME", &release.work))?;
    let image = format!("wfe-operator:{VERSION}");
    ensure!(rendered.contains(&image), "the chart does not run the image {image}");
    println!("chart: renders, with the image {image}");
    Ok(())
}

fn main() -> Result<()> {
    let work = std::env::temp_dir().join(format!("wfe-released-{}", std::process::id()));
    fs::create_dir_all(&work)?;
    let release = Release { dist: Arguments::parse().dist, work };
    sums(&release)?;
    binary::programs(&release)?;
    plugin::archives(&release)?;
    krew::manifest(&release)?;
    sbom::all(&release)?;
    chart(&release)?;
    image::image(&release)
}
