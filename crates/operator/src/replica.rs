//! One replica: the parts of the process that call the API server, built from given values.
//!
//! A replica has no signals, listeners, command line, clock or randomness of its own. [`run`] starts one in a process,
//! and a simulation starts several in virtual time.
//!
//! [`run`]: crate::run

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use wfe_core::guard::Guard;
use wfe_settings::config::InForce;
use wfe_settings::published::Published;
use wfe_settings::timing::Timing;
use wfe_view::index::Kind;

use crate::clock::Clock;
use crate::cluster::client::Cluster;
use crate::cluster::crds::Crds;
use crate::cluster::leadership::Leadership;
use crate::cluster::lease::Elector;
use crate::cluster::staleness::Staleness;
use crate::cluster::watch::Watch;
use crate::engine::observer::DecisionObserver;
use crate::engine::{Engine, Settings};
use crate::events::{self, Events};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::perform::Performer;
use crate::process::supervised::SupervisedTasks;
use crate::traces::Traces;

/// How many deliveries may wait for the engine. Beyond that, the watches wait, and with them the API server's streams.
const DELIVERIES: usize = 1024;
/// How long the last events may take to be written when the process stops.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// The names of the parts that are stopped in a fixed order.
const ENGINE: &str = "the engine";
const EVENT_WRITER: &str = "the writer of events";
const FOLLOWER: &str = "the follower of the ConfigMap";
const ELECTION: &str = "the election";

/// What a replica is built from.
pub struct Setup {
    /// The API server, with the execution namespace that is in force.
    pub cluster: Cluster,
    /// The name of the pod or host, which events show.
    pub instance: String,
    /// How the replica takes part in the election. `None` means that there is no election, and the replica leads.
    pub candidacy: Option<Candidacy>,
    /// The only namespace whose executions are watched; `None` for all namespaces.
    pub watch_namespace: Option<String>,
    /// How long a watch may be silent before its view is no longer trusted.
    pub max_staleness: Duration,
    /// The wall clock.
    pub clock: Clock,
    /// The rest of the configuration in force, which can change.
    pub config: watch::Receiver<Arc<InForce>>,
    /// The state of the CRDs.
    pub crds: Crds,
    /// Whether the policies that guard clearances and cancellations are in force; this can change.
    pub guard: watch::Receiver<Guard>,
    /// Whether this replica leads.
    pub leadership: Leadership,
    /// The replica's metrics.
    pub metrics: Metrics,
    /// The replica's liveness and readiness.
    pub health: Health,
    /// When each watch last delivered something.
    pub staleness: Staleness,
    /// The observer of each decision, if there is one.
    pub observer: Option<DecisionObserver>,
    /// Where the traces of executions go.
    pub traces: Traces,
}

/// How a replica takes part in the election.
pub struct Candidacy {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub lease: String,
    /// A name that no other replica has.
    pub identity: String,
    /// The times of the election.
    pub timing: Timing,
    /// The random numbers that spread the requests of several replicas.
    pub chance: fastrand::Rng,
    /// The settings in force, which the leader publishes in the Lease; `None` if it publishes nothing.
    pub settings: watch::Receiver<Option<Published>>,
}

/// A running replica. Dropping it stops it as a crash would.
pub struct Replica {
    parts: SupervisedTasks,
    events: Option<Events>,
    follower: Option<AbortHandle>,
    stop: watch::Sender<bool>,
    let_go: watch::Sender<bool>,
}

