//! Why an execution did not get its turn.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::Outcome;
use crate::limits;

/// Why an execution was skipped. There are exactly four reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SkipReason {
    /// Another execution holds the target, or something of its run has not stopped yet.
    ResourceBusy,
    /// It is too early after a recent execution on the target.
    RecentlyRemediated,
    /// Too many executions in a row failed before anything ran.
    ExhaustedRetries,
    /// An earlier execution failed half way; a person must examine the target first.
    PreviousExecutionFailed,
}

// === impl SkipReason ===

impl SkipReason {
    /// All reasons.
    pub const ALL: [Self; 4] =
        [Self::ResourceBusy, Self::RecentlyRemediated, Self::ExhaustedRetries, Self::PreviousExecutionFailed];

    /// Returns the reason as the API spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResourceBusy => "ResourceBusy",
            Self::RecentlyRemediated => "RecentlyRemediated",
            Self::ExhaustedRetries => "ExhaustedRetries",
            Self::PreviousExecutionFailed => "PreviousExecutionFailed",
        }
    }
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the execution did not run. Present exactly when phase is Skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkipDetails {
    /// Class of the skip. ResourceBusy: another execution holds the target; see conflictingWorkflow.
    /// RecentlyRemediated: it is too early after the last execution; see recentRemediation. ExhaustedRetries: too many
    /// executions in a row failed before anything ran. PreviousExecutionFailed: an earlier execution failed half way,
    /// and a person must examine the target first.
    pub reason: SkipReason,
    /// The reason in words, with the names and times behind it, and what must happen before an execution can run.
    #[schemars(length(max = limits::MESSAGE))]
    pub message: String,
    /// Time at which the execution was skipped.
    pub skipped_at: Time,
    /// The execution that holds the target. Present with reason ResourceBusy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicting_workflow: Option<ConflictingWorkflow>,
    /// The earlier execution that caused the skip. Present with every reason except ResourceBusy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_remediation: Option<RecentRemediation>,
}

/// The execution that holds the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictingWorkflow {
    /// Namespace of the WorkflowExecution that holds the target. Absent only in a status that an earlier version of the
    /// operator wrote: if the namespace was another one, that version wrote "namespace/name" into name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAMESPACE))]
    pub namespace: Option<String>,
    /// Name of the WorkflowExecution that holds the target.
    #[schemars(length(max = limits::NAME))]
    pub name: String,
    /// The workflowId of the execution that holds the target, e.g. "node-disk-cleanup".
    #[schemars(length(max = limits::NAME))]
    pub workflow_id: String,
    /// When the execution that holds the target started. Absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The target of both executions, in canonical form.
    #[schemars(length(max = limits::TARGET))]
    pub target_resource: String,
}

/// The earlier execution that caused the skip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentRemediation {
    /// Namespace of the earlier WorkflowExecution. Absent only in a status that an earlier version of the operator
    /// wrote: if the namespace was another one, that version wrote "namespace/name" into name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAMESPACE))]
    pub namespace: Option<String>,
    /// Name of the earlier WorkflowExecution.
    #[schemars(length(max = limits::NAME))]
    pub name: String,
    /// The workflowId of the earlier execution, e.g. "node-disk-cleanup".
    #[schemars(length(max = limits::NAME))]
    pub workflow_id: String,
    /// When the earlier execution ended.
    pub completed_at: Time,
    /// How the earlier execution ended: Completed or Failed.
    pub outcome: Outcome,
    /// The target of the earlier execution, in canonical form.
    #[schemars(length(max = limits::TARGET))]
    pub target_resource: String,
    /// Time until the next execution may run, as a Go duration, e.g. "4m30s". Absent: the wait does not end by time
    /// alone, and a person must clear the target first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.skipDetails.recentRemediation.cooldownRemaining: must be a Go duration that is not negative, e.g. 4m30s"))]
    pub cooldown_remaining: Option<String>,
}
