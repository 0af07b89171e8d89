//! The directory of a running control plane: its paths, and how it is deleted.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::assets::{Assets, repository};
use crate::pki::Pki;
use crate::random;

/// The owners of the static tokens, by the names of their kubeconfigs. All are administrators. The audit log shows each
/// under a user name of its own.
pub(crate) const USERS: [&str; 7] = [
    "admin",
    "kube-controller-manager",
    "kube-scheduler",
    "tekton-controller",
    "tekton-resolvers",
    "tekton-webhook",
    "kwok",
];

/// Returns a user name. The programs of Tekton have the service accounts of Tekton's release, by which our policies
/// recognize them.
fn user_name(user: &str) -> &str {
    match user {
        "tekton-controller" => "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller",
        "tekton-resolvers" => "system:serviceaccount:tekton-pipelines-resolvers:tekton-pipelines-resolvers",
        "tekton-webhook" => "system:serviceaccount:tekton-pipelines:tekton-pipelines-webhook",
        other => other,
    }
}

/// A run directory, locked while its control plane runs.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    logs: PathBuf,
    pub(crate) assets: Assets,
    /// The tokens of [`USERS`], in their order.
    tokens: Vec<String>,
    _lock: fs::File,
}

impl Place {
    /// Creates a run directory under `WFE_RUN_DIR`, or under the system's temporary directory.
    pub(crate) fn create(assets: Assets) -> Result<Self> {
        let parent = std::env::var_os("WFE_RUN_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        sweep(&parent);
        let dir = parent.join(format!("{PREFIX}{}", random::letters(10)));
        let logs = dir.join("logs");
        Self::create_in(dir, logs, assets)
    }

    /// Creates a directory in which a prepared copy is made. The logs of the copy are among the logs of this control
    /// plane.
    pub(crate) fn create_for_copy(&self, dir: PathBuf) -> Result<Self> {
        Self::create_in(dir, self.logs.join("prepare"), self.assets.clone())
    }

    fn create_in(dir: PathBuf, logs: PathBuf, assets: Assets) -> Result<Self> {
        fs::create_dir_all(&logs).with_context(|| format!("{} cannot be made", logs.display()))?;
        fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        let lock = fs::File::create(dir.join("lock"))?;
        lock.try_lock().with_context(|| format!("another control plane runs in {}", dir.display()))?;
        let tokens: Vec<String> =
            USERS.iter().map(|_| format!("{:016x}{:016x}", random::number(), random::number())).collect();
        let lines: Vec<String> = USERS
            .iter()
            .zip(&tokens)
            .map(|(user, token)| format!("{token},{0},{0},\"system:masters\"\n", user_name(user)))
            .collect();
        fs::write(dir.join("tokens.csv"), lines.concat())?;
        Ok(Self { dir, logs, assets, tokens, _lock: lock })
    }

    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.logs.join(format!("{component}.log"))
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    pub(crate) fn pki(&self) -> Pki {
        Pki::at(&self.dir.join("pki"))
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// Returns a file of `tests/controlplane` in the repository.
    pub(crate) fn source(name: &str) -> PathBuf {
        repository().join("tests/controlplane").join(name)
    }

    /// Returns the path of the kubeconfig of one of [`USERS`].
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        if user == "admin" { self.dir.join("kubeconfig") } else { self.dir.join(format!("kubeconfig-{user}")) }
    }

    /// Writes the kubeconfigs of all [`USERS`] for an API server at `url`.
    pub(crate) fn write_kubeconfigs(&self, url: &str) -> Result<()> {
        for (user, token) in USERS.iter().zip(&self.tokens) {
            write_kubeconfig(&self.kubeconfig(user), url, &self.pki().authority(), token, "default")?;
        }
        Ok(())
    }

    /// Removes the directory. If a person shall read the logs (`keep`), only the large parts are removed.
    pub(crate) fn remove(&self, keep: bool) {
        // If the removal fails, a later start removes the directory.
        if keep {
            drop(fs::write(self.dir.join(KEEP), ""));
            drop(fs::remove_dir_all(self.etcd()));
        } else {
            drop(fs::remove_dir_all(&self.dir));
        }
    }
}

const PREFIX: &str = "wfe-control-plane-";
const KEEP: &str = "keep";
/// The age at which an unlocked directory is removed. A younger one may belong to a control plane that has not locked
/// it yet.
const SWEEP_AFTER: Duration = Duration::from_mins(1);

/// Removes the run directories of killed supervisors, which no process has locked.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !ours || path.join(KEEP).exists() {
            continue;
        }
        let old = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > SWEEP_AFTER));
        let free = match fs::File::open(path.join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // A lock that cannot be opened (for example with too many open files) may belong to a running control
            // plane.
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if old && free {
            drop(fs::remove_dir_all(&path));
        }
    }
}

/// Writes a kubeconfig with one cluster and one token, as JSON. Every JSON file is a YAML file too.
pub(crate) fn write_kubeconfig(path: &Path, url: &str, authority: &Path, token: &str, namespace: &str) -> Result<()> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": authority}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        "current-context": "test",
    });
    std::fs::write(path, serde_json::to_string_pretty(&config)?)
        .with_context(|| format!("{} cannot be written", path.display()))
}
