//! Rule 0: a spec that cannot be used fails its execution before rivals are compared, and takes no lock.

use super::{Contender, Verdict};
use crate::ending::FailureReason;
use crate::execution::ExecutionState;

/// Fails an execution whose spec the operator could not read.
pub(super) fn rule(contender: &Contender<'_>) -> Option<Verdict> {
    match &contender.execution.state {
        ExecutionState::Undecided { unusable: Some(message), .. } => {
            Some(Verdict::Fail { reason: FailureReason::ConfigurationError, message: message.clone() })
        }
        _ => None,
    }
}
