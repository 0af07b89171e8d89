//! Decided later than `startBefore`, it does not run (SPEC section 3.1): guards against an execution that a backup or a
//! GitOps tool makes again without its status.

use super::{Contender, Verdict};
use crate::ending::FailureReason;
use crate::execution::ExecutionState;

/// Fails an execution whose time has passed.
pub(super) fn rule(contender: &Contender<'_>) -> Option<Verdict> {
    let ExecutionState::Undecided { start_before: Some(start_before), .. } = &contender.execution.state else {
        return None;
    };
    (contender.now > *start_before).then(|| {
        let message =
            format!("was not started before {} (spec.startBefore)", start_before.format("%Y-%m-%dT%H:%M:%SZ"));
        Verdict::Fail { reason: FailureReason::DeadlineExceeded, message: message.into() }
    })
}
