//! The circuits, which are derived from the finished executions of all targets, and the turns to probe (section 13.5).
//!
//! The rules are in `wfe_core::circuit`. This module knows which events an execution leads to, when the circuits must
//! be derived anew from all executions, and which decisions a change of the circuits may affect.

use std::collections::BTreeSet;
use std::time::Duration;

use wfe_core::action::{Decision, Probe};
use wfe_core::chain::ChainName;
use wfe_core::circuit::{Circuits, ClosedCircuit, Closing, End, Event, Fold, OpenCircuit, Taken, Turns, What};
use wfe_core::execution::{Execution, ExecutionState, FailedState};
use wfe_core::fingerprint::Fingerprint;
use wfe_core::name::Uid;
use wfe_core::policy::Policy;
use wfe_core::reason::FailureReason;
use wfe_core::schedule::Schedule;
use wfe_core::{MAX_AHEAD, Time};

use super::{Index, Key, Kind};

/// The shortest time between two derivations from all executions. For fifty thousand executions, a derivation takes
/// some hundredths of a second.
const ANEW_AFTER: Duration = Duration::from_secs(1);
/// The limit of events that wait to be processed. Beyond it, the circuits are derived anew from all executions.
const MOST_PENDING: usize = 16_384;

/// A change of a circuit since the last update.
#[derive(Clone, Debug, PartialEq)]
pub enum CircuitNews {
    /// The circuit opened.
    Opened(OpenCircuit),
    /// The circuit closed.
    Closed(ClosedCircuit),
    /// A probe of the circuit has ended.
    Probed {
        /// The circuit that was probed.
        fingerprint: Fingerprint,
        /// Whether the probe completed.
        completed: bool,
    },
}

/// What the index stores about circuits.
#[derive(Debug)]
pub(super) struct Breakers {
    policy: Policy,
    fold: Fold,
    /// The events that were not processed yet.
    pending: Vec<Event>,
    /// Whether the circuits must be derived anew from all executions.
    is_stale: bool,
    folded_at: Option<Time>,
    turns: Turns,
    /// The circuits as decisions see them.
    shown: Circuits,
    /// The circuits that closed because their failures no longer exist. As after any closing, the starts of the
    /// schedules that they held are spread over time.
    forgotten: Vec<ClosedCircuit>,
    /// The probes that have ended since the last update.
    probed: Vec<CircuitNews>,
}

impl Default for Breakers {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            fold: Fold::new(&policy),
            policy,
            pending: Vec::new(),
            is_stale: true,
            folded_at: None,
            turns: Turns::default(),
            shown: Circuits::default(),
            forgotten: Vec::new(),
            probed: Vec::new(),
        }
    }
}

impl Index {
    /// Sets the policy of circuits. A different policy makes the next update derive the circuits anew.
    pub fn set_circuit_policy(&mut self, policy: &Policy) {
        let breakers = &mut self.breakers;
        if !breakers.fold.is_by(policy) {
            (breakers.is_stale, breakers.folded_at) = (true, None);
        }
        breakers.policy.clone_from(policy);
    }

    /// Returns the circuits as decisions see them.
    #[must_use]
    pub fn circuits(&self) -> &Circuits {
        &self.breakers.shown
    }

