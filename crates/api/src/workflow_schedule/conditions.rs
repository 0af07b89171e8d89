//! Condition types of a `WorkflowSchedule`, what each status of them means, and their reasons.

/// Whether the schedule can plan its runs.
///
/// True: it can ([`PLANNED`]). False: it cannot until somebody changes it; the message says what is wrong
/// ([`INVALID_SPEC`], [`CHILD_REFUSED`], [`DELETING`]).
pub const READY: &str = "Ready";
/// Whether something keeps the schedule from running now, apart from its plan.
///
/// True: no run starts, though one may be due; the reason says what holds it ([`SUSPENDED`], [`TRIAGE_PAUSED`],
/// [`CIRCUIT_OPEN`], [`PAUSED`], or one of [`SkipReason`](crate::SkipReason)), the message what ends that. False: it
/// was held and is not any more ([`RELEASED`]), or its next run would be held ([`WOULD_BE_HELD`]). Absent: it was never
/// held.
pub const HELD: &str = "Held";

/// Reason of [`READY`]: the next run is planned, runs, or is held.
pub const PLANNED: &str = "Planned";
/// Reason of [`READY`]: the spec has no next run, such as a cron expression for 31 February.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// Reason of [`READY`]: the API server has refused the last execution for good.
pub const CHILD_REFUSED: &str = "ChildRefused";
/// Reason of [`READY`]: the schedule or its namespace is being deleted.
pub const DELETING: &str = crate::conditions::DELETING;

/// Reason of [`HELD`]: `spec.suspend` is true.
pub const SUSPENDED: &str = "Suspended";
/// Reason of [`HELD`]: a triage has paused it. Ends when a person resumes or edits the schedule.
pub const TRIAGE_PAUSED: &str = "TriagePaused";
/// Reason of [`HELD`]: what it would fail from is shared by many targets. Ends when one that is tried succeeds.
pub const CIRCUIT_OPEN: &str = "CircuitOpen";
/// Reason of [`HELD`]: nothing new starts, by the operator's configuration or by the annotation
/// [`ANNOTATION_PAUSED`](crate::labels::ANNOTATION_PAUSED) on a namespace.
pub const PAUSED: &str = crate::conditions::PAUSED;
/// Reason of [`HELD`]: what held it has ended.
pub const RELEASED: &str = "Released";
/// Reason of [`HELD`], which is False: its next run lies ahead, and what blocks its target now would hold it then. The
/// message begins with the reason that it would have. Ends when a person clears the target or a recovery succeeds.
pub const WOULD_BE_HELD: &str = "WouldBeHeld";
