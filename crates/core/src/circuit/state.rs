//! Where the circuits stand after some events: the rules of SPEC section 13.5, one event at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::event::{End, Event, What};
use super::{CircuitKey, ClosedCircuit, Closing, OpenCircuit, Scope};
use crate::Time;
use crate::backoff::{Backoff, Thousandths};
use crate::chain::ChainName;
use crate::fingerprint::Fingerprint;
use crate::moment::{after, before};
use crate::name::Uid;
use crate::policy::{CircuitPolicy, Policy};

/// How many circuits of fingerprints are open at the most: as many as the metric has series. A further one stays
/// closed, as whatever is unknown does; a hundred shared failures at once open the circuit of all.
pub(super) const MOST_OPEN: usize = 100;
/// How many fingerprints are counted at once. Who makes up workflows could bring any number of them; when there are
/// more, the one that failed last the longest ago is forgotten.
pub(super) const MOST_COUNTED: usize = 1_000;
/// How many targets the circuit of all is counted by: 80 bytes each. A share of the newest twenty thousand says what a
/// share of all says.
pub(super) const MOST_TARGETS: usize = 20_000;
/// How many schedules are remembered by what they failed with last: four times as many as an installation is made for.
/// Of one that is not remembered, what it runs says by which circuits it is touched.
const MOST_SCHEDULES: usize = 20_000;
/// How many closings are kept, for as long as a circuit may be quiet. They spread the schedules that were held, for one
/// base cooldown.
const MOST_CLOSED: usize = 100;

/// What of the policy the circuits depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) circuits: CircuitPolicy,
    pub(super) backoff: Backoff,
}

impl Settings {
    pub(super) fn of(policy: &Policy) -> Self {
        Self { circuits: policy.circuits, backoff: policy.backoff }
    }

    /// After how long without a failure of its kind or a probe a circuit closes by itself: twice the longest wait.
    fn quiet(&self) -> Duration {
        self.backoff.after(u32::MAX).saturating_mul(2)
    }
}

/// Where the circuits stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    open: BTreeMap<CircuitKey, Open>,
    closed: VecDeque<ClosedCircuit>,
    /// The targets that failed with a fingerprint whose circuit is closed, with the newest failure of each.
    counted: HashMap<Fingerprint, Vec<Counted>>,
    /// The newest end of each target within the window.
    newest: Newest,
    /// What schedules failed with, whose newest child failed before anything ran.
    failed_last: HashMap<Uid, Fingerprint>,
}

/// The newest failure of a target with a fingerprint.
#[derive(Clone, Debug, PartialEq)]
struct Counted {
    target: ChainName,
    at: Time,
    /// The namespace of the execution that failed.
    namespace: Arc<str>,
}

/// An open circuit.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    scope: Scope,
    opened_at: Time,
    failed: u32,
    of: u32,
    failed_probes: u32,
    newest_probe: Option<Time>,
    /// When it opened, failed or was probed last.
    active_at: Time,
}

impl Open {
    fn new(scope: Scope, at: Time, failed: u32, of: u32) -> Self {
        Self { scope, opened_at: at, failed, of, failed_probes: 0, newest_probe: None, active_at: at }
    }

    /// Tells whether a child that was made in a namespace at a time is a probe. A child that was made before the first
    /// probe was due was under way when the circuit opened, and one that was made before its namespace was held was
    /// under way by then: nobody could hold it, and it must not make the others wait longer.
    fn is_probe(&self, namespace: &str, created: Time, settings: &Settings) -> bool {
        let is_held = self.scope.since(namespace).is_some_and(|since| since <= created);
        is_held && created >= after(self.opened_at, settings.backoff.after(1))
    }

    fn next_probe_at(&self, settings: &Settings) -> Time {
        let newest = self.newest_probe.map_or(self.opened_at, |newest| newest.max(self.opened_at));
        after(newest, settings.backoff.after(self.failed_probes.saturating_add(1)))
    }

    fn quiet_at(&self, settings: &Settings) -> Time {
        after(self.active_at, settings.quiet())
    }
}

impl State {
    /// Takes in an event that is not earlier than those before it.
    pub(super) fn take(&mut self, event: &Event, settings: &Settings) {
        self.close_quiet(event.at, settings);
        while self.closed.front().is_some_and(|closed| after(closed.closed_at, settings.quiet()) < event.at) {
            self.closed.pop_front();
        }
        match &event.what {
            What::Made => self.made(event, settings),
            What::Ended { target, created, end } => self.ended(event, *target, *created, end, settings),
        }
    }

