//! Condition types of a `WorkflowExecution`, the meaning of each status, and the reasons. The conditions of a
//! `WorkflowSchedule` are in [`workflow_schedule::conditions`](crate::workflow_schedule::conditions).
//!
//! When [`SUCCEEDED`] is False, its reason is one of [`FailureReason`](crate::FailureReason) or
//! [`SkipReason`](crate::SkipReason), or [`CANCELLED`]. The Reason column of `kubectl get wfe` shows it.

use schemars::{Schema, json_schema};

use crate::limits;

/// Whether this execution holds its target.
///
/// True: its run is committed and unfinished ([`HELD`]), or is finished while pods of the run still terminate
/// ([`DRAINING`]). False: it has released the target, and nothing of its run is left ([`FREE`]). Absent: it never held
/// the target.
pub const TARGET_LOCKED: &str = "TargetLocked";
/// Whether anything of the workflow ran, with the proof in the message.
///
/// True: a step was seen running or really ended (`StepRunning`, `StepEnded`, `PodReplaced`). False: it is proven that
/// nothing ran (`NoRun`, `NoTaskRun`, `OnlyWaited`). Unknown: the operator cannot tell, and the reason says why (such
/// as `Opaque`, `NotFollowed`); the operator then assumes that something ran. Absent: the execution was skipped, or
/// still runs and no step has been seen yet.
pub const STARTED: &str = "Started";
/// Whether the execution reached its goal.
///
/// True: Completed ([`COMPLETED`]). False: Failed or Skipped, the reason says why. Unknown: the execution is still
/// running ([`RUNNING`]), or still undecided; the reason is then that of [`WAITING`].
pub const SUCCEEDED: &str = "Succeeded";
/// Whether this execution blocks later ones on its target.
///
/// True: later executions are skipped until a person clears this failure; the reason is that of their skip
/// ([`SkipReason`](crate::SkipReason)). False: it blocked the target, and no longer does ([`CLEARED`], [`SUPERSEDED`],
/// [`RECOVERED`], [`LIFTED`]). Absent: it never blocked.
pub const BLOCKED: &str = "Blocked";
/// Whether a clearance of this execution came when there was no block to lift.
///
/// True: nothing was blocked, and the clearance changes nothing ([`NOTHING_BLOCKED`]). Absent: there was no clearance,
/// or it lifted a block.
pub const CLEARANCE_INEFFECTIVE: &str = "ClearanceIneffective";
/// Whether the execution waits to be decided, or for a next attempt that is held back.
///
/// True: the wait has lasted for more than ten seconds. The reason says what it waits for, one of
/// [`Waiting::REASONS`](wfe_core::waiting::Waiting::REASONS), such as [`PAUSED`]. The message says what would end the
/// wait. Absent: it does not wait, or has waited for a shorter time. It is never False: the end of the wait removes it.
pub const WAITING: &str = "Waiting";
/// The execution has not ended. Tools that wait for objects (kstatus: Flux, `helm --wait`) read this condition and
/// [`STALLED`]. Neither is ever False: each is True or absent.
pub const RECONCILING: &str = "Reconciling";
/// The execution failed, and this is final.
pub const STALLED: &str = "Stalled";
/// Whether no admission policy was in force when the operator saw a clearance or cancellation.
///
/// True: the clearance ([`CLEARANCE_UNGUARDED`]) does not count now. The same holds for a cancellation
/// ([`CANCELLATION_UNGUARDED`]) of an execution that has not ended. False: the field counts, because the policies are
/// in force again ([`CLEARANCE_COUNTS`], [`CANCELLATION_COUNTS`]); no policy has checked the user name in the field.
/// Absent: the policies were in force, or neither field is set.
pub const UNGUARDED: &str = "Unguarded";
/// Whether an execution with a retry policy is tried again.
///
/// True: an attempt failed, and the execution waits for the next attempt ([`BACKOFF`]). False: an attempt runs
/// ([`RUNNING`]), the last one succeeded ([`RETRY_SUCCEEDED`]), or there is no further attempt. In the last case the
/// reason says why, one of [`Stop::REASONS`](wfe_core::retry::Stop::REASONS), such as `Exhausted`. Absent: the
/// execution has no retry policy, or did not get its turn yet.
pub const RETRYING: &str = "Retrying";

/// Reason of [`TARGET_LOCKED`]: the run is committed and unfinished.
pub const HELD: &str = "Held";
/// Reason of [`TARGET_LOCKED`]: the run is finished, and something that it started is not.
///
/// Reason of [`WAITING`]: TaskRuns or pods with the target's label are unfinished, and the operator cannot tell which
/// execution they belong to.
pub const DRAINING: &str = "Draining";
/// Reason of [`TARGET_LOCKED`]: nothing of the run is left.
pub const FREE: &str = "Free";

