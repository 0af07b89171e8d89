//! How a `WorkflowSchedule` goes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::triage::{Adjustment, TriageStatus};
use crate::{conditions, limits};

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

/// Says how a run of a schedule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RunOutcome {
    /// It succeeded: the streak of failures ends.
    Completed,
    /// It failed: the streak grows.
    Failed,
    /// It did not get its turn on the target.
    Skipped,
    /// A person cancelled it.
    Cancelled,
    /// It was not decided before `startBefore`.
    TooLate,
    /// It was deleted before its end was recorded.
    Deleted,
    /// It could not be created: the streak grows.
    Refused,
}

// === impl RunOutcome ===

impl RunOutcome {
    /// Lists every outcome.
    pub const ALL: [Self; 7] =
        [Self::Completed, Self::Failed, Self::Skipped, Self::Cancelled, Self::TooLate, Self::Deleted, Self::Refused];

    /// Spells the outcome as the API does.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
            Self::Cancelled => "Cancelled",
            Self::TooLate => "TooLate",
            Self::Deleted => "Deleted",
            Self::Refused => "Refused",
        }
    }
}

impl std::fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says what the time of the next run follows from (section 12.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NextRunReason {
    /// The interval.
    Interval,
    /// The cron expression.
    Cron,
    /// The interval, made longer by failures.
    Backoff,
    /// A hint.
    Hint,
    /// A hint, put off by `minInterval`.
    ClampedMin,
    /// A backoff or a hint, cut by `maxInterval`.
    ClampedMax,
    /// Several slots were missed, and the latest of them runs.
    CatchUp,
    /// The last run lost a race for the target, and is made up for once.
    Again,
}

// === impl NextRunReason ===

impl NextRunReason {
    /// Lists every reason.
    pub const ALL: [Self; 8] = [
        Self::Interval,
        Self::Cron,
        Self::Backoff,
        Self::Hint,
        Self::ClampedMin,
        Self::ClampedMax,
        Self::CatchUp,
        Self::Again,
    ];

    /// Spells the reason as the API does.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interval => "Interval",
            Self::Cron => "Cron",
            Self::Backoff => "Backoff",
            Self::Hint => "Hint",
            Self::ClampedMin => "ClampedMin",
            Self::ClampedMax => "ClampedMax",
            Self::CatchUp => "CatchUp",
            Self::Again => "Again",
        }
    }
}

impl std::fmt::Display for NextRunReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    conditions::schema("Ready or Held", "InvalidSpec, Suspended or ResourceBusy")
}
