//! A performer for tests whose API server is a function: it answers each request as the test requires. It tests how an
//! answer is handled; other tests cover what a real API server answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service;

use super::Performer;
use crate::clock::Clock;
use crate::cluster::client::Cluster;
use crate::cluster::crds::Crds;
use crate::cluster::leadership::Leadership;
use crate::cluster::staleness::Staleness;
use crate::events;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::traces::Traces;

/// The namespace of all runs.
pub(super) const RUNS: &str = "runs";

/// An answer of the API server.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// A status code and an object.
    Json(u16, Value),
    /// A status code and bytes that are no valid object.
    Bytes(u16, &'static str),
    /// No answer, ever.
    Never,
}

impl Answer {
    pub(super) fn found(object: Value) -> Self {
        Self::Json(200, object)
    }

    /// Makes a refusal in the API server's form.
    pub(super) fn refused(code: u16, reason: &str) -> Self {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
        });
        Self::Json(code, status)
    }

    /// Makes a page of a list. `token` refers to the next page, and is empty on the last one.
    pub(super) fn page(items: &[Value], token: &str) -> Self {
        Self::found(json!({"kind": "List", "apiVersion": "v1", "metadata": {"continue": token}, "items": items}))
    }
}

/// Returns each way in which a request can fail to return an object, with the label of the resulting error.
pub(super) fn failures() -> Vec<(Answer, &'static str)> {
    vec![
        (Answer::refused(403, "Forbidden"), "forbidden"),
        (Answer::refused(410, "Expired"), "refused"),
        (Answer::refused(429, "TooManyRequests"), "throttled"),
        (Answer::refused(500, "InternalError"), "server"),
        (Answer::refused(503, "ServiceUnavailable"), "server"),
        (Answer::refused(504, "Timeout"), "server"),
        (Answer::Bytes(502, "<html>bad gateway</html>"), "server"),
        (Answer::Bytes(200, "<html>log in first</html>"), "transport"),
        (Answer::Bytes(200, r#"{"metadata": {"name": "#), "transport"),
        (Answer::Bytes(200, ""), "transport"),
        (Answer::Never, "timeout"),
    ]
}

/// Makes a performer, and a counter of its requests.
pub(super) fn performer(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> (Performer, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let served = Served { answer: Arc::new(answer), asked: Arc::clone(&asked) };
    let metrics = Metrics::new().unwrap();
    let (leadership, staleness) = (Leadership::without_election(), Staleness::default());
    let cluster = Cluster::over(served, RUNS, leadership, metrics.clone(), staleness);
    let (events, _) = events::channel(cluster.clone(), metrics.clone(), Clock::system(), "test", RUNS);
    let crds = Crds::new(cluster.clone(), Health::new(), metrics.clone());
    (Performer::new(cluster, crds, metrics, events, Traces::default()), asked)
}

#[derive(Clone)]
struct Served {
    answer: Arc<dyn Fn(&str) -> Answer + Send + Sync>,
    asked: Arc<AtomicUsize>,
}

impl Service<Request<Body>> for Served {
    type Response = Response<Full<bytes::Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let uri = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let (code, body) = match (self.answer)(&uri) {
            Answer::Json(code, value) => (code, value.to_string()),
            Answer::Bytes(code, text) => (code, text.to_owned()),
            Answer::Never => return futures::future::pending().boxed(),
        };
        let answer = Response::builder().status(code).body(Full::new(body.into())).unwrap();
        futures::future::ready(Ok(answer)).boxed()
    }
}
