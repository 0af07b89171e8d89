//! The loop: deliveries change the index, changed targets are decided on, and decisions are carried out.
//!
//! One task owns the index and the queue. The work on one target is serial; different targets are worked on in
//! parallel.

mod circuits;
pub mod ends;
mod enqueue;
mod error;
pub mod observer;
pub mod queue;
mod report;
mod show;
mod sight;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use wfe_core::Time;
use wfe_core::action::{Decision, Mark};
use wfe_core::decide::{decide, decide_blind, decide_unseen};
use wfe_core::guard::Guard;
use wfe_core::name::Uid;
use wfe_core::target::TargetName;
use wfe_settings::config::InForce;
use wfe_view::index::{Delivery, Index, Key, READ_AFTER};

use crate::clock::Clock;
use crate::cluster::crds::Fitness;
use crate::cluster::leadership::{Leadership, Term};
use crate::cluster::staleness::Staleness;
use crate::engine::ends::Ends;
use crate::engine::observer::{Decided, DecisionObserver};
use crate::engine::queue::Queue;
use crate::health::Health;
use crate::metrics::{
    BlockGauges, BusyGauges, CircuitGauges, LimitGauges, Metrics, PANIC, RecurringGauges, ScheduleGauges,
};
use crate::perform::unconfirmed::UnconfirmedAnnouncements;
use crate::perform::{Performer, Report, Work};
pub use error::EngineError;
use report::{Failures, Held};

/// How many targets are worked on at once, in all namespaces: enough to keep the API server busy, few enough that it
/// can serve other clients.
const PARALLEL_TARGETS: usize = 40;
/// How many deliveries are taken in before decisions get their turn again.
const DELIVERIES_AT_ONCE: usize = 512;
/// The delay before a target is decided on again while the view cannot be trusted.
const BLIND_AGAIN: Duration = Duration::from_secs(1);
/// How long the work under way may take after the process was asked to stop: the time-out of a request, and a few
/// seconds more.
const GRACE: Duration = Duration::from_secs(20);

/// The namespace that asks for work on a target; `None` if there is nothing to decide on the target.
type Asker = Option<Arc<str>>;

/// The engine.
pub struct Engine {
    index: Index,
    queue: Queue<Key, Asker>,
    performer: Performer,
    in_flight: JoinSet<(Key, Report)>,
    /// The key and the start of each task. If a task panics, the key shows which target the work was for.
    tasks: HashMap<tokio::task::Id, (Key, Instant)>,
    /// The targets whose last actions could not be carried out.
    failures: HashMap<Key, Failures>,
    /// Writes that the API server accepted without storing a change; no write is repeated before the time beside it.
    ignored: HashMap<Key, Vec<(Mark, Instant)>>,
    /// The announcements of writes whose outcome is unknown.
    unconfirmed: UnconfirmedAnnouncements,
    /// The ends of executions that another process may not have announced.
    ends: Ends,
    leadership: Leadership,
    /// Whether a term of this process is under way. A follower keeps its view, and decides nothing.
    leads: bool,
    /// The object that pauses everything, as it was last logged.
    paused_by: Option<Box<str>>,
    watch_events: mpsc::Receiver<Delivery>,
    settings: Settings,
    metrics: Metrics,
    block_gauges: BlockGauges,
    recurring: RecurringGauges,
    schedules: ScheduleGauges,
    circuits: CircuitGauges,
    limits: LimitGauges,
    announced_circuits: circuits::AnnouncedCircuits,
    busy: BusyGauges,
    health: Health,
    staleness: Staleness,
}

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The one namespace whose executions are watched; `None`: all.
    pub watch_namespace: Option<String>,
    /// How long a watch may be silent before its view is not trusted any more.
    pub max_staleness: Duration,
    /// The wall clock.
    pub clock: Clock,
    /// The rest of the configuration in force, which can change.
    pub config: watch::Receiver<Arc<InForce>>,
    /// Whether the CRD of executions has the fields that decisions depend on; this can change.
    pub fitness: watch::Receiver<Fitness>,
    /// The state of the policies that guard clearances and cancellations, which can change.
    pub guard: watch::Receiver<Guard>,
    /// The observer of each decision, if there is one.
    pub observer: Option<DecisionObserver>,
}

impl Engine {
    /// Makes an engine with an empty view.
    #[must_use]
    pub fn new(
        settings: Settings,
        performer: Performer,
        leadership: Leadership,
        deliveries: mpsc::Receiver<Delivery>,
        metrics: Metrics,
        health: Health,
        staleness: Staleness,
    ) -> Self {
        Self {
            index: Index::new(settings.watch_namespace.clone()),
            queue: Queue::new(performer.concurrency_limit()),
            performer,
            in_flight: JoinSet::new(),
            tasks: HashMap::new(),
            failures: HashMap::new(),
            ignored: HashMap::new(),
            unconfirmed: UnconfirmedAnnouncements::default(),
            ends: Ends::default(),
            leadership,
            leads: false,
            paused_by: None,
            watch_events: deliveries,
            settings,
            block_gauges: metrics.blocks(),
            recurring: metrics.recurring(),
            schedules: metrics.schedules().gauges(),
            circuits: metrics.circuits().gauges(),
            limits: metrics.limits(),
            announced_circuits: circuits::AnnouncedCircuits::default(),
            busy: metrics.busy(),
            metrics,
            health,
            staleness,
        }
    }

