//! Serves one page over HTTP. The number and the time of connections are limited: every program of this machine can
//! open one.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use wfe_view::printable;

use super::door::Door;
use crate::page::{Window, policy};

/// The time-out of a request's head: a browser on this machine sends it at once.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// The time-out of a connection: longer than the script of the page waits for its answer.
const CONNECTION_WITHIN: Duration = Duration::from_mins(2);
/// The limit of connections: a browser opens at most six to one server, and two browsers are enough.
const CONNECTIONS: usize = 12;
/// How long to wait if no connection can be accepted, for example because the process has no file descriptor left.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests until it is dropped.
pub(super) async fn serve(listener: TcpListener, door: &Door, html: impl AsyncFn(Option<Window>) -> Result<String>) {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => open.push(connection(stream, door, &html)),
                Err(_) => sleep(PAUSE).await,
            },
            Some(()) = open.next() => {}
        }
    }
}

/// Answers one request, and then closes the connection: no connection stays idle.
async fn connection(stream: TcpStream, door: &Door, html: &impl AsyncFn(Option<Window>) -> Result<String>) {
    let service = service_fn(async |request: Request<_>| {
        Ok::<_, Infallible>(answer(door, request.method(), request.uri(), request.headers(), html).await)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).keep_alive(false);
    // A browser that goes away needs no answer.
    let _ = timeout(CONNECTION_WITHIN, http.serve_connection(TokioIo::new(stream), service)).await;
}

async fn answer(
    door: &Door,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    html: &impl AsyncFn(Option<Window>) -> Result<String>,
) -> Response<Full<Bytes>> {
    match door.judge(method, uri, headers) {
        Err((status, why)) => response(status, "text/plain; charset=utf-8", format!("{why}\n")),
        Ok(window) => match html(window).await {
            Ok(page) => response(StatusCode::OK, "text/html; charset=utf-8", page),
            Err(error) => {
                let why = printable::line(&format!("{error:#}")).into_owned();
                response(StatusCode::BAD_GATEWAY, "text/plain; charset=utf-8", why)
            }
        },
    }
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET"));
    }
    // A frame could trick a person into a click. A policy in the page itself cannot forbid frames.
    if let Ok(policy) = HeaderValue::from_str(&format!("{}; frame-ancestors 'none'", policy())) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Sends requests to a server, and returns the answers.
    async fn asked(requests: impl Fn(&str, u16) -> Vec<String>) -> Vec<String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door::new(address.port()).unwrap();
        let path = door.address().replace(&format!("http://{address}"), "");
        let html = async |window: Option<Window>| match window {
            Some(Window::Day) => Err(anyhow::anyhow!("cannot list pods:\n\u{1b}[2J forbidden")),
            _ => Ok("<p>the page</p>".to_owned()),
        };
        let ask = async {
            let mut answers = Vec::new();
            for request in requests(&path, address.port()) {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                answers.push(answer);
            }
            answers
        };
        tokio::select! {
            () = serve(listener, &door, html) => unreachable!("it serves until it is dropped"),
            answers = ask => answers,
        }
    }

    #[tokio::test]
    async fn a_browser_gets_the_page_and_nobody_else_gets_a_word_of_it() {
        let request = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answers = asked(|path, port| {
            let ours = format!("127.0.0.1:{port}");
            vec![
                request(&format!("GET {path}"), &ours),
                request(&format!("GET {path}"), &format!("evil.example:{port}")),
                request(&format!("POST {path}"), &ours),
                request("GET /00000000000000000000000000000000/", &ours),
                request(&format!("GET {path}?window=24h"), &ours),
            ]
        })
        .await;
        let statuses: Vec<&str> = answers.iter().map(|it| &it["HTTP/1.1 ".len()..][..3]).collect();
        assert_eq!(statuses, ["200", "403", "405", "404", "502"]);
        assert!(answers[0].ends_with("\r\n\r\n<p>the page</p>"), "{}", answers[0]);
        assert!(answers[1..].iter().all(|it| !it.contains("the page")));
        assert!(answers[2].contains("\r\nallow: GET\r\n"), "{}", answers[2]);
        assert!(answers[4].ends_with("cannot list pods:\\n\\u{1b}[2J forbidden"), "{}", answers[4]);
        for answer in &answers {
            for header in [
                "cache-control: no-store",
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "content-security-policy: default-src 'none'; ",
                "; frame-ancestors 'none'\r\n",
            ] {
                assert!(answer.contains(header), "{header} in {answer}");
            }
        }
    }
}
