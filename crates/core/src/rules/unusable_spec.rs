//! Rule 0: an execution whose spec cannot be used fails before it competes for the target, and takes no lock.

use super::Contender;
use crate::execution::ExecutionState;
use crate::explain::Finding;
use crate::reason::FailureReason;
use crate::verdict::Verdict;

/// Fails an execution whose spec the operator could not read.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let unusable = match &contender.execution.state {
        ExecutionState::Undecided { unusable, .. } => unusable.clone(),
        _ => None,
    };
    let fails = |message| Verdict::Fail { reason: FailureReason::ConfigurationError, message, counts: true };
    Finding::of(unusable.map(fails), "its spec can be used")
}
