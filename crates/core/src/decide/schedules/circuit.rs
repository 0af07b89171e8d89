//! Row 8: the open circuit of a schedule's last failure holds the schedule. When the circuit closes, its schedules do
//! not all run at once (section 13.5).
//!
//! The schedule whose turn it is makes a probe: an ordinary child, at the time that the circuit sets.

use super::status::hold;
use super::{Case, Row, Step};
use crate::Time;
use crate::action::Probe;
use crate::circuit::{Asks, OpenCircuit, goes_on_at};
use crate::moment::{after, just_after, shown};
use crate::schedule::HeldBy;

/// How many slots are checked to find the first one that becomes late. Row 9 passes the schedule's turn to another
/// schedule if only a later slot becomes late.
const MOST_SLOTS: usize = 4;

/// Row 8: the circuit of the last failure is open, or has closed while a slot was due.
pub(super) fn circuit(case: Case<'_>) -> Row {
    let Some(circuit) = case.circuit() else { return spread(case) };
    if case.may_probe(circuit) {
        return Row::Passes(format!("it is its turn to probe circuit {}", circuit.fingerprint).into());
    }
    // The schedule's own turn comes with time, and the circuit eventually closes by itself. Any other change triggers a
    // decision.
    let mine = case.has_turn(circuit).then_some(circuit.next_probe_at);
    let until = [mine, Some(circuit.quiet_at), case.lateness_changes_at()].into_iter().flatten().min();
    // The status is written once. The time of the next probe changes, so only the decision contains it.
    let (lasting, probes) = words(case, circuit);
    let step = hold(case, HeldBy::CircuitOpen, lasting.clone(), until);
    let because = format!("held, {}: {lasting}; {probes}", HeldBy::CircuitOpen.as_str()).into();
    // A slot past its `startingDeadlineSeconds` does not run, so its schedule does not ask for the turn to probe.
    let is_late = case.next.is_some_and(|next| next.late.is_some());
    let probe = if is_late { Probe::None } else { Probe::Awaits(case.asks(circuit)) };
    Row::Decides(Step { because, probe, ..step })
}

/// Spreads held schedules over one base cooldown after the circuit closed.
fn spread(case: Case<'_>) -> Row {
    let passes = |because: &'static str| Row::Passes(because.into());
    let (schedule, now) = (case.schedule, case.view.now);
    let failed = schedule.failed_last().zip(case.next);
    let closed = failed.and_then(|((fingerprint, failed_at), next)| {
        let (closed_at, _) = case.view.target.circuits.closing(fingerprint, failed_at, now)?;
        (next.due <= closed_at).then_some((fingerprint, closed_at))
    });
    let Some((fingerprint, closed_at)) = closed else { return passes("no open circuit holds it") };
    let at = goes_on_at(&schedule.id.uid, closed_at, case.view.policy.backoff.base);
    if at <= now {
        return passes("its share of the time after a circuit closed has passed");
    }
    let message = format!(
        "circuit {fingerprint} closed at {}; what it held goes on one after the other, this at {}",
        shown(closed_at),
        shown(at)
    );
    Row::Decides(hold(case, HeldBy::CircuitOpen, message, Some(at)))
}

/// Returns why the schedule is held: first the text that lasts while the circuit is open, then when it is probed.
fn words(case: Case<'_>, circuit: &OpenCircuit) -> (String, String) {
    let OpenCircuit { fingerprint, opened_at, failed, failed_probes, next_probe_at, .. } = circuit;
    let since = shown(*opened_at);
    let lasting = format!("circuit {fingerprint} is open since {since}, when {failed} targets had failed with it");
    let whose = match &circuit.turn {
        Some(_) if case.has_turn(circuit) => "is made by this schedule",
        Some(_) => "is made by another schedule",
        None => "waits for a schedule that nothing else holds",
    };
    let at = shown(*next_probe_at);
    (lasting, format!("failed probes: {failed_probes}; the next may be made at {at}, and {whose}"))
}

impl<'a> Case<'a> {
    /// Returns the open circuit that holds the schedule.
    pub(super) fn circuit(self) -> Option<&'a OpenCircuit> {
        self.schedule.held_by(&self.view.target.circuits, self.view.now)
    }

    /// Returns when the circuit of the last failure begins to hold the schedule, if that is in the future.
    pub(super) fn held_from(self) -> Option<Time> {
        let (fingerprint, _) = self.schedule.failed_last()?;
        let circuit = self.view.target.circuits.of(fingerprint)?;
        Some(circuit.holds_from).filter(|at| *at > self.view.now)
    }

    /// Returns the schedule's role for its circuit when it creates a child.
    pub(super) fn probes(self) -> Probe {
        let mine = self.circuit().filter(|circuit| self.may_probe(circuit));
        mine.map_or(Probe::None, |circuit| Probe::Makes(self.asks(circuit)))
    }

    fn asks(self, circuit: &OpenCircuit) -> Asks {
        Asks { circuit: circuit.fingerprint.clone(), failures: self.schedule.status.failure_count }
    }

    fn has_turn(self, circuit: &OpenCircuit) -> bool {
        circuit.turn.as_ref() == Some(&self.schedule.id.uid)
    }

    fn may_probe(self, circuit: &OpenCircuit) -> bool {
        self.has_turn(circuit) && circuit.next_probe_at <= self.view.now
    }

    /// Returns when the slot becomes late or, if it is late already, when the next slot comes.
    pub(super) fn lateness_changes_at(self) -> Option<Time> {
        let mut next = self.next?;
        if let Some(following) = next.late {
            return following.map(|next| next.at);
        }
        let deadline = self.schedule.plan.as_ref().ok()?.deadline?;
        // If the slots are closer together than the deadline, each one is replaced by the next, and none becomes late.
        for _ in 0..MOST_SLOTS {
            let late_at = just_after(after(next.planned.at, deadline));
            next = self.schedule.next_run(late_at)?;
            if next.late.is_some() {
                return Some(late_at);
            }
        }
        None
    }
}
