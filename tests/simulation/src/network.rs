//! The network between one replica and the API server. Every request takes some time, and some requests meet a fault of
//! the plan.
//!
//! A request that was sent stays in flight whatever happens to its sender. It may arrive after the sender has given up,
//! has lost the Lease or was killed.

mod fate;
mod refusal;
mod term;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, Stream};
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tower::Service;

use crate::plan::{Millis, Plan, Trouble};
use crate::record::Record;
use crate::server::USER;
use crate::service::{Answered, FakeApi};

use fate::Fate;
use term::Term;

/// The user of all replicas.
pub const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";

/// How long a request or an answer takes, in milliseconds.
const LATENCY: std::ops::Range<u64> = 1..12;
/// How many seconds a connection hangs after it has lost data, before it breaks. This is shorter than the time without
/// changes after which a world counts as at rest.
const HANGS: std::ops::Range<u64> = 1..45;

pub(crate) use term::RENEW_DEADLINE;

/// The connection broke, or was never established.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Broken;

/// An answer that the network delivers.
pub type Carried = Response<UnsyncBoxBody<Bytes, Broken>>;

/// The connection of one replica to the API server. Clones share it.
#[derive(Clone)]
pub struct Network(Arc<Inner>);

struct Inner {
    api: FakeApi,
    plan: Arc<Plan>,
    begin: Instant,
    replica: u8,
    record: Record,
    /// How many requests this replica has sent.
    sent: AtomicU64,
    /// The term within which the replica may write.
    term: Term,
}

impl Network {
    /// Connects a replica. `begin` is the time at which the plan begins.
    #[must_use]
    pub fn new(api: FakeApi, plan: Arc<Plan>, begin: Instant, replica: u8, record: Record) -> Self {
        let (sent, term) = (AtomicU64::new(0), Term::default());
        Self(Arc::new(Inner { api, plan, begin, replica, record, sent, term }))
    }

    /// Records that the replica's process starts again, and therefore no longer leads.
    pub(crate) fn restarted(&self) {
        self.0.term.end();
    }

