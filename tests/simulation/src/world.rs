//! The world: the operator's own replicas against the fake API server, in one thread and in virtual time.
//!
//! ```text
//!  Plan ──► director: acts of people, pauses, compaction ──┐
//!       ──► supervisors: each starts, kills, restarts a Replica ── Network ──► FakeApi ◄── Tekton, collector, kubelet
//!                                                  │                              │
//!                                               DecisionObserver ──► oracle ◄── its records ┘
//! ```
//! Virtual time stands still while a task computes, and jumps to the next timer when all tasks wait. A plan therefore
//! always leads to the same requests at the same times.

mod supervisor;

use std::panic;
use std::sync::{Arc, Once};
use std::time::Duration;

use anyhow::Context;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use wfe_core::Time;
use wfe_operator::clock::Clock;
use wfe_settings::config::{Flags, InForce, Place};

use crate::cluster::{Cluster, Weather};
use crate::network::Network;
use crate::oracle;
use crate::outcome::Outcome;
use crate::plan::{Millis, NAMESPACES, Plan, Trouble};
use crate::record::Record;
use crate::service::FakeApi;
use crate::users::{EXECUTION_NAMESPACE, People};
use supervisor::{Supervisor, instance};

/// The namespace of the operator's own objects.
const SYSTEM: &str = "kubernaut-system";
/// The time at which a world begins, in seconds of the Unix epoch: 2027-01-01.
const BEGIN: i64 = 1_798_761_600;
/// How long a world may take to come to rest after the last fault. This is longer than the deadlines of a start and of
/// a drain together, including retries.
const REST_WITHIN: Duration = Duration::from_mins(45);
/// How long nothing may change before a world counts as at rest.
const STILL: Duration = Duration::from_mins(1);
/// How long the newcomer runs, a replica that starts when the world is at rest. Within this time it gets the Lease and
/// its lists.
const SECOND_LOOK: Duration = Duration::from_secs(30);
/// How long a watch continues after a change to its CRD, in milliseconds.
const OLD_WATCH: Millis = 1_000;
/// The number of the newcomer among the replicas.
const NEWCOMER: u8 = 9;

/// Options of a play.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Keep a line for each request.
    pub lines: bool,
}

/// Plays a plan from its beginning until everything is at rest, and judges the play.
///
/// # Errors
/// Returns an error if the plan cannot be played.
pub fn play(plan: &Plan, how: How) -> anyhow::Result<Outcome> {
    plan.check()?;
    let flags: Vec<String> = plan.flags.clone();
    let place = Place { namespace: SYSTEM.to_owned(), name: "workflowexecution-config".to_owned() };
    let in_force = Flags::of_run(flags).under(&place, None).context("the plan's flags cannot be used")?;
    let record = Record::new(how.lines);
    count_panics();
    PANICS.set(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    // The world is created inside the runtime, because it begins at the runtime's time and not at the machine's.
    let outcome = runtime.block_on(async { World::new(plan.clone(), in_force, record)?.play().await });
    drop(runtime);
    let mut outcome = outcome?;
    if PANICS.get() > 0 {
        outcome.violations.push(format!("{} tasks have panicked", PANICS.get()));
    }
    Ok(outcome)
}

thread_local! {
    /// How many times this thread has panicked.
    static PANICS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts panics. Tokio catches the panics of tasks, and an operator may continue after one.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.with(|panics| panics.set(panics.get() + 1));
            before(info);
        }));
    });
}

struct World {
    plan: Arc<Plan>,
    api: FakeApi,
    begin: Instant,
    clock: Clock,
    record: Record,
    in_force: watch::Sender<Arc<InForce>>,
}

impl World {
    fn new(plan: Plan, in_force: InForce, record: Record) -> anyhow::Result<Self> {
        let epoch = chrono::DateTime::from_timestamp(BEGIN, 0).context("a world begins outside of the calendar")?;
        let begin = Instant::now();
        let clock = Clock::new(move || epoch + begin.elapsed());
        let api = FakeApi::new(plan.seed, {
            let clock = clock.clone();
            move || clock.now()
        });
        api.with(crate::server::Server::keep_records);
        let in_force = watch::Sender::new(Arc::new(in_force));
        Ok(Self { plan: Arc::new(plan), api, begin, clock, record, in_force })
    }