    /// Returns the open circuits and the closings, without turns.
    pub(super) fn seen(&self, settings: &Settings, now: Time) -> (Vec<OpenCircuit>, Vec<ClosedCircuit>) {
        let open = self.open.iter().map(|(key, open)| OpenCircuit {
            key: key.clone(),
            scope: open.scope.clone(),
            opened_at: open.opened_at,
            failed: open.failed,
            of: open.of,
            failed_probes: open.failed_probes,
            next_probe_at: open.next_probe_at(settings),
            quiet_at: open.quiet_at(settings),
            turn: None,
        });
        let is_new = |closed: &&ClosedCircuit| after(closed.closed_at, settings.quiet()) >= now;
        (open.collect(), self.closed.iter().filter(is_new).cloned().collect())
    }

    /// Returns the fingerprint that a schedule failed with last.
    pub(super) fn failed_last(&self, schedule: &Uid) -> Option<&Fingerprint> {
        self.failed_last.get(schedule)
    }

    /// Closes the circuits of which nothing was heard for long.
    fn close_quiet(&mut self, now: Time, settings: &Settings) {
        let quiet = self.open.iter().map(|(key, open)| (key.clone(), open.quiet_at(settings)));
        let quiet: Vec<_> = quiet.filter(|(_, quiet_at)| *quiet_at <= now).collect();
        for (key, quiet_at) in quiet {
            self.close(&key, quiet_at, Closing::Quiet);
        }
    }

    fn close(&mut self, key: &CircuitKey, at: Time, why: Closing) {
        let Some(open) = self.open.remove(key) else { return };
        if self.closed.len() == MOST_CLOSED {
            self.closed.pop_front();
        }
        let Open { scope, opened_at, .. } = open;
        self.closed.push_back(ClosedCircuit { key: key.clone(), scope, opened_at, closed_at: at, why });
    }

    fn made(&mut self, event: &Event, settings: &Settings) {
        let failed_with = event.schedule.as_ref().and_then(|schedule| self.failed_last.get(schedule));
        for (key, open) in &mut self.open {
            if key.touches(&event.origin, failed_with) && open.is_probe(&event.namespace, event.at, settings) {
                open.newest_probe = open.newest_probe.max(Some(event.at));
                open.active_at = open.active_at.max(event.at);
            }
        }
    }

    fn ended(&mut self, event: &Event, target: ChainName, created: Time, end: &End, settings: &Settings) {
        self.hear(event, created, end, settings);
        let (at, policy) = (event.at, &settings.circuits);
        match end {
            End::Succeeded => self.counted.retain(|fingerprint, _| !fingerprint.touches(&event.origin)),
            End::FailedBefore(Some(fingerprint)) if policy.outage_targets > 0 => {
                self.count(fingerprint, Counted { target, at, namespace: event.namespace.clone() }, policy);
            }
            End::FailedBefore(_) | End::FailedAfter => {}
        }
        let failed_in = (*end != End::Succeeded).then(|| event.namespace.clone());
        self.count_all(target, failed_in, at, policy);
        let Some(schedule) = &event.schedule else { return };
        match end {
            End::FailedBefore(Some(fingerprint)) => {
                if self.failed_last.len() < MOST_SCHEDULES || self.failed_last.contains_key(schedule) {
                    self.failed_last.insert(schedule.clone(), fingerprint.clone());
                }
            }
            End::Succeeded | End::FailedAfter | End::FailedBefore(None) => {
                if let Some(fingerprint) = self.failed_last.remove(schedule)
                    && *end == End::Succeeded
                {
                    self.counted.remove(&fingerprint);
                }
            }
        }
    }

    /// Takes in what an end says of the circuits that are open.
    fn hear(&mut self, event: &Event, created: Time, end: &End, settings: &Settings) {
        let failed_with = event.schedule.as_ref().and_then(|schedule| self.failed_last.get(schedule));
        let mut closes = Vec::new();
        for (key, open) in &mut self.open {
            let is_its_kind = match (key, end) {
                (CircuitKey::All, End::FailedBefore(_) | End::FailedAfter) => true,
                (CircuitKey::Of(mine), End::FailedBefore(Some(other))) => mine == other,
                _ => false,
            };
            // As the scope was before this event: a failure in another namespace is no probe, and widens the scope.
            let is_held = open.scope.has(&event.namespace);
            if is_its_kind {
                open.active_at = open.active_at.max(event.at);
                open.scope.add(&event.namespace, event.at);
            }
            if !is_held || !is_its_kind && !key.touches(&event.origin, failed_with) {
                continue;
            }
            let gets_past = match end {
                End::Succeeded => true,
                // Something of it ran, so what the circuit is about did not stop it.
                End::FailedAfter => *key != CircuitKey::All,
                End::FailedBefore(_) => false,
            };
            if gets_past && created > open.opened_at {
                closes.push(key.clone());
            } else if !gets_past && event.schedule.is_some() && open.is_probe(&event.namespace, created, settings) {
                open.failed_probes = open.failed_probes.saturating_add(1);
            }
        }
        for key in closes {
            self.close(&key, event.at, Closing::Past);
        }
    }