    fn at(&self) -> Millis {
        u64::try_from(self.0.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn when(&self, at: Millis) -> Instant {
        self.0.begin + Duration::from_millis(at)
    }

    async fn send(self, request: Request<Body>) -> Result<Carried, Broken> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let at = self.at();
        self.0.record.sent(at, self.0.replica, &parts, &body);
        if let Some(late) = self.0.term.is_over_for(&parts, at) {
            let (replica, method, path) = (self.0.replica, &parts.method, parts.uri.path());
            self.0.record.broken(format!("replica {replica} sent a write {late}: {method} {path}"));
        }
        let claim = term::claim(&parts, &body);
        let number = self.0.sent.fetch_add(1, Ordering::Relaxed);
        let mut chance = fastrand::Rng::with_seed(
            self.0.plan.seed ^ (u64::from(self.0.replica) << 56) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        parts.headers.insert(USER, HeaderValue::from_static(OPERATOR));
        let watched = watched(&parts);
        let (fate, label) = fate::of(&self.0.plan, self.0.replica, at, &parts, watched.as_deref(), &mut chance);
        if let Some(label) = label {
            self.0.record.struck(label);
        }
        let (there, back) = (Duration::from_millis(chance.u64(LATENCY)), Duration::from_millis(chance.u64(LATENCY)));
        let hangs = Duration::from_secs(if chance.bool() { 0 } else { chance.u64(HANGS) });
        match fate {
            Fate::Lost => {
                self.0.record.kept_from_server(&parts, 504);
                sleep(there + hangs).await;
                Err(Broken)
            }
            Fate::Refused(answer) => {
                self.0.record.kept_from_server(&parts, answer.status().as_u16());
                sleep(there + back).await;
                Ok(answer.map(|body| body.map_err(never).boxed_unsync()))
            }
            Fate::Arrives { late, twice, answer_lost } => {
                let gap = twice.then(|| Duration::from_millis(chance.u64(0..3000)));
                let arrives = self.clone().arrive(parts, body, there + Duration::from_millis(late), gap);
                let (sender, answered) = oneshot::channel();
                tokio::spawn(async move {
                    let answer = arrives.await;
                    sleep(back).await;
                    drop(sender.send(answer)); // the sender of the request may be gone
                });
                let answer = answered.await.map_err(|_| Broken)?;
                if answer_lost {
                    sleep(hangs).await;
                    return Err(Broken);
                }
                if let Some(claim) = claim.filter(|_| answer.status().is_success()) {
                    self.0.term.take(claim, at);
                }
                Ok(match watched {
                    Some(resource) => answer.map(|body| self.carry(resource, body)),
                    None => answer.map(|body| body.map_err(never).boxed_unsync()),
                })
            }
        }
    }

    /// Delivers a request to the API server once, or twice with a pause, and returns the last answer.
    async fn arrive(self, parts: Parts, body: Bytes, after: Duration, again: Option<Duration>) -> Answered {
        sleep(after).await;
        let ask = || {
            let mut api = self.0.api.clone();
            let request = Request::from_parts(parts.clone(), Body::from(body.to_vec()));
            async move { api.call(request).await.unwrap_or_else(|never| match never {}) }
        };
        let answer = ask().await;
        match again {
            Some(gap) => {
                sleep(gap).await;
                ask().await
            }
            None => answer,
        }
    }

    /// Delivers the events of a watch, which may be late or held back, until the watch breaks.
    fn carry(self, resource: String, body: UnsyncBoxBody<Bytes, Infallible>) -> UnsyncBoxBody<Bytes, Broken> {
        StreamBody::new(self.frames(resource, body)).boxed_unsync()
    }

    fn frames(
        self,
        resource: String,
        body: UnsyncBoxBody<Bytes, Infallible>,
    ) -> impl Stream<Item = Result<Frame<Bytes>, Broken>> + Send {
        stream::unfold(Some((self, resource, body)), |state| async move {
            let (network, resource, mut body) = state?;
            let cut = network.next_cut(&resource);
            let next = async {
                let frame = body.frame().await;
                network.hold(&resource).await; // the end of a watch is held back too
                frame.map(|frame| frame.map_err(never))
            };
            tokio::select! {
                biased;
                () = sleep_until(cut) => Some((Err(Broken), None)),
                frame = next => frame.map(|frame| (frame, Some((network, resource, body)))),
            }
        })
    }

    /// Waits as long as the plan delays the events of a watch.
    async fn hold(&self, resource: &str) {
        sleep(Duration::from_millis(LATENCY.start)).await;
        loop {
            let at = self.at();
            let silent = |what: &Trouble| match what {
                Trouble::WatchSilent { resource: of } => is_about(of, resource),
                Trouble::Partition => true,
                _ => false,
            };
            let faults = self.0.plan.faults.iter().filter(|fault| fault.strikes(self.0.replica, at));
            match faults.filter(|fault| silent(&fault.what)).map(|fault| fault.to).max() {
                Some(until) => sleep_until(self.when(until)).await,
                None => break,
            }
        }
        let at = self.at();
        let late =
            self.0.plan.faults.iter().filter(|fault| fault.strikes(self.0.replica, at)).filter_map(
                |fault| match &fault.what {
                    Trouble::WatchLate { resource: of, by } if is_about(of, resource) => Some(*by),
                    _ => None,
                },
            );
        if let Some(late) = late.max() {
            self.0.record.struck("watch-late");
            sleep(Duration::from_millis(late)).await;
        }
    }

    /// Returns the time at which a watch breaks next.
    fn next_cut(&self, resource: &str) -> Instant {
        const NEVER: Duration = Duration::from_hours(366 * 24);
        let at = self.at();
        let cuts = self.0.plan.faults.iter().filter(|fault| {
            fault.replica.is_none_or(|replica| replica == self.0.replica)
                && matches!(&fault.what, Trouble::WatchRefused { resource: of, .. } if is_about(of, resource))
        });
        cuts.map(|fault| fault.from)
            .filter(|from| *from >= at)
            .min()
            .map_or(self.0.begin + NEVER, |from| self.when(from))
    }
}

/// Returns whether a fault for the resource `of` affects `resource`. An empty `of` affects all resources.
fn is_about(of: &str, resource: &str) -> bool {
    of.is_empty() || of == resource
}

/// Returns the watched resource if the request is a watch.
fn watched(parts: &Parts) -> Option<String> {
    parts.uri.query()?.split('&').find(|pair| *pair == "watch=true")?;
    parts.uri.path().rsplit('/').next().map(str::to_owned)
}

fn never(never: Infallible) -> Broken {
    match never {}
}

impl Service<Request<Body>> for Network {
    type Response = Carried;
    type Error = Broken;
    type Future = BoxFuture<'static, Result<Carried, Broken>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
