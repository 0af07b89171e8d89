//! What an execution waits for.

use std::sync::Arc;

use crate::limit::LimitWait;
use crate::name::{ExecutionId, RunId};
use crate::trouble::{OwnCause, OwnTrouble};

/// A pause of a namespace: nothing new starts in the namespace or on targets in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The namespace that is paused.
    pub namespace: Box<str>,
    /// The reason, as the person gave it.
    pub why: Box<str>,
}

/// What an execution waits for. A wait ends, unlike a skip, and the operator then decides on the execution again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Another execution goes first: an older one, or one whose failure is being written.
    Turn(Box<ExecutionId>),
    /// Another execution's run is pending: that execution may commit to it or withdraw it.
    RivalUndecided,
    /// A run on the target is done, but the status of its execution does not show it yet.
    OwnerLate,
    /// Tasks or pods with the target's label are unfinished, and name no execution.
    Draining,
    /// This run is being deleted and a finalizer holds it; no task or pod of the run is visible any more.
    Leaving(RunId),
    /// Between two attempts: tasks or pods of an earlier attempt, or of another run, are unfinished.
    Remains,
    /// Between two attempts: another run on the target is unfinished, or its owner has not ended.
    Beside,
    /// The namespace of the execution or of its target is paused.
    Paused(Arc<Pause>),
    /// Everything is paused, by this object.
    PausedEverywhere(Box<str>),
    /// Errors of the API server prevent the next step.
    ApiErrors(Box<str>),
    /// The operator's own trouble prevents the next step.
    Operator(OwnTrouble),
    /// The cluster does not serve Tekton's kinds.
    TektonUnavailable(Box<str>),
    /// The operator cannot see everything that the decision needs.
    Blind(Box<str>),
    /// A watch has not delivered yet what the operator wrote to this object.
    Unseen(Box<str>),
    /// The execution's own run is being withdrawn; the operator decides again after that.
    Withdrawn,
    /// It is unknown whether a clearance or cancellation counts: of this execution, or of a failure on its target.
    Guard,
    /// The execution is being deleted.
    Deleting,
    /// A limit of how many targets are worked on at once has no free place.
    Limit(Box<LimitWait>),
}

impl Waiting {
    /// All reasons.
    pub const REASONS: [&str; 18] = [
        "Turn",
        "RivalUndecided",
        "OwnerLate",
        "Draining",
        "Paused",
        "ApiErrors",
        OwnCause::LacksRight.reason(),
        OwnCause::RefusedByPolicy.reason(),
        OwnCause::CrdLacksFields.reason(),
        OwnCause::CannotExamine.reason(),
        OwnCause::WriteDropped.reason(),
        "TektonUnavailable",
        "CacheNotSynced",
        "WriteNotSeen",
        "Withdrawn",
        "PoliciesNotRead",
        "Deleting",
        "Limit",
    ];

    /// Returns the reason of the condition `Waiting`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Turn(_) => "Turn",
            Self::RivalUndecided | Self::Beside => "RivalUndecided",
            Self::OwnerLate => "OwnerLate",
            Self::Draining | Self::Leaving(_) | Self::Remains => "Draining",
            Self::Paused(_) | Self::PausedEverywhere(_) => "Paused",
            Self::ApiErrors(_) => "ApiErrors",
            Self::Operator(trouble) => trouble.cause.reason(),
            Self::TektonUnavailable(_) => "TektonUnavailable",
            Self::Blind(_) => "CacheNotSynced",
            Self::Unseen(_) => "WriteNotSeen",
            Self::Withdrawn => "Withdrawn",
            Self::Guard => "PoliciesNotRead",
            Self::Deleting => "Deleting",
            Self::Limit(_) => "Limit",
        }
    }

    /// Returns whether the operator retries the next step until a deadline.
    #[must_use]
    pub fn is_tried(&self) -> bool {
        matches!(self, Self::ApiErrors(_) | Self::TektonUnavailable(_))
    }

    /// Returns whether the cause lies outside the target, so that a person may have to repair something.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::ApiErrors(_) | Self::Operator(_) | Self::TektonUnavailable(_) | Self::Blind(_) | Self::Guard
        )
    }

    /// Returns the execution on the same target that goes first, if that is the cause.
    #[must_use]
    pub fn behind(&self) -> Option<&ExecutionId> {
        match self {
            Self::Turn(first) => Some(first),
            _ => None,
        }
    }

    /// Describes what the execution waits for, and what would end the wait.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Turn(first) => format!("WorkflowExecution {first} on the same target goes first"),
            Self::RivalUndecided => {
                "another WorkflowExecution has created its PipelineRun on the same target and has not decided yet"
                    .to_owned()
            }
            Self::OwnerLate => {
                "a run on the target has ended, and the status of its WorkflowExecution is not written yet".to_owned()
            }
            Self::Draining => {
                "tasks or pods with the label of this target are unfinished, and name no WorkflowExecution; end them"
                    .to_owned()
            }
            Self::Leaving(run) => format!(
                "PipelineRun {run} on the target is being deleted, and a finalizer holds it; the operator waits until it is \
                 certain that nothing of the run is left"
            ),
            Self::Remains => {
                "tasks or pods of an earlier attempt, or of another run on the target, are still stopping".to_owned()
            }
            Self::Beside => {
                "another PipelineRun on the target has not ended, or its WorkflowExecution has not".to_owned()
            }
            Self::Paused(pause) => {
                let Pause { namespace, why } = &**pause;
                let why = if why.is_empty() { "no reason is given" } else { why };
                format!(
                    "namespace {namespace} is paused: {why}; the pause ends when the annotation kubernaut.ai/paused is removed from namespace {namespace}"
                )
            }
            Self::PausedEverywhere(by) => format!(
                "nothing new starts anywhere: {by} says paused: true; ask whoever has set that, it ends with paused: false"
            ),
            Self::ApiErrors(what) => format!("the operator tries again: {what}"),
            Self::Operator(trouble) => trouble.message(),
            Self::TektonUnavailable(what) => {
                format!("the cluster does not serve Tekton's kinds; install Tekton Pipelines: {what}")
            }
            Self::Blind(what) => format!("the operator cannot see what runs: {what}"),
            Self::Unseen(what) => format!(
                "the operator has written {what} and waits until its watch delivers that; every 30 s it reads the object \
                 itself"
            ),
            Self::Withdrawn => {
                "its PipelineRun was not the first on the target and is deleted; it is decided again after that"
                    .to_owned()
            }
            Self::Guard => {
                "a clearance or cancellation was set, and the operator cannot read the admission policies that guard it"
                    .to_owned()
            }
            Self::Deleting => "its deletion has begun; a finalizer of somebody else still holds it".to_owned(),
            Self::Limit(wait) => wait.message(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_reason_of_its_own_that_an_execution_can_wait_with() {
        let waits = |cause| Waiting::Operator(OwnTrouble { cause, words: "why".into() });
        for (place, cause) in OwnCause::ALL.into_iter().enumerate() {
            let waiting = waits(cause);
            assert_eq!(waiting.reason(), cause.reason());
            assert!(Waiting::REASONS.contains(&cause.reason()), "{cause:?}");
            assert!(!waiting.is_tried(), "no deadline counts towards its end: {cause:?}");
            assert!(waiting.message().ends_with(": why"), "{}", waiting.message());
            assert!(OwnCause::ALL[..place].iter().all(|other| other.reason() != cause.reason()), "{cause:?}");
        }
    }
}
