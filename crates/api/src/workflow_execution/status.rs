//! What became of a `WorkflowExecution`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::{
    failure::{FailureDetails, FailureReason},
    phase::{ConditionStatus, Phase},
    rules,
    skip::SkipDetails,
};
use crate::{conditions, limits};

/// What became of the execution. Written by the operator; the API server refuses a phase that goes backwards.
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
    /// The target in canonical form, e.g. "payment/deployment/payment-api": kind in lower case, singular, without
    /// group. Executions with the same target exclude each other. Absent until the operator has seen the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TARGET))]
    pub target: Option<String>,
    /// Where the execution stands: Pending (it has to wait), Running, Completed, Failed (see failureDetails) or Skipped
    /// (see skipDetails). The last three are final. Absent: not decided yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Phase")] // The schema of an optional enum loses the words above.
    pub phase: Option<Phase>,
    /// When the execution got its turn. Absent when it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended; of a skipped execution, when that was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// How long it took from startTime to completionTime, as a Go duration, e.g. "2m5s". Absent until it ended, and
    /// when it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.duration: must be a Go duration that is not negative, e.g. 2m5s"))]
    pub duration: Option<String>,
    /// The Tekton PipelineRun that runs the workflow, in the execution namespace. Absent when nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_run_ref: Option<PipelineRunRef>,
    /// Number of the run in its target's chain, counted from 1, also where creating the run was refused or the run was
    /// given up before it began. Executions of one target are ordered by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub run_sequence: Option<i64>,
    /// What Tekton says about the PipelineRun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_run_status: Option<PipelineRunStatus>,
    /// Deprecated: the same as failureDetails.message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::MESSAGE))]
    pub failure_reason: Option<String>,
    /// The attempts of an execution with spec.retry, in order: each run of the workflow, with how it ended, and last
    /// the one that runs or is waited for. Absent: it has no such policy, or did not get its turn.
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
    /// Why it failed. Present exactly when phase is Failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_details: Option<FailureDetails>,
    /// Why it did not run. Present exactly when phase is Skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_details: Option<SkipDetails>,
    /// Failures in a row on the target in which nothing of the workflow ran, this one included. A success resets it to
    /// 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub consecutive_failures: Option<i32>,
    /// Until when later executions on the target are skipped because this one failed before anything ran. Absent: this
    /// one makes none wait, or it exhausts the target, as the condition Blocked says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_allowed_execution: Option<Time>,
    /// Who lifted the block that this execution had left on its target. Absent: nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clearance: Option<ClearanceStatus>,
    /// Standing facts. TargetLocked: this execution holds its target (reasons Held, Draining, Free). Started: something
    /// of the workflow ran, with the proof in the message. Succeeded: it reached its goal; the reason says why not.
    /// Blocked: later executions on the target are skipped until somebody clears it. Unguarded: no admission policy was
    /// in force when the operator saw the clearance or cancellation; it does not count now (True), or counts (False).
    /// Waiting: it is not decided yet; the reason says what it waits for, e.g. Paused, and the message what would end
    /// that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The metadata.generation that the status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// A Tekton PipelineRun, by name, uid and namespace: a later one of the same name is another, and name and uid alone
/// would not tell an operator with another execution namespace that it looks in the wrong place.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelineRunRef {
    /// Name of the PipelineRun, in the execution namespace.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Uid of the PipelineRun.
    #[schemars(length(min = 1, max = limits::UID))]
    pub uid: String,
    /// The execution namespace in which the PipelineRun lives. An operator that is started with another one sees by it
    /// that it would not find this run, and does not start.
    #[schemars(length(min = 1, max = limits::NAMESPACE))]
    pub namespace: String,
}

/// What Tekton says about a PipelineRun.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelineRunStatus {
    /// Status of its condition Succeeded: True, False, or Unknown while it runs.
    pub status: ConditionStatus,
    /// Reason of that condition, e.g. "Running" or "PipelineRunTimeout".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::REASON))]
    pub reason: Option<String>,
    /// Message of that condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::MESSAGE))]
    pub message: Option<String>,
    /// How many tasks of the pipeline are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub completed_tasks: Option<i32>,
    /// How many tasks the pipeline has. Absent until Tekton has fetched the pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_tasks: Option<i32>,
}

/// One attempt of an execution: it is waited for (notBefore, no startTime), runs (startTime, no completionTime) or has
/// ended.
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
    /// How long the wait before it was, as a Go duration, e.g. "1.5s". Absent from the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::DURATION))]
    #[x_kube(validation = ("duration(self) >= duration('0s')",
        "status.attempts.delay: must be a Go duration that is not negative, e.g. 1.5s"))]
    pub delay: Option<String>,
    /// When it may begin at the earliest. Absent from the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Name of its PipelineRun, in the execution namespace. Absent while it is waited for, and where creating the run
    /// was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub pipeline_run: Option<String>,
    /// When it began: the execution was committed to its PipelineRun. Absent where pipelineRun is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended: as Tekton says of its PipelineRun, or where no run says that, when the operator noticed it. The
    /// end is recorded a moment later, and the next wait counts from then. Absent until it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Whether anything of the workflow ran in it: True, False, or Unknown where nobody can tell. Absent until it has
    /// ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ConditionStatus")]
    pub started: Option<ConditionStatus>,
    /// Why it failed, in one word as in failureDetails.reason. Absent until it has ended, and where it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "FailureReason")]
    pub reason: Option<FailureReason>,
    /// Why it failed, at most 1024 characters of it. Absent where reason is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::ATTEMPT_MESSAGE))]
    pub message: Option<String>,
}

/// Who lifted a block, when and why.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearanceStatus {
    /// User name of the person.
    #[schemars(length(max = limits::USER))]
    pub cleared_by: String,
    /// When the operator recorded it.
    pub cleared_at: Time,
    /// Why, in that person's words.
    #[schemars(length(max = limits::CLEARANCE_REASON))]
    pub reason: String,
}

fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    conditions::schema("TargetLocked, Started, Succeeded, Blocked or Waiting", "Held, ResourceBusy or OOMKilled")
}
