//! The status of a `WorkflowExecution`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::{
    failure::{FailureDetails, FailureReason},
    next_step::RecordedStep,
    phase::{ConditionStatus, Phase},
    rules,
    skip::SkipDetails,
};
use crate::{conditions, limits};

/// What happened to the execution. Written by the operator. The API server refuses a phase that goes backwards.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::phase_moves_forward(),
    validation = rules::frozen("target"),
    validation = rules::frozen("startTime"),
    validation = rules::frozen("completionTime"),
    validation = rules::frozen("duration"),
    validation = rules::frozen("pipelineRunRef"),
    validation = rules::frozen("runSequence"),
    validation = rules::frozen("pipelineRunStatus"),
    validation = rules::frozen("attempts"),
    validation = rules::frozen("failureReason"),
    validation = rules::frozen("failureDetails"),
    validation = rules::frozen("skipDetails"),
    validation = rules::frozen("summary"),
    validation = rules::frozen("consecutiveFailures"),
    validation = rules::frozen("nextAllowedExecution"),
    validation = rules::set_once("startTime"),
    validation = rules::set_once("completionTime"),
    validation = rules::run_stays(),
    validation = rules::run_is_of_the_next_attempt(),
    validation = rules::attempts_stay(),
    validation = rules::end_has_a_time(),
    validation = rules::exactly_with("Failed", "failureDetails"),
    validation = rules::exactly_with("Skipped", "skipDetails"),
    validation = rules::never_skipped("pipelineRunRef"),
    validation = rules::never_skipped("startTime"),
    validation = rules::never_skipped("duration"),
)]
pub struct WorkflowExecutionStatus {
    /// The target in canonical form, e.g. "payment/deployment/payment-api": the kind is in lower case, singular and
    /// without its group. At most one execution at a time runs on a target. Absent until the operator has seen the
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TARGET))]
    pub target: Option<String>,
    /// Phase of the execution: Pending (it waits to be decided), Running, Completed, Failed (see failureDetails) or
    /// Skipped (see skipDetails). The last three are final. Absent: not decided yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Phase")] // The schema of an optional enum loses the words above.
    pub phase: Option<Phase>,
    /// What the execution does now, or why it ended, in at most 24 characters, e.g. "Task 1/2", "OperatorForbidden" or
    /// "Exit 1: restart".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::STATUS_SUMMARY))]
    pub summary: Option<String>,
    /// What the program that created the execution should do next. Absent: the execution has not ended. The step
    /// changes when a person clears the target, or the block of this execution ends in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<RecordedStep>,
    /// When the execution got its turn. Absent: it has not got its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the execution ended. For a skipped execution, the time of that decision. Absent: it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Time from startTime to completionTime, as a Go duration, e.g. "2m5s". Absent: the execution has not ended, or
    /// was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.duration: must be a Go duration that is not negative, e.g. 2m5s"))]
    pub duration: Option<String>,
    /// The Tekton PipelineRun of the workflow, in the execution namespace. Absent: the execution is committed to no
    /// run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_run_ref: Option<PipelineRunRef>,
    /// Number of the run in its target's chain, counted from 1. The operator orders the executions of a target by this
    /// number. It is also set if creating the run was refused, or the run was given up before it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub run_sequence: Option<i64>,
    /// Progress of the PipelineRun, as Tekton reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_run_status: Option<PipelineRunStatus>,
    /// Deprecated: the same as failureDetails.message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::MESSAGE))]
    pub failure_reason: Option<String>,
    /// Attempts of an execution with spec.retry, in order. The last attempt may still be waiting or running. Absent:
    /// the execution has no retry policy, or did not get its turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::ATTEMPTS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["attempt"])
    )]
    #[x_kube(
        validation = rules::attempts_are_counted(),
        validation = rules::only_the_last_attempt_goes_on(),
        validation = rules::no_attempt_goes(),
    )]
    pub attempts: Vec<AttemptStatus>,
    /// Why the execution failed. Present exactly when phase is Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_details: Option<FailureDetails>,
    /// Why the execution did not run. Present exactly when phase is Skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_details: Option<SkipDetails>,
    /// Number of failures in a row on the target in which nothing of the workflow ran, including this one. A success
    /// resets it to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub consecutive_failures: Option<i32>,
    /// Until when later executions on the target are skipped because this one failed before anything ran. Absent: this
    /// execution delays no other execution, or it exhausts the target (see the condition Blocked).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_allowed_execution: Option<Time>,
    /// Record of the clearance that lifted the block of this execution on its target. Absent: no block was lifted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clearance: Option<ClearanceStatus>,
    /// Conditions of the execution. TargetLocked: it holds its target (reasons Held, Draining, Free). Started:
    /// something of the workflow ran; the message has the proof. Succeeded: it completed; otherwise the reason says why
    /// not. Blocked: later executions on the target are skipped until a person clears it. Unguarded: no admission
    /// policy was in force when the operator saw the clearance or cancellation; True means that it does not count now,
    /// False that it counts. Waiting: it waits for a decision or for a next attempt; the reason says what it waits for,
    /// e.g. Paused, and the message what would end the wait. Others: Retrying and ClearanceIneffective.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The metadata.generation that the status describes. It is -1 until the operator has written a status: tools that
    /// wait for objects then know that the execution has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub observed_generation: Option<i64>,
}

