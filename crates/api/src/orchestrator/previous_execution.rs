//! The input of an analysis about an execution that failed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::{FailureReason, WorkflowExecution};

/// One entry of `spec.previousExecutions` of an `AIAnalysis`, with the field names of that kind.
///
/// | `status.failureDetails` of the execution | `previousExecutions[]` of the analysis |
/// |---|---|
/// | `failedTaskIndex` | `failure.failedStepIndex` |
/// | `failedTaskName` | `failure.failedStepName` |
/// | `reason` | `failure.reason` |
/// | `message` | `failure.message` |
/// | `exitCode` | `failure.exitCode`, absent if `exitCode` is absent |
/// | `failedAt` | `failure.failedAt` |
/// | `executionTimeBeforeFailure` | `failure.executionTime` |
/// | `naturalLanguageSummary` | `naturalLanguageSummary` |
///
/// An analysis uses the word step for a Tekton task. It has no field for `failedStepName` of the execution, the step
/// inside the task; the summary names that step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviousExecution {
    /// Name of the execution.
    pub workflow_execution_ref: String,
    /// How it failed, for programs.
    pub failure: ExecutionFailure,
    /// How it failed, for people and language models.
    pub natural_language_summary: String,
}

/// How an execution failed, in the words of an `AIAnalysis`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionFailure {
    /// Position of the failed task in the pipeline, counted from 0.
    pub failed_step_index: i32,
    /// Name of the failed task in the pipeline. Empty if no task failed.
    pub failed_step_name: String,
    /// Class of the failure.
    pub reason: FailureReason,
    /// The message of the failure, as reported.
    pub message: String,
    /// Exit code of the failed container. Absent if no container exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time of the failure.
    pub failed_at: Time,
    /// Time from the start to the failure, as a Go duration.
    pub execution_time: String,
}

// === impl PreviousExecution ===

impl PreviousExecution {
    /// Returns how an execution failed, or `None` if it has not failed or its status has no details.
    #[must_use]
    pub fn of(execution: &WorkflowExecution) -> Option<Self> {
        let details = execution.status.as_ref()?.failure_details.as_ref()?;
        Some(Self {
            workflow_execution_ref: execution.metadata.name.clone().unwrap_or_default(),
            failure: ExecutionFailure {
                failed_step_index: details.failed_task_index,
                failed_step_name: details.failed_task_name.clone(),
                reason: details.reason,
                message: details.message.clone(),
                exit_code: details.exit_code,
                failed_at: details.failed_at.clone(),
                execution_time: details.execution_time_before_failure.clone(),
            },
            natural_language_summary: details.natural_language_summary.clone(),
        })
    }
}
