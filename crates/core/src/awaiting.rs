//! What a Running execution waits for, other than for its workflow to finish.
//!
//! The condition `Succeeded` shows the wait with the status Unknown: its reason is the kind of wait, and its message
//! says what would end the wait. An execution has one kind of wait at a time.

use std::fmt::Write as _;
use std::time::Duration;

use crate::Time;
use crate::findings::Wait;
use crate::moment::{after, shown};
use crate::name::RunId;
use crate::run::{CancelReason, Run, StopRequest};
use crate::trouble::{OwnCause, OwnTrouble};

/// How long Tekton may take to act on a request to stop a run.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);

/// What a Running execution waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Awaiting {
    /// Nothing of the run has started.
    Starting {
        /// What the run waits for.
        wait: Wait,
        /// When the operator cancels the run, if nothing has started by then.
        until: Time,
    },
    /// Tekton does not act on the request to stop the run.
    Cancelling(Unanswered),
    /// The API server does not let the operator examine the failed run, or read the objects that the conditions of the
    /// retry policy need.
    Examining {
        /// Since when the reads fail.
        since: Time,
        /// What prevents the reads.
        trouble: OwnTrouble,
    },
}

/// A request to stop a run that Tekton has not acted on.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswered {
    /// The run.
    pub run: RunId,
    /// When the request was made.
    pub since: Time,
    /// Why the operator or a person made the request.
    pub why: &'static str,
    /// The state of the run, as Tekton reports it.
    pub said: Box<str>,
    /// `spec.managedBy` of the run, if it is set.
    pub managed_by: Option<Box<str>>,
    /// The finalizers that hold the run.
    pub finalizers: Box<str>,
    /// Whether the run is being deleted.
    pub deleting: bool,
}

/// The wait of a Running execution, as the condition in its status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitingShown {
    /// The reason of the condition.
    pub reason: Box<str>,
    /// The message of the condition.
    pub message: Box<str>,
}

impl Awaiting {
    /// The reason while nothing of the run has started.
    pub const STARTING: &str = "Starting";
    /// The reason of a run that Tekton does not stop.
    pub const CANCELLING: &str = "Cancelling";
    /// The reason of a failed run that cannot be examined.
    pub const EXAMINING: &str = OwnCause::CannotExamine.reason();
    /// All reasons.
    pub const REASONS: [&str; 3] = [Self::STARTING, Self::CANCELLING, Self::EXAMINING];

    /// Returns the reason of the condition.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Starting { .. } => Self::STARTING,
            Self::Cancelling(_) => Self::CANCELLING,
            Self::Examining { .. } => Self::EXAMINING,
        }
    }

    /// Returns what the run waits for, if nothing of it has started.
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        match self {
            Self::Starting { wait, .. } => Some(*wait),
            Self::Cancelling(_) | Self::Examining { .. } => None,
        }
    }

    /// Describes what the execution waits for, and what would end the wait.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Starting { wait, until } => {
                format!("waits for {}; cancelled at {} if nothing starts", wait.as_str(), shown(*until))
            }
            Self::Cancelling(unanswered) => unanswered.message(),
            Self::Examining { since, trouble } => {
                format!("the target stays locked since {}: {}", shown(*since), trouble.message())
            }
        }
    }

    /// Returns what the status shows of the wait. If the status already shows that the run cannot be examined, it stays
    /// unchanged: the errors of a troubled API server differ with every try.
    #[must_use]
    pub fn shown(&self, before: Option<&AwaitingShown>) -> AwaitingShown {
        match before.filter(|before| *before.reason == *self.reason()) {
            Some(before) if matches!(self, Self::Examining { .. }) => before.clone(),
            _ => AwaitingShown { reason: self.reason().into(), message: self.message().into() },
        }
    }
}

impl Unanswered {
    /// Describes the request, who should act on it, and what holds the run.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { run, since, why, said, managed_by, finalizers, deleting } = self;
        let mut message = format!("PipelineRun {run} was to stop at {} ({why}), and it goes on; ", shown(*since));
        let said = if said.is_empty() { "nothing" } else { said };
        let _ = write!(message, "Tekton says {said}");
        if let Some(controller) = managed_by {
            let _ = write!(message, "; spec.managedBy is {controller}, so Tekton leaves the run to that controller");
        }
        if *deleting {
            message.push_str("; the run is being deleted, and Tekton neither stops nor ends such a run");
        }
        if !finalizers.is_empty() {
            let _ = write!(message, "; finalizers: {finalizers}");
        }
        message
    }
}

impl Run {
    /// Returns the request to stop the run, if Tekton has had time to act on it and has not. While finally tasks run,
    /// Tekton is late only after `ends_by`, when the run itself should have ended.
    #[must_use]
    pub fn unanswered(&self, ends_by: Option<Time>, now: Time) -> Option<Unanswered> {
        let stop = self.stop.as_deref().filter(|_| self.is_unfinished())?;
        self.answer_due(stop, ends_by).filter(|due| *due <= now)?;
        Some(Unanswered {
            run: self.id.clone(),
            since: stop.since?,
            why: self.why_stopped(),
            said: stop.said.clone(),
            managed_by: stop.managed_by.clone(),
            finalizers: stop.finalizers.clone(),
            deleting: self.deleting,
        })
    }

    /// Returns when Tekton's reaction to a request to stop a run becomes late.
    #[must_use]
    pub fn answer_due(&self, stop: &StopRequest, ends_by: Option<Time>) -> Option<Time> {
        let due = after(stop.since?, ANSWERED_WITHIN);
        if stop.runs_finally { ends_by.map(|ends_by| due.max(ends_by)) } else { Some(due) }
    }

    fn why_stopped(&self) -> &'static str {
        match self.cancel_reason.filter(|_| self.cancelled) {
            Some(CancelReason::OwnerDeleted) => "its WorkflowExecution was deleted",
            Some(CancelReason::Requested) => "spec.cancellation of its WorkflowExecution asks for it",
            Some(CancelReason::NotStarted) => "nothing of it had started within the start deadline",
            Some(CancelReason::TimedOut) => "it was not done a minute after its time-out",
            None if self.deleting && !self.cancelled => "somebody deleted it",
            None => "somebody cancelled it",
        }
    }
}