    /// Counts a failure, and opens the circuit of its fingerprint when enough targets agree.
    fn count(&mut self, fingerprint: &Fingerprint, failure: Counted, policy: &CircuitPolicy) {
        let at = failure.at;
        let key = CircuitKey::Of(fingerprint.clone());
        if self.open.contains_key(&key) {
            return;
        }
        if self.counted.len() >= MOST_COUNTED && !self.counted.contains_key(fingerprint) {
            self.forget_one(before(at, policy.outage_window));
        }
        let targets = self.counted.entry(fingerprint.clone()).or_default();
        let begins = before(at, policy.outage_window);
        targets.retain(|other| other.target != failure.target && other.at >= begins);
        targets.push(failure);
        let agreed = u32::try_from(targets.len()).unwrap_or(u32::MAX);
        if agreed < policy.outage_targets {
            return;
        }
        if self.open.len() < MOST_OPEN {
            let scope = Scope::of(targets.drain(..).map(|failure| failure.namespace), at);
            self.counted.remove(fingerprint);
            self.open.insert(key, Open::new(scope, at, agreed, agreed));
        } else {
            targets.remove(0); // more than are asked for say nothing more
        }
    }

    /// Makes room for another fingerprint: those that nobody failed with in the window go, else the oldest.
    fn forget_one(&mut self, begins: Time) {
        let newest = |targets: &[Counted]| targets.last().map(|failure| failure.at);
        self.counted.retain(|_, targets| newest(targets) >= Some(begins));
        if self.counted.len() >= MOST_COUNTED {
            let oldest = self.counted.iter().min_by_key(|(fingerprint, targets)| (newest(targets), *fingerprint));
            if let Some(oldest) = oldest.map(|(fingerprint, _)| fingerprint.clone()) {
                self.counted.remove(&oldest);
            }
        }
    }

    /// Counts an end for the circuit of all, and opens that when too large a share of the targets has failed.
    /// `failed_in`: where it failed, the namespace of the execution.
    fn count_all(&mut self, target: ChainName, failed_in: Option<Arc<str>>, at: Time, policy: &CircuitPolicy) {
        let is_open = self.open.contains_key(&CircuitKey::All);
        let closed_now = self.closed.iter().any(|it| it.key == CircuitKey::All && it.closed_at >= at);
        if policy.breaker_threshold == Thousandths::ZERO || is_open || closed_now {
            return;
        }
        self.newest.put(target, failed_in, at);
        self.newest.forget_before(before(at, policy.outage_window));
        let (failed, finished) = (self.newest.failed, self.newest.by_target.len());
        let of = u32::try_from(finished).unwrap_or(u32::MAX);
        let is_share = u64::from(failed) * 1000 >= u64::from(of) * u64::from(policy.breaker_threshold.0);
        if of >= policy.breaker_minimum && failed > 0 && is_share {
            let ends = mem::take(&mut self.newest).by_target.into_values();
            let scope = Scope::of(ends.filter_map(|(_, failed_in)| failed_in), at);
            self.open.insert(CircuitKey::All, Open::new(scope, at, failed, of));
        }
    }
}

/// The newest end of each target within the window.
#[derive(Clone, Debug, Default, PartialEq)]
struct Newest {
    /// When each ended last, and where it failed then, the namespace of the execution.
    by_target: HashMap<ChainName, (Time, Option<Arc<str>>)>,
    /// The ends in order, with some that are not the newest of their target any more.
    in_order: VecDeque<(Time, ChainName)>,
    /// How many targets failed last.
    failed: u32,
}

impl Newest {
    fn put(&mut self, target: ChainName, failed_in: Option<Arc<str>>, at: Time) {
        self.failed += u32::from(failed_in.is_some());
        if let Some((_, was)) = self.by_target.insert(target, (at, failed_in)) {
            self.failed -= u32::from(was.is_some());
        }
        // One place for each second of a target is enough.
        if self.in_order.back() != Some(&(at, target)) {
            self.in_order.push_back((at, target));
        }
    }

    fn forget_before(&mut self, begins: Time) {
        // What is outdated makes room; else targets that end often would fill the queue.
        let is_full = |it: &Self| it.in_order.len() > MOST_TARGETS;
        while let Some((at, target)) = self.in_order.front().copied()
            && (at < begins || is_full(self))
        {
            self.in_order.pop_front();
            if self.by_target.get(&target).is_some_and(|(newest, _)| *newest == at)
                && let Some((_, failed_in)) = self.by_target.remove(&target)
            {
                self.failed -= u32::from(failed_in.is_some());
            }
        }
    }
}

/// Returns how many of each kind are kept, so that a test sees the limits.
#[cfg(test)]
impl State {
    pub(super) fn sizes(&self) -> [usize; 5] {
        let Self { open, closed, counted, newest, failed_last } = self;
        [open.len(), closed.len(), counted.len(), newest.in_order.len(), failed_last.len()]
    }
}
