//! The files on disk for a cluster that is given.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use kube::config::{Cluster, Kubeconfig};

use crate::pki::Pki;
use crate::random;

/// A directory for the files of a given cluster. It is deleted when this value is dropped.
#[derive(Debug)]
pub(crate) struct GivenDir(PathBuf);

impl GivenDir {
    /// Creates the directory. The cluster's certificate authority has the same path in it as in a control plane of our
    /// own.
    pub(crate) fn create(kubeconfig: &Path) -> Result<Self> {
        let dir = Self(std::env::temp_dir().join(format!("wfe-given-{}", random::letters(10))));
        fs::create_dir_all(dir.0.join("pki"))?;
        let cluster = cluster(kubeconfig)?;
        let authority = match (cluster.certificate_authority_data, cluster.certificate_authority) {
            (Some(data), _) => BASE64_STANDARD.decode(data).context("the certificate authority is not base64")?,
            (None, Some(file)) => fs::read(&file).with_context(|| format!("{file} cannot be read"))?,
            (None, None) => bail!("the kubeconfig holds no certificate authority for its cluster"),
        };
        fs::write(Pki::at(&dir.0.join("pki")).authority(), authority)?;
        Ok(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for GivenDir {
    fn drop(&mut self) {
        // If the removal fails, the files stay in the system's temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns the cluster of a kubeconfig's current context.
pub(crate) fn cluster(kubeconfig: &Path) -> Result<Cluster> {
    let config =
        Kubeconfig::read_from(kubeconfig).with_context(|| format!("{} cannot be read", kubeconfig.display()))?;
    current_cluster(config)
}

/// Returns the cluster (address and certificate, no user) of the current context.
pub(crate) fn current_cluster(config: Kubeconfig) -> Result<Cluster> {
    let current = config.current_context.context("the kubeconfig has no current context")?;
    let context = config.contexts.into_iter().find(|context| context.name == current).and_then(|named| named.context);
    let wanted = context.context("the current context of the kubeconfig is not in it")?.cluster;
    let cluster = config.clusters.into_iter().find(|cluster| cluster.name == wanted).and_then(|named| named.cluster);
    cluster.context("the cluster of the current context is not in the kubeconfig")
}
