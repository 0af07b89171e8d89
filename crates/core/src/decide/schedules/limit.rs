//! The last row: a limit of how many targets are worked on at once (section 18). The place of a schedule passes to the
//! child that it creates.

use super::status::hold;
use super::{Case, Step};
use crate::action::{Decision, Probe};
use crate::limit::Ask;
use crate::schedule::HeldBy;

/// The name of the row.
pub(super) const NAME: &str = "9b limit";

/// Holds a schedule whose child would need a place, and requests the place. `None` if the child needs no place, or the
/// schedule has one.
pub(super) fn hold_back(case: Case<'_>, decision: &mut Decision) -> Option<Step> {
    let (schedule, target, policy) = (case.schedule, case.view.target, case.view.policy);
    let limits = target.limits_matching(Some(&schedule.workflow_id), &policy.limits);
    if limits.is_empty() || target.places.are_given_to(&schedule.id.uid) {
        return None;
    }
    decision.ask_for_place(Ask { limits, since: case.slot(), uid: schedule.id.uid.clone() });
    let message = target.places.wait(&policy.limits, limits).message();
    // The schedule keeps its turn to probe until it has a place or the circuit closes. If it passed the turn on while
    // the line of the limit moves, the turn would only come back.
    let probe = match case.probes() {
        Probe::Makes(asks) => Probe::Awaits(asks),
        _ => Probe::None,
    };
    let closes_at = case.circuit().map(|circuit| circuit.quiet_at);
    let until = [case.lateness_changes_at(), closes_at, case.held_from()].into_iter().flatten().min();
    Some(Step { probe, ..hold(case, HeldBy::Limit, message, until) })
}
