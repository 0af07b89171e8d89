//! A status as one of five cases. Every status is one of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Deserialize;
use serde_json::Value;

use crate::conditions::{BLOCKED, CANCELLED, SUCCEEDED, TARGET_LOCKED, WAITING};
use crate::{
    Cancellation, FailureDetails, Phase, SkipDetails, SkipReason, WorkflowExecution, WorkflowExecutionStatus, retry,
};

/// The state of an execution, with the facts of that state.
///
/// # Guarantees
///
/// Every object has a view. A status that contradicts itself, or that a later version of the operator wrote, is
/// [`Unclear`](Self::Unclear) with the reason.
///
/// ```
/// use serde_json::json;
/// use wfe_api::StatusView;
///
/// let undecided = json!({"metadata": {"name": "payment-restart"}});
/// assert!(matches!(StatusView::of_json(&undecided), StatusView::InProgress(_)));
///
/// let odd = json!({"status": {"phase": "Exploded"}});
/// let StatusView::Unclear { problem } = StatusView::of_json(&odd) else { panic!() };
/// assert!(problem.contains("unknown variant `Exploded`"), "{problem}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum StatusView {
    /// The execution is undecided, or runs.
    InProgress(Progress),
    /// It succeeded.
    Completed {
        /// When it ended.
        completed_at: Option<Time>,
        /// How long it took, as a Go duration.
        duration: Option<String>,
    },
    /// It failed.
    Failed(Failure),
    /// It did not get its turn.
    Skipped(SkipDetails),
    /// The status cannot be understood.
    Unclear {
        /// Why it cannot be understood.
        problem: String,
    },
}

/// The progress of an execution that has not ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// `None` and `Pending`: undecided. `Running`: it has its turn.
    pub phase: Option<Phase>,
    /// When it got its turn.
    pub started_at: Option<Time>,
    /// The condition `Waiting`, once the wait has lasted for ten seconds. Its reason is one of
    /// [`conditions`](crate::conditions), and its message tells people what would end the wait.
    pub waits_for: Option<Condition>,
    /// The current attempt, if the execution has a retry policy and its turn.
    pub attempt: Option<Attempt>,
}

/// An attempt of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// The highest possible number.
    pub of: u32,
    /// The earliest start of an attempt that still waits. `None`: the attempt has begun.
    pub not_before: Option<Time>,
}

/// How an execution failed, and whether its block was lifted.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What happened. Failures with the same [`fingerprint`](FailureDetails::fingerprint) have the same kind of cause.
    /// [`is_shared`](Self::is_shared) returns whether many targets share it.
    pub details: FailureDetails,
    /// Until when later executions on the target are skipped, if the wait ends by time alone.
    pub next_allowed: Option<Time>,
    /// Whether the failure exhausts the target: later executions are skipped until a person clears it.
    pub exhausts: bool,
    /// When a person cleared the target.
    pub cleared_at: Option<Time>,
    /// The user who cancelled the execution, and the reason.
    pub cancellation: Option<Cancellation>,
}

// === impl StatusView ===

impl StatusView {
    /// Returns the view of an execution.
    #[must_use]
    pub fn of(execution: &WorkflowExecution) -> Self {
        let nothing = WorkflowExecutionStatus::default();
        let spec = &execution.spec;
        Self::new(execution.status.as_ref().unwrap_or(&nothing), spec.cancellation.as_ref(), spec.retry.as_ref())
    }

    /// Returns the view of an execution in the JSON form of the API server.
    ///
    /// A typed client refuses a whole list because of one object with an unknown value, such as a phase of a later
    /// version. A client that reads plain JSON and uses this function can handle the other objects.
    #[must_use]
    pub fn of_json(object: &Value) -> Self {
        let status = match &object["status"] {
            Value::Null => Ok(WorkflowExecutionStatus::default()),
            status => WorkflowExecutionStatus::deserialize(status),
        };
        match status {
            Ok(status) => {
                // A cancellation that cannot be read has no names to report, but a person has cancelled the execution.
                let cancellation = &object["spec"]["cancellation"];
                let read = || Cancellation::deserialize(cancellation).unwrap_or_default();
                Self::new(&status, (!cancellation.is_null()).then(read).as_ref(), object["spec"].get("retry"))
            }
            Err(error) => Self::Unclear { problem: format!("the status is not as this program knows it: {error}") },
        }
    }

