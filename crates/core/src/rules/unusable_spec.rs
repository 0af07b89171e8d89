//! Rule 0: a spec that cannot be used fails its execution before rivals are compared, and takes no lock.

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
