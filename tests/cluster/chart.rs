//! The Helm chart: what it renders and what it refuses; installed, upgraded and uninstalled by the real Helm; the
//! operator exactly as it is deployed; and who may do what by the roles that come with it.

mod dry_run;
mod installed;
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
    /// Prepares it for a test of this name, which finds the directory empty.
    fn new(test: &str) -> Result<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chart-{test}"));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        Ok(Self { program: wfe_testkit::helm()?, dir, kubeconfig: None })
    }

    /// Prepares it for a test that installs something here.
    pub(crate) fn on(control_plane: &ControlPlane, test: &str) -> Result<Self> {
        Ok(Self { kubeconfig: Some(control_plane.kubeconfig().to_owned()), ..Self::new(test)? })
    }

    /// Where the program is.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The directory of its own.
    pub(crate) fn home(&self) -> &Path {
        &self.dir
    }

    /// Runs it to its end, and says whether that was a good one, and what it printed: its output, or what went wrong.
    pub(crate) fn try_run(&self, args: &[&str]) -> Result<(bool, String)> {
        let mut command = Command::new(&self.program);
        command.args(args).env("HOME", &self.dir).env_remove("KUBECONFIG");
        for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(home, self.dir.join("helm"));
        }
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.output().context("helm cannot be started")?;
        let text = if output.status.success() { output.stdout } else { output.stderr };
        Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Result<String> {
        let (ok, said) = self.try_run(args)?;
        ensure!(ok, "helm {}: {said}", args.join(" "));
        Ok(said)
    }

    /// Packs the chart, as whoever gets it has it.
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