/// A Tekton PipelineRun, by name, uid and namespace. The uid distinguishes it from a later run with the same name.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelineRunRef {
    /// Name of the PipelineRun, in the execution namespace.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Uid of the PipelineRun.
    #[schemars(length(min = 1, max = limits::UID))]
    pub uid: String,
    /// The execution namespace of the PipelineRun. An operator that is configured with another execution namespace
    /// would not find this run, and refuses to start.
    #[schemars(length(min = 1, max = limits::NAMESPACE))]
    pub namespace: String,
}

/// Progress of a PipelineRun, as Tekton reports it.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelineRunStatus {
    /// Status of the run's condition Succeeded: True, False, or Unknown while it runs.
    pub status: ConditionStatus,
    /// Reason of the run's condition Succeeded, e.g. "Running" or "PipelineRunTimeout".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::REASON))]
    pub reason: Option<String>,
    /// Message of the run's condition Succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::MESSAGE))]
    pub message: Option<String>,
    /// Number of tasks of the pipeline that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub completed_tasks: Option<i32>,
    /// Number of tasks of the pipeline. Absent: Tekton has not fetched the pipeline yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_tasks: Option<i32>,
}

/// One attempt of an execution. It is waiting (notBefore, no startTime), running (startTime, no completionTime) or
/// ended (completionTime).
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::ended_attempt_stays(),
    validation = rules::set_once_in_attempt("delay"),
    validation = rules::set_once_in_attempt("notBefore"),
    validation = rules::set_once_in_attempt("pipelineRun"),
    validation = rules::set_once_in_attempt("startTime"),
    validation = rules::together_in_attempt("pipelineRun", "startTime"),
    validation = rules::together_in_attempt("started", "completionTime"),
)]
pub struct AttemptStatus {
    /// Number of the attempt, counted from 1.
    #[schemars(range(min = 1, max = limits::ATTEMPTS))]
    pub attempt: i32,
    /// Wait before the attempt, as a Go duration, e.g. "1.5s". Absent: it is the first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.attempts.delay: must be a Go duration that is not negative, e.g. 1.5s"))]
    pub delay: Option<String>,
    /// Earliest time at which the attempt may begin. Absent: it is the first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Name of the PipelineRun of the attempt, in the execution namespace. Absent: the attempt is still waiting, or
    /// creating the run was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub pipeline_run: Option<String>,
    /// When the attempt began: the time of the commit to its PipelineRun. Absent exactly when pipelineRun is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the attempt ended, as Tekton reports it for the PipelineRun, or else when the operator noticed the end. The
    /// end is recorded a moment later, and the next wait counts from the time of that record. Absent: the attempt has
    /// not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Whether anything of the workflow ran in the attempt: True, False, or Unknown if the operator cannot tell.
    /// Absent: the attempt has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConditionStatus")]
    pub started: Option<ConditionStatus>,
    /// Why the attempt failed: one of the values of failureDetails.reason. Absent: the attempt has not ended, or
    /// succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FailureReason")]
    pub reason: Option<FailureReason>,
    /// Why the attempt failed, in words, cut to 1024 characters. Absent exactly when reason is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ATTEMPT_MESSAGE))]
    pub message: Option<String>,
}

/// Record of a clearance that lifted a block: the person, the time and the reason.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearanceStatus {
    /// User name of the person who cleared the target.
    #[schemars(length(max = limits::USER))]
    pub cleared_by: String,
    /// When the operator recorded the clearance.
    pub cleared_at: Time,
    /// Reason of the clearance, in that person's words.
    #[schemars(length(max = limits::CLEARANCE_REASON))]
    pub reason: String,
}

fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    conditions::schema("TargetLocked, Started, Succeeded, Blocked or Waiting", "Held, ResourceBusy or OOMKilled")
}
