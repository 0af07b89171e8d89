//! The certificate of a port. Its files are read regularly, because issuers replace certificates before they expire.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, server};

/// How long a certificate is used before its files are read again. A mounted Secret is updated with a minute's delay
/// anyway, and clients cannot cause additional reads.
const READ_EVERY: Duration = Duration::from_secs(30);

/// The files of a certificate and its key, and what was last read from them.
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    read: Mutex<(Instant, Arc<ServerConfig>)>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// If the files cannot be read, or do not belong together.
    pub fn read(certificate: PathBuf, key: PathBuf) -> anyhow::Result<Self> {
        let config = load(&certificate, &key)?;
        Ok(Self { certificate, key, read: Mutex::new((Instant::now(), config)) })
    }

    /// Returns the acceptor for the next connection. If the new files cannot be used, the earlier certificate stays in
    /// use.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0.elapsed() >= READ_EVERY {
            read.0 = Instant::now();
            match load(&self.certificate, &self.key) {
                Ok(config) => read.1 = config,
                Err(error) => tracing::warn!(error = format!("{error:#}"), "the certificate stays as it was"),
            }
        }
        TlsAcceptor::from(read.1.clone())
    }
}

fn load(certificate: &PathBuf, key: &PathBuf) -> anyhow::Result<Arc<ServerConfig>> {
    let cannot_read = |file: &PathBuf| format!("cannot use {} for the metrics", file.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| cannot_read(certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| cannot_read(key))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .context("no version of TLS can be used")?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("{}, or {}", cannot_read(certificate), key.display()))?;
    // Each connection has one request, so sessions are neither resumed nor stored.
    config.session_storage = Arc::new(server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
