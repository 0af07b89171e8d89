//! What does not count, as no policy guarded it (SPEC section 17), read a second time.

use super::actions::Check;
use super::record::Record;
use crate::execution::{Execution, ExecutionState, Recorded};
use crate::guard::{Guard, GuardMark, Looked, Touch, WordKind};
use crate::name::ExecutionId;

impl Check<'_> {
    /// Only what somebody has set is looked into, once for each time.
    pub(super) fn look(&mut self, execution: &ExecutionId, touch: Touch) {
        let Some(found) = self.execution(execution) else { return };
        let is_set = touch.clearance == found.clearance.is_some() && touch.cancellation == found.cancellation.is_some();
        let fits = is_set && (touch.clearance || touch.cancellation) && is_looked_at(found).is_none();
        let asked = self.target.guard != Guard::Off;
        self.expect("17", fits && asked, || format!("looks into what is set on {execution} for nothing"));
    }

    /// A status names the policies that are in force, and only while nothing is set.
    pub(super) fn show_guard(&mut self, execution: &ExecutionId, mark: GuardMark) {
        let Some(found) = self.execution(execution) else { return };
        let is_in_force = matches!(self.target.guard, Guard::By { mark: it, .. } if it == mark);
        let is_open = found.clearance.is_none() && found.cancellation.is_none();
        let fits = is_in_force && is_open && found.guard != Some(mark);
        self.expect("17", fits, || format!("says that {mark} guards {execution}"));
    }

    /// What a look has not shown to be unguarded counts, or is looked into.
    pub(super) fn show_unguarded(&mut self, execution: &ExecutionId, kind: WordKind) {
        let Some(found) = self.execution(execution) else { return };
        let is_set = match kind {
            WordKind::Clearance => {
                matches!(found.state, ExecutionState::Failed(_))
                    && found.clearance.as_ref().is_some_and(|it| it.recorded == Recorded::Not)
            }
            WordKind::Cancellation => {
                !found.is_terminal() && found.cancellation.as_ref().is_some_and(|it| it.unguarded.is_none())
            }
        };
        let guard = self.target.guard;
        let is_known = guard != Guard::Off && is_looked_at(found).is_some() && !counts(found, guard);
        self.expect("17", is_set && is_known, || format!("says that nothing guarded what is set on {execution}"));
    }

    /// A skip is final, so none is written while it is not known whether a clearance counts.
    pub(super) fn knows_all_clearances(&mut self, execution: &ExecutionId) {
        let guard = self.target.guard;
        let is_open = |it: &&Execution| {
            let is_new = it.clearance.as_ref().is_some_and(|clearance| clearance.recorded == Recorded::Not);
            matches!(it.state, ExecutionState::Failed(_)) && is_new && guard != Guard::Off && is_looked_at(it).is_none()
        };
        let open = self.target.executions.values().find(is_open);
        self.expect("17", open.is_none(), || format!("skipped {execution} while a clearance is looked into"));
    }
}

impl Record<'_> {
    /// What the status says of a clearance that counts, where a person set one on a failure.
    pub(super) fn clearance(&self, it: &Execution) -> Option<Recorded> {
        let failed = matches!(it.state, ExecutionState::Failed(_));
        let recorded = it.clearance.as_ref().filter(|_| failed).map(|clearance| clearance.recorded)?;
        (recorded != Recorded::Not || counts(it, self.guard)).then_some(recorded)
    }
}

/// Tells whether a person has cancelled it, and that counts.
pub(super) fn is_cancelled(it: &Execution, guard: Guard) -> bool {
    it.cancellation.as_ref().is_some_and(|cancellation| cancellation.unguarded.is_none()) && counts(it, guard)
}

/// Tells whether nothing is set that could end it: it is not cancelled, and what is set is known not to count.
pub(super) fn goes_on(it: &Execution, guard: Guard) -> bool {
    let is_ignored =
        |it: &Execution| it.cancellation.as_ref().is_none_or(|cancellation| cancellation.unguarded.is_some());
    is_ignored(it) || guard != Guard::Off && is_looked_at(it).is_some() && !counts(it, guard)
}

/// Returns what the look has found that began after all that is set was seen.
fn is_looked_at(it: &Execution) -> Option<Looked> {
    let looked = it.recall().looked?;
    let same =
        looked.touch.clearance == it.clearance.is_some() && looked.touch.cancellation == it.cancellation.is_some();
    same.then_some(looked)
}

/// The policies that the look has found are those that the status named before anything was set; or they were there
/// before the execution was.
fn counts(it: &Execution, guard: Guard) -> bool {
    if guard == Guard::Off {
        return true;
    }
    let Some(found) = is_looked_at(it).and_then(|looked| looked.found) else { return false };
    let has_no_status = it.guard.is_none() && matches!(it.state, ExecutionState::Undecided { .. });
    let were_there = match guard {
        Guard::By { mark, since } => found == mark && !since.is_after(it.created),
        Guard::Off | Guard::Unknown => false,
    };
    it.guard == Some(found) || has_no_status && were_there
}
