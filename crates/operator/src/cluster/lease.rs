//! Leader election by a Lease (coordination.k8s.io/v1): one of several replicas decides and writes, the others stand
//! by.
//!
//! The election works as in client-go: each write carries the version that was read, and wall clocks are not compared.
//! A candidate measures on its monotonic clock for how long the Lease has not changed. The leader stops earlier than
//! any candidate can take over (`choice`). Safety does not depend on the election (section 5.2), which only keeps
//! replicas from competing.

mod choice;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use wfe_api::labels::ANNOTATION_SETTINGS;
use wfe_settings::published::Published;
use wfe_settings::timing::Timing;

use crate::clock::Clock;
use crate::cluster::client::Cluster;
use crate::cluster::crds::Fitness;
use crate::cluster::leadership::Leadership;
use crate::metrics::Metrics;
use crate::verb::Verb;

use choice::{Record, Sighting, Step, step};
use wfe_view::call::CallError;

const LEASES: &str = "leases";
/// After a failed renewal the leader retries after the retry period divided by this, so that several retries fit before
/// the renew deadline.
const SOONER: u32 = 4;

/// Returns a unique identity: the given name or the host name, and a random part. Two processes with the same identity
/// would both believe that they hold the Lease.
#[must_use]
pub fn identity(name: &str, chance: &mut fastrand::Rng) -> String {
    format!("{name}_{:08x}", chance.u32(..))
}

/// Takes part in the election, and reports its state to the rest of the process.
pub struct Elector {
    cluster: Cluster,
    leases: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    leadership: Leadership,
    metrics: Metrics,
    clock: Clock,
    chance: fastrand::Rng,
    /// The Lease as last read or written; `None` if it did not exist.
    lease: Option<Lease>,
    /// Whether `lease` is this process's own last write. Then the next write needs no read before it.
    is_own: bool,
    seen: Option<Sighting>,
    /// The end of the term of this process; `None` if it does not lead.
    until: Option<Instant>,
    failing: Option<Failing>,
    /// Whether the operator can decide with the CRD of executions. A replica that sees an unfit CRD must not lead.
    fitness: watch::Receiver<Fitness>,
    /// The settings in force.
    settings: watch::Receiver<Option<Published>>,
}

/// Records since when the Lease can be neither read nor written.
struct Failing {
    since: Instant,
    said: String,
}

impl Elector {
    /// Makes a candidate for the Lease of this name and namespace.
    ///
    /// `clock` gives the times that people read in the Lease; `chance` spreads the requests of several replicas.
    #[must_use]
    #[expect(clippy::too_many_arguments, reason = "all of them are parts of a replica, which are made once")]
    pub fn new(
        cluster: Cluster,
        (namespace, name): (&str, &str),
        identity: &str,
        timing: Timing,
        leadership: Leadership,
        metrics: Metrics,
        (clock, chance): (Clock, fastrand::Rng),
        fitness: watch::Receiver<Fitness>,
        settings: watch::Receiver<Option<Published>>,
    ) -> Self {
        let leases = cluster.leases_in(namespace);
        let (name, identity) = (name.to_owned(), identity.to_owned());
        let (lease, seen, until, failing) = (None, None, None, None);
        Self {
            cluster,
            leases,
            name,
            identity,
            timing,
            leadership,
            metrics,
            clock,
            chance,
            lease,
            is_own: false,
            seen,
            until,
            failing,
            fitness,
            settings,
        }
    }

