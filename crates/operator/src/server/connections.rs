//! Accepts connections from unauthenticated clients, and limits their duration and number.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::tls::Certificates;

/// The time-out of a request's head. Prometheus and the kubelet send it in one packet, and their shortest time-out is a
/// second. Five seconds leave time to send a lost packet again.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// The time-out of a connection from its first byte to its last. Answers come from memory, so only a client that does
/// not read takes long. Prometheus gives up after ten seconds by default, and may be set to thirty.
const CONNECTION_WITHIN: Duration = Duration::from_secs(30);
/// The limit of connections per port. One or two Prometheus servers, the kubelet and a few people need ten. A
/// connection uses about ten kilobytes and a file descriptor. A process may have 1024 file descriptors.
const CONNECTIONS: usize = 64;
/// How long to wait if no connection can be accepted, for example because the process has run out of file descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers one request on each connection, until the process ends.
///
/// Beyond the limit, the oldest connection is closed to make room for the new one. If the new connection had to wait, a
/// few silent clients could make the kubelet's probes time out, and so cause a restart.
pub(super) async fn serve(listener: TcpListener, router: Router, certificates: Option<Certificates>) -> io::Result<()> {
    let mut open = Open::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let tls = certificates.as_ref().map(Certificates::acceptor);
                open.add(within_time(stream, tls, router.clone()));
            }
            Err(error) if is_of_the_caller(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers one request within the time-out, over TLS if the port uses it.
async fn within_time(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router) {
    let answer = async {
        match tls {
            None => answer(stream, router).await,
            Some(tls) => match timeout(HEAD_WITHIN, tls.accept(stream)).await {
                Ok(Ok(stream)) => answer(stream, router).await,
                Ok(Err(error)) => tracing::debug!(%error, "a caller does not speak our TLS"),
                Err(_) => tracing::debug!("a caller did not finish the handshake of TLS"),
            },
        }
    };
    if timeout(CONNECTION_WITHIN, answer).await.is_err() {
        tracing::debug!(seconds = CONNECTION_WITHIN.as_secs(), "a connection took too long");
    }
}

/// Answers one request and closes the connection. No connection is idle, and every connection ends.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).keep_alive(false);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Returns whether the client closed the connection before it was accepted.
fn is_of_the_caller(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The open connections.
#[derive(Default)]
struct Open {
    /// The tasks of the connections. Dropping the server ends all of them.
    tasks: JoinSet<()>,
    oldest_first: VecDeque<AbortHandle>,
}

impl Open {
    fn add(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        while self.tasks.try_join_next().is_some() {}
        self.oldest_first.retain(|connection| !connection.is_finished());
        if self.oldest_first.len() >= CONNECTIONS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            tracing::debug!(CONNECTIONS, "too many connections: the oldest one is closed");
            oldest.abort();
        }
        self.oldest_first.push_back(self.tasks.spawn(connection));
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;

    /// The default time-out of the kubelet's probes.
    const PROBE_WITHIN: Duration = Duration::from_secs(1);
    const REQUEST: &[u8] = b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n";

    async fn start(body: &'static str) -> (SocketAddr, AbortOnDrop) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/readyz", get(move || std::future::ready(body.repeat(1 << 20))));
        (address, AbortOnDrop(tokio::spawn(serve(listener, router, None)).abort_handle()))
    }

    struct AbortOnDrop(AbortHandle);

    impl Drop for AbortOnDrop {
        fn drop(&mut self) {
            self.0.abort();
        }
    }

    async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }

    /// Reads until the connection is closed or reset.
    async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn half_open_connections_keep_no_probe_from_its_answer() {
        let (address, _server) = start("").await;
        for heads in [&REQUEST[..0], &REQUEST[..10]] {
            let mut half_open = Vec::new();
            for _ in 0..3 * CONNECTIONS {
                half_open.push(send(address, heads).await);
            }
            let said = timeout(PROBE_WITHIN, async { rest(send(address, REQUEST).await).await }).await;
            let said = said.expect("the probe timed out");
            assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains("connection: close"), "{said}");
            drop(half_open);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_does_not_send_its_request_is_left() {
        let (address, _server) = start("").await;
        for head in [&REQUEST[..0], &REQUEST[..10]] {
            let begun = Instant::now();
            let said = rest(send(address, head).await).await;
            let took = begun.elapsed();
            assert!(took >= HEAD_WITHIN && took < CONNECTION_WITHIN, "{took:?}");
            assert!(!said.contains("200 OK"), "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_does_not_read_its_answer_is_left() {
        // The answer is larger than the buffers of both sockets.
        let (address, _server) = start("0123456789abcdef").await;
        let stream = send(address, REQUEST).await;
        sleep(CONNECTION_WITHIN * 2).await;
        let said = rest(stream).await;
        assert!(said.len() < 16 << 20, "all of the answer was sent, {} bytes", said.len());
    }
}
