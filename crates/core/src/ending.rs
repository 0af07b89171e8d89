//! How an execution ends, as its status records it.

mod skip;
mod summary;

use std::time::Duration;

use crate::Time;
use crate::chain::RunNumber;
use crate::evidence::Started;
use crate::findings::{FailedTask, TaskCount};
use crate::fingerprint::{Fingerprint, Stage, Symptoms};
use crate::reason::BlockReason;
use crate::reason::FailureReason;
use crate::retry::{AttemptEnd, Stop};
use crate::run::Outcome;

pub use skip::{Conflict, Remediation, Skip};
pub use summary::undeclared;

/// The reason of the condition `Succeeded` of an execution that a person has cancelled. No value of
/// `failureDetails.reason` means a cancellation.
pub const CANCELLED: &str = "Cancelled";

/// The effect of a failure on the failure count of its target (section 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// `status.consecutiveFailures`.
    pub consecutive_failures: u32,
    /// When the next execution may run, in whole seconds (`status.nextAllowedExecution`, unless the target is exhausted
    /// by the failure).
    pub next_allowed_execution: Option<Time>,
    /// Whether the failure reaches the limit, so that the target is exhausted from now on.
    pub exhausts: bool,
}

/// A failure, as `status.failureDetails` records it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The failure reason.
    pub reason: FailureReason,
    /// What happened, in the words of Tekton or the API server.
    pub message: Box<str>,
    /// Whether anything of the workflow ran, and how that is known.
    pub started: Started,
    /// The task that failed or was stopped, if any.
    pub task: Option<FailedTask>,
    /// How many tasks of the run were done, if their number was known.
    pub tasks: Option<TaskCount>,
    /// The time of the failure.
    pub failed_at: Time,
    /// How long the execution had run; zero if it never ran.
    pub ran_for: Duration,
    /// The number of the run that was tried, if the status does not contain it yet.
    pub number: Option<RunNumber>,
    /// What Tekton reported of the run, if there was one.
    pub outcome: Option<Outcome>,
    /// Whether a person cancelled the execution. If nothing had run, the failure does not count (section 7).
    pub cancelled: bool,
    /// How far the execution had come.
    pub stage: Stage,
    /// The fingerprint of the failure (section 13.1); `None` until the end of the execution is written.
    pub fingerprint: Option<Fingerprint>,
    /// Whether nothing ran and other targets failed alike (section 13.5): the failure does not count, but the next
    /// execution waits.
    pub shared_outage: bool,
    /// The effect of the failure on the failure count of its target.
    pub charge: Charge,
    /// The number of the last attempt and why no other follows, if there is a retry policy.
    pub tried: Option<Box<Tried>>,
}

/// The last attempt of an execution that has failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The number of the attempt.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub of: u32,
    /// How the attempt ended; `None` if it never began.
    pub end: Option<AttemptEnd>,
    /// Why no other attempt follows.
    pub stop: Stop,
}

impl Failure {
    /// Returns the reason of the condition `Succeeded`: the failure reason, or `Cancelled`.
    #[must_use]
    pub fn shown_reason(&self) -> &'static str {
        if self.cancelled { CANCELLED } else { self.reason.as_str() }
    }

    /// Returns how the failure blocks its target, if it does.
    #[must_use]
    pub fn blocks(&self) -> Option<BlockReason> {
        if self.was_execution_failure() {
            Some(BlockReason::PreviousExecutionFailed)
        } else {
            self.charge.exhausts.then_some(BlockReason::ExhaustedRetries)
        }
    }

    /// Returns the facts from which the fingerprint is computed.
    #[must_use]
    pub fn symptoms(&self) -> Symptoms<'_> {
        Symptoms {
            reason: self.reason,
            stage: self.stage,
            may_have_run: self.was_execution_failure(),
            cancelled: self.cancelled,
            task: self.task.as_ref(),
        }
    }

    /// Returns whether other targets can fail alike for the same external cause: nothing ran, nobody cancelled the
    /// execution, and it was not merely too late for its turn.
    #[must_use]
    pub fn may_be_shared(&self) -> bool {
        let is_too_late = self.stage == Stage::Asking && self.reason == FailureReason::DeadlineExceeded;
        !self.was_execution_failure() && !self.cancelled && !is_too_late
    }

    /// Returns whether anything of the workflow ran or may have run (`wasExecutionFailure`).
    #[must_use]
    pub fn was_execution_failure(&self) -> bool {
        self.started.may_have_run()
    }
}

/// A success, as the status records it.
#[derive(Clone, Debug, PartialEq)]
pub struct Success {
    /// When the run finished.
    pub completed_at: Time,
    /// How long the execution had run.
    pub ran_for: Duration,
    /// What Tekton reported of the run.
    pub outcome: Outcome,
    /// Whether anything of the workflow ran, and how that is known. A run can succeed with all of its tasks skipped.
    pub started: Started,
    /// How the last attempt ended, if there is a retry policy.
    pub attempt: Option<Box<AttemptEnd>>,
    /// How many tasks of the run were done, if their number was known.
    pub tasks: Option<TaskCount>,
}
