//! A gate: one request waits until the test opens the gate, so that the test can act at exactly that point.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::sync::oneshot;

use super::request::Request;

/// How long a request may take to arrive at a gate.
const ARRIVES_WITHIN: Duration = Duration::from_mins(1);

/// The point at which a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum When {
    /// Before the request is forwarded: nothing has happened yet.
    Before,
    /// After the API server has carried out the request, and before the answer is delivered.
    After,
}

/// Holds one request. Dropping the gate is the same as [`Gate::abort`].
#[derive(Debug)]
#[must_use = "a request that comes to a dropped gate is aborted"]
pub struct Gate {
    when: When,
    arrival: oneshot::Receiver<Request>,
    arrived: Option<Request>,
    verdict: oneshot::Sender<()>,
}

impl Gate {
    /// Waits until the request has reached the gate, and returns the request.
    pub async fn reached(&mut self) -> Result<Request> {
        if let Some(request) = &self.arrived {
            return Ok(request.clone());
        }
        match tokio::time::timeout(ARRIVES_WITHIN, &mut self.arrival).await {
            Ok(request) => Ok(self.arrived.insert(request.context("the proxy is gone")?).clone()),
            Err(_) => bail!("no request came to the gate ({:?}) within {ARRIVES_WITHIN:?}", self.when),
        }
    }

    /// Lets the request, or its answer, pass.
    pub fn open(self) {
        // If the receiver is gone, the proxy has been dropped.
        let _ = self.verdict.send(());
    }

    /// Drops the request ([`When::Before`]) or its answer ([`When::After`]), and closes the connection.
    pub fn abort(self) {}
}

/// Decides whether a gate holds a request.
type Fits = Box<dyn FnMut(&Request) -> bool + Send>;

/// The proxy's side of a gate.
pub(super) struct Hold {
    pub(super) when: When,
    pub(super) fits: Fits,
    arrival: oneshot::Sender<Request>,
    verdict: oneshot::Receiver<()>,
}

impl Hold {
    /// Holds a request, and returns whether the request may continue.
    pub(super) async fn stand(self, request: Request) -> bool {
        // If the gate was dropped, no receiver exists, and the verdict below is already decided.
        let _ = self.arrival.send(request);
        self.verdict.await.is_ok()
    }
}

pub(super) fn pair(when: When, fits: Fits) -> (Gate, Hold) {
    let (arrival, arrives) = oneshot::channel();
    let (verdict, decided) = oneshot::channel();
    (Gate { when, arrival: arrives, arrived: None, verdict }, Hold { when, fits, arrival, verdict: decided })
}
