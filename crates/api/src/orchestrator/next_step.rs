//! What to do next after an execution.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::view::{Failure, StatusView};
use crate::{ConflictingWorkflow, FailureReason, NextAction, RecordedStep, SkipDetails, SkipReason};

/// How long to wait if the status gives no time: a minute, the shortest backoff of an operator with default settings
/// (specification, section 7). A wait that is too short costs one skipped execution.
pub const UNSAID_WAIT: Duration = Duration::from_mins(1);

/// What the program that created an execution does next, by section 6 of the specification.
///
/// A final phase never changes. To try again, create another `WorkflowExecution`, and only if the remediation is still
/// needed.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum NextStep {
    /// Keep watching: the execution is undecided, or runs.
    Watch,
    /// Do nothing: the workflow completed.
    Nothing,
    /// Create another execution, not before `not_before`. This follows a pre-execution failure (section 7). It also
    /// follows a skip with reason `RecentlyRemediated`, for a backoff (rule 4) or a cooldown (rule 5).
    RetryAfter {
        /// The earliest time at which another execution may run.
        not_before: Time,
        /// Why not earlier, for people.
        why: String,
    },
    /// Wait until another execution [has released the target](crate::WorkflowExecution::has_released_target), and then
    /// create another execution. This follows a skip with reason `ResourceBusy` (rule 1). If the holder does not exist
    /// any more, nothing shows when its run has stopped: wait for [`UNSAID_WAIT`].
    WaitFor {
        /// The execution that holds the target.
        holder: Holder,
        /// Why, for people.
        why: String,
    },
    /// Choose another workflow and run it with `recoveryOf`. This follows an execution failure (rule 2).
    ///
    /// - [`PreviousExecution`](crate::PreviousExecution) is the input of the analysis.
    /// - [`recovers`](crate::WorkflowExecutionBuilder::recovers) sets the field.
    /// - Create the recovery once the failed execution [has released the
    ///   target](crate::WorkflowExecution::has_released_target).
    /// - If no other workflow is left, a person must act. An execution without `recoveryOf`, or with a workflow that
    ///   failed before, is skipped.
    PickAlternative {
        /// The failure, for people and for language models.
        why: String,
    },
    /// Inform a person and do nothing else. This follows:
    ///
    /// - a skip with reason `ExhaustedRetries` (rule 3) or `PreviousExecutionFailed` (rule 2), which only a clearance
    ///   lifts (section 10);
    /// - the failure that exhausts a target;
    /// - a failure that the same spec would have again: a `ConfigurationError` that is not shared, or a `startBefore`
    ///   that has passed;
    /// - a cancellation by a person;
    /// - a status that cannot be understood.
    PersonMustAct {
        /// What the person has to know.
        why: String,
    },
}

/// The execution that holds a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its namespace. `None` in a status of an earlier version means the namespace of the skipped execution.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

// === impl NextStep ===

impl NextStep {
    /// Returns how long to wait from `now` on. Returns zero if the time has passed, and `None` if time alone changes
    /// nothing.
    #[must_use]
    pub fn time_left(&self, now: &Time) -> Option<Duration> {
        let Self::RetryAfter { not_before, .. } = self else { return None };
        Some(Duration::try_from(not_before.0.duration_since(now.0)).unwrap_or_default())
    }
}

// === impl StatusView ===

impl StatusView {
    /// Returns what to do next.
    pub fn next_step(&self) -> NextStep {
        match self {
            Self::InProgress(_) => NextStep::Watch,
            Self::Completed { .. } => NextStep::Nothing,
            Self::Failed(failure) => after_failure(failure),
            Self::Skipped(details) => after_skip(details),
            Self::Unclear { problem } => NextStep::PersonMustAct { why: problem.clone() },
        }
    }
}

impl StatusView {
    /// Returns the next step as the operator records it in `status.nextStep`. Returns `None` before the end.
    #[must_use]
    pub fn recorded_step(&self) -> Option<RecordedStep> {
        let (action, not_before) = match self.next_step() {
            NextStep::Watch => return None,
            NextStep::Nothing => (NextAction::Nothing, None),
            NextStep::RetryAfter { not_before, .. } => (NextAction::RetryAfter, Some(not_before)),
            NextStep::WaitFor { .. } => (NextAction::WaitFor, None),
            NextStep::PickAlternative { .. } => (NextAction::PickAlternative, None),
            NextStep::PersonMustAct { .. } => (NextAction::PersonMustAct, None),
        };
        Some(RecordedStep { action, not_before, why: self.in_short().to_owned() })
    }

