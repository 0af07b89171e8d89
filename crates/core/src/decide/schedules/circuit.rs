//! Row 8: the open circuit of a schedule's last failure holds it, and spreads its slots when it closes (section 13.5).
//!
//! The schedule whose turn it is makes a probe: an ordinary child, at the time that the circuit says.

use super::status::hold;
use super::{Case, Row, Step};
use crate::Time;
use crate::action::Probe;
use crate::circuit::{Asks, OpenCircuit, goes_on_at};
use crate::moment::{after, just_after, shown};
use crate::schedule::HeldBy;

/// How many slots are checked for the first that becomes late. If it is a later one, row 9 passes the turn of the
/// schedule on to another.
const MOST_SLOTS: usize = 4;

/// Row 8: the circuit of its last failure is open, or has closed while its slot was due.
pub(super) fn circuit(case: Case<'_>) -> Row {
    let Some(circuit) = case.circuit() else { return spread(case) };
    if case.may_probe(circuit) {
        return Row::Passes(format!("it is its turn to probe circuit {}", circuit.fingerprint).into());
    }
    // Its own turn comes by time, and the circuit closes by itself in the end. Any other change marks the target.
    let mine = case.has_turn(circuit).then_some(circuit.next_probe_at);
    let until = [mine, Some(circuit.quiet_at), case.lateness_changes_at()].into_iter().flatten().min();
    // The status is written once. The time of the next probe changes, so only the decision has it.
    let (lasting, probes) = words(case, circuit);
    let step = hold(case, HeldBy::CircuitOpen, lasting.clone(), until);
    let because = format!("held, {}: {lasting}; {probes}", HeldBy::CircuitOpen.as_str()).into();
    // A schedule that is late would not use its turn.
    let is_late = case.next.is_some_and(|next| next.late.is_some());
    let probe = if is_late { Probe::None } else { Probe::Awaits(case.asks(circuit)) };
    Row::Decides(Step { because, probe, ..step })
}

/// Held schedules run within one base cooldown after the closing, and not all at once.
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

/// Returns why it is held: first the text that stays while the circuit is open, then when it is probed.
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
    /// Returns the open circuit that holds it.
    pub(super) fn circuit(self) -> Option<&'a OpenCircuit> {
        self.schedule.held_by(&self.view.target.circuits, self.view.now)
    }

    /// Returns when the circuit of its last failure begins to hold it, if that is later.
    pub(super) fn held_from(self) -> Option<Time> {
        let (fingerprint, _) = self.schedule.failed_last()?;
        let circuit = self.view.target.circuits.of(fingerprint)?;
        Some(circuit.holds_from).filter(|at| *at > self.view.now)
    }

    /// Returns what it is to its circuit when it makes a child.
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

    /// Returns when its slot becomes late, or when another slot comes that is not.
    pub(super) fn lateness_changes_at(self) -> Option<Time> {
        let mut next = self.next?;
        if let Some(following) = next.late {
            return following.map(|next| next.at);
        }
        let deadline = self.schedule.plan.as_ref().ok()?.deadline?;
        // If slots are closer to each other than the deadline, one replaces the other, and none is late.
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