    /// Copies the circuits into a target that is about to be decided on.
    pub fn show_circuits(&mut self, key: &Key) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.circuits.clone_from(&self.breakers.shown);
        }
    }

    /// Records which schedules of a decision wait for a turn to probe.
    pub fn queue_probes(&mut self, decision: &Decision, now: Time) {
        let breakers = &mut self.breakers;
        if breakers.shown.open().next().is_none() {
            return;
        }
        for (schedule, judgement) in &decision.schedules {
            match &judgement.probe {
                Probe::None => breakers.turns.leave(&schedule.uid),
                Probe::Awaits(asks) => breakers.turns.wait(schedule, asks.clone()),
                Probe::Makes(asks) => breakers.turns.make(schedule, asks.clone(), now),
            }
        }
    }

    /// Processes the new events, gives turns, and marks the targets of schedules whose decision may change. Returns the
    /// changes of the circuits. During a list nothing is decided, so this function does nothing.
    pub fn update_circuits(&mut self, now: Time) -> Vec<CircuitNews> {
        if !self.is_synced() || self.is_listing() {
            return Vec::new();
        }
        self.fold_pending(now);
        let breakers = &mut self.breakers;
        let mut seen = breakers.fold.seen(now);
        breakers.turns.give(&mut seen.open, now);
        let was: Vec<OpenCircuit> = breakers.shown.open().cloned().collect();
        let closing = |was: &OpenCircuit| {
            let is_it = |it: &&ClosedCircuit| it.fingerprint == was.fingerprint && it.opened_at == was.opened_at;
            seen.closed.iter().find(is_it)
        };
        // A late event can move the opening time of a circuit; the circuit is then still the same.
        let is_same = |was: &OpenCircuit, is: &OpenCircuit| {
            was.fingerprint == is.fingerprint && (was.opened_at == is.opened_at || closing(was).is_none())
        };
        let mut news = std::mem::take(&mut breakers.probed);
        let mut forgotten = Vec::new();
        for gone in was.iter().filter(|was| !seen.open.iter().any(|is| is_same(was, is))) {
            let closed = closing(gone).cloned().unwrap_or_else(|| {
                let (fingerprint, opened_at) = (gone.fingerprint.clone(), gone.opened_at);
                let closed = ClosedCircuit { fingerprint, opened_at, closed_at: now, why: Closing::Forgotten };
                forgotten.push(closed.clone());
                closed
            });
            news.push(CircuitNews::Closed(closed));
        }
        let opened = seen.open.iter().filter(|is| !was.iter().any(|was| is_same(was, is)));
        news.extend(opened.cloned().map(CircuitNews::Opened));
        // If a circuit is gone without a recorded closing, the starts of the schedules that it held are spread over
        // time. Nothing else follows from it.
        breakers.forgotten.extend(forgotten);
        let spreads = |it: &ClosedCircuit| now < it.closed_at + breakers.policy.backoff.base;
        let is_known = |it: &ClosedCircuit| seen.closed.iter().any(|known| known.fingerprint == it.fingerprint);
        breakers.forgotten.retain(|it| spreads(it) && !is_known(it));
        seen.closed.extend(breakers.forgotten.iter().cloned());
        let shown = Circuits::from(seen);
        if shown == breakers.shown {
            return news;
        }
        let before = std::mem::replace(&mut breakers.shown, shown.clone());
        self.mark_held(&before, &shown);
        news
    }

    /// Records the events of a new version of an execution. `was_terminal` is whether the version before had ended, if
    /// there was one.
    pub(super) fn record_events(&mut self, key: &Key, uid: &Uid, was_terminal: Option<bool>) {
        if !self.is_synced() || was_terminal == Some(true) {
            return; // the first derivation includes all executions
        }
        let Key::Chain(chain) = key else { return };
        let Some(execution) = self.targets.get(key).and_then(|entry| entry.target.executions.get(uid)) else { return };
        let ended = end_event(*chain, execution);
        let made = creation_event(execution).filter(|_| was_terminal.is_none());
        let breakers = &mut self.breakers;
        if let Some(ended) = ended.as_ref().filter(|_| was_terminal.is_some()) {
            let schedule = ended.schedule.as_ref();
            let probed = schedule.and_then(|schedule| breakers.fold.probed(schedule, execution.created));
            let completed = matches!(&ended.what, What::Ended { end: End::Succeeded { .. }, .. });
            breakers.probed.extend(probed.cloned().map(|fingerprint| CircuitNews::Probed { fingerprint, completed }));
        }
        breakers.pending.extend(made.into_iter().chain(ended));
        if breakers.pending.len() > MOST_PENDING {
            breakers.pending.clear();
            breakers.is_stale = true;
        }
    }

    /// Forgets a probe whose child was deleted before its end. The events of ended executions stay processed.
    pub(super) fn forget_probe(&mut self, execution: &Execution) {
        if execution.child.is_none() || execution.analyses() || execution.is_terminal() {
            return;
        }
        let (created, uid) = (execution.created, &execution.id.uid);
        let breakers = &mut self.breakers;
        breakers.pending.retain(|event| event.uid != *uid);
        let is_old = breakers.fold.forget(created, uid) == Taken::TooOld;
        breakers.is_stale |= is_old && breakers.shown.open().any(|circuit| circuit.opened_at < created);
    }

    /// Forgets which schedules wait for a turn, because another process has made decisions since.
    pub(super) fn forget_turns(&mut self) {
        self.breakers.turns = Turns::default();
    }

    /// Removes a deleted schedule from those that wait for a turn.
    pub(super) fn leave_line(&mut self, schedule: &Uid) {
        self.breakers.turns.leave(schedule);
    }

    fn fold_pending(&mut self, now: Time) {
        let breakers = &mut self.breakers;
        let is_past = |event: &Event| event.at <= now + MAX_AHEAD;
        if !breakers.is_stale && !breakers.pending.is_empty() {
            let pending = std::mem::take(&mut breakers.pending);
            breakers.is_stale = breakers.fold.take(pending.into_iter().filter(is_past)) == Taken::TooOld;
        }
        let is_soon = breakers.folded_at.is_some_and(|at| now < at + ANEW_AFTER && at <= now);
        if !breakers.is_stale || is_soon {
            return;
        }
        let all = self.targets.iter().filter_map(|(key, entry)| match key {
            Key::Chain(chain) => Some((*chain, entry)),
            Key::Unreadable(_) => None,
        });
        let executions = all.flat_map(|(chain, entry)| entry.target.executions.values().map(move |it| (chain, it)));
        let events = executions.flat_map(|(chain, it)| creation_event(it).into_iter().chain(end_event(chain, it)));
        let fold = Fold::of(&self.breakers.policy, events.filter(is_past));
        let breakers = &mut self.breakers;
        (breakers.fold, breakers.is_stale, breakers.folded_at) = (fold, false, Some(now));
        breakers.pending.clear();
    }

    /// Marks the targets of the schedules that a change of circuits affects. These are the schedules that got or lost a
    /// turn, and those whose last failure belongs to a changed circuit. A circuit changes when it opens, closes, or
    /// holds other schedules. All schedules that failed last are affected if the share of failing targets crosses its
    /// threshold.
    fn mark_held(&mut self, was: &Circuits, is: &Circuits) {
        let is_in = |all: &Circuits, one: &OpenCircuit| {
            let is_one = |it: &OpenCircuit| {
                it.fingerprint == one.fingerprint && it.opened_at == one.opened_at && it.holds_from == one.holds_from
            };
            all.open().any(is_one)
        };
        let gone = was.open().filter(|one| !is_in(is, one));
        let changed: BTreeSet<_> =
            gone.chain(is.open().filter(|one| !is_in(was, one))).map(|it| &it.fingerprint).collect();
        let turns = |circuits: &Circuits| -> BTreeSet<(Uid, Fingerprint, Time)> {
            let turns =
                circuits.open().filter_map(|it| Some((it.turn.clone()?, it.fingerprint.clone(), it.next_probe_at)));
            turns.collect()
        };
        for (uid, _, _) in turns(was).symmetric_difference(&turns(is)) {
            if let Some(key) = self.places[&Kind::Schedule].get(uid) {
                self.dirty.insert(key.clone());
            }
        }
        let turned = was.degraded().is_some() != is.degraded().is_some();
        if changed.is_empty() && !turned {
            return;
        }
        for (uid, key) in &self.places[&Kind::Schedule] {
            let schedule = self.targets.get(key).and_then(|entry| entry.target.schedules.get(uid));
            let is_concerned = |it: &Schedule| {
                it.failed_last().is_some_and(|(with, _)| changed.contains(with))
                    || turned && it.status.failure_count > 0
            };
            if schedule.is_some_and(is_concerned) {
                self.dirty.insert(key.clone());
            }
        }
    }
}