    /// Takes part in the election until it is asked to stop. Then it releases the Lease, so that the next leader need
    /// not wait.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let fitness = self.fitness.borrow_and_update().clone();
            let again = match fitness {
                Fitness::Fit => self.renew_or_acquire().await,
                // The CRD is read before the first list, so the answer comes soon.
                Fitness::Unknown => Instant::now() + self.timing.retry_period,
                Fitness::Unfit(_) => {
                    if self.until.is_some() {
                        self.lose("the CRD lacks what decisions rest on");
                        self.let_go().await;
                    }
                    Instant::now() + self.timing.retry_period
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Ok(()) = self.fitness.changed() => {}
                () = sleep_until(again) => {}
            }
        }
        self.release().await;
    }

    /// Reads the Lease, and writes it if a write is due. Returns the time of the next turn.
    async fn renew_or_acquire(&mut self) -> Instant {
        let next = Instant::now() + self.jittered();
        if self.until.is_some_and(|until| Instant::now() >= until) {
            // Do not take the Lease again at once: work in progress must first notice the end of the term.
            self.lose("it was not renewed in time");
            return next;
        }
        let step = match self.advance().await {
            Ok(step) => {
                self.failing = None;
                self.leadership.has_trouble(None);
                step
            }
            Err(error) => {
                self.fail(&error);
                Step::Renew
            }
        };
        match (self.until, step) {
            (Some(until), _) if self.is_own => next.min(until),
            (Some(until), _) => until.min(Instant::now() + self.timing.retry_period / SOONER),
            (None, Step::Wait { until, .. }) => next.min(until),
            (None, _) => next,
        }
    }

    async fn advance(&mut self) -> Result<Step, CallError> {
        if !self.is_own {
            self.look().await?;
        }
        let step = step(&self.identity, self.until, self.seen.as_ref(), Instant::now());
        match &step {
            Step::Take | Step::Renew => self.hold().await?,
            Step::Lose(why) => self.lose(why),
            Step::Wait { .. } => {}
        }
        if self.until.is_none() {
            self.follow();
        }
        Ok(step)
    }

    async fn look(&mut self) -> Result<(), CallError> {
        let found = self.cluster.ask(Verb::Get, LEASES, self.patience(), self.leases.get_opt(&self.name)).await?;
        self.note(found);
        Ok(())
    }

    /// Takes or renews the Lease. It is no error if another replica was faster: the next read shows which one.
    async fn hold(&mut self) -> Result<(), CallError> {
        let takes = self.until.is_none();
        // Measured before the request is sent: no replica can have seen the write earlier.
        let asked = Instant::now();
        self.is_own = false;
        let wanted = self.claim(takes);
        let transitions = wanted.spec.as_ref().and_then(|spec| spec.lease_transitions);
        match self.write(wanted).await {
            Ok(written) => self.note(Some(written)),
            Err(error) if self.was_overtaken(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.is_own = true;
        let until = asked + self.timing.renew_deadline;
        self.until = Some(until);
        if takes {
            tracing::info!(lease = self.name, identity = self.identity, transitions, "leads");
            self.metrics.leads(true);
            self.leadership.begin(until);
        } else {
            self.leadership.renew(until);
        }
        Ok(())
    }

    /// Returns whether the Lease was written, created or deleted after it was read. (A create that is answered with 404
    /// found no namespace.)
    fn was_overtaken(&self, error: &CallError) -> bool {
        error.code() == 409 || error.code() == 404 && self.lease.is_some()
    }

    async fn write(&self, lease: Lease) -> Result<Lease, CallError> {
        let params =
            PostParams { field_manager: Some(wfe_api::labels::MANAGED_BY.to_owned()), ..PostParams::default() };
        let within = self.patience();
        if self.lease.is_none() {
            return self.cluster.ask(Verb::Create, LEASES, within, self.leases.create(&params, &lease)).await;
        }
        // The Lease carries the version that was read, or that the last write returned.
        self.cluster.ask(Verb::Update, LEASES, within, self.leases.replace(&self.name, &params, &lease)).await
    }

    /// Renders the Lease as held by this process, with the settings in force. The times in it are for people and decide
    /// nothing.
    fn claim(&self, takes: bool) -> Lease {
        let now = MicroTime(self.clock.timestamp());
        let mut lease = self.lease.clone().unwrap_or_default();
        lease.metadata.name = Some(self.name.clone());
        if let Some(settings) = self.settings.borrow().as_ref().and_then(|it| serde_json::to_string(it).ok()) {
            lease.metadata.annotations.get_or_insert_default().insert(ANNOTATION_SETTINGS.to_owned(), settings);
        }
        let spec = lease.spec.get_or_insert_default();
        if takes {
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions =
                Some(spec.lease_transitions.map_or(0, |transitions| transitions.saturating_add(1)));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(whole_seconds(self.timing.duration));
        spec.renew_time = Some(now);
        lease
    }

    /// Releases the Lease if this process holds it. Other replicas see this at their next read and take the Lease.
    async fn release(&mut self) {
        if self.until.is_some() {
            self.stop_leading();
            self.let_go().await;
        }
    }

    /// Writes an empty holder into the Lease, if this process holds it.
    async fn let_go(&mut self) {
        if !self.is_own && self.look().await.is_err() {
            return;
        }
        let Some(mut lease) = self.lease.clone() else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.identity) {
            return;
        }
        *spec =
            LeaseSpec { holder_identity: None, renew_time: Some(MicroTime(self.clock.timestamp())), ..spec.clone() };
        match self.write(lease).await {
            Ok(_) => tracing::info!(lease = self.name, "released the lease"),
            Err(error) => tracing::warn!(lease = self.name, %error, "the lease could not be released; it runs out"),
        }
    }

    fn lose(&mut self, why: &str) {
        tracing::warn!(lease = self.name, identity = self.identity, "leads no longer: {why}");
        self.stop_leading();
    }

    fn stop_leading(&mut self) {
        self.until = None;
        self.leadership.end();
        self.metrics.leads(false);
    }

    /// Records the leader that the Lease names.
    fn follow(&mut self) {
        let holder = self.seen.as_ref().and_then(|seen| seen.record.holder.as_deref());
        if self.leadership.follow(holder) {
            tracing::info!(lease = self.name, identity = self.identity, leader = holder, "follows");
        }
    }

    fn note(&mut self, lease: Option<Lease>) {
        let now = Instant::now();
        self.seen = lease.as_ref().map(|lease| Sighting::after(self.seen.take(), Record::of(lease), now));
        self.lease = lease;
    }

    /// Logs a failure once, and reports it in the probes if it lasts.
    fn fail(&mut self, error: &CallError) {
        self.is_own = false;
        let said = format!("cannot use Lease {}: {error}", self.name);
        let is_new = self.failing.as_ref().is_none_or(|failing| failing.said != said);
        if is_new {
            tracing::warn!(identity = self.identity, leads = self.until.is_some(), "{said}");
        }
        let since = self.failing.as_ref().map_or_else(Instant::now, |failing| failing.since);
        if since.elapsed() >= self.timing.renew_deadline {
            self.leadership.has_trouble(Some(&said));
        }
        self.failing = Some(Failing { since, said });
    }

    /// Returns the time-out of a request. It never ends later than the leader's term.
    fn patience(&self) -> Duration {
        let left = self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        left.min(self.timing.retry_period)
    }

    /// Returns the retry period, reduced by a random part of up to a quarter, so that replicas that started together
    /// drift apart.
    fn jittered(&mut self) -> Duration {
        self.timing.retry_period * (1000 - self.chance.u32(..=250)) / 1000
    }
}

/// Rounds up: another replica must not read a shorter duration than the leader uses.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_nobody_elses() {
        let mut chance = fastrand::Rng::new();
        let (one, other) = (identity("pod", &mut chance), identity("pod", &mut chance));
        assert!(one.starts_with("pod_") && one.len() == "pod_".len() + 8, "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!(whole_seconds(Duration::from_secs(8)), 8);
        assert_eq!(whole_seconds(Duration::from_millis(8001)), 9);
    }
}
