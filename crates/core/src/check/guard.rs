//! Checks clearances and cancellations while no policy guards them (section 17).

use super::Check;
use super::record::Record;
use crate::execution::{Clearance, Execution, ExecutionState, Recorded};
use crate::guard::{Directive, Guard, Unguarded};
use crate::name::ExecutionId;
use crate::run::{CancelReason, Run};

impl Check<'_> {
    /// Checks that a status reports each change once: the directive does not count while the policies are missing, and
    /// counts again when they are in force. A cancellation that has stopped a run has counted already.
    pub(super) fn show_unguarded(&mut self, execution: &ExecutionId, kind: Directive, counts: bool) {
        let Some(found) = self.execution(execution) else { return };
        let (is_set, said) = match kind {
            Directive::Clearance => {
                (new_clearance(found).is_some(), found.clearance.as_ref().and_then(|it| it.unguarded))
            }
            Directive::Cancellation => {
                let set = found.cancellation.as_ref().filter(|_| !found.is_terminal());
                (set.is_some(), set.and_then(|it| it.unguarded))
            }
        };
        let acts = |run: &Run| run.owner.is(execution) && run.cancel_reason == Some(CancelReason::Requested);
        let has_acted = kind == Directive::Cancellation && self.target.runs.values().any(acts);
        let is_due = match said {
            None => !counts && self.target.guard == Guard::Missing && !has_acted,
            Some(said) => counts && self.target.guard == Guard::InForce && !said.counts,
        };
        let fits = is_set && is_due;
        self.require("17", fits, || format!("says that what is set on {execution} counts: {counts}"));
    }

    /// Checks that no skip is written while it is unknown whether a clearance counts, because a skip is final.
    pub(super) fn knows_all_clearances(&mut self, execution: &ExecutionId) {
        let is_open =
            |it: &&Execution| new_clearance(it).is_some_and(|it| !it.unguarded.is_some_and(|said| said.counts));
        let open = self.target.executions.values().find(is_open).filter(|_| self.target.guard == Guard::Unknown);
        self.require("17", open.is_none(), || format!("skipped {execution} while a clearance is open"));
    }
}

impl Record<'_> {
    /// Returns the recorded effect of a clearance that counts.
    pub(super) fn clearance(&self, it: &Execution) -> Option<Recorded> {
        let failed = matches!(it.state, ExecutionState::Failed(_));
        let clearance = it.clearance.as_ref().filter(|_| failed)?;
        let is_decided = clearance.recorded != Recorded::Not;
        (is_decided || counts(clearance.unguarded, self.guard)).then_some(clearance.recorded)
    }
}

/// Returns the clearance of a failure whose effect is not recorded yet.
fn new_clearance(it: &Execution) -> Option<&Clearance> {
    let clearance = it.clearance.as_deref().filter(|clearance| clearance.recorded == Recorded::Not)?;
    matches!(it.state, ExecutionState::Failed(_)).then_some(clearance)
}

/// Returns whether a cancellation of the execution counts.
pub(super) fn is_cancelled(it: &Execution, guard: Guard) -> bool {
    it.cancellation.as_ref().is_some_and(|cancellation| counts(cancellation.unguarded, guard))
}

/// Returns whether no cancellation ends the execution: none is set, or it is known not to count.
pub(super) fn goes_on(it: &Execution, guard: Guard) -> bool {
    let Some(cancellation) = &it.cancellation else { return true };
    guard != Guard::Unknown && !counts(cancellation.unguarded, guard)
}

/// Returns whether a directive counts. While the policies are in force, every directive counts. Otherwise a directive
/// counts only if its status says so. If this process does not check the policies, the status decides.
fn counts(said: Option<Unguarded>, guard: Guard) -> bool {
    match guard {
        Guard::InForce => true,
        Guard::Recorded => said.is_none_or(|said| said.counts),
        Guard::Unknown | Guard::Missing => said.is_some_and(|said| said.counts),
    }
}
