//! Keeps a replica running unless the plan kills or stops the replica.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use wfe_core::guard::Guard;
use wfe_operator::clock::Clock;
use wfe_operator::cluster::client;
use wfe_operator::cluster::crds::Crds;
use wfe_operator::cluster::leadership::Leadership;
use wfe_operator::cluster::lease::identity;
use wfe_operator::cluster::staleness::Staleness;
use wfe_operator::health::Health;
use wfe_operator::metrics::Metrics;
use wfe_operator::process::supervised::SupervisedTasks;
use wfe_operator::replica::{Candidacy, Replica, Setup};
use wfe_settings::config::InForce;
use wfe_settings::timing::Timing;

use super::{NEWCOMER, SYSTEM};
use crate::network::{Network, RENEW_DEADLINE};
use crate::oracle;
use crate::plan::{Millis, Plan, Trouble};
use crate::record::Record;

/// The name of a replica, as it appears in events.
pub(super) fn instance(replica: u8) -> String {
    format!("replica-{replica}")
}

/// The reason why the run of a replica ends.
enum Next {
    /// The play has ended.
    Over,
    /// A part of the replica has ended on its own.
    Failed(anyhow::Error),
    /// The plan kills or stops the replica.
    Struck,
}

/// Keeps one replica running unless the plan kills or stops the replica.
pub(super) struct Supervisor {
    pub(super) replica: u8,
    pub(super) plan: Arc<Plan>,
    pub(super) begin: Instant,
    pub(super) clock: Clock,
    pub(super) network: Network,
    pub(super) record: Record,
    pub(super) in_force: watch::Receiver<Arc<InForce>>,
    pub(super) chance: fastrand::Rng,
}

impl Supervisor {
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut ends: Vec<(Millis, Millis, bool)> = self
            .plan
            .faults
            .iter()
            .filter(|fault| fault.replica.is_none_or(|replica| replica == self.replica))
            .filter_map(|fault| match fault.what {
                Trouble::Crash => Some((fault.from, fault.to, true)),
                Trouble::Restart => Some((fault.from, fault.to, false)),
                _ => None,
            })
            .collect();
        ends.sort_unstable();
        let mut ends = ends.into_iter();
        loop {
            let mut replica = match self.start() {
                Ok(replica) => replica,
                Err(error) => return self.record.broken(format!("replica {} cannot start: {error:#}", self.replica)),
            };
            let end = if self.replica == NEWCOMER { None } else { ends.next() };
            let (from, to, is_crash) = end.unwrap_or((Millis::MAX / 2, Millis::MAX / 2, false));
            let next = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Next::Over,
                why = replica.ended() => Next::Failed(why),
                () = sleep_until(self.begin + Duration::from_millis(from)) => Next::Struck,
            };
            match next {
                Next::Over => return self.stop(replica).await,
                Next::Failed(why) => return self.record.broken(format!("replica {}: {why:#}", self.replica)),
                Next::Struck => {}
            }
            self.record.struck(if is_crash { "crash" } else { "restart" });
            if is_crash {
                drop(replica);
            } else {
                self.stop(replica).await;
            }
            let again = sleep_until(self.begin + Duration::from_millis(to));
            let is_over = tokio::select! {
                biased;
                stopped = stop.wait_for(|stop| *stop) => stopped.is_ok(),
                () = again => false,
            };
            if is_over {
                return;
            }
        }
    }

    /// Stops a replica gracefully, as a signal does.
    async fn stop(&self, replica: Replica) {
        if let Err(error) = replica.stop().await {
            self.record.broken(format!("replica {} has not stopped well: {error:#}", self.replica));
        }
    }

    fn start(&mut self) -> anyhow::Result<Replica> {
        self.network.restarted();
        let (leadership, metrics) = (Leadership::by_election(), Metrics::new()?);
        let (health, staleness) = (Health::new(), Staleness::default());
        let namespace = self.in_force.borrow().defaults.execution_namespace.clone();
        let network = self.network.clone();
        let cluster =
            client::Cluster::over(network, &namespace, leadership.clone(), metrics.clone(), staleness.clone());
        let instance = instance(self.replica);
        let timing = Timing::new(Duration::from_secs(8), RENEW_DEADLINE, Duration::from_secs(2));
        let candidacy = Candidacy {
            namespace: SYSTEM.to_owned(),
            lease: "wfe-operator".to_owned(),
            identity: identity(&instance, &mut self.chance),
            timing: timing.map_err(anyhow::Error::msg)?,
            chance: self.chance.fork(),
            settings: watch::channel(None).1, // nobody here reads the Lease for them
        };
        let crds = Crds::new(cluster.clone(), health.clone(), metrics.clone());
        let setup = Setup {
            cluster,
            instance,
            candidacy: Some(candidacy),
            watch_namespace: None,
            max_staleness: Duration::from_mins(3),
            clock: self.clock.clone(),
            config: self.in_force.clone(),
            crds,
            guard: watch::channel(Guard::InForce).1,
            leadership,
            metrics,
            health,
            staleness,
            traces: wfe_operator::traces::Traces::default(),
            observer: Some(oracle::observer(self.replica, self.clock.clone(), self.record.clone())),
        };
        Ok(Replica::start(setup, SupervisedTasks::default()))
    }
}