    async fn play(self) -> anyhow::Result<Outcome> {
        for namespace in NAMESPACES.into_iter().chain([EXECUTION_NAMESPACE, SYSTEM]) {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            self.must(&Method::POST, "/api/v1/namespaces", &object)?;
        }
        let people = People::new(self.api.clone(), self.clock.clone(), &self.plan.tekton);
        let weather = watch::Sender::new(Weather::default());
        let met = weather.subscribe();
        let mut cluster = Cluster::start(self.api.clone(), self.clock.clone(), self.plan.seed, met);
        let mut supervisors = Vec::new();
        for replica in 0..self.plan.replicas {
            let network =
                Network::new(self.api.clone(), Arc::clone(&self.plan), self.begin, replica, self.record.clone());
            let stop = watch::Sender::new(false);
            let supervisor = tokio::spawn(self.supervisor(replica, network).run(stop.subscribe()));
            supervisors.push((stop, supervisor));
        }
        let course = async {
            self.direct(&people, &weather).await;
            people.repair();
            self.rest().await;
        };
        tokio::select! {
            biased;
            ended = &mut cluster => {
                let why = ended.context("the controllers of the cluster have panicked")?;
                return why.context("the controllers of the cluster have ended").and(Err(anyhow::anyhow!("no outcome")));
            }
            () = course => {}
        }
        for (stop, supervisor) in supervisors {
            stop.send_replace(true);
            drop(supervisor.await); // a panic has been counted
        }
        let policy = self.policy()?;
        let end = self.clock.now();
        let begin = end - self.begin.elapsed();
        let counts = self.api.look(|server| oracle::judge(&self.plan, server, begin, policy, &self.record));
        let created = counts.get("executions").copied().unwrap_or_default();
        self.api.look(|server| oracle::judge_course(&self.plan, server, (begin, end), &self.record, created));
        let executions = oracle::standing(&self.api, &NAMESPACES);
        self.look_again().await;
        cluster.abort();
        Ok(Outcome::new(&self.record, self.begin.elapsed(), counts, executions))
    }

    fn must(&self, method: &Method, path: &str, body: &Value) -> anyhow::Result<()> {
        let answer = self.api.ask("admin", method, path, body);
        anyhow::ensure!(answer.code < 300, "{method} {path} is answered with {}", answer.body);
        Ok(())
    }

    /// Returns the policy for the auditor; `None` if a replica's clock is wrong, because times then prove nothing.
    fn policy(&self) -> anyhow::Result<Option<wfe_auditor::Policy>> {
        if self.plan.faults.iter().any(|fault| matches!(fault.what, Trouble::Clock { .. })) {
            return Ok(None);
        }
        let flags = self.plan.flags.iter().filter_map(|flag| flag.split_once('='));
        let mut policy = wfe_auditor::Policy::of_flags(flags).map_err(anyhow::Error::msg)?;
        if !self.plan.is_seen_in_time() {
            policy.limits = wfe_auditor::Limits::default();
        }
        Ok(Some(policy))
    }