impl Replica {
    /// Starts the replica, beside the parts of the process that already run.
    #[must_use]
    pub fn start(setup: Setup, mut parts: SupervisedTasks) -> Self {
        let Setup { cluster, config, clock, crds, leadership, metrics, health, staleness, .. } = setup;
        let execution_namespace = cluster.execution_namespace().to_owned();
        let (sender, deliveries) = mpsc::channel(DELIVERIES);
        for kind in Kind::ALL {
            let watch = Watch {
                kind,
                api: cluster.watched(kind, setup.watch_namespace.as_deref()),
                execution_namespace: execution_namespace.clone(),
                max_staleness: setup.max_staleness,
                health: health.clone(),
                crds: crds.clone(),
                staleness: staleness.clone(),
                metrics: metrics.clone(),
            };
            let follow = behind(sender.clone(), watch.follow(sender.clone()));
            parts.spawn(format!("the watch of {}", kind.label()), endless(follow));
        }
        let (events, event_writer) =
            events::channel(cluster.clone(), metrics.clone(), clock.clone(), &setup.instance, &execution_namespace);
        parts.spawn(EVENT_WRITER, endless(event_writer.run()));
        let elector = setup.candidacy.map(|candidacy| {
            let Candidacy { namespace, lease, identity, timing, chance, settings } = candidacy;
            let (leadership, metrics) = (leadership.clone(), metrics.clone());
            let lease = (namespace.as_str(), lease.as_str());
            let fitness = crds.fitness();
            Elector::new(
                cluster.clone(),
                lease,
                &identity,
                timing,
                leadership,
                metrics,
                (clock.clone(), chance),
                fitness,
                settings,
            )
        });
        let fitness = crds.fitness();
        let performer = Performer::new(cluster, crds, metrics.clone(), events.clone(), setup.traces);
        let Setup { watch_namespace, max_staleness, guard, observer, .. } = setup;
        let settings = Settings { watch_namespace, max_staleness, clock, config, fitness, guard, observer };
        let engine = Engine::new(settings, performer, leadership, deliveries, metrics, health, staleness);
        let (stop, stopped) = watch::channel(false);
        parts.spawn(ENGINE, engine.run(stopped));
        let (let_go, done) = watch::channel(false);
        parts.spawn(ELECTION, endless(elect(elector, done)));
        Self { parts, events: Some(events), follower: None, stop, let_go }
    }

    /// Starts the part that follows the `ConfigMap`. Like the engine, it announces events.
    pub fn follow<F: Future<Output = ()> + Send + 'static>(&mut self, follow: impl FnOnce(Events) -> F) {
        if let Some(events) = self.events.take() {
            self.follower = Some(self.parts.spawn(FOLLOWER, endless(follow(events))));
        }
    }

    /// Waits until a part ends that must not end, and returns why it ended.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn ended(&mut self) -> anyhow::Error {
        self.parts.ended().await
    }

    /// Stops the replica in order, even after a failure. The engine finishes its writes in progress, the last events
    /// are written, and only then can another replica become leader.
    ///
    /// # Errors
    /// Why the engine or the election has failed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let _ = self.stop.send(true); // an engine that has ended receives nothing
        let stopped = self.parts.join(ENGINE).await;
        // The writer of events ends when the last sender of events is dropped.
        self.events = None;
        if let Some(follower) = &self.follower {
            follower.abort();
        }
        let _ = self.parts.join(FOLLOWER).await;
        if tokio::time::timeout(LAST_EVENTS, self.parts.join(EVENT_WRITER)).await.is_err() {
            tracing::warn!("stopped with events unwritten");
        }
        let _ = self.let_go.send(true);
        let released = self.parts.join(ELECTION).await;
        stopped.and(released)
    }
}

/// Wraps a part that returns nothing as a part that cannot fail.
async fn endless(part: impl Future<Output = ()>) -> Result<(), Infallible> {
    part.await;
    Ok(())
}

/// Keeps a part that delivers to the engine from ending first when the engine ends.
///
/// An engine that fails drops its end of the channel before its error is known. The watches end then, but the error
/// that the process reports must be the engine's.
async fn behind<T>(deliveries: mpsc::Sender<T>, part: impl Future<Output = ()>) {
    part.await;
    if deliveries.is_closed() {
        std::future::pending::<()>().await;
    }
}

/// Takes part in the election, if there is one, until this replica has nothing more to write.
async fn elect(elector: Option<Elector>, mut done: watch::Receiver<bool>) {
    match elector {
        Some(elector) => elector.run(done).await,
        None => {
            let _ = done.wait_for(|done| *done).await; // an error means that the sender is gone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_of_an_engine_that_fails_is_told_and_not_the_end_of_its_watches() {
        let (sender, deliveries) = mpsc::channel::<()>(1);
        let mut parts = SupervisedTasks::default();
        let watch = sender.clone();
        parts.spawn("the watch of pods", endless(behind(sender, async move { watch.closed().await })));
        parts.spawn(ENGINE, async move {
            drop(deliveries);
            // The part that delivers notices the closed channel first.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Err(anyhow::anyhow!("a run is elsewhere"))
        });
        assert_eq!(format!("{:#}", parts.ended().await), "the engine failed: a run is elsewhere");
    }

    #[tokio::test]
    async fn a_watch_that_ends_beside_an_engine_that_runs_ends_the_process() {
        let (sender, _deliveries) = mpsc::channel::<()>(1);
        let mut parts = SupervisedTasks::default();
        parts.spawn("the watch of pods", endless(behind(sender, std::future::ready(()))));
        assert_eq!(format!("{:#}", parts.ended().await), "the watch of pods ended although nobody asked it to");
    }
}