    /// Returns the view of a status alone. Its condition `Succeeded` shows whether a person cancelled the execution.
    #[must_use]
    pub fn of_status(status: &WorkflowExecutionStatus) -> Self {
        let is_cancelled = |it: &&Condition| it.type_ == SUCCEEDED && it.reason == CANCELLED;
        let cancellation = status.conditions.iter().find(is_cancelled).map(|_| Cancellation::default());
        Self::new(status, cancellation.as_ref(), None)
    }

    fn new(status: &WorkflowExecutionStatus, cancellation: Option<&Cancellation>, retry: Option<&Value>) -> Self {
        match status.phase {
            None | Some(Phase::Pending | Phase::Running) => Self::InProgress(Progress {
                phase: status.phase,
                started_at: status.start_time.clone(),
                waits_for: holding(status, WAITING).cloned(),
                attempt: Attempt::of(status, retry),
            }),
            Some(Phase::Completed) => {
                Self::Completed { completed_at: status.completion_time.clone(), duration: status.duration.clone() }
            }
            Some(Phase::Failed) => match &status.failure_details {
                Some(details) => Self::Failed(Failure {
                    details: details.clone(),
                    next_allowed: status.next_allowed_execution.clone(),
                    exhausts: holding(status, BLOCKED)
                        .is_some_and(|it| it.reason == SkipReason::ExhaustedRetries.as_str()),
                    cleared_at: status.clearance.as_ref().map(|clearance| clearance.cleared_at.clone()),
                    cancellation: cancellation.cloned(),
                }),
                None => Self::Unclear { problem: "the phase is Failed, and failureDetails are missing".to_owned() },
            },
            Some(Phase::Skipped) => match &status.skip_details {
                Some(details) => Self::Skipped(details.clone()),
                None => Self::Unclear { problem: "the phase is Skipped, and skipDetails are missing".to_owned() },
            },
        }
    }
}

// === impl Failure ===

impl Failure {
    /// Returns whether many targets failed in the same way at the same time. Another workflow would fail in the same
    /// way, and the failure does not count towards `ExhaustedRetries`. Wait, and try the same workflow again.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.details.shared_outage == Some(true)
    }
}

// === impl Attempt ===

impl Attempt {
    /// Reads the last attempt of a status. If the policy cannot be read, the last attempt counts as the highest
    /// possible one.
    fn of(status: &WorkflowExecutionStatus, retry: Option<&Value>) -> Option<Self> {
        let last = status.attempts.iter().max_by_key(|attempt| attempt.attempt)?;
        let number = u32::try_from(last.attempt).unwrap_or_default();
        let waits = last.start_time.is_none() && last.completion_time.is_none();
        Some(Self {
            number,
            of: retry::read(retry).ok().flatten().map_or(number, |policy| policy.max_attempts),
            not_before: last.not_before.clone().filter(|_| waits),
        })
    }
}

// === impl WorkflowExecution ===

impl WorkflowExecution {
    /// Returns whether this execution has ended and nothing of its run is left on the target. An execution that was
    /// skipped because of it can then be tried again.
    ///
    /// The phase becomes final when the outcome is known. Pods of the run may take longer to stop, and the target is
    /// free only after that (specification, section 5).
    #[must_use]
    pub fn has_released_target(&self) -> bool {
        let Some(status) = &self.status else { return false };
        status.phase.is_some_and(Phase::is_terminal) && holding(status, TARGET_LOCKED).is_none()
    }
}

/// Returns the condition of this type if it is True.
fn holding<'a>(status: &'a WorkflowExecutionStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}
