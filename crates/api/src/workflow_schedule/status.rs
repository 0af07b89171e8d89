//! The status of a `WorkflowSchedule`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::triage::{Adjustment, TriageStatus};
use crate::{conditions, limits};

pub use wfe_core::schedule::{Outcome as RunOutcome, PlannedBy as NextRunReason};

/// State of the schedule. Written by the operator.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowScheduleStatus {
    /// The metadata.generation that the status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Three digests in hexadecimal digits, by which the operator detects a change of the plan. The first is of the
    /// uid, the second of interval, cron, timeZone and spread. The third is of template.spec without rationale and
    /// ttlSecondsAfterFinished. When a digest changes, failureCount begins at 0; when the first or second changes, the
    /// slots begin anew as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::REVISION))]
    pub revision: Option<String>,
    /// When the plan began. No slot up to this time runs or counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_from: Option<Time>,
    /// Time from which the slots of an interval are counted, if that is not the last run. It is written when the
    /// template is edited or a hint asks for a run, because neither may move the other slots. With cron, a slot runs
    /// only if its time without spread is later than phase. Absent: slots count from the last run, or from plannedFrom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Time>,
    /// Failures in a row since the last success, or since the plan began. A Skipped or cancelled run neither adds to it
    /// nor resets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failure_count: Option<i32>,
    /// The last slot whose execution was created or refused. Absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// End of the last run that Completed. Absent: no run has Completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<Time>,
    /// Slots that were missed since the last run. Absent: none were missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_missed: Option<LastMissed>,
    /// Time of the next run. Absent: an execution runs, something holds the schedule, or the spec cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run_time: Option<Time>,
    /// How nextRunTime was chosen. Interval or Cron: by the plan. Backoff: a longer wait after failures. Hint: by
    /// spec.hint. ClampedMin: a hint, delayed by minInterval. ClampedMax: a backoff or hint, shortened by maxInterval.
    /// CatchUp: the latest of several missed slots. Again: a second try for the last slot, whose execution was Skipped
    /// or TooLate; there is no third try. Absent exactly when nextRunTime is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NextRunReason")] // The schema of an optional enum loses the words above.
    pub next_run_reason: Option<NextRunReason>,
    /// The last triage: who analysed the failures, the result, and whether it is still in force. Absent: there was
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triage: Option<TriageStatus>,
    /// Values that a triage has changed. They override the spec until a person edits the schedule or sets spec.resume.
    /// Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjust: Option<Adjustment>,
    /// Conditions of the schedule. Ready: the next run can be planned; if False, the message says what to change
    /// (reasons InvalidSpec, ChildRefused). Held: something keeps the schedule from running now. The reason says what
    /// holds it, e.g. Suspended, ResourceBusy, TriagePaused (a triage has paused it; see spec.resume) or CircuitOpen
    /// (many targets share its failure, and one schedule at a time makes a probe run). The message says what ends the
    /// hold. If Held is False, its reason is Released, or WouldBeHeld (the block that the target has now would hold the
    /// next run).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// The last slot whose execution was created or refused.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Name of the WorkflowExecution of the last run, in the same namespace. Absent: creating it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: Option<String>,
    /// Time of the slot of the last run.
    pub slot: Time,
    /// Whether the execution was a second try for the slot before it, whose execution was Skipped or TooLate. Absent:
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<bool>,
    /// When the execution was created. Absent: creating it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the execution ended. Absent: it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// How the execution ended: Completed, Failed, Skipped, Cancelled, TooLate (not decided before startBefore),
    /// Deleted (deleted before the operator saw its end), or Refused (it could not be created). Absent: it has not
    /// ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunOutcome")]
    pub outcome: Option<RunOutcome>,
    /// Why the execution did not complete: the reason in its failureDetails or skipDetails, e.g. "ImagePullBackOff".
    /// Absent: it completed, or has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::REASON))]
    pub reason: Option<String>,
    /// Cause of the failure, as in the failureDetails of the execution, e.g. "ImagePullBackOff/registry/quay.io". For a
    /// refused execution it is "Refused/workflow/" followed by the id and version of the workflow. Absent: it did not
    /// fail, or has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FINGERPRINT))]
    pub fingerprint: Option<String>,
    /// Why the execution did not complete, in words, cut to 1024 characters. Absent: it completed, or has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::RUN_MESSAGE))]
    pub message: Option<String>,
}

/// Slots that were missed.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastMissed {
    /// The latest missed slot.
    pub slot: Time,
    /// Number of slots missed since the last run. With cron, at most 100 are added at once.
    #[schemars(range(min = 0))]
    pub count: i32,
}

fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    conditions::schema("Ready or Held", "InvalidSpec, Suspended or ResourceBusy")
}