    fn in_short(&self) -> &'static str {
        match self {
            Self::InProgress(_) => "it has not ended",
            Self::Completed { .. } => "it completed",
            Self::Failed(failure) if failure.cancellation.is_some() => "a person cancelled it",
            Self::Failed(failure) if failure.cleared_at.is_some() => "a person has cleared the target",
            Self::Failed(failure) if failure.details.was_execution_failure => {
                "something of it ran or may have run: another workflow may repair the target"
            }
            Self::Failed(failure) if failure.exhausts => "too many failures in a row: a person must clear the target",
            Self::Failed(failure) => match failure.details.reason {
                FailureReason::ConfigurationError if !failure.is_shared() => "it cannot work as written: correct it",
                FailureReason::DeadlineExceeded if failure.next_allowed.is_none() => "its time was up before its turn",
                _ => "nothing of it ran",
            },
            Self::Skipped(details) => match details.reason {
                SkipReason::ResourceBusy => "another execution holds the target",
                SkipReason::RecentlyRemediated => "the target is in backoff or cooldown",
                SkipReason::ExhaustedRetries | SkipReason::PreviousExecutionFailed => {
                    "the target is blocked until a person clears it"
                }
            },
            Self::Unclear { .. } => "its status is not as this version writes it",
        }
    }
}

fn after_failure(failure: &Failure) -> NextStep {
    let Failure { details, next_allowed, exhausts, cleared_at, cancellation } = failure;
    let why = details.natural_language_summary.clone();
    if cancellation.is_some() {
        return NextStep::PersonMustAct { why };
    }
    if let Some(cleared_at) = cleared_at {
        return NextStep::RetryAfter { not_before: cleared_at.clone(), why };
    }
    if details.was_execution_failure {
        return NextStep::PickAlternative { why };
    }
    // The same spec would fail in the same way, unless many targets share the failure.
    let never_runs = details.reason == FailureReason::ConfigurationError && !failure.is_shared();
    match next_allowed {
        _ if *exhausts || never_runs => NextStep::PersonMustAct { why },
        Some(moment) => NextStep::RetryAfter { not_before: moment.clone(), why },
        // The execution delays no other: it was too late for its own `startBefore`.
        None if details.reason == FailureReason::DeadlineExceeded => NextStep::PersonMustAct { why },
        None => NextStep::RetryAfter { not_before: later(&details.failed_at, None), why },
    }
}

fn after_skip(details: &SkipDetails) -> NextStep {
    let why = details.message.clone();
    match (details.reason, &details.conflicting_workflow) {
        (SkipReason::ResourceBusy, Some(conflict)) => NextStep::WaitFor { holder: Holder::of(conflict), why },
        (SkipReason::ResourceBusy | SkipReason::RecentlyRemediated, _) => {
            let remaining = details.recent_remediation.as_ref().and_then(|it| it.cooldown_remaining.as_deref());
            NextStep::RetryAfter { not_before: later(&details.skipped_at, remaining), why }
        }
        (SkipReason::ExhaustedRetries | SkipReason::PreviousExecutionFailed, _) => NextStep::PersonMustAct { why },
    }
}

// === impl Holder ===

impl Holder {
    /// Reads namespace and name. An earlier version wrote both into the name if the namespace was another one.
    fn of(conflict: &ConflictingWorkflow) -> Self {
        if conflict.namespace.is_some() {
            return Self { namespace: conflict.namespace.clone(), name: conflict.name.clone() };
        }
        match conflict.name.split_once('/') {
            Some((namespace, name)) => Self { namespace: Some(namespace.to_owned()), name: name.to_owned() },
            None => Self { namespace: None, name: conflict.name.clone() },
        }
    }
}

/// Adds a Go duration to a time, or [`UNSAID_WAIT`] if there is no duration or it cannot be read.
fn later(moment: &Time, wait: Option<&str>) -> Time {
    let unsaid = SignedDuration::try_from(UNSAID_WAIT).unwrap_or_default();
    let wait = wait.and_then(|text| text.parse::<SignedDuration>().ok()).filter(|wait| !wait.is_negative());
    Time(moment.0.checked_add(wait.unwrap_or(unsaid)).unwrap_or(Timestamp::MAX))
}
