//! While everything is paused, or the namespace of the execution or of its target, nothing new starts. Undecided
//! executions wait (section 14).

use super::Contender;
use crate::explain::Finding;
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Makes an execution wait while everything, its namespace or its target's namespace is paused.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let everywhere = contender.policy.paused_by.clone().map(Waiting::PausedEverywhere);
    let waiting = everywhere.or_else(|| contender.execution.paused.clone().map(Waiting::Paused));
    Finding::of(waiting.map(Verdict::Wait), "nothing that concerns it is paused")
}
