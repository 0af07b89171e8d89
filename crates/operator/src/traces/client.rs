//! The HTTP client of the collector: hyper and rustls, as for the API server. It uses no proxy and follows no redirect.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use wfe_view::error_chain::with_causes;

use super::environment::Wanted;

/// The largest answer that is read: a collector answers with a count and a message.
const MAX_ANSWER: usize = 64 * 1024;

/// Makes the client. Must be called within the runtime that the client will use.
///
/// # Errors
/// If the endpoint is no URL, or the certificates cannot be used.
pub(super) fn client(wanted: &Wanted) -> anyhow::Result<impl HttpClient + 'static> {
    let endpoint = wanted.endpoint.parse().with_context(|| format!("{} is no URL", wanted.endpoint))?;
    let mut config = Config::new(endpoint);
    config.root_cert = match &wanted.certificate {
        Some(file) => Some(authorities(file)?),
        // Without TLS, the certificate authorities of the system are not read, because the image has none.
        None if config.cluster_url.scheme_str() == Some("http") => Some(Vec::new()),
        None => None,
    };
    let connector = config.rustls_https_connector().context("cannot set up TLS")?;
    let client = Client::builder(TokioExecutor::new()).build(connector);
    Ok(Collector { client, timeout: wanted.timeout, runtime: Handle::current(), is_away: Arc::default() })
}

fn authorities(file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.with_context(|| format!("cannot use {} for traces", file.display()))?;
    Ok(read.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// The collector. The SDK sends requests to it from its own thread.
#[derive(Debug)]
struct Collector<C> {
    client: Client<C, Full<Bytes>>,
    /// The time-out of a request.
    timeout: Duration,
    runtime: Handle,
    /// Whether the last request failed. An unavailable collector is logged once, not with each batch.
    is_away: Arc<AtomicBool>,
}

#[async_trait]
impl<C: Connect + Clone + Debug + Send + Sync + 'static> HttpClient for Collector<C> {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, timeout) = (self.client.clone(), self.timeout);
        let ask = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // The thread of the SDK has no runtime, but a time-out needs a runtime when it is created.
        let answer = match self.runtime.spawn(async move { tokio::time::timeout(timeout, ask).await }).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(late)) => Err(late.into()),
            Err(stopped) => Err(stopped.into()),
        };
        self.note(&answer);
        answer
    }
}

impl<C> Collector<C> {
    /// Logs when the collector becomes unavailable, and when it is available again.
    fn note(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let trouble = match answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answers {}", answer.status())),
            Err(error) => Some(with_causes(error.as_ref())),
        };
        let was_away = self.is_away.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(error) if !was_away => {
                tracing::warn!(error, "traces cannot be sent, and are lost until the collector takes them again");
            }
            None if was_away => tracing::info!("traces are sent again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_thread_without_a_runtime_asks_and_gets_an_error_when_nobody_answers() {
        let endpoint = "http://127.0.0.1:9/v1/traces";
        let wanted = Wanted { endpoint: endpoint.to_owned(), timeout: Duration::from_secs(5), certificate: None };
        let client = client(&wanted).unwrap();
        let request = Request::post(endpoint).body(Bytes::new()).unwrap();
        let thread = std::thread::spawn(move || futures::executor::block_on(client.send_bytes(request)).is_err());
        assert!(tokio::task::spawn_blocking(move || thread.join()).await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn a_certificate_that_cannot_be_read_is_named() {
        let certificate = Some("/no/such/ca.pem".into());
        let wanted = Wanted { endpoint: "https://collector".to_owned(), timeout: Duration::from_secs(5), certificate };
        let error = client(&wanted).err().unwrap();
        assert_eq!(error.to_string(), "cannot use /no/such/ca.pem for traces");
    }
}
