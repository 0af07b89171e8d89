//! The fake API server behind kube's `Client`, as a tower service in the same thread and without sockets.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, Stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tower::Service;
use wfe_core::Time;

use crate::server::{Answer, Reply, Server, USER, Watch};

/// The answer of the service.
pub type Answered = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A fake API server for any number of clients. All clones share one server.
#[derive(Clone)]
pub struct FakeApi {
    server: Arc<Mutex<Server>>,
    /// Notifies the cluster of changes.
    changed: watch::Sender<u64>,
    /// Notifies the watches in the order in which they wait. A channel of tokio would notify them in a random order.
    waiting: Arc<Notify>,
    now: Arc<dyn Fn() -> Time + Send + Sync>,
}

impl FakeApi {
    /// Creates an empty server. `now` returns the time of each request.
    #[must_use]
    pub fn new(seed: u64, now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let server = Arc::new(Mutex::new(Server::new(seed)));
        Self { server, changed: watch::Sender::default(), waiting: Arc::default(), now: Arc::new(now) }
    }

    /// Creates a client of this server.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// Reads or changes the server between two requests, and notifies the watches.
    pub fn with<T>(&self, look: impl FnOnce(&mut Server) -> T) -> T {
        let mut server = self.server();
        let seen = look(&mut server);
        self.tell(server.revision());
        seen
    }

    /// Sends a request as a user within the cluster, without the simulated network, and returns the answer at once. A
    /// PATCH is a merge patch.
    #[must_use]
    pub fn ask(&self, user: &str, method: &Method, path: &str, body: &Value) -> Answer {
        let sent = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header(USER, user).header("content-type", media);
        let Ok(request) = request.body(sent) else {
            return Answer { code: 400, body: Value::String(format!("{path} is no path")) };
        };
        match self.handle(&request) {
            Reply::Answer(answer) => answer,
            Reply::Watch(_) => Answer { code: 400, body: Value::String("a watch takes a connection".to_owned()) },
        }
    }

    /// Returns the current objects of a collection in the order of their names.
    #[must_use]
    pub fn all(&self, path: &str) -> Vec<Value> {
        match self.ask("", &Method::GET, path, &Value::Null).body["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// Reads the server without notifying its watches.
    pub fn look<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        look(&self.server())
    }

    /// Returns a channel with the revision of the newest change.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, request: &Request<Bytes>) -> Reply {
        let mut server = self.server();
        let before = server.revision();
        let reply = server.handle(request, (self.now)());
        if server.revision() != before {
            self.tell(server.revision());
        }
        reply
    }

    fn tell(&self, revision: u64) {
        self.changed.send_replace(revision);
        self.waiting.notify_waiters();
    }

    async fn answer(self, request: Request<Body>) -> Answered {
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return rendered(400, &Value::String(error.to_string())),
        };
        let request = Request::from_parts(parts, body);
        match self.handle(&request) {
            Reply::Answer(answer) => rendered(answer.code, &answer.body),
            Reply::Watch(watch) => {
                let body = StreamBody::new(self.deliver(watch)).boxed_unsync();
                Response::builder().header("content-type", "application/json").body(body).unwrap_or_default()
            }
        }
    }

    /// Delivers the events of a watch as lines until the watch has ended.
    fn deliver(self, watch: Watch) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send {
        stream::unfold((self, watch), |(api, mut watch)| async move {
            loop {
                let waiting = Arc::clone(&api.waiting);
                let mut changed = pin!(waiting.notified());
                changed.as_mut().enable(); // changes from here on are not missed
                let now = (api.now)();
                let events = api.server().events(&mut watch, now);
                if !events.is_empty() {
                    let mut lines: Vec<String> = events.iter().map(Value::to_string).collect();
                    lines.push(String::new());
                    return Some((Ok(Frame::data(Bytes::from(lines.join("\n")))), (api, watch)));
                }
                if watch.is_over() {
                    return None;
                }
                let wait = (watch.wake() - now).to_std().unwrap_or(Duration::ZERO);
                drop(tokio::time::timeout(wait, changed).await);
            }
        })
    }
}

impl std::fmt::Debug for FakeApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeApi").finish_non_exhaustive()
    }
}

fn rendered(code: u16, body: &Value) -> Answered {
    let (media, text) = match body {
        Value::String(text) => ("text/plain; charset=utf-8", text.clone()),
        body => ("application/json", body.to_string()),
    };
    let body = Full::new(Bytes::from(text)).boxed_unsync();
    Response::builder().status(code).header("content-type", media).body(body).unwrap_or_default()
}

impl Service<Request<Body>> for FakeApi {
    type Response = Answered;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answered, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let api = self.clone();
        Box::pin(async move { Ok(api.answer(request).await) })
    }
}
