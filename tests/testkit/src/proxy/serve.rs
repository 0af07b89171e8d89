//! The serving side of the proxy: accepts connections, and applies to each request what the plan decides.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;

use anyhow::{Result, bail};
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::sync::oneshot;

use super::fault::{Answer, Fault, Refusal};
use super::gate::When;
use super::request::{Request, Verb};
use super::shared::{Course, Shared};
use super::upstream::Upstream;

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// How a request ends.
enum End {
    /// The proxy sends this answer.
    Answer(Response<Body>),
    /// The proxy closes the connection.
    Close,
    /// The request stays unanswered.
    Never,
}

/// Serves until the sender of `stopped` is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    upstream: Upstream,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<()>,
) {
    let accept = async || -> std::io::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(connection(stream, upstream.clone(), Arc::clone(&shared)));
        }
    };
    tokio::select! {
        ended = accept() => {
            let Err(error) = ended;
            eprintln!("the fault proxy has stopped: {error}");
        }
        _ = stopped => {}
    }
}

/// Serves one connection until the client, the operating system or [`super::Proxy::cut_all`] closes it.
async fn connection(stream: tokio::net::TcpStream, upstream: Upstream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (upstream, shared) = (upstream.clone(), Arc::clone(&shared));
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            // The request runs in a task of its own: once it is read, it is carried out even if the connection is
            // closed.
            let (end, ended) = oneshot::channel();
            tokio::spawn(async move {
                // If the connection was closed, the receiver is gone.
                drop(end.send(handle(&parts, body, &upstream, shared).await));
            });
            match ended.await {
                Ok(End::Answer(answer)) => Ok(answer),
                Ok(End::Never) => std::future::pending().await,
                // hyper closes the connection if the service returns an error.
                Ok(End::Close) | Err(_) => bail!("closed"),
            }
        }
    });
    let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // The side that closed the connection knows the reason.
        _ = serving => {}
        _ = cuts.changed() => {}
    }
}

/// A request while the proxy processes it.
struct Trip<'a> {
    request: Request,
    parts: &'a Parts,
    body: Bytes,
    upstream: &'a Upstream,
    shared: Arc<Shared>,
}

async fn handle(parts: &Parts, body: Bytes, upstream: &Upstream, shared: Arc<Shared>) -> End {
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let (request, course) = shared.admit(Request::read(&parts.method, path, query, &body));
    let number = request.number;
    let trip = Trip { request, parts, body, upstream, shared: Arc::clone(&shared) };
    let end = match course {
        Course::Fault(fault) => trip.meet(fault).await,
        Course::Held(hold) => {
            let request = trip.request.clone();
            match hold.when {
                When::Before => {
                    if hold.stand(request).await {
                        trip.pass().await
                    } else {
                        End::Close
                    }
                }
                When::After => {
                    let end = trip.pass().await;
                    if hold.stand(request).await { end } else { End::Close }
                }
            }
        }
    };
    shared.passable().await;
    if let End::Answer(answer) = &end {
        shared.note_answered(number, answer.status().as_u16());
    }
    end
}

impl Trip<'_> {
    async fn meet(self, fault: Fault) -> End {
        match fault {
            Fault::Pass => self.pass().await,
            Fault::Delay { before, after } => {
                tokio::time::sleep(before).await;
                let end = self.pass().await;
                tokio::time::sleep(after).await;
                end
            }
            Fault::Drop => End::Never,
            Fault::Refuse(refusal) => End::Answer(refuse(&refusal)),
            Fault::Close => End::Close,
            Fault::LoseAnswer => {
                self.pass().await;
                End::Close
            }
            Fault::NeverAnswer => {
                self.pass().await;
                End::Never
            }
            Fault::Duplicate { pause, answer: Answer::Second } => {
                self.pass().await;
                tokio::time::sleep(pause).await;
                self.pass().await
            }
            Fault::Duplicate { pause, answer: Answer::First } => {
                let end = self.pass().await;
                let (parts, body, upstream) = (self.parts.clone(), self.body, self.upstream.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    self.shared.passable().await;
                    // The client already has the first answer.
                    drop(upstream.forward(&parts, body).await);
                });
                end
            }
            Fault::Expire => End::Answer(expire()),
        }
    }

    /// Forwards the request. If the API server cannot be reached, the connection is closed, as it would be without a
    /// proxy.
    async fn pass(&self) -> End {
        match self.forward().await {
            Ok(answer) => End::Answer(answer),
            Err(_) => End::Close,
        }
    }

    async fn forward(&self) -> Result<Response<Body>> {
        self.shared.passable().await;
        let answer = self.upstream.forward(self.parts, self.body.clone()).await?;
        let (mut parts, body) = answer.into_parts();
        parts.headers.remove(header::CONNECTION);
        parts.headers.remove(header::TRANSFER_ENCODING);
        let body = if self.request.verb == Verb::Watch {
            watched(body, Arc::clone(&self.shared))
        } else {
            // The API server has applied the request only once the whole answer has arrived.
            whole(body.collect().await?.to_bytes())
        };
        self.shared.note_applied(self.request.number, parts.status.as_u16());
        Ok(Response::from_parts(parts, body))
    }
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// Forwards the pieces of a watch as they arrive, except during a freeze or a partition.
fn watched(body: Incoming, shared: Arc<Shared>) -> Body {
    let pieces = stream::unfold((body, shared), |(mut body, shared)| async {
        let piece = body.frame().await?;
        shared.watchable().await;
        Some((piece, (body, shared)))
    });
    StreamBody::new(pieces).boxed_unsync()
}

fn refuse(refusal: &Refusal) -> Response<Body> {
    let (content_type, body) = if refusal.plain {
        ("text/plain; charset=utf-8", refusal.message.clone())
    } else {
        (JSON, refusal.status().to_string())
    };
    let mut answer = Response::new(whole(body));
    *answer.status_mut() = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    if let Some(seconds) = refusal.retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

fn expire() -> Response<Body> {
    let event = json!({"type": "ERROR", "object": Refusal::expired().status()});
    let mut answer = Response::new(whole(format!("{event}\n")));
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(JSON));
    answer
}

const JSON: &str = "application/json";
