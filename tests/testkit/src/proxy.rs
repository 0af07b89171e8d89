//! A fault proxy between an operator and the API server. The test writes a plan that decides about every request.
//!
//! ```text
//! operator ──http──► Proxy ──https──► kube-apiserver
//!                      │ a request is numbered and read; it is held at a gate, or meets the plan's fault, or passes
//! ```
//! The proxy speaks plain HTTP/1.1 to the operator, and TLS to the API server. It forwards the operator's own token, so
//! the shipped RBAC stays in force. It serves on a thread of its own, and therefore continues while a test blocks.
//!
//! # Guarantees
//! - A request that the proxy has read is forwarded if its fault allows that, even if the sender has closed the
//!   connection. A slow network does the same.
//! - A gate or a fault affects a single request. [`Proxy::cut_all`], [`Proxy::partition`] and [`Proxy::freeze_watches`]
//!   affect all requests.
//! - The proxy never repeats a request that may have been sent, unless the fault is [`Fault::Duplicate`].

mod fault;
mod gate;
mod request;
mod serve;
mod shared;
mod upstream;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

pub use fault::{Answer, Fault, Refusal};
pub use gate::{Gate, When};
pub use request::{Request, Verb};
pub use shared::Passed;

use crate::control_plane::ControlPlane;
use shared::Shared;
use upstream::Upstream;

/// A running proxy. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of a control plane's API server. It forwards everything until a test sets a plan or a
    /// gate.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        Self::before(Upstream::of(control_plane.kubeconfig()).await?)
    }

    fn before(upstream: Upstream) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("the proxy cannot listen")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serving = serve::serve(listener, upstream, Arc::clone(&shared), stopped);
        let thread = std::thread::Builder::new()
            .name("fault-proxy".to_owned())
            .spawn(move || runtime.block_on(serving))
            .context("the proxy's thread cannot be started")?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the URL of the proxy for a kubeconfig.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the plan for all further requests. It is called once for each request, in the order of their numbers.
    pub fn on(&self, plan: impl FnMut(&Request) -> Fault + Send + 'static) {
        self.shared.set_plan(Box::new(plan));
    }

    /// Removes the plan, the partition and the freeze of watches. Gates stay.
    pub fn heal(&self) {
        self.on(|_| Fault::Pass);
        self.partition(false);
        self.freeze_watches(false);
    }

    /// Holds the next request that `fits` accepts, once. If several gates fit a request, the oldest gate holds it.
    pub fn hold(&self, when: When, fits: impl FnMut(&Request) -> bool + Send + 'static) -> Gate {
        let (gate, hold) = gate::pair(when, Box::new(fits));
        self.shared.add_hold(hold);
        gate
    }

    /// Holds the n-th write since the start of the proxy, counted from 1.
    pub fn hold_write(&self, n: u64, when: When) -> Gate {
        self.hold(when, move |request| request.write == Some(n))
    }

    /// Closes all connections, including those of watches. New connections are served, and requests that were read are
    /// still forwarded.
    pub fn cut_all(&self) {
        self.shared.cut_all();
    }

    /// Begins or ends a partition: connections stay open, but nothing passes in either direction. After the partition,
    /// the delayed requests and answers arrive.
    pub fn partition(&self, on: bool) {
        self.shared.partition(on);
    }

    /// Holds back all events of watches, or delivers them again. Meanwhile the operator's view lags, but requests pass.
    pub fn freeze_watches(&self, on: bool) {
        self.shared.freeze_watches(on);
    }

    /// Returns all requests so far in the order of their numbers, without bodies.
    #[must_use]
    pub fn requests(&self) -> Vec<Passed> {
        self.shared.log()
    }

    /// Returns the number of requests in the busiest second since an instant.
    #[must_use]
    pub fn busiest_second(&self, since: Instant) -> usize {
        let times: Vec<Instant> = self.shared.log().iter().map(|passed| passed.at).filter(|at| *at >= since).collect();
        shared::busiest_second(&times)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic of the thread is already printed, and has failed the operator's requests.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests;
