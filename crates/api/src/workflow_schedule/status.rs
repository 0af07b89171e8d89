//! How a `WorkflowSchedule` goes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::triage::{Adjustment, TriageStatus};
use crate::{conditions, limits};

pub use wfe_core::schedule::{Outcome as RunOutcome, PlannedBy as NextRunReason};

/// How the schedule goes. Written by the operator.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowScheduleStatus {
    /// The metadata.generation that the status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What the plan follows from, as digests in hexadecimal digits: of the uid; of interval, cron, timeZone, spread;
    /// and of template.spec without rationale and ttlSecondsAfterFinished. When one changes, failureCount begins anew;
    /// when the first or second changes, the slots do too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::REVISION))]
    pub revision: Option<String>,
    /// When the plan began: no slot up to this time runs or counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_from: Option<Time>,
    /// What the slots of an interval are counted from, where that is not the last run: neither an edit of the template
    /// nor a run that a hint asked for moves the others. Of cron, no slot runs whose time before spread is not later.
    /// Absent: the last run, or plannedFrom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Time>,
    /// Failures in a row since the last success, or since the plan began. A Skipped or cancelled run neither counts nor
    /// resets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failure_count: Option<i32>,
    /// The last slot for which an execution was made or refused. Absent: none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// When the last run that Completed ended. Absent: none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<Time>,
    /// The slots that were missed since the last run. Absent: none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_missed: Option<LastMissed>,
    /// When it runs next. Absent while an execution runs, while something holds the schedule, and where the spec cannot
    /// be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run_time: Option<Time>,
    /// What nextRunTime follows from: Interval, Cron, Backoff (a longer wait after failures), Hint, ClampedMin (a hint,
    /// put off by minInterval), ClampedMax (a wait or hint, cut by maxInterval), CatchUp (of several missed slots the
    /// latest), Again (the last run was Skipped or TooLate, and is made up for once). Absent where nextRunTime is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NextRunReason")] // The schema of an optional enum loses the words above.
    pub next_run_reason: Option<NextRunReason>,
    /// The last triage: who looked at the failures, what came of it, and whether that is still in force. Absent: there
    /// was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triage: Option<TriageStatus>,
    /// What a triage has changed, over the spec, until a person edits the schedule or sets spec.resume. Absent:
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjust: Option<Adjustment>,
    /// Standing facts. Ready: the next run can be planned; False says what to change (reasons InvalidSpec,
    /// ChildRefused). Held: something keeps it from running now; the reason says what, e.g. Suspended, ResourceBusy,
    /// TriagePaused (a triage has paused it; see spec.resume) or CircuitOpen (many failed as it did, and one of
    /// them tries), and the message what ends that; False: Released, or WouldBeHeld (the next run lies ahead, and what
    /// blocks its target now would hold it then).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// The last slot for which an execution was made or refused.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Name of the WorkflowExecution, in the same namespace. Absent where creating it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: Option<String>,
    /// The slot.
    pub slot: Time,
    /// Whether it made up for the slot before it, whose execution was Skipped or TooLate. Absent: it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<bool>,
    /// When the execution was made. Absent where creating it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended. Absent while it is at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// How it ended: Completed, Failed, Skipped, Cancelled, TooLate (not decided before startBefore), Deleted (gone
    /// before its end was seen), or Refused (it could not be created). Absent: it is at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunOutcome")]
    pub outcome: Option<RunOutcome>,
    /// Why it did not complete, in one word as in the execution's failureDetails or skipDetails, e.g.
    /// "ImagePullBackOff". Absent where it completed, and while it is at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::REASON))]
    pub reason: Option<String>,
    /// What its failure comes from, as in the execution's failureDetails, e.g. "ImagePullBackOff/registry/quay.io"; of
    /// a refused one "Refused/workflow/" with id and version. Absent where it did not fail, and while it is at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::FINGERPRINT))]
    pub fingerprint: Option<String>,
    /// Why it did not complete, in words, at most 1024 characters of them. Absent where it completed, and while it is
    /// at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::RUN_MESSAGE))]
    pub message: Option<String>,
}

/// Slots that were missed.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastMissed {
    /// The latest of them.
    pub slot: Time,
    /// How many were missed since the last run. Of cron, counted up to 100 at once.
    #[schemars(range(min = 0))]
    pub count: i32,
}

fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    conditions::schema("Ready or Held", "InvalidSpec, Suspended or ResourceBusy")
}