/// Reason of [`SUCCEEDED`]: the run is committed and unfinished.
///
/// Reason of [`RETRYING`]: an attempt runs.
pub const RUNNING: &str = "Running";
/// Reason of [`SUCCEEDED`]: every task of the run succeeded.
pub const COMPLETED: &str = "Completed";
/// Reason of [`SUCCEEDED`]: a person cancelled the execution, in its spec or on its run. `failureDetails.reason` has no
/// value for a cancellation, and is one of its seven values.
pub const CANCELLED: &str = "Cancelled";

/// Reason of [`BLOCKED`]: a clearance, of this execution or a later one, has lifted the block.
pub const CLEARED: &str = "Cleared";
/// Reason of [`BLOCKED`]: a later execution blocks the target in its place.
pub const SUPERSEDED: &str = "Superseded";
/// Reason of [`BLOCKED`]: a recovery has ended the block and is the newest execution that ran on the target. Until a
/// later execution has run there, deleting this one requires permission to clear it.
pub const RECOVERED: &str = "Recovered";
/// Reason of [`BLOCKED`]: a later success, or `failure-quiet-period` without a failure, has ended the block.
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

/// Reason of [`WAITING`]: the operator's configuration, or the annotation
/// [`ANNOTATION_PAUSED`](crate::labels::ANNOTATION_PAUSED) on a namespace, pauses new executions. The wait ends when a
/// person ends the pause.
pub const PAUSED: &str = "Paused";
/// Reason of [`WAITING`]: the run of another execution on the target is pending: that execution may commit to it or
/// withdraw it.
pub const RIVAL_UNDECIDED: &str = "RivalUndecided";
/// Reason of [`WAITING`]: its own run, not the first on the target, is being deleted. The execution is decided again
/// after that.
pub const WITHDRAWN: &str = "Withdrawn";
/// Reason of [`WAITING`]: a run on the target is done, and the status of the execution that owns the run does not
/// record this yet.
pub const OWNER_LATE: &str = "OwnerLate";
/// Reason of [`WAITING`]: an older execution on the target goes first.
pub const TURN: &str = "Turn";
/// Reason of [`WAITING`]: the API server refuses or fails a request that the decision needs, or does not answer it. The
/// operator repeats the request.
pub const API_ERRORS: &str = "ApiErrors";
/// Reason of [`WAITING`]: the operator has not yet read, or no longer follows, all objects that the decision depends
/// on.
pub const CACHE_NOT_SYNCED: &str = "CacheNotSynced";
/// Reason of [`WAITING`]: the operator's own account lacks a permission. The execution continues once the permission is
/// granted, and does not fail for this reason.
pub const OPERATOR_FORBIDDEN: &str = "OperatorForbidden";
/// Reason of [`WAITING`]: an admission policy of the operator refuses a write of the operator itself. The execution
/// continues once the policy permits the write, and does not fail for this reason.
pub const OPERATOR_REFUSED: &str = "OperatorRefused";
/// Reason of [`WAITING`]: the API server accepted a status of the operator and dropped a decisive part of it. The
/// execution continues once the status is stored, and does not fail for this reason.
pub const WRITE_DROPPED: &str = "WriteDropped";
/// Reason of [`WAITING`]: the cluster does not serve Tekton's kinds.
pub const TEKTON_UNAVAILABLE: &str = "TektonUnavailable";
/// Reason of [`WAITING`]: a watch has not yet delivered a write of the operator itself.
pub const WRITE_NOT_SEEN: &str = "WriteNotSeen";
/// Reason of [`WAITING`]: a clearance or cancellation was set, and the operator has not read yet whether its admission
/// policy was in force.
pub const POLICIES_NOT_READ: &str = "PoliciesNotRead";
/// Reason of [`WAITING`]: this execution is being deleted, and a foreign finalizer keeps it. It starts nothing.
pub const DELETING: &str = "Deleting";

/// Reason of [`RETRYING`]: an attempt failed, and the next one begins after its wait.
pub const BACKOFF: &str = "Backoff";
/// Reason of [`RETRYING`]: the last attempt succeeded.
pub const RETRY_SUCCEEDED: &str = "Succeeded";

/// Limits the conditions of a status as metav1.Condition does in Go: the Rust type has no limits. `types` and `reasons`
/// are examples for people.
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
                    "description": format!("Type of the condition, e.g. {types}."),
                    "type": "string", "minLength": 1, "maxLength": limits::CONDITION_TYPE,
                },
                "status": {
                    "description": "Whether the condition holds: True, False or Unknown.",
                    "type": "string", "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": format!("Reason of the status in one word, e.g. {reasons}."),
                    "type": "string", "minLength": 1, "maxLength": limits::REASON,
                },
                "message": {
                    "description": "Reason of the status in a sentence. It may be empty.",
                    "type": "string", "maxLength": limits::MESSAGE,
                },
                "lastTransitionTime": {
                    "description": "When the status of the condition last changed.",
                    "type": "string", "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition describes.",
                    "type": "integer", "format": "int64", "minimum": 0,
                },
            },
        },
    })
}