/// Returns the event of the creation of an execution, if it was created for a schedule.
fn creation_event(execution: &Execution) -> Option<Event> {
    let child = execution.child.as_ref().filter(|child| !child.analyses)?;
    Some(Event {
        at: execution.created,
        uid: execution.id.uid.clone(),
        namespace: execution.id.namespace.clone(),
        origin: execution.origin.clone(),
        schedule: Some(child.schedule.clone()),
        what: What::Made,
    })
}

/// Returns the event of the end of an execution, if it has ended and its outcome is evidence about the workflow.
fn end_event(target: ChainName, execution: &Execution) -> Option<Event> {
    if execution.analyses() {
        return None;
    }
    let end = match &execution.state {
        ExecutionState::Completed { started_at, .. } => {
            End::Succeeded { started_at: started_at.unwrap_or(execution.created) }
        }
        ExecutionState::Failed(failed) if failed.cancelled || is_too_late(execution, failed) => return None,
        ExecutionState::Failed(failed) => End::Failed {
            fingerprint: failed.fingerprint.clone().filter(Fingerprint::may_be_shared),
            before_start: !failed.was_execution_failure,
        },
        ExecutionState::Undecided { .. } | ExecutionState::Running { .. } | ExecutionState::Skipped { .. } => {
            return None;
        }
    };
    Some(Event {
        at: execution.ended_at()?,
        uid: execution.id.uid.clone(),
        namespace: execution.id.namespace.clone(),
        origin: execution.origin.clone(),
        schedule: execution.child.as_ref().map(|child| child.schedule.clone()),
        what: What::Ended { target, created: execution.created, end },
    })
}

/// Returns whether an execution failed because it was decided on after its `startBefore`. Such an execution never
/// requested a run.
pub(super) fn is_too_late(execution: &Execution, failed: &FailedState) -> bool {
    let is_late = failed.reason == FailureReason::DeadlineExceeded && execution.run_sequence.is_none();
    is_late && !failed.was_execution_failure
}