    /// Runs until asked to stop, and then finishes the work under way.
    ///
    /// # Errors
    /// Why this process must not work at all.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), EngineError> {
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut terms = self.leadership.terms();
        self.rule_circuits();
        let known = *self.settings.guard.borrow_and_update();
        self.index.guard(known);
        loop {
            let has_room = self.in_flight.len() < PARALLEL_TARGETS;
            tokio::select! {
                // In this order: stop, begin or end a term, follow the configuration, finish work, learn, and only then
                // decide, on the newest view.
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                term = terms.next() => self.change_leadership(term),
                // All later decisions follow the new configuration, and waiting executions may no longer have to wait.
                Ok(()) = self.settings.config.changed() => {
                    self.show_pauses();
                    self.rule_circuits();
                    self.update_circuits();
                    self.enqueue_all();
                }
                Ok(()) = self.settings.guard.changed() => {
                    let known = *self.settings.guard.borrow_and_update();
                    if self.index.guard(known) {
                        self.enqueue_all();
                    }
                }
                Some(finished) = self.in_flight.join_next_with_id() => self.finish(finished),
                Some(delivery) = self.watch_events.recv() => self.take_in(delivery)?,
                key = self.queue.next(), if has_room && self.leads && !self.is_unfit() => {
                    self.decide_on(key);
                    // A waiting schedule may have got its turn to probe, or a waiting target its place.
                    self.enqueue_changed();
                }
                _ = tick.tick() => {
                    self.show();
                    self.ends.forget(self.settings.clock.now());
                    self.enqueue_changed(); // circuits change with time
                }
            }
        }
        self.drain().await;
        Ok(())
    }

    fn take_in(&mut self, first: Delivery) -> Result<(), EngineError> {
        let synced = self.index.is_synced();
        self.apply(first);
        for _ in 1..DELIVERIES_AT_ONCE {
            let Ok(next) = self.watch_events.try_recv() else { break };
            self.apply(next);
        }
        if !synced && self.index.is_synced() {
            self.begin()?;
        }
        self.enqueue_changed();
        Ok(())
    }

    /// Begins to decide on all targets, or stops deciding. Work in progress at the end of a term finishes: it gives up
    /// its unanswered writes, and the outcome of answered writes is kept.
    fn change_leadership(&mut self, term: Term) {
        self.queue.clear();
        self.unconfirmed.clear();
        self.index.forget_places();
        self.leads = term == Term::Begins;
        if self.leads {
            self.failures.clear();
            self.index.forget_tries();
            self.tell_of_circuits();
            self.tell_of_ends();
            self.enqueue_all();
        } else {
            // Only a leader shows these metrics.
            self.block_gauges.forget_all();
            self.recurring.forget_all();
            self.schedules.forget_all();
            self.circuits.forget_all();
            self.limits.forget_all();
            self.busy.forget_all();
        }
    }

    /// Decides on one target, and starts carrying the decision out.
    fn decide_on(&mut self, key: Key) {
        self.index.settle(&key); // a key that has its turn has no write in flight
        self.index.show_circuits(&key);
        let config = Arc::clone(&self.settings.config.borrow());
        let target = self.index.entry(&key).map(|entry| &entry.target);
        for announcement in self.unconfirmed.take_shown(&key, target) {
            self.performer.tell(&announcement);
        }
        // The only place where a decision gets the time.
        let now = self.settings.clock.now();
        self.index.show_places(&key, &config.policy.limits, now);
        self.index.tell_of_triages(&key, now);
        let Some(entry) = self.index.entry(&key) else {
            self.failures.remove(&key);
            self.ignored.remove(&key);
            self.block_gauges.forget(&key);
            self.recurring.forget(&key);
            self.schedules.forget(&key);
            self.busy.forget(&key);
            return;
        };
        let held = self.held(&key).map(|(wait, held)| (wait, held.clone()));
        if let Some((wait, Held::Everything)) = held {
            self.mark_after(key, wait);
            return;
        }
        let started = Instant::now();
        // A key has one timer: the earliest time counts.
        let mut again = held.as_ref().map(|(wait, _)| *wait);
        let (mut is_decided, mut is_seen) = (true, false);
        let is_written = |execution: &Uid| self.index.is_awaited(&key, execution);
        let mut decision = if let Some(why) = self.blind() {
            let decision = decide_blind(&entry.target, &config.policy, &why, is_written, now);
            // No timer is needed before the first lists are complete, because their end marks every target.
            if self.index.is_synced() || !decision.waiting.is_empty() {
                again = Some(BLIND_AGAIN);
            }
            decision
        } else if self.index.ready(&key).is_some() {
            is_seen = true;
            let decision = decide(&entry.target, &config.policy, now);
            if let Some(observer) = &self.settings.observer {
                observer.show(Decided { target: &entry.target, policy: &config.policy, now, decision: &decision });
            }
            self.block_gauges.show(&key, entry.target.name.as_ref().map(TargetName::as_str), &decision.blocks);
            self.recurring.show(&key, &entry.target, now);
            self.schedules.show(&key, &entry.target, &decision.schedules);
            decision
        } else if let Some((expected, read_at)) = self.index.awaits(&key).filter(|_| !self.index.is_listing()) {
            if read_at <= now {
                return self.read_awaited(key, now);
            }
            let wait = (read_at - now).to_std().unwrap_or_default();
            again = Some(again.map_or(wait, |again| again.min(wait)));
            is_decided = false;
            let since = read_at - READ_AFTER;
            let what = expected.object().to_string();
            decide_unseen(&entry.target, &config.policy, (&what, since), is_written, now)
        } else {
            return; // the end of the list in progress marks the target again
        };
        self.metrics.decided(started.elapsed());
        self.busy.show(&key, &entry.target, &decision);
        log(&decision, entry.target.label());
        if is_decided {
            self.index.waits(&key, &decision, now);
            self.index.queue_probes(&decision, now);
            if is_seen {
                self.index.ask_for_places(&key, &decision, now);
            }
        } else {
            self.index.waits_on(&key, &decision, now);
        }
        self.leave_ignored(&key, &mut decision);
        let Some(entry) = self.index.entry(&key) else { return };
        if let Some(wake) = decision.wake {
            let wait = (wake - now).to_std().unwrap_or_default();
            again = Some(again.map_or(wait, |again| again.min(wait)));
        }
        if let Some(wait) = again {
            self.queue.mark_after(key.clone(), entry.target.asker().cloned(), wait);
        }
        if let Some((_, Held::These(held))) = &held {
            decision.actions.retain(|action| !held.contains(&action.mark()));
        }
        if decision.actions.is_empty() {
            if held.is_none() {
                self.failures.remove(&key);
            }
            return;
        }
        self.index.begun(&key, &decision.actions, now);
        let Some(entry) = self.index.entry(&key) else { return };
        let work = Work::prepare(key.clone(), entry, decision.actions, &config.defaults, now);
        let performer = self.start(key.clone());
        let task = self.in_flight.spawn(performer.perform(work));
        self.tasks.insert(task.id(), (key, Instant::now()));
    }

    /// Reads the objects live whose writes have not been delivered for a long time.
    fn read_awaited(&mut self, key: Key, now: Time) {
        let overdue = self.index.take_overdue(&key, now);
        let performer = self.start(key.clone());
        let task = self.in_flight.spawn(performer.read_awaited(key.clone(), overdue));
        self.tasks.insert(task.id(), (key, Instant::now()));
    }

    fn finish(&mut self, finished: Result<(tokio::task::Id, (Key, Report)), tokio::task::JoinError>) {
        let id = match &finished {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((key, started)) = self.tasks.remove(&id) else { return };
        self.metrics.performed(started.elapsed());
        let learned_something = match finished {
            Ok((_, (_, report))) => self.take_report(&key, report),
            Err(error) => {
                self.metrics.error(PANIC);
                tracing::error!(%error, "performing a decision panicked; the target is looked at again");
                self.retry(&key, Some(Held::Everything), None);
                false
            }
        };
        self.queue.done(&key);
        if learned_something {
            self.enqueue(key);
        }
    }

    async fn drain(&mut self) {
        tracing::info!(under_way = self.in_flight.len(), "stopping");
        let rest = async { while self.in_flight.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, rest).await.is_err() {
            tracing::warn!("stopped with writes under way; the next process resumes them");
        }
    }
}

/// Logs how a decision judged each execution and each schedule of a target.
fn log(decision: &Decision, target: &str) {
    for (execution, waiting) in &decision.waiting {
        tracing::debug!(wfe = %execution, ?waiting, "waits");
    }
    for (execution, judgement) in &decision.judged {
        let rule = judgement.rule();
        tracing::debug!(wfe = %execution, rule, "judged:\n{}", judgement.explain(target));
    }
    for (schedule, judgement) in &decision.schedules {
        let (row, because) = judgement.asked.last().map_or(("", ""), |(row, because)| (*row, because));
        tracing::debug!(%schedule, row, "judged: {because}");
    }
}

#[cfg(test)]
mod tests;
