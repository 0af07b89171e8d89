//! Condition types of a `WorkflowExecution`, what each status of them means, and their reasons. Those of a
//! `WorkflowSchedule` are in [`workflow_schedule::conditions`](crate::workflow_schedule::conditions).
//!
//! Reasons of [`SUCCEEDED`] with status False are the reasons of [`FailureReason`](crate::FailureReason) and
//! [`SkipReason`](crate::SkipReason), and [`CANCELLED`]: the Reason column of `kubectl get wfe` shows them.

use schemars::{Schema, json_schema};

use crate::limits;

/// Whether this execution holds its target.
///
/// True: its run is committed and unfinished ([`HELD`]), or finished while pods of it still terminate ([`DRAINING`]).
/// False: it has let go of the target, and nothing of it is left ([`FREE`]). Absent: it never held it.
pub const TARGET_LOCKED: &str = "TargetLocked";
/// Whether anything of the workflow ran, with the proof in the message.
///
/// True: a step was seen running or really ended (`StepRunning`, `StepEnded`, `PodReplaced`). False: it is proven that
/// nothing ran (`NoRun`, `NoTaskRun`, `OnlyWaited`). Unknown: nobody can tell, and the reason says why (such as
/// `Opaque`, `NotFollowed`), which is treated as if it ran. Absent: it was skipped, or still runs and no step was seen
/// yet.
pub const STARTED: &str = "Started";
/// Whether the execution reached its goal.
///
/// True: Completed ([`COMPLETED`]). False: Failed or Skipped, the reason says why. Unknown: still running
/// ([`RUNNING`]), or still waiting to be decided: then the reason is that of [`WAITING`].
pub const SUCCEEDED: &str = "Succeeded";
/// Whether this execution stands in the way of later ones on its target.
///
/// True: it failed such that later ones are skipped until somebody clears it; the reason is that of their skip
/// ([`SkipReason`](crate::SkipReason)). False: it did, and does not any more ([`CLEARED`], [`SUPERSEDED`], [`LIFTED`]).
/// Absent: it never blocked.
pub const BLOCKED: &str = "Blocked";
/// Whether a clearance of this execution came when it had nothing to lift.
///
/// True: nothing was blocked, so it changes nothing ([`NOTHING_BLOCKED`]). Absent: there was none, or it lifted a
/// block.
pub const CLEARANCE_INEFFECTIVE: &str = "ClearanceIneffective";
/// Whether the execution still waits to be decided, so that an empty phase never puzzles anyone.
///
/// True: it has been undecided for longer than a moment; the reason says what it waits for, the message what would end
/// that ([`PAUSED`], [`RIVAL_UNDECIDED`], [`WITHDRAWN`], [`OWNER_LATE`], [`TURN`], [`DRAINING`], [`API_ERRORS`],
/// [`CACHE_NOT_SYNCED`], [`OPERATOR_FORBIDDEN`], [`OPERATOR_REFUSED`], [`WRITE_DROPPED`], [`TEKTON_UNAVAILABLE`],
/// [`POLICIES_NOT_READ`], [`DELETING`]). Absent: it does not wait, or not for long yet. It is never False: the decision
/// removes it.
pub const WAITING: &str = "Waiting";
/// Whether no admission policy was in force when the operator saw what a person has set on the execution.
///
/// True: the clearance ([`CLEARANCE_UNGUARDED`]) or, before the end, the cancellation ([`CANCELLATION_UNGUARDED`]) does
/// not count now. False: it counts, as the policies are back ([`CLEARANCE_COUNTS`], [`CANCELLATION_COUNTS`]); the name
/// in it is what its author wrote. Absent: they were in force, or nothing is set.
pub const UNGUARDED: &str = "Unguarded";
/// Whether the execution is tried again, where it has a retry policy.
///
/// True: an attempt failed, and the next one is waited for ([`BACKOFF`]). False: an attempt runs ([`RUNNING`]), the
/// last one succeeded ([`RETRY_SUCCEEDED`]), or it is not tried again: then the reason says why, one of
/// [`Stop::REASONS`](wfe_core::retry::Stop::REASONS), such as `Exhausted`. Absent: it has no policy, or did not get its
/// turn yet.
pub const RETRYING: &str = "Retrying";

/// Reason of [`TARGET_LOCKED`]: the run is committed and unfinished.
pub const HELD: &str = "Held";
/// Reason of [`TARGET_LOCKED`]: the run is finished, something that it started is not.
///
/// Reason of [`WAITING`]: TaskRuns or pods with the target's label are unfinished, and nobody can tell whose they are.
pub const DRAINING: &str = "Draining";
/// Reason of [`TARGET_LOCKED`]: nothing of the run is left.
pub const FREE: &str = "Free";

/// Reason of [`SUCCEEDED`]: the run is committed and unfinished.
///
/// Reason of [`RETRYING`]: an attempt runs.
pub const RUNNING: &str = "Running";
/// Reason of [`SUCCEEDED`]: every task of the run succeeded.
pub const COMPLETED: &str = "Completed";
/// Reason of [`SUCCEEDED`]: a person cancelled the execution, in its spec or on its run. `failureDetails.reason` is one
/// of the closed reasons all the same.
pub const CANCELLED: &str = "Cancelled";

