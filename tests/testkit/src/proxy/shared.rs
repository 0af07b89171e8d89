//! The state that the two sides of a proxy (test and server) share: the plan, the gates, the log and the switches.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::fault::Fault;
use super::gate::Hold;
use super::request::Request;

/// Decides what happens to each request.
type Plan = Box<dyn FnMut(&Request) -> Fault + Send>;

/// A request in the log.
#[derive(Debug, Clone)]
pub struct Passed {
    /// The request, without its body.
    pub request: Request,
    /// When it arrived.
    pub at: Instant,
    /// The status of the API server's answer, if there was one.
    pub applied: Option<u16>,
    /// The status of the answer to the operator.
    pub answered: Option<u16>,
}

pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// The number of times that all connections were closed.
    cuts: watch::Sender<u64>,
    partitioned: watch::Sender<bool>,
    frozen: watch::Sender<bool>,
}

struct Inner {
    plan: Plan,
    holds: Vec<Hold>,
    log: Vec<Passed>,
    writes: u64,
}

/// What the proxy does with a request.
pub(super) enum Course {
    Fault(Fault),
    Held(Hold),
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new() -> Self {
        let inner = Inner { plan: Box::new(|_| Fault::Pass), holds: Vec::new(), log: Vec::new(), writes: 0 };
        Self {
            inner: Mutex::new(inner),
            cuts: watch::Sender::new(0),
            partitioned: watch::Sender::new(false),
            frozen: watch::Sender::new(false),
        }
    }

    /// Numbers and logs a request, and decides what happens to it.
    pub(super) fn admit(&self, mut request: Request) -> (Request, Course) {
        let mut inner = self.inner();
        request.number = inner.log.len() as u64 + 1;
        if request.is_write() {
            inner.writes += 1;
            request.write = Some(inner.writes);
        }
        let noted = Request { body: Arc::new(Value::Null), ..request.clone() };
        inner.log.push(Passed { request: noted, at: Instant::now(), applied: None, answered: None });
        let course = match inner.holds.iter_mut().position(|hold| (hold.fits)(&request)) {
            Some(first) => Course::Held(inner.holds.remove(first)),
            None => Course::Fault((inner.plan)(&request)),
        };
        (request, course)
    }

    /// Records the API server's answer.
    pub(super) fn note_applied(&self, number: u64, code: u16) {
        self.note(number, |passed| passed.applied = Some(code));
    }

    /// Records the answer to the operator.
    pub(super) fn note_answered(&self, number: u64, code: u16) {
        self.note(number, |passed| passed.answered = Some(code));
    }

    fn note(&self, number: u64, change: impl FnOnce(&mut Passed)) {
        let index = usize::try_from(number).unwrap_or_default().wrapping_sub(1);
        if let Some(passed) = self.inner().log.get_mut(index) {
            change(passed);
        }
    }

    pub(super) fn set_plan(&self, plan: Plan) {
        self.inner().plan = plan;
    }

    pub(super) fn add_hold(&self, hold: Hold) {
        self.inner().holds.push(hold);
    }

    pub(super) fn log(&self) -> Vec<Passed> {
        self.inner().log.clone()
    }

    pub(super) fn cut_all(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub(super) fn partition(&self, on: bool) {
        self.partitioned.send_replace(on);
    }

    pub(super) fn freeze_watches(&self, on: bool) {
        self.frozen.send_replace(on);
    }

    /// Returns a receiver that changes whenever all connections are closed.
    pub(super) fn cuts(&self) -> watch::Receiver<u64> {
        self.cuts.subscribe()
    }

    /// Waits until there is no partition.
    pub(super) async fn passable(&self) {
        // The sender lives as long as `self`.
        let _ = self.partitioned.subscribe().wait_for(|on| !on).await;
    }

    /// Waits until there is no partition and watches are not frozen.
    pub(super) async fn watchable(&self) {
        let _ = self.frozen.subscribe().wait_for(|on| !on).await;
        self.passable().await;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how many of the times are in the busiest second. The times must be sorted.
pub(super) fn busiest_second(times: &[Instant]) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (last, at) in times.iter().enumerate() {
        while at.duration_since(times[first]) >= Duration::from_secs(1) {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}
