//! Records in the status of a failed execution whether it blocks its target, and in the decision what blocks the target
//! now.

use super::View;
use crate::action::{Action, Decision, Says, Write};
use crate::blocks::{Blocked, RECOVERED, TargetBlocks};
use crate::history::{End, History, Past};

/// Adds what blocks the target, and the status writes for failures whose condition `Blocked` is out of date.
pub(super) fn show(view: View<'_>, decision: &mut Decision) {
    let View { history, policy, now, .. } = view;
    let blocks = TargetBlocks::of(history, policy, now);
    if blocks.consecutive_failures > 0
        && let Some(quiet) = history.quiet_at(policy)
    {
        decision.wake_at(quiet);
    }
    for past in history.all().iter().filter(|past| past.end != End::Completed) {
        if let Some(blocked) = says_otherwise(&blocks, past, history)
            && !is_written(past, decision)
        {
            decision.actions.push(past.execution.says(Says::Blocked(blocked)));
        }
    }
    decision.blocks = blocks;
}

/// Returns the new value of the condition `Blocked`, if it is out of date.
fn says_otherwise(blocks: &TargetBlocks, past: &Past<'_>, history: &History<'_>) -> Option<Blocked> {
    match (blocks.blocked_by(&past.execution.id), past.execution.blocked_shown.as_deref()) {
        (Some(reason), shown) => (shown != Some(reason.as_str())).then_some(Blocked::Yes(reason)),
        (None, None) => None,
        (None, Some(_)) if history.is_cleared(past) => Some(Blocked::Cleared),
        (None, Some(shown)) if blocks.blocks.iter().any(|block| block.reason() == shown) => Some(Blocked::Superseded),
        (None, Some(shown)) if history.recovered().is_some_and(|it| it.execution.id == past.execution.id) => {
            (shown != RECOVERED).then_some(Blocked::Recovered)
        }
        (None, Some(_)) => Some(Blocked::Lifted),
    }
}

/// Returns whether another write to the same status goes first. The record of a clearance also updates this condition.
fn is_written(past: &Past<'_>, decision: &Decision) -> bool {
    decision.actions.iter().any(|action| match action {
        Action::Write(Write { execution, says: Says::Freed | Says::Cleared { .. }, .. }) => {
            *execution == past.execution.id
        }
        _ => false,
    })
}