/// Reason of [`BLOCKED`]: a clearance, of this execution or a later one, has lifted it.
pub const CLEARED: &str = "Cleared";
/// Reason of [`BLOCKED`]: a later execution blocks the target in its place.
pub const SUPERSEDED: &str = "Superseded";
/// Reason of [`BLOCKED`]: its recovery has ended it and is the newest execution that ran on the target. Until a later
/// one has run there, deleting this execution requires permission to clear it.
pub const RECOVERED: &str = "Recovered";
/// Reason of [`BLOCKED`]: a later success or a quiet time has ended it.
pub const LIFTED: &str = "Lifted";

/// Reason of [`CLEARANCE_INEFFECTIVE`]: nothing on the target was blocked by this execution or an earlier one.
pub const NOTHING_BLOCKED: &str = "NothingBlocked";

/// Reason of [`UNGUARDED`]: `spec.clearance` does not count now.
pub const CLEARANCE_UNGUARDED: &str = "ClearanceUnguarded";
/// Reason of [`UNGUARDED`]: `spec.clearance` counts.
pub const CLEARANCE_COUNTS: &str = "ClearanceCounts";
/// Reason of [`UNGUARDED`]: `spec.cancellation` does not count now.
pub const CANCELLATION_UNGUARDED: &str = "CancellationUnguarded";
/// Reason of [`UNGUARDED`]: `spec.cancellation` counts.
pub const CANCELLATION_COUNTS: &str = "CancellationCounts";

/// Reason of [`WAITING`]: nothing new starts, by the operator's configuration or by the annotation
/// [`ANNOTATION_PAUSED`](crate::labels::ANNOTATION_PAUSED) on the namespace. Ends when a person ends the pause.
pub const PAUSED: &str = "Paused";
/// Reason of [`WAITING`]: the run of another execution on the target is pending: it may commit, or be withdrawn.
pub const RIVAL_UNDECIDED: &str = "RivalUndecided";
/// Reason of [`WAITING`]: its own run, not the first on the target, is deleted; it is decided again after that.
pub const WITHDRAWN: &str = "Withdrawn";
/// Reason of [`WAITING`]: a run on the target is done, and the status of the execution that owns it does not say so
/// yet.
pub const OWNER_LATE: &str = "OwnerLate";
/// Reason of [`WAITING`]: an older execution on the target goes first.
pub const TURN: &str = "Turn";
/// Reason of [`WAITING`]: the API server refuses, fails or does not answer what the decision needs; it is tried again.
pub const API_ERRORS: &str = "ApiErrors";
/// Reason of [`WAITING`]: the operator has not yet read, or no longer follows, all objects that the decision rests on.
pub const CACHE_NOT_SYNCED: &str = "CacheNotSynced";
/// Reason of [`WAITING`]: the operator's own account lacks a right. It goes on as soon as it has it, and nothing fails
/// for it.
pub const OPERATOR_FORBIDDEN: &str = "OperatorForbidden";
/// Reason of [`WAITING`]: an admission policy of the operator refuses the operator itself. It goes on as soon as the
/// policy lets it, and nothing fails for it.
pub const OPERATOR_REFUSED: &str = "OperatorRefused";
/// Reason of [`WAITING`]: the API server accepted a status of the operator and dropped a decisive part of it. It goes
/// on as soon as the status is stored, and nothing fails for it.
pub const WRITE_DROPPED: &str = "WriteDropped";
/// Reason of [`WAITING`]: the cluster does not serve Tekton's kinds.
pub const TEKTON_UNAVAILABLE: &str = "TektonUnavailable";
/// Reason of [`WAITING`]: a watch has not delivered yet what the operator itself has written.
pub const WRITE_NOT_SEEN: &str = "WriteNotSeen";
/// Reason of [`WAITING`]: a clearance or cancellation was set, and the operator has not read yet whether its admission
/// policy guarded it.
pub const POLICIES_NOT_READ: &str = "PoliciesNotRead";
/// Reason of [`WAITING`]: this object is being deleted and a finalizer of somebody else keeps it: nothing starts for
/// it.
pub const DELETING: &str = "Deleting";

/// Reason of [`RETRYING`]: an attempt failed, and the next one begins when its time has come.
pub const BACKOFF: &str = "Backoff";
/// Reason of [`RETRYING`]: the last attempt succeeded.
pub const RETRY_SUCCEEDED: &str = "Succeeded";

/// Limits the conditions of a status as metav1.Condition does in Go; the Rust type carries no limits. `types` and
/// `reasons` are examples for people.
pub(crate) fn schema(types: &str, reasons: &str) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": limits::CONDITIONS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": format!("What the condition is about: {types}."),
                    "type": "string", "minLength": 1, "maxLength": limits::CONDITION_TYPE,
                },
                "status": {
                    "description": "Whether it holds: True, False or Unknown.",
                    "type": "string", "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": format!("Why, in one word, e.g. {reasons}."),
                    "type": "string", "minLength": 1, "maxLength": limits::REASON,
                },
                "message": {
                    "description": "Why, in a sentence; may be empty.",
                    "type": "string", "maxLength": limits::MESSAGE,
                },
                "lastTransitionTime": {
                    "description": "When status last changed.",
                    "type": "string", "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition speaks of.",
                    "type": "integer", "format": "int64", "minimum": 0,
                },
            },
        },
    })
}
