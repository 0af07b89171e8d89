//! The connections to the API server: a pool of TLS connections that trust only the authority in a kubeconfig.
//!
//! The headers of each forwarded request carry the identity of its sender. The connections themselves have no
//! credentials.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri, header};
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};

type Sending = dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, Result<Response<Incoming>, Error>> + Send + Sync;

/// The server to which the proxy forwards requests.
#[derive(Clone)]
pub(super) struct Upstream {
    /// Scheme and authority.
    base: Uri,
    send: Arc<Sending>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Returns the API server of a kubeconfig.
    pub(super) async fn of(kubeconfig: &Path) -> Result<Self> {
        let read = Kubeconfig::read_from(kubeconfig).context("the kubeconfig cannot be read")?;
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        let connector = config.rustls_https_connector().context("no TLS towards the API server")?;
        Ok(Self::through(config.cluster_url, connector))
    }

    /// Returns a server without TLS.
    #[cfg(test)]
    pub(super) fn plain(base: Uri) -> Self {
        Self::through(base, hyper_util::client::legacy::connect::HttpConnector::new())
    }

    fn through<C: Connect + Clone + Send + Sync + 'static>(base: Uri, connector: C) -> Self {
        let client: Client<C, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
        Self { base, send: Arc::new(move |request| Box::pin(client.request(request))) }
    }

    /// Forwards a request, and returns the answer as soon as its headers have arrived.
    pub(super) async fn forward(&self, parts: &Parts, body: Bytes) -> Result<Response<Incoming>> {
        let mut uri = self.base.clone().into_parts();
        uri.path_and_query = parts.uri.path_and_query().cloned();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = Uri::from_parts(uri)?;
        *request.headers_mut() = parts.headers.clone();
        for ours in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
            request.headers_mut().remove(ours);
        }
        Ok((self.send)(request).await?)
    }
}
