//! Rule 2: the last execution that ran failed half way. No automatic workflow touches the target until a person has
//! examined it.
//!
//! A later failure before anything ran does not lift the block, because it changed nothing. One execution may pass: a
//! recovery, which names that failure in `recoveryOf`. Its workflow and its bundle must not have failed since the last
//! success or clearance. A chain of recoveries therefore ends when no other workflow is left. The same bundle under
//! another `workflowId` is the same workflow.

use super::Contender;
use crate::ending::Skip;
use crate::explain::Finding;
use crate::history::{End, Past};
use crate::verdict::Fact;
use crate::verdict::Verdict;

/// Skips an execution on a target whose state is unknown after an execution failure.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    let (scope, workflow_id) = (contender.policy.previous_execution_failed_scope, &contender.execution.workflow_id);
    let mut failures = contender.history.ran(scope, workflow_id).take_while(|past| past.end == End::ExecutionFailure);
    let Some(last) = failures.next() else {
        let last = contender.history.ran(scope, workflow_id).next();
        return Finding::passes(last.map_or_else(
            || "nothing that ran stands in the way".to_owned(),
            |last| format!("the last that ran, {}, completed", last.execution.id),
        ));
    };
    let is_named = names(contender, last);
    let failed_too =
        std::iter::once(last).chain(failures).any(|past| past.execution.runs_the_same_as(contender.execution));
    if is_named && !failed_too {
        return Finding::passes(format!(
            "it is the recovery of {}, by another workflow of another bundle",
            last.execution.id
        ));
    }
    let skip = Skip::PreviousExecutionFailed { failed: last.remediation(), is_repeated: is_named };
    let fact = Fact::Stands(last.execution.id.clone());
    Finding::Decides { verdict: Verdict::Skip { skip, fact }, until: None }
}

/// Returns whether `recoveryOf` names this failure, which must be in the same namespace.
fn names(contender: &Contender<'_>, failed: &Past<'_>) -> bool {
    let (id, failed) = (&contender.execution.id, &failed.execution.id);
    contender.execution.recovery_of.as_deref() == Some(&*failed.name) && id.namespace == failed.namespace
}
