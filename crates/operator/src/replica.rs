//! One replica: the parts of the process that talk to the API server, made from values.
//!
//! It has no signals, no listeners, no command line, no clock and no randomness of its own: [`run`] starts it in a
//! process, and a simulation starts several in virtual time.
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

/// How many deliveries may wait for the engine. Then the watches wait, and with them the API server's stream.
const DELIVERIES: usize = 1024;
/// How long the last events may take at the end.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// The names of the parts that are stopped in order.
const ENGINE: &str = "the engine";
const EVENT_WRITER: &str = "the writer of events";
const FOLLOWER: &str = "the follower of the ConfigMap";
const ELECTION: &str = "the election";

/// The parts of a replica.
pub struct Setup {
    /// The API server, with the execution namespace that is in force.
    pub cluster: Cluster,
    /// The name of the pod or host, as events show it.
    pub instance: String,
    /// How it takes part in the election. `None`: there is none, and it leads.
    pub candidacy: Option<Candidacy>,
    /// The one namespace whose executions are watched; `None`: all.
    pub watch_namespace: Option<String>,
    /// How long a watch may be silent before its view is not trusted any more.
    pub max_staleness: Duration,
    /// The wall clock.
    pub clock: Clock,
    /// The rest of the configuration in force; it changes.
    pub config: watch::Receiver<Arc<InForce>>,
    /// The state of the CRDs.
    pub crds: Crds,
    /// The state of the policies that guard clearances and cancellations; it changes.
    pub guard: watch::Receiver<Guard>,
    /// Whether this replica leads.
    pub leadership: Leadership,
    /// Its counters.
    pub metrics: Metrics,
    /// Its liveness and readiness.
    pub health: Health,
    /// When each watch was last heard.
    pub staleness: Staleness,
    /// The observer of each decision, if there is one.
    pub observer: Option<DecisionObserver>,
}

/// How a replica takes part in the election.
pub struct Candidacy {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub lease: String,
    /// A name that no other replica has.
    pub identity: String,
    /// The times of the election.
    pub timing: Timing,
    /// Spreads the turns of several replicas.
    pub chance: fastrand::Rng,
}

/// A replica that runs. Dropping it stops it as a crash would.
pub struct Replica {
    parts: SupervisedTasks,
    events: Option<Events>,
    follower: Option<AbortHandle>,
    stop: watch::Sender<bool>,
    let_go: watch::Sender<bool>,
}

impl Replica {
    /// Starts it, beside the running parts of the process.
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
            let Candidacy { namespace, lease, identity, timing, chance } = candidacy;
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
            )
        });
        let (fitness, performer) = (crds.fitness(), Performer::new(cluster, crds, metrics.clone(), events.clone()));
        let Setup { watch_namespace, max_staleness, guard, observer, .. } = setup;
        let settings = Settings { watch_namespace, max_staleness, clock, config, fitness, guard, observer };
        let engine = Engine::new(settings, performer, leadership, deliveries, metrics, health, staleness);
        let (stop, stopped) = watch::channel(false);
        parts.spawn(ENGINE, engine.run(stopped));
        let (let_go, done) = watch::channel(false);
        parts.spawn(ELECTION, endless(elect(elector, done)));
        Self { parts, events: Some(events), follower: None, stop, let_go }
    }

    /// Starts the part that follows the `ConfigMap`, which announces events as the engine does.
    pub fn follow<F: Future<Output = ()> + Send + 'static>(&mut self, follow: impl FnOnce(Events) -> F) {
        if let Some(events) = self.events.take() {
            self.follower = Some(self.parts.spawn(FOLLOWER, endless(follow(events))));
        }
    }

    /// Waits until a part has ended that must not end, and returns why it did.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn ended(&mut self) -> anyhow::Error {
        self.parts.ended().await
    }

    /// Stops it in order, whichever part has failed: the engine finishes the writes under way, then the last events are
    /// written, and only then another replica may begin.
    ///
    /// # Errors
    /// Why the engine or the election has failed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let _ = self.stop.send(true); // an engine that has ended hears nothing
        let stopped = self.parts.join(ENGINE).await;
        // The writer of events ends with the last sender of events.
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

/// Turns a part that returns nothing into one that cannot fail.
async fn endless(part: impl Future<Output = ()>) -> Result<(), Infallible> {
    part.await;
    Ok(())
}

/// Lets a part that delivers to the engine end only while the engine exists.
///
/// An engine that fails drops its end of the channel before its error is known. That ends the watches, but a person
/// must read the engine's error.
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
            let _ = done.wait_for(|done| *done).await; // whoever would say it is gone
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
            // The watch hears of it first.
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