    /// Performs the acts of the plan, and begins and ends its faults, in the order of their times.
    async fn direct(&self, people: &People, weather: &watch::Sender<Weather>) {
        let mut steps: Vec<(Millis, Step<'_>)> =
            self.plan.acts.iter().map(|act| (act.at, Step::Act(&act.what))).collect();
        for fault in &self.plan.faults {
            steps.push((fault.from, Step::Begins(&fault.what)));
            steps.push((fault.to, Step::Ends(&fault.what)));
            if matches!(fault.what, Trouble::FieldsDropped { .. }) {
                steps.extend([fault.from, fault.to].map(|at| (at + OLD_WATCH, Step::OldWatchesEnd)));
            }
        }
        steps.sort_by_key(|(at, _)| *at); // a stable sort keeps the order of the plan for equal times
        for (at, step) in steps {
            if let Step::Ends(trouble) | Step::Begins(trouble) = &step
                && !trouble.heals()
            {
                continue;
            }
            sleep_until(self.begin + Duration::from_millis(at)).await;
            if let Step::Begins(
                trouble @ (Trouble::Compacted
                | Trouble::TektonDown
                | Trouble::CancelsLost
                | Trouble::RegistryDown { .. }
                | Trouble::NamespacePaused { .. }
                | Trouble::Paused
                | Trouble::FieldsDropped { .. }
                | Trouble::WatchSilent { .. }
                | Trouble::WatchRefused { .. }),
            ) = &step
            {
                self.record.struck(trouble.label());
            }
            match step {
                Step::Act(deed) => people.act(deed),
                Step::Begins(Trouble::Compacted) => self.api.with(crate::server::Server::compact),
                Step::Begins(Trouble::TektonDown) => weather.send_modify(|it| it.tekton_is_down = true),
                Step::Ends(Trouble::TektonDown) => weather.send_modify(|it| it.tekton_is_down = false),
                Step::Begins(Trouble::CancelsLost) => weather.send_modify(|it| it.cancels_are_lost = true),
                Step::Ends(Trouble::CancelsLost) => weather.send_modify(|it| it.cancels_are_lost = false),
                Step::Begins(Trouble::RegistryDown { registry }) => weather.send_modify(|it| {
                    it.registries_down.insert(registry.clone());
                }),
                Step::Ends(Trouble::RegistryDown { registry }) => weather.send_modify(|it| {
                    it.registries_down.remove(registry);
                }),
                Step::Begins(Trouble::NamespacePaused { namespace }) => people.pause(namespace, true),
                Step::Ends(Trouble::NamespacePaused { namespace }) => people.pause(namespace, false),
                Step::Begins(Trouble::Paused) => self.pause(Some("--paused")),
                Step::Ends(Trouble::Paused) => self.pause(None),
                Step::Begins(Trouble::FieldsDropped { fields }) => self.api.with(|server| server.drop_fields(fields)),
                Step::Ends(Trouble::FieldsDropped { .. }) => self.api.with(|server| server.drop_fields(&[])),
                Step::OldWatchesEnd => self.api.with(crate::server::Server::end_watches_of_old_crds),
                Step::Begins(_) | Step::Ends(_) => {} // the network and the supervisors handle these faults
            }
        }
    }

    fn pause(&self, by: Option<&str>) {
        self.in_force.send_modify(|in_force| Arc::make_mut(in_force).policy.paused_by = by.map(Into::into));
    }

    /// Waits until everything is at rest.
    async fn rest(&self) {
        let (calm_at, mut still_since, mut last) = (Instant::now(), Instant::now(), None);
        loop {
            let unrest = oracle::unrest(&self.api, &NAMESPACES);
            let state = self.api.look(|server| server.newest_change_but_of("leases"));
            if last != Some(state) {
                (last, still_since) = (Some(state), Instant::now());
            }
            // A pending action might look like a forgotten one, so the world is not at rest while a decision will soon
            // be due.
            if unrest.is_empty() && still_since.elapsed() >= STILL && !self.record.wakes_within(SECOND_LOOK) {
                return;
            }
            if calm_at.elapsed() > REST_WITHIN {
                let minutes = REST_WITHIN.as_secs() / 60;
                let what =
                    if unrest.is_empty() { "something changes again and again".to_owned() } else { unrest.join("; ") };
                return self.record.broken(format!("no rest {minutes} minutes after the last fault: {what}"));
            }
            sleep(Duration::from_secs(5)).await;
        }
    }

    /// Starts a replica that has seen nothing. In a world at rest, it must not write anything.
    async fn look_again(&self) {
        let calm = Plan { faults: Vec::new(), acts: Vec::new(), ..Plan::clone(&self.plan) };
        let record = Record::new(true);
        let network = Network::new(self.api.clone(), Arc::new(calm), self.begin, NEWCOMER, record.clone());
        let stop = watch::Sender::new(false);
        let newcomer = tokio::spawn(self.supervisor(NEWCOMER, network).run(stop.subscribe()));
        sleep(SECOND_LOOK).await;
        stop.send_replace(true);
        drop(newcomer.await); // a panic has been counted
        oracle::judge_views(&self.record, &record);
        let newcomer_name = instance(NEWCOMER);
        for line in record.lines() {
            let method = line.split(' ').nth(2).unwrap_or_default();
            // Expired objects may be removed at any time. Events are examined below: writing an identical event changes
            // nothing.
            if !matches!(method, "GET" | "DELETE") && !line.contains("/leases") && !line.contains("/events") {
                self.record.broken(format!("at rest, a replica that starts finds something to do: {line}"));
            }
        }
        let news =
            NAMESPACES.map(|namespace| self.api.all(&format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")));
        let is_new = |event: &Value| event["reportingInstance"] == newcomer_name && event["reason"] != "DrainSlow";
        // `DrainSlow` is left out, because an endless drain is reported again and again.
        for event in news.into_iter().flatten().filter(is_new) {
            self.record.broken(format!("at rest, a replica that starts has something to tell: {}", event["note"]));
        }
    }

    fn supervisor(&self, replica: u8, network: Network) -> Supervisor {
        let skews = |replica: u8| {
            let faults = self.plan.faults.iter().filter(move |fault| fault.strikes(replica, 0));
            faults.filter_map(|fault| match fault.what {
                Trouble::Clock { ahead } => Some(ahead),
                _ => None,
            })
        };
        let ahead = if replica == NEWCOMER {
            // The newcomer's clock is that of the replica that is furthest behind. What is due for the newcomer was
            // therefore due for every leader.
            (0..self.plan.replicas).flat_map(skews).chain([0]).min()
        } else {
            skews(replica).next()
        };
        let (clock, ahead) = (self.clock.clone(), chrono::TimeDelta::seconds(i64::from(ahead.unwrap_or_default())));
        Supervisor {
            replica,
            plan: Arc::clone(&self.plan),
            begin: self.begin,
            clock: Clock::new(move || -> Time { clock.now() + ahead }),
            network,
            record: self.record.clone(),
            in_force: self.in_force.subscribe(),
            chance: fastrand::Rng::with_seed(self.plan.seed.wrapping_add(u64::from(replica))),
        }
    }
}

enum Step<'a> {
    Act(&'a crate::plan::Operation),
    Begins(&'a Trouble),
    Ends(&'a Trouble),
    /// The watches that began before a change of the CRD end.
    OldWatchesEnd,
}
