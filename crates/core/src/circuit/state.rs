//! The state of the circuits after some events: section 13.5, one event at a time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::counted::Counted;
use super::event::{End, Event, What};
use super::{ClosedCircuit, Closing, OpenCircuit, Probes};
use crate::Time;
use crate::backoff::Backoff;
use crate::chain::ChainName;
use crate::fingerprint::Fingerprint;
use crate::moment::{after, before};
use crate::name::Uid;
use crate::policy::{CircuitPolicy, Policy};

/// The maximum number of open circuits, which is also the number of series of the metric. Any further circuit stays
/// closed.
pub(super) const MOST_OPEN: usize = 100;
/// For how many schedules the last failure is remembered: four times as many as the operator is designed for. A child
/// of any other schedule is not a probe.
const MOST_SCHEDULES: usize = 20_000;
/// How many closed circuits are remembered while they matter.
const MOST_CLOSED: usize = 100;
/// For how many namespaces the probes of a circuit are counted. Other namespaces count as having made none.
const MOST_NAMESPACES: usize = 1_000;

/// The longest time for which an open circuit, or a large share of failures, delays a triage (section 13.6).
pub const PUT_OFF: Duration = Duration::from_hours(1);

/// The part of the policy that circuits depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) circuits: CircuitPolicy,
    pub(super) backoff: Backoff,
}

impl Settings {
    pub(super) fn of(policy: &Policy) -> Self {
        Self { circuits: policy.circuits, backoff: policy.backoff }
    }

    /// After how long without a probe or another failure with its fingerprint a circuit closes by itself: twice the
    /// longest wait.
    fn quiet(&self) -> Duration {
        self.backoff.after(u32::MAX).saturating_mul(2)
    }

    /// How long a closed circuit matters: for held schedules, for reopening, and for triage.
    fn remembered(&self) -> Duration {
        self.backoff.base.max(self.backoff.max).max(PUT_OFF)
    }
}

/// The state of the circuits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    open: BTreeMap<Fingerprint, Open>,
    /// No open circuit closes by itself before this time. An earlier event therefore need not check all circuits.
    quiet_from: Option<Time>,
    /// The last closing of each circuit.
    closed: BTreeMap<Fingerprint, Closed>,
    counted: Counted,
    /// The last failure of each schedule whose newest child failed.
    failed_last: HashMap<Uid, Fingerprint>,
}

/// An open circuit.
#[derive(Clone, Debug, PartialEq)]
struct Open {
    subject: Arc<str>,
    opened_at: Time,
    holds_from: Time,
    failed: u32,
    failed_probes: u32,
    probes: Arc<Probes>,
    newest_probe: Option<Time>,
    /// When the circuit last opened, failed or was probed.
    last_activity_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Closed {
    opened_at: Time,
    at: Time,
    why: Closing,
}

impl Open {
    /// Returns whether the circuit held its schedules when a child was created. If the child was created before the
    /// first probe was due, the decision was made before the opening was known.
    fn held_at(&self, created: Time, settings: &Settings) -> bool {
        created >= self.holds_from && created >= after(self.opened_at, settings.backoff.after(1))
    }

    fn next_probe_at(&self, settings: &Settings) -> Time {
        let newest = self.newest_probe.map_or(self.opened_at, |newest| newest.max(self.opened_at));
        after(newest, settings.backoff.after(self.failed_probes.saturating_add(1)))
    }

    fn quiet_at(&self, settings: &Settings) -> Time {
        after(self.last_activity_at, settings.quiet())
    }

    fn snapshot(&self, fingerprint: &Fingerprint, settings: &Settings) -> OpenCircuit {
        OpenCircuit {
            fingerprint: fingerprint.clone(),
            opened_at: self.opened_at,
            holds_from: self.holds_from,
            failed: self.failed,
            failed_probes: self.failed_probes,
            probes: Arc::clone(&self.probes),
            next_probe_at: self.next_probe_at(settings),
            quiet_at: self.quiet_at(settings),
            turn: None,
        }
    }
}

impl State {
    /// Applies an event that is not earlier than the previous ones.
    pub(super) fn apply(&mut self, event: &Event, settings: &Settings) {
        self.expire(event.at, settings);
        match &event.what {
            What::Made => self.apply_creation(event, settings),
            What::Ended { target, created, end } => self.apply_end(event, *target, *created, end, settings),
        }
    }

