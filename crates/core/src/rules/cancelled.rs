//! A person has asked for the execution to stop before it started (SPEC section 3.1, `cancellation`).

use super::{Contender, Verdict};
use crate::ending::FailureReason;

/// Fails an execution that was cancelled before its turn came.
pub(super) fn rule(contender: &Contender<'_>) -> Option<Verdict> {
    let cancellation = contender.execution.cancellation.as_ref()?;
    let message = format!("cancelled by {} before it started: {}", cancellation.requested_by, cancellation.reason);
    Some(Verdict::Fail { reason: FailureReason::Unknown, message: message.into() })
}
