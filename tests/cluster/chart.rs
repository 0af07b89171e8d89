//! Tests of the Helm chart:
//! - what the chart renders, and what it refuses;
//! - how the real Helm installs, upgrades and uninstalls it;
//! - the operator exactly as deployed, and the permissions in the shipped roles.

mod dry_run;
mod installed;
mod owners;
mod people;
mod rendered;
mod values;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use wfe_testkit::{ControlPlane, repository};

pub(crate) const RELEASE: &str = "wfe-operator";
pub(crate) const NAMESPACE: &str = "kubernaut-system";

/// Helm with a directory of its own.
pub(crate) struct Helm {
    program: PathBuf,
    dir: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    /// Prepares Helm for a test, and empties the test's directory.
    fn new(test: &str) -> Result<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chart-{test}"));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        Ok(Self { program: wfe_testkit::helm()?, dir, kubeconfig: None })
    }

    /// Prepares Helm for a test that installs something on this control plane.
    pub(crate) fn on(control_plane: &ControlPlane, test: &str) -> Result<Self> {
        Ok(Self { kubeconfig: Some(control_plane.kubeconfig().to_owned()), ..Self::new(test)? })
    }

    /// Returns the path of the program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns Helm's directory.
    pub(crate) fn home(&self) -> &Path {
        &self.dir
    }

    /// Runs Helm until it ends. Returns whether it succeeded, and its output or its error.
    pub(crate) fn try_run(&self, args: &[&str]) -> Result<(bool, String)> {
        let output = self.command(args).output().context("helm cannot be started")?;
        let text = if output.status.success() { output.stdout } else { output.stderr };
        Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
    }

    /// Prepares a command that calls Helm.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // Each call of Helm ends before it needs much memory.
        command.args(args).env("HOME", &self.dir).env("GOGC", "off").env_remove("KUBECONFIG");
        for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(home, self.dir.join("helm"));
        }
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Result<String> {
        let (ok, said) = self.try_run(args)?;
        ensure!(ok, "helm {}: {said}", args.join(" "));
        Ok(said)
    }

    /// Packs the chart as it is released.
    pub(crate) fn package(&self) -> Result<String> {
        self.run(&["package", &chart(), "--destination", &self.dir.to_string_lossy()])?;
        let package = self.dir.join(format!("wfe-operator-{}.tgz", env!("CARGO_PKG_VERSION")));
        ensure!(package.is_file(), "the chart has another version than the operator: no {}", package.display());
        Ok(package.to_string_lossy().into_owned())
    }
}

fn chart() -> String {
    repository().join("deploy/chart").to_string_lossy().into_owned()
}
