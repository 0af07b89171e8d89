//! The last row: a limit of how many targets are worked on at once (section 18). The place of a schedule passes to the
//! child that it makes.

use super::status::hold;
use super::{Case, Step};
use crate::action::{Decision, Probe};
use crate::limit::Ask;
use crate::schedule::HeldBy;

/// The name of the row.
pub(super) const NAME: &str = "9b limit";

/// Holds back a schedule whose child would need a place, and asks for the place. None if its child needs none or has
/// one.
pub(super) fn hold_back(case: Case<'_>, decision: &mut Decision) -> Option<Step> {
    let (schedule, target, policy) = (case.schedule, case.view.target, case.view.policy);
    let limits = target.limits_matching(Some(&schedule.workflow_id), &policy.limits);
    if limits.is_empty() || target.places.are_given_to(&schedule.id.uid) {
        return None;
    }
    decision.ask_for_place(Ask { limits, since: case.slot(), uid: schedule.id.uid.clone() });
    let message = target.places.wait(&policy.limits, limits).message();
    // It keeps its turn to probe until it has a place or the circuit closes: the line moves, and a turn that moved as
    // well would return.
    let probe = match case.probes() {
        Probe::Makes(asks) => Probe::Awaits(asks),
        _ => Probe::None,
    };
    let closes_at = case.circuit().map(|circuit| circuit.quiet_at);
    let until = [case.lateness_changes_at(), closes_at, case.held_from()].into_iter().flatten().min();
    Some(Step { probe, ..hold(case, HeldBy::Limit, message, until) })
}
