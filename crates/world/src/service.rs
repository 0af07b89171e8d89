//! The fake API server behind kube's `Client`: a tower service in the same thread, without sockets.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, Stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::watch;
use tower::Service;
use wfe_core::Time;

use crate::server::{Reply, Server, Watch};

/// What the service answers with.
pub type Answered = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A fake API server that any number of clients talk to. Cheap to clone; all clones are one server.
#[derive(Clone)]
pub struct FakeApi {
    server: Arc<Mutex<Server>>,
    /// Says that something was changed.
    changed: watch::Sender<u64>,
    now: Arc<dyn Fn() -> Time + Send + Sync>,
}

impl FakeApi {
    /// Makes an empty server. `now` tells it the time whenever a request arrives.
    #[must_use]
    pub fn new(seed: u64, now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let server = Arc::new(Mutex::new(Server::new(seed)));
        Self { server, changed: watch::Sender::default(), now: Arc::new(now) }
    }

    /// Makes a client of it.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// Looks at the server, or changes it, between two requests.
    pub fn with<T>(&self, look: impl FnOnce(&mut Server) -> T) -> T {
        let mut server = self.server();
        let seen = look(&mut server);
        self.changed.send_replace(server.revision());
        seen
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self, request: Request<Body>) -> Answered {
        let (parts, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return rendered(400, &Value::String(error.to_string())),
        };
        let request = Request::from_parts(parts, body);
        let reply = {
            let mut server = self.server();
            let reply = server.handle(&request, (self.now)());
            self.changed.send_if_modified(|revision| std::mem::replace(revision, server.revision()) != *revision);
            reply
        };
        match reply {
            Reply::Answer(answer) => rendered(answer.code, &answer.body),
            Reply::Watch(watch) => {
                let body = StreamBody::new(self.deliver(watch)).boxed_unsync();
                Response::builder().header("content-type", "application/json").body(body).unwrap_or_default()
            }
        }
    }

    /// Delivers the events of a watch as lines, until it is over.
    fn deliver(self, watch: Watch) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send {
        let changed = self.changed.subscribe();
        stream::unfold((self, watch, changed), |(api, mut watch, mut changed)| async move {
            loop {
                changed.mark_unchanged();
                let now = (api.now)();
                let events = api.server().events(&mut watch, now);
                if !events.is_empty() {
                    let mut lines: Vec<String> = events.iter().map(Value::to_string).collect();
                    lines.push(String::new());
                    return Some((Ok(Frame::data(Bytes::from(lines.join("\n")))), (api, watch, changed)));
                }
                if watch.is_over() {
                    return None;
                }
                let wait = (watch.wake() - now).to_std().unwrap_or(Duration::ZERO);
                drop(tokio::time::timeout(wait, changed.changed()).await);
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
