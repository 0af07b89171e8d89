//! Condition types of a `WorkflowExecution`, what each status of them means, and their reasons.
//!
//! Reasons of [`SUCCEEDED`] with status False are the reasons of [`FailureReason`](crate::FailureReason) and
//! [`SkipReason`](crate::SkipReason): the Reason column of `kubectl get wfe` shows them.

/// Whether this execution holds its target.
///
/// True: its run is committed and unfinished ([`HELD`]), or finished while pods of it still terminate ([`DRAINING`]).
/// False: it has let go of the target, and nothing of it is left ([`FREE`]). Absent: it never held it.
pub const TARGET_LOCKED: &str = "TargetLocked";
/// Whether anything of the workflow ran, with the proof in the message.
///
/// True: a step was seen running or really ended. False: it is proven that nothing ran. Unknown: nobody can tell, which
/// is treated as if it ran.
pub const STARTED: &str = "Started";
/// Whether the execution reached its goal.
///
/// True: Completed ([`COMPLETED`]). False: Failed or Skipped, the reason says why. Unknown: still at work ([`RUNNING`]).
pub const SUCCEEDED: &str = "Succeeded";
/// Whether this execution stands in the way of later ones on its target.
///
/// True: it failed such that later ones are skipped until somebody clears it. False: cleared, or it never blocked.
pub const BLOCKED: &str = "Blocked";

/// Reason of [`TARGET_LOCKED`]: the run is committed and unfinished.
pub const HELD: &str = "Held";
/// Reason of [`TARGET_LOCKED`]: the run is finished, something that it started is not.
pub const DRAINING: &str = "Draining";
/// Reason of [`TARGET_LOCKED`]: nothing of the run is left.
pub const FREE: &str = "Free";

/// Reason of [`SUCCEEDED`]: the run is committed and unfinished.
pub const RUNNING: &str = "Running";
/// Reason of [`SUCCEEDED`]: every task of the run succeeded.
pub const COMPLETED: &str = "Completed";