    /// Returns the circuits that are open at a given time, without turns, and those that closed recently.
    pub(super) fn snapshot(&self, settings: &Settings, now: Time) -> (Vec<OpenCircuit>, Vec<ClosedCircuit>) {
        let all = self.open.iter().map(|(fingerprint, open)| open.snapshot(fingerprint, settings));
        let (open, quiet): (Vec<_>, Vec<_>) = all.partition(|circuit| circuit.is_open(now));
        let is_new = |closed: &&ClosedCircuit| after(closed.closed_at, settings.remembered()) >= now;
        let quiet: Vec<_> = quiet
            .into_iter()
            .map(|OpenCircuit { fingerprint, opened_at, quiet_at: closed_at, .. }| ClosedCircuit {
                fingerprint,
                opened_at,
                closed_at,
                why: Closing::Quiet,
            })
            .collect();
        let known = self.closed.iter().map(|(fingerprint, closed)| ClosedCircuit {
            fingerprint: fingerprint.clone(),
            opened_at: closed.opened_at,
            closed_at: closed.at,
            why: closed.why,
        });
        // Only the last closing of each fingerprint is returned.
        let is_last = |closed: &ClosedCircuit| !quiet.iter().any(|it| it.fingerprint == closed.fingerprint);
        let closed: Vec<_> = known.filter(is_last).collect();
        (open, closed.into_iter().chain(quiet.iter().cloned()).filter(|it| is_new(&it)).collect())
    }

    /// Returns the circuit that a schedule's child probes if it was created at this time, if any.
    pub(super) fn probed_circuit(&self, schedule: &Uid, created: Time, settings: &Settings) -> Option<&Fingerprint> {
        let fingerprint = self.failed_last.get(schedule)?;
        self.open.get(fingerprint).filter(|open| open.held_at(created, settings)).map(|_| fingerprint)
    }

    /// Closes the circuits that have been quiet for long enough, and forgets what is too old to matter.
    fn expire(&mut self, now: Time, settings: &Settings) {
        if self.quiet_from.is_some_and(|from| from <= now) {
            let quiet = self.open.iter().map(|(fingerprint, open)| (fingerprint.clone(), open.quiet_at(settings)));
            let quiet: Vec<_> = quiet.filter(|(_, quiet_at)| *quiet_at <= now).collect();
            for (fingerprint, quiet_at) in quiet {
                self.close(&fingerprint, quiet_at, Closing::Quiet);
            }
            self.quiet_from = self.open.values().map(|open| open.quiet_at(settings)).min();
        }
        self.closed.retain(|_, closed| after(closed.at, settings.remembered()) >= now);
        self.counted.forget_before(before(now, settings.circuits.outage_window));
    }

    fn close(&mut self, fingerprint: &Fingerprint, at: Time, why: Closing) {
        let Some(open) = self.open.remove(fingerprint) else { return };
        if self.closed.len() >= MOST_CLOSED
            && let Some(oldest) = self.closed.iter().min_by_key(|(_, closed)| closed.at).map(|(it, _)| it.clone())
        {
            self.closed.remove(&oldest);
        }
        self.closed.insert(fingerprint.clone(), Closed { opened_at: open.opened_at, at, why });
    }

    fn apply_creation(&mut self, event: &Event, settings: &Settings) {
        let Some(failed_with) = event.schedule.as_ref().and_then(|schedule| self.failed_last.get(schedule)) else {
            return;
        };
        let Some(open) = self.open.get_mut(failed_with).filter(|open| open.held_at(event.at, settings)) else { return };
        open.newest_probe = open.newest_probe.max(Some(event.at));
        open.last_activity_at = open.last_activity_at.max(event.at);
        let probes = Arc::make_mut(&mut open.probes);
        if probes.len() < MOST_NAMESPACES || probes.contains_key(&event.namespace) {
            let made = probes.entry(Arc::clone(&event.namespace)).or_default();
            *made = made.saturating_add(1);
        }
    }

