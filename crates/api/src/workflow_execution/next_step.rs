//! What a program should do next after an execution has ended.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NextAction {
    /// Nothing: it completed.
    Nothing,
    /// Create another WorkflowExecution, not before notBefore.
    RetryAfter,
    /// Wait until the execution that holds the target has released it, then create another WorkflowExecution.
    WaitFor,
    /// Create a WorkflowExecution of another workflow with recoveryOf, or ask a person.
    PickAlternative,
    /// Inform a person, and do nothing else.
    PersonMustAct,
}

/// What the program that created the execution should do next. Present when phase is Completed, Failed or Skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedStep {
    /// What to do. Nothing: it completed. RetryAfter: create another execution, not before notBefore. WaitFor: create
    /// another execution once skipDetails.conflictingWorkflow has released the target. PickAlternative: run another
    /// workflow with recoveryOf, or ask a person. PersonMustAct: inform a person, and do nothing else.
    pub action: NextAction,
    /// The earliest time to create another execution. Present with action RetryAfter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// The reason for the action in a few words. failureDetails and skipDetails have the whole reason.
    #[schemars(length(max = limits::STEP_REASON))]
    pub why: String,
}
