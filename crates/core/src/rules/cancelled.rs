//! A person has asked for the execution to stop before it started (SPEC section 3.1, `cancellation`).

use super::Contender;
use crate::explain::Finding;
use crate::reason::FailureReason;
use crate::verdict::Verdict;

/// Fails an execution that was cancelled before its turn came.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let cancelled = contender.execution.cancellation.as_ref().map(|cancellation| {
        let message = format!("cancelled by {} before it started: {}", cancellation.requested_by, cancellation.reason);
        Verdict::Fail { reason: FailureReason::Unknown, message: message.into(), counts: false }
    });
    Finding::of(cancelled, "nobody has asked for its cancellation")
}
