//! Condition types of a `WorkflowSchedule`, the meaning of each status, and the reasons.

/// Whether the operator can plan the runs of the schedule.
///
/// True: it can ([`PLANNED`]). False: it cannot until a person changes the schedule; the message says what is wrong
/// ([`INVALID_SPEC`], [`CHILD_REFUSED`], [`DELETING`]).
pub const READY: &str = "Ready";
/// Whether something keeps the schedule from running now, apart from its plan.
///
/// True: no run starts, even if one is due. The reason says what holds the schedule ([`SUSPENDED`], [`TRIAGE_PAUSED`],
/// [`CIRCUIT_OPEN`], [`PAUSED`], `Limit`, or one of [`SkipReason`](crate::SkipReason)); the message says what ends the
/// hold. False: the hold has ended ([`RELEASED`]), or the next run would be held ([`WOULD_BE_HELD`]). Absent: the
/// schedule was never held.
pub const HELD: &str = "Held";

/// Reason of [`READY`]: the next run is planned, runs, or is held.
pub const PLANNED: &str = "Planned";
/// Reason of [`READY`]: the spec gives no next run, for example a cron expression for 31 February.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// Reason of [`READY`]: the API server has refused to create the last execution, and repeating the request would not
/// help.
pub const CHILD_REFUSED: &str = "ChildRefused";
/// Reason of [`READY`]: the schedule or its namespace is being deleted.
pub const DELETING: &str = crate::conditions::DELETING;

/// Reason of [`HELD`]: `spec.suspend` is true.
pub const SUSPENDED: &str = "Suspended";
/// Reason of [`HELD`]: a triage has paused the schedule. The hold ends when a person resumes or edits the schedule.
pub const TRIAGE_PAUSED: &str = "TriagePaused";
/// Reason of [`HELD`]: many targets share the failure of its last run. The hold ends when the circuit closes, for
/// example because a probe succeeds.
pub const CIRCUIT_OPEN: &str = "CircuitOpen";
/// Reason of [`HELD`]: the operator's configuration, or the annotation
/// [`ANNOTATION_PAUSED`](crate::labels::ANNOTATION_PAUSED) on a namespace, pauses new executions.
pub const PAUSED: &str = crate::conditions::PAUSED;
/// Reason of [`HELD`]: the hold has ended.
pub const RELEASED: &str = "Released";
/// Reason of [`HELD`] when it is False: the next run is in the future, and the block that the target has now would hold
/// that run. The message begins with the reason of that hold. The block ends when a person clears the target or a
/// recovery succeeds.
pub const WOULD_BE_HELD: &str = "WouldBeHeld";
