//! Why an execution failed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// Classifies a failure. These seven and no others: programs match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum FailureReason {
    /// A container was killed for its memory limit.
    #[serde(rename = "OOMKilled")]
    OomKilled,
    /// The run, a task or a deadline of the operator timed out.
    DeadlineExceeded,
    /// A right was missing.
    Forbidden,
    /// A quota or limit of the cluster was exhausted.
    ResourceExhausted,
    /// The workflow, its parameters or this object cannot work as written.
    ConfigurationError,
    /// An image or the bundle could not be fetched.
    ImagePullBackOff,
    /// None of the others is proven.
    Unknown,
}

// === impl FailureReason ===

impl FailureReason {
    /// Lists every reason.
    pub const ALL: [Self; 7] = [
        Self::OomKilled,
        Self::DeadlineExceeded,
        Self::Forbidden,
        Self::ResourceExhausted,
        Self::ConfigurationError,
        Self::ImagePullBackOff,
        Self::Unknown,
    ];

    /// Spells the reason as the API does.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OomKilled => "OOMKilled",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::Forbidden => "Forbidden",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::ConfigurationError => "ConfigurationError",
            Self::ImagePullBackOff => "ImagePullBackOff",
            Self::Unknown => "Unknown",
        }
    }
}

impl std::fmt::Display for FailureReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the execution failed. Present exactly when the phase is Failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.requiresManualReview == self.wasExecutionFailure")
    .message("status.failureDetails.requiresManualReview: must equal wasExecutionFailure")
    .field_path(".requiresManualReview"))]
pub struct FailureDetails {
    /// Place of the failed task in the pipeline, counted from 0; 0 where no task failed.
    #[schemars(range(min = 0))]
    pub failed_task_index: i32,
    /// Name of the failed task in the pipeline (not of its TaskRun), e.g. "clean-up"; empty where no task failed.
    #[schemars(length(max = limits::NAME))]
    pub failed_task_name: String,
    /// Name of the failed step of that task. Absent where no step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    pub failed_step_name: Option<String>,
    /// Class of the failure: OOMKilled (a container hit its memory limit), DeadlineExceeded (timed out), Forbidden (a
    /// right was missing), ResourceExhausted (a quota was full), ConfigurationError (workflow, parameters or this
    /// object cannot work as written), ImagePullBackOff (an image or the bundle could not be fetched), Unknown (none of
    /// these is proven).
    pub reason: FailureReason,
    /// What happened, in the words of whoever reported it.
    #[schemars(length(max = limits::MESSAGE))]
    pub message: String,
    /// Exit code of the failed container, e.g. 137. Absent where no container really exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When it failed.
    pub failed_at: Time,
    /// How long it ran before it failed, as a Go duration, e.g. "1m30s"; "0s" where nothing ran.
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.failureDetails.executionTimeBeforeFailure: must be a Go duration that is not negative, e.g. 1m30s"))]
    pub execution_time_before_failure: String,
    /// Two to four plain sentences for a person or a language model: which task, after how long, why, what to do next.
    #[schemars(length(max = limits::SUMMARY))]
    pub natural_language_summary: String,
    /// Whether anything of the workflow ran. True: at least one step started, or nobody can tell; later executions on
    /// the target are skipped until somebody has looked. False: it is proven that nothing ran; later ones back off and
    /// then run.
    pub was_execution_failure: bool,
    /// Whether a person has to look before the target is touched again. Always equal to wasExecutionFailure.
    pub requires_manual_review: bool,
    /// What the failure comes from, so that equal ones can be counted: the reason, and what it is about, e.g.
    /// "ImagePullBackOff/registry/quay.io", "ResourceExhausted/cluster" or
    /// "OOMKilled/workflow/node-disk-cleanup@1.4.0/clean-up/137". Absent from executions that ended before the operator
    /// wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FINGERPRINT))]
    pub fingerprint: Option<String>,
    /// Whether many targets failed in the same way at the same time, so that the target is not to blame: the failure
    /// makes the next execution wait, but does not count towards ExhaustedRetries. Never of what a schedule made, whose
    /// failures count for the schedule. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_outage: Option<bool>,
}
