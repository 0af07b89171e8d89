//! A minimal HTTP client for servers on this machine: one request for each connection, without TLS.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How long a request may take. All servers are on this machine.
const DEADLINE: Duration = Duration::from_secs(10);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the status and the body as text for an error message.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}

/// Sends one request to `address` (host:port) and reads the whole answer.
pub(crate) async fn request(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Answer> {
    let work = async {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        connection.abort();
        anyhow::Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    };
    tokio::time::timeout(DEADLINE, work)
        .await
        .with_context(|| format!("{method} http://{address}{path}: no answer within {DEADLINE:?}"))?
        .with_context(|| format!("{method} http://{address}{path}"))
}

/// Sends a GET.
pub(crate) async fn get(address: &str, path: &str) -> Result<Answer> {
    request("GET", address, path, &[], Vec::new()).await
}
