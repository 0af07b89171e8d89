//! Finds the binaries and manifests that `tests/controlplane/build` has built. Builds nothing itself, and needs no Go.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::stack::Tekton;

/// The directory with the tools and the manifests of a control plane.
#[derive(Debug, Clone)]
pub struct Assets {
    dir: PathBuf,
}

impl Assets {
    /// Finds the assets: `WFE_CONTROLPLANE_ASSETS` (for the oldest Tekton: `WFE_CONTROLPLANE_ASSETS_OLDEST`) if the
    /// variable is set, otherwise the result of `tests/controlplane/build`.
    pub fn find(tekton: Tekton) -> Result<Self> {
        let (variable, args): (_, &[&str]) = match tekton {
            Tekton::None | Tekton::Current => ("WFE_CONTROLPLANE_ASSETS", &[]),
            Tekton::Oldest => ("WFE_CONTROLPLANE_ASSETS_OLDEST", &["--tekton", "oldest"]),
        };
        if let Some(dir) = std::env::var_os(variable) {
            return Ok(Self { dir: dir.into() });
        }
        Ok(Self { dir: built("the control plane", CONTROL_PLANE, args)? })
    }

    /// Returns the directory of the assets.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of a tool, such as `kubectl`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }

    /// Returns the path of a manifest or of a directory of manifests, such as `tekton/300-crds`.
    #[must_use]
    pub fn manifest(&self, name: &str) -> PathBuf {
        self.dir.join("manifests").join(name)
    }

    /// Returns the version of Tekton, such as `v1.12.0`.
    pub fn tekton_version(&self) -> Result<String> {
        let file = self.manifest("tekton/version");
        let version = std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        Ok(version.trim_end().to_owned())
    }
}

/// Finds Helm: `WFE_HELM` if the variable is set, otherwise the result of `tests/controlplane/build --helm`.
pub fn helm() -> Result<PathBuf> {
    match std::env::var_os("WFE_HELM") {
        Some(program) => Ok(program.into()),
        None => Ok(built("Helm", CONTROL_PLANE, &["--helm"])?.join("helm")),
    }
}

/// Finds the directory of an earlier operator that `tests/upgrade/build` has built: `wfe-operator`, `crds` and
/// `config`.
pub fn previous() -> Result<PathBuf> {
    built("the operator to upgrade from", "tests/upgrade/build", &[])
}

/// Finds the directory of the example programs that `clients/build` has built: `orchestrator`, and `python/bin/python`.
pub fn clients() -> Result<PathBuf> {
    built("what the programs of clients/ need", "clients/build", &[])
}

const CONTROL_PLANE: &str = "tests/controlplane/build";

/// Runs a build script with these arguments, and returns the directory that the script prints.
fn built(what: &str, script: &str, args: &[&str]) -> Result<PathBuf> {
    let build = repository().join(script);
    let output = Command::new(&build)
        .args(args)
        .arg("--print-dir")
        .output()
        .with_context(|| format!("{} could not be run", build.display()))?;
    if output.status.code() == Some(3) {
        let command = [&[script], args].concat().join(" ");
        bail!("{what} is not built yet: run {command} (once; it says how long it takes)");
    }
    if !output.status.success() {
        bail!("{script}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let dir = String::from_utf8(output.stdout).context("the assets directory is not UTF-8")?;
    Ok(dir.trim_end().into())
}

/// Returns the root of the repository in which this crate was compiled; `WFE_REPOSITORY` overrides it.
#[must_use]
pub fn repository() -> PathBuf {
    std::env::var_os("WFE_REPOSITORY").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").components().collect::<PathBuf>(),
        PathBuf::from,
    )
}