    fn apply_end(&mut self, event: &Event, target: ChainName, created: Time, end: &End, settings: &Settings) {
        let schedule = event.schedule.as_ref();
        let probed = schedule.and_then(|schedule| self.probed_circuit(schedule, created, settings)).cloned();
        match end {
            End::Succeeded { started_at: began } => {
                if let Some(probed) = &probed {
                    self.close(probed, event.at, Closing::Probe);
                }
                self.succeeded(event, *began);
            }
            End::Failed { fingerprint: Some(with), before_start: before } => {
                if let Some(open) = self.open.get_mut(with) {
                    open.last_activity_at = open.last_activity_at.max(event.at);
                    if probed.as_ref() == Some(with) {
                        open.failed_probes = open.failed_probes.saturating_add(1);
                    }
                } else if *before {
                    self.count(event, with, target, settings);
                }
            }
            End::Failed { fingerprint: None, .. } => {}
        }
        let Some(schedule) = schedule else { return };
        match end {
            End::Failed { fingerprint: Some(with), .. } => {
                if self.failed_last.len() < MOST_SCHEDULES || self.failed_last.contains_key(schedule) {
                    self.failed_last.insert(schedule.clone(), with.clone());
                }
            }
            End::Succeeded { .. } | End::Failed { fingerprint: None, .. } => {
                self.failed_last.remove(schedule);
            }
        }
    }

    /// Records a success. It refutes failures with the same subject that happened before the successful execution
    /// began.
    fn succeeded(&mut self, event: &Event, began: Time) {
        let failed_with = event.schedule.as_ref().and_then(|schedule| self.failed_last.get(schedule)).cloned();
        if let Some(fingerprint) = &failed_with {
            self.counted.refute(fingerprint, began);
        }
        let used = Fingerprint::subjects(&event.origin);
        for subject in &used {
            self.counted.refute_all(subject, began);
        }
        let is_refuted = |(fingerprint, open): &(&Fingerprint, &Open)| {
            let is_used = failed_with.as_ref() == Some(fingerprint) || used.iter().any(|it| **it == *open.subject);
            is_used && began > open.opened_at
        };
        let refuted: Vec<_> = self.open.iter().filter(is_refuted).map(|(it, _)| it.clone()).collect();
        for fingerprint in refuted {
            self.close(&fingerprint, event.at, Closing::Success);
        }
    }

    /// Counts a failure, and opens the circuit of its fingerprint if enough targets have failed with it.
    fn count(&mut self, event: &Event, fingerprint: &Fingerprint, target: ChainName, settings: &Settings) {
        let (at, policy) = (event.at, &settings.circuits);
        if policy.outage_targets == 0 {
            return;
        }
        let subject: Arc<str> = fingerprint.refuted_by(&event.origin).into();
        let begins = before(at, policy.outage_window);
        let failed = u32::try_from(self.counted.add(fingerprint, &subject, target, at, begins)).unwrap_or(u32::MAX);
        if failed < policy.outage_targets || self.open.len() >= MOST_OPEN {
            return;
        }
        self.counted.forget(fingerprint);
        // A success of another execution has just shown that not every target has this failure, so the circuit holds no
        // schedule at first.
        let refuted = self.closed.get(fingerprint).filter(|closed| closed.why == Closing::Success);
        let holds_from = refuted.map_or(at, |closed| after(closed.at, settings.backoff.max).max(at));
        let open = Open {
            subject,
            opened_at: at,
            holds_from,
            failed,
            failed_probes: 0,
            probes: Arc::default(),
            newest_probe: None,
            last_activity_at: at,
        };
        let quiet_at = open.quiet_at(settings);
        self.quiet_from = Some(self.quiet_from.map_or(quiet_at, |from| from.min(quiet_at)));
        self.open.insert(fingerprint.clone(), open);
    }
}

/// Shows tests how many entries of each kind are kept.
#[cfg(test)]
impl State {
    pub(super) fn sizes(&self) -> [usize; 4] {
        [self.open.len(), self.closed.len(), self.counted.len(), self.failed_last.len()]
    }
}
