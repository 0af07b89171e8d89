//! Records in statuses that no policy guarded a clearance or a cancellation, and when it counts after all ([ADR
//! 13](../../../../docs/adr/0013-unguarded-clearances.md), section 17).

use super::View;
use crate::action::{Action, Decision, Says, Write};
use crate::execution::Execution;
use crate::guard::Directive;
use crate::name::ExecutionId;
use crate::run::{CancelReason, Run};
use crate::target::Target;

/// Requests the writes for statuses that are out of date. Another write to the same status goes first, because it may
/// record the same fact.
pub(super) fn show(view: View<'_>, decision: &mut Decision) {
    let target = view.target;
    for execution in target.executions.values().filter(|it| !it.elsewhere) {
        let anew = |kind| execution.unguarded_anew(kind, target.guard).map(|counts| (kind, counts));
        let Some((kind, counts)) = Directive::ALL.into_iter().find_map(anew) else { continue };
        let has_acted = kind == Directive::Cancellation && !counts && is_being_cancelled(target, execution);
        if !has_acted && !is_written(&execution.id, decision) {
            decision.actions.push(execution.says(Says::Unguarded { kind, counts }));
        }
    }
}

/// Returns whether the run is being cancelled because a person requested it, so that the cancellation has already
/// counted.
fn is_being_cancelled(target: &Target, execution: &Execution) -> bool {
    let is_asked = |run: &&Run| run.cancel_reason == Some(CancelReason::Requested);
    target.runs.values().filter(is_asked).any(|run| run.is_owned_by(&execution.id))
}

fn is_written(execution: &ExecutionId, decision: &Decision) -> bool {
    decision.actions.iter().any(|action| match action {
        Action::Write(Write { execution: written, .. }) => written == execution,
        Action::Skip { skipped, .. } => skipped.iter().any(|(skipped, _)| skipped == execution),
        _ => false,
    })
}
