//! Why an execution failed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

pub use wfe_core::reason::FailureReason;

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
