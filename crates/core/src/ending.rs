//! How an execution ends, as its status will say it.

mod skip;
mod summary;

use std::fmt;
use std::time::Duration;

use crate::Time;
use crate::evidence::Started;
use crate::findings::{FailedTask, TaskCount};
use crate::history::Charge;
use crate::run::Outcome;
use crate::standing::BlockReason;
use crate::target::RunNumber;

pub use skip::{Conflict, Remediation, Skip};

/// The seven failure reasons (SPEC section 3.1). The RemediationOrchestrator matches on them: there are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// A container was killed for its memory.
    OomKilled,
    /// A time-out passed.
    DeadlineExceeded,
    /// Access was denied.
    Forbidden,
    /// A quota or the cluster's resources were exhausted.
    ResourceExhausted,
    /// The spec, the pipeline or the set-up is wrong.
    ConfigurationError,
    /// An image or the bundle could not be pulled.
    ImagePullBackOff,
    /// None of the others is proven.
    Unknown,
}

impl FailureReason {
    /// All seven.
    pub const ALL: [Self; 7] = [
        Self::OomKilled,
        Self::DeadlineExceeded,
        Self::Forbidden,
        Self::ResourceExhausted,
        Self::ConfigurationError,
        Self::ImagePullBackOff,
        Self::Unknown,
    ];

    /// Returns the spelling of the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OomKilled => "OOMKilled",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::Forbidden => "Forbidden",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::ConfigurationError => "ConfigurationError",
            Self::ImagePullBackOff => "ImagePullBackOff",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason of the condition `Succeeded` of an execution that a person has cancelled. `failureDetails.reason` is one
/// of the seven all the same.
pub const CANCELLED: &str = "Cancelled";

/// A create of a run that the API server refused for good (section 9): nothing of the workflow ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What the refusal means.
    pub reason: FailureReason,
    /// What the API server said.
    pub message: Box<str>,
    /// The number that was tried.
    pub number: RunNumber,
}

/// A failure, as `status.failureDetails` will say it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Which of the seven.
    pub reason: FailureReason,
    /// What happened, in the words of whoever reported it.
    pub message: Box<str>,
    /// Whether anything of the workflow ran, and how that is known.
    pub started: Started,
    /// The task that failed or was stopped, where one was.
    pub task: Option<FailedTask>,
    /// How far the run was, where it was known how many tasks it has.
    pub tasks: Option<TaskCount>,
    /// The time of the failure.
    pub failed_at: Time,
    /// How long the execution had run; zero where it never did.
    pub ran_for: Duration,
    /// The number of the run that was tried, where the status does not have it yet.
    pub number: Option<RunNumber>,
    /// What Tekton said of the run, where there was one.
    pub outcome: Option<Outcome>,
    /// Whether a person cancelled it. Where nothing had run, it then does not count (section 7).
    pub cancelled: bool,
    /// What it does to the counter of its target.
    pub charge: Charge,
}

impl Failure {
    /// Returns the reason of the condition `Succeeded`: one of the seven, or `Cancelled`.
    #[must_use]
    pub fn shown_reason(&self) -> &'static str {
        if self.cancelled { CANCELLED } else { self.reason.as_str() }
    }

    /// Tells how it blocks its target from its end on, where it does.
    #[must_use]
    pub fn blocks(&self) -> Option<BlockReason> {
        if self.was_execution_failure() {
            Some(BlockReason::PreviousExecutionFailed)
        } else {
            self.charge.exhausts.then_some(BlockReason::ExhaustedRetries)
        }
    }

    /// Tells whether something of the workflow ran, or nobody can tell (`wasExecutionFailure`).
    #[must_use]
    pub fn was_execution_failure(&self) -> bool {
        self.started.may_have_run()
    }
}

/// A success, as the status will say it.
#[derive(Clone, Debug, PartialEq)]
pub struct Success {
    /// When the run finished.
    pub completed_at: Time,
    /// How long the execution had run.
    pub ran_for: Duration,
    /// What Tekton said of the run.
    pub outcome: Outcome,
    /// Whether anything of the workflow ran, and how that is known: all of its tasks may have been skipped.
    pub started: Started,
    /// How far the run was, where it was known how many tasks it has.
    pub tasks: Option<TaskCount>,
}
