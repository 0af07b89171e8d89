//! Why an execution failed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

pub use wfe_core::reason::FailureReason;

/// Why the execution failed. Present exactly when phase is Failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.requiresManualReview == self.wasExecutionFailure")
    .message("status.failureDetails.requiresManualReview: must equal wasExecutionFailure")
    .field_path(".requiresManualReview"))]
pub struct FailureDetails {
    /// Position of the failed task in the pipeline, counted from 0. If no task failed, it is 0 and failedTaskName is
    /// empty.
    #[schemars(range(min = 0))]
    pub failed_task_index: i32,
    /// Name of the failed task in the pipeline (not of its TaskRun), e.g. "clean-up". Empty if no task failed.
    #[schemars(length(max = limits::NAME))]
    pub failed_task_name: String,
    /// Name of the failed step of that task. Absent if no step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::NAME))]
    pub failed_step_name: Option<String>,
    /// Class of the failure. OOMKilled: a container exceeded its memory limit. DeadlineExceeded: a time-out or deadline
    /// passed. Forbidden: a permission was missing. ResourceExhausted: a quota was full. ConfigurationError: the
    /// workflow, the parameters or this object cannot work as written. ImagePullBackOff: an image or the bundle could
    /// not be fetched. Unknown: none of these is proven.
    pub reason: FailureReason,
    /// What happened, as Tekton, the API server or the operator reported it.
    #[schemars(length(max = limits::MESSAGE))]
    pub message: String,
    /// Exit code of the failed container, e.g. 137. Absent if no container exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time of the failure.
    pub failed_at: Time,
    /// Time from the start to the failure, as a Go duration, e.g. "1m30s". "0s" if nothing ran.
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.failureDetails.executionTimeBeforeFailure: must be a Go duration that is not negative, e.g. 1m30s"))]
    pub execution_time_before_failure: String,
    /// Summary in two to four sentences, for a person or a language model: which task failed, after how long, why, and
    /// what to do next.
    #[schemars(length(max = limits::SUMMARY))]
    pub natural_language_summary: String,
    /// Whether anything of the workflow ran. True: at least one step started, or the operator cannot tell. Later
    /// executions on the target are then skipped until a person clears it. False: it is proven that nothing ran. Later
    /// executions wait for a backoff and then run.
    pub was_execution_failure: bool,
    /// Whether a person must examine the target before the next execution. Always equal to wasExecutionFailure.
    pub requires_manual_review: bool,
    /// Identifies the cause of the failure: executions with the same fingerprint have the same kind of cause. It
    /// consists of the reason and the origin of the failure, e.g. "ImagePullBackOff/registry/quay.io",
    /// "ResourceExhausted/cluster" or "OOMKilled/workflow/node-disk-cleanup@1.4.0/clean-up/137". Absent: an older
    /// version of the operator recorded the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FINGERPRINT))]
    pub fingerprint: Option<String>,
    /// Whether many targets failed in the same way at the same time. If true, the failure makes the next execution
    /// wait, but does not count towards ExhaustedRetries. Never set on an execution that a schedule made: such a
    /// failure counts for the schedule. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_outage: Option<bool>,
}
