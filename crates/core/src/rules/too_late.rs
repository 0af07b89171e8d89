//! An execution that gets its turn later than its `startBefore` does not run (section 3.1). This protects against
//! executions that a backup or a GitOps tool restores without their status.

use super::Contender;
use crate::execution::ExecutionState;
use crate::explain::Finding;
use crate::moment::just_after;
use crate::moment::shown;
use crate::reason::FailureReason;
use crate::verdict::Verdict;

/// Fails an execution whose `startBefore` has passed.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let ExecutionState::Undecided { start_before: Some(start_before), .. } = &contender.execution.state else {
        return Finding::passes("it may start at any time");
    };
    let shown = shown(*start_before);
    if contender.now <= *start_before {
        let because = format!("it may start until {shown}").into();
        return Finding::Passes { because, until: Some(just_after(*start_before)) };
    }
    let message = format!("was not started before {shown} (spec.startBefore)").into();
    let verdict = Verdict::Fail { reason: FailureReason::DeadlineExceeded, message, counts: false };
    Finding::Decides { verdict, until: None }
}
