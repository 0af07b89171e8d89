//! Repeats and reports requests to stop a run that Tekton does not act on.
//!
//! Tekton ignores a run while its controller is down, while the run is being deleted, or if `spec.managedBy` names
//! another controller. The target stays locked meanwhile, because nobody knows what the run does.

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Announce, Decision, RunChange};
use crate::awaiting::Awaiting;
use crate::moment::after;
use crate::name::ExecutionId;
use crate::run::Run;

/// How often the request is repeated. That is six writes an hour for each run, and Tekton learns of the request soon
/// after it is back.
pub(in crate::decide) const AGAIN: Duration = Duration::from_mins(10);

/// Follows the request to stop a run, if there is one. Returns what the execution waits for, once Tekton has had time
/// to act. `ends_by` is when the run should have ended by itself, if that is known.
pub(super) fn see_to(
    run: &Run,
    execution: &ExecutionId,
    ends_by: Option<Time>,
    now: Time,
    decision: &mut Decision,
) -> Option<Awaiting> {
    let stop = run.stop.as_deref().filter(|_| run.is_unfinished())?;
    let Some(unanswered) = run.unanswered(ends_by, now) else {
        if let Some(due) = run.answer_due(stop, ends_by) {
            decision.wake_at(due);
        }
        return None;
    };
    if !stop.told {
        let (execution, unanswered) = (execution.clone(), unanswered.clone());
        decision.actions.push(Action::Tell(Announce::CancelUnanswered { execution, unanswered }));
    }
    if !run.deleting {
        // At the start of a term it is unknown whether Tekton was up when the last leader asked.
        let due = stop.asked_at.map_or(now, |asked_at| after(asked_at, AGAIN));
        if due <= now {
            decision.actions.push(run.change(RunChange::AskedAgain(stop.asked.max(1).saturating_add(1))));
        } else {
            decision.wake_at(due);
        }
    }
    let awaiting = Awaiting::Cancelling(unanswered);
    decision.awaiting.push((execution.clone(), awaiting.clone()));
    Some(awaiting)
}
