//! Finds out whether what a person has set counts, and has statuses name the policies that guard what is set later
//! ([ADR 13](../../../../docs/adr/0013-unguarded-clearances.md), SPEC section 17).

use super::View;
use crate::action::{Action, Decision, Says, Write};
use crate::execution::{Execution, ExecutionState};
use crate::guard::{Word, WordKind};
use crate::name::ExecutionId;

/// Asks for a look at the policies where something was set since the last one, and for the statuses that do not say
/// what is known. What else is written to a status goes first: it may say the same.
pub(super) fn look(view: View<'_>, decision: &mut Decision) {
    let target = view.target;
    for execution in target.executions.values().filter(|it| !it.elsewhere) {
        let words = WordKind::ALL.map(|kind| (kind, execution.word(kind, target.guard)));
        if words.iter().any(|(_, word)| *word == Some(Word::Open)) {
            let (execution, touch) = (execution.id.clone(), execution.touch());
            decision.actions.push(Action::Look { execution, touch });
            continue;
        }
        let unguarded = words.into_iter().find(|(_, word)| *word == Some(Word::Unguarded)).map(|(kind, _)| kind);
        let says = match (unguarded, target.guard_of(execution)) {
            (Some(kind), _) => Says::Unguarded(kind),
            (None, Some(mark)) if execution.guard != Some(mark) && needs_guard(execution, decision) => {
                Says::Guarded(mark)
            }
            (None, _) => continue,
        };
        if !is_written(&execution.id, decision) {
            decision.actions.push(execution.says(says));
        }
    }
}

/// Tells whether something could be set on an execution that does anything: it runs, or blocks.
fn needs_guard(execution: &Execution, decision: &Decision) -> bool {
    match execution.state {
        ExecutionState::Running { .. } => true,
        ExecutionState::Failed(_) => decision.standing.blocked_by(&execution.id).is_some(),
        ExecutionState::Undecided { .. } | ExecutionState::Completed { .. } | ExecutionState::Skipped { .. } => false,
    }
}

fn is_written(execution: &ExecutionId, decision: &Decision) -> bool {
    decision.actions.iter().any(|action| match action {
        Action::Write(Write { execution: written, .. }) => written == execution,
        Action::Skip { skipped, .. } => skipped.iter().any(|(skipped, _)| skipped == execution),
        _ => false,
    })
}
