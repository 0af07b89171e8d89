//! Row 8: an open circuit holds what it touches, and spreads it when it closes (SPEC section 13.5).
//!
//! The schedule whose turn it is makes a probe: an ordinary child, at the time that the circuit says. It passes all
//! circuits then, since what one of them stops would stop it anyway.

use std::fmt::Write as _;

use super::status::hold;
use super::{Case, Row, Step};
use crate::Time;
use crate::action::Probe;
use crate::circuit::OpenCircuit;
use crate::moment::{after, just_after, shown};
use crate::schedule::HeldBy;
use crate::schedule::plan::offset;

/// How many slots are looked at for the first that becomes late. Where it is a later one, a turn that is given to the
/// schedule meanwhile goes on to another one by row 9.
const MOST_SLOTS: usize = 4;

/// Row 8: a circuit that touches it is open, or has closed while its slot was due.
pub(super) fn circuit(case: Case<'_>) -> Row {
    let circuits: Vec<_> = case.circuits().collect();
    if circuits.is_empty() {
        return spread(case);
    }
    if let Some(mine) = circuits.iter().find(|circuit| case.may_probe(circuit)) {
        return Row::Passes(format!("it is its turn to probe circuit {}", mine.key).into());
    }
    // Its own turn comes with time, and each circuit closes by itself at last. All else marks the target.
    let mine = circuits.iter().filter(|circuit| case.has_turn(circuit)).map(|circuit| circuit.next_probe_at);
    let quiet = circuits.iter().map(|circuit| circuit.quiet_at);
    let is_late = case.next.is_some_and(|next| next.late.is_some());
    let until = mine.chain(quiet).chain(case.lateness_changes_at()).min();
    let keys = || circuits.iter().map(|circuit| circuit.key.clone()).collect();
    // The status is written once. When the next probe is and whom else it holds changes, so the decision alone says it;
    // nor are the namespaces of others to be read in a status.
    let (lasting, probes) = words(case, &circuits);
    let step = hold(case, HeldBy::CircuitOpen, lasting.clone(), until);
    let because = format!("held, {}: {lasting}; {probes}", HeldBy::CircuitOpen.as_str()).into();
    // A schedule that is late would make no child with its turn.
    let probe = if is_late { Probe::None } else { Probe::Awaits(keys()) };
    Row::Decides(Step { because, probe, ..step })
}

/// What was held runs within one base cooldown after the closing, and not all of it at once.
fn spread(case: Case<'_>) -> Row {
    let passes = |because: &'static str| Row::Passes(because.into());
    let Some(due) = case.next.map(|next| next.due) else { return passes("no open circuit holds it") };
    let (schedule, now) = (case.schedule, case.view.now);
    let (namespace, last) = (&schedule.id.namespace, schedule.failed_last_with());
    let closings = case.view.target.circuits.closings(namespace, &schedule.origin, last, now);
    let last = closings.filter(|(_, closed_at)| *closed_at >= due).max_by_key(|(_, closed_at)| *closed_at);
    let Some((key, closed_at)) = last else { return passes("no open circuit holds it") };
    let at = after(closed_at, offset(&schedule.id.uid, case.view.policy.backoff.base));
    if at <= now {
        return passes("its share of the time after a circuit closed has passed");
    }
    let message = format!(
        "circuit {key} closed at {}; what it held goes on one after the other, this at {}",
        shown(closed_at),
        shown(at)
    );
    Row::Decides(hold(case, HeldBy::CircuitOpen, message, Some(at)))
}

/// Says what holds it: first what lasts while that is open, and then when it is probed.
fn words(case: Case<'_>, circuits: &[&OpenCircuit]) -> (String, String) {
    // The one that is said is its own where it has a turn, else the one that is probed next.
    let said = circuits.iter().min_by_key(|circuit| (!case.has_turn(circuit), circuit.next_probe_at));
    let Some(said) = said else { return Default::default() };
    let OpenCircuit { key, scope, opened_at, failed, of, failed_probes, next_probe_at, .. } = said;
    let agreed = if failed == of {
        format!("{failed} targets had failed with it")
    } else {
        format!("{failed} of {of} targets had failed")
    };
    let mut lasting = format!("circuit {key} is open since {}, when {agreed}", shown(*opened_at));
    if circuits.len() > 1 {
        let _ = write!(lasting, "; {} more circuits hold it", circuits.len() - 1);
    }
    let whose = match &said.turn {
        Some(_) if case.has_turn(said) => "is made by this schedule",
        Some(_) => "is made by another schedule",
        None => "waits for a schedule that nothing else holds",
    };
    let at = shown(*next_probe_at);
    let probes = format!("failed probes: {failed_probes}; the next may be made at {at}, and {whose}");
    (lasting, format!("{probes}; it holds schedules of {scope}"))
}

impl<'a> Case<'a> {
    /// Returns the open circuits that touch it.
    pub(super) fn circuits(self) -> impl Iterator<Item = &'a OpenCircuit> {
        self.schedule.held_by(&self.view.target.circuits, self.view.now)
    }

    /// Tells whether it has the turn of one of the circuits that touch it, and may make its probe now.
    pub(super) fn probes(self) -> bool {
        self.circuits().any(|circuit| self.may_probe(circuit))
    }

    fn has_turn(self, circuit: &OpenCircuit) -> bool {
        circuit.turn.as_ref() == Some(&self.schedule.id.uid)
    }

    fn may_probe(self, circuit: &OpenCircuit) -> bool {
        let due: Time = circuit.next_probe_at;
        self.has_turn(circuit) && due <= self.view.now
    }

    /// Returns when its slot becomes late, or when another slot comes that is not.
    fn lateness_changes_at(self) -> Option<Time> {
        let mut next = self.next?;
        if let Some(following) = next.late {
            return following.map(|next| next.at);
        }
        let deadline = self.schedule.plan.as_ref().ok()?.deadline?;
        // Slots that are closer to each other than the deadline replace one another, and none is late.
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
