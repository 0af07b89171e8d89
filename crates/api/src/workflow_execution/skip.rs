//! Why an execution did not get its turn.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::Outcome;
use crate::limits;

/// Classifies a skip. These four and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SkipReason {
    /// Another execution holds the target, or is still draining from it.
    ResourceBusy,
    /// A recent execution on the target makes this one too early.
    RecentlyRemediated,
    /// Too many executions in a row failed before anything ran.
    ExhaustedRetries,
    /// An earlier execution failed half way; a person has to look first.
    PreviousExecutionFailed,
}

// === impl SkipReason ===

impl SkipReason {
    /// Lists every reason.
    pub const ALL: [Self; 4] =
        [Self::ResourceBusy, Self::RecentlyRemediated, Self::ExhaustedRetries, Self::PreviousExecutionFailed];

    /// Spells the reason as the API does.
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

/// Why the execution did not run. Present exactly when the phase is Skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkipDetails {
    /// Why: ResourceBusy (another execution holds the target; see conflictingWorkflow), RecentlyRemediated (too early
    /// after the last one; see recentRemediation), ExhaustedRetries (too many failures in a row),
    /// PreviousExecutionFailed (the last one broke half way; a person has to look first).
    pub reason: SkipReason,
    /// The same for a person, with the names and times it rests on, and how to make it run.
    #[schemars(length(max = limits::MESSAGE))]
    pub message: String,
    /// When it was decided.
    pub skipped_at: Time,
    /// The execution that holds the target. Present with reason ResourceBusy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicting_workflow: Option<ConflictingWorkflow>,
    /// The earlier execution that stands in the way. Present with the other three reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_remediation: Option<RecentRemediation>,
}

/// The execution that holds the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictingWorkflow {
    /// Namespace of its WorkflowExecution. Absent only in a status of an earlier version, which wrote "namespace/name"
    /// into name where that was another namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAMESPACE))]
    pub namespace: Option<String>,
    /// Name of its WorkflowExecution.
    #[schemars(length(max = limits::NAME))]
    pub name: String,
    /// Its workflow, e.g. "node-disk-cleanup".
    #[schemars(length(max = limits::NAME))]
    pub workflow_id: String,
    /// When it started. Absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// The target that both want, in canonical form.
    #[schemars(length(max = limits::TARGET))]
    pub target_resource: String,
}

/// The earlier execution that stands in the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentRemediation {
    /// Namespace of its WorkflowExecution. Absent only in a status of an earlier version, which wrote "namespace/name"
    /// into name where that was another namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAMESPACE))]
    pub namespace: Option<String>,
    /// Name of its WorkflowExecution.
    #[schemars(length(max = limits::NAME))]
    pub name: String,
    /// Its workflow, e.g. "node-disk-cleanup".
    #[schemars(length(max = limits::NAME))]
    pub workflow_id: String,
    /// When it ended.
    pub completed_at: Time,
    /// How it ended: Completed or Failed.
    pub outcome: Outcome,
    /// Its target, in canonical form.
    #[schemars(length(max = limits::TARGET))]
    pub target_resource: String,
    /// How long until time alone lets the next execution run, as a Go duration, e.g. "4m30s". Absent where time alone
    /// does not: a person has to clear the target first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.skipDetails.recentRemediation.cooldownRemaining: must be a Go duration that is not negative, e.g. 4m30s"))]
    pub cooldown_remaining: Option<String>,
}
