//! What an execution waits for.

use std::sync::Arc;

use crate::limit::LimitWait;
use crate::name::{ExecutionId, RunId};
use crate::trouble::{OwnCause, OwnTrouble};

/// A person's pause of a namespace: nothing new starts in it, and nothing new starts on a target in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The namespace that is paused.
    pub namespace: Box<str>,
    /// Why, in the words of the person.
    pub why: Box<str>,
}

/// What an execution waits for. Unlike a skip, a wait ends, and the execution is decided on again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// This rival goes first: an older one, or one whose failure is written.
    Turn(Box<ExecutionId>),
    /// Another execution's run is pending: it may commit, or be withdrawn.
    RivalUndecided,
    /// A run on the target is done, and its owner's status does not show it yet.
    OwnerLate,
    /// Tasks or pods that carry the target's label and name no execution are unfinished.
    Draining,
    /// This run is being deleted and held by a finalizer, and nothing else of it is seen any more.
    Leaving(RunId),
    /// Between two attempts: tasks or pods of an earlier one, or of another run, are unfinished.
    Remains,
    /// Between two attempts: another run on the target is unfinished, or its owner has not ended.
    Beside,
    /// Nothing new starts in its namespace, or on targets in the namespace of its target.
    Paused(Arc<Pause>),
    /// Nothing new starts anywhere, for this reason.
    PausedEverywhere(Box<str>),
    /// The API server prevents carrying out the decision.
    ApiErrors(Box<str>),
    /// The operator's own trouble prevents carrying out the decision.
    Operator(OwnTrouble),
    /// The cluster does not serve Tekton's kinds.
    TektonUnavailable(Box<str>),
    /// The operator cannot see everything that it needs.
    Blind(Box<str>),
    /// A watch has not delivered yet what the operator has written to this object.
    Unseen(Box<str>),
    /// Its own run is being withdrawn; it is decided again after that.
    Withdrawn,
    /// Whether a clearance or cancellation of it, or of a failure that blocks it, counts.
    Guard,
    /// It is being deleted.
    Deleting,
    /// A limit of how many targets are worked on at once.
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

    /// Returns whether it is tried again and again until a deadline.
    #[must_use]
    pub fn is_tried(&self) -> bool {
        matches!(self, Self::ApiErrors(_) | Self::TektonUnavailable(_))
    }

    /// Returns whether something other than the target prevents carrying out the decision, which a person may have to
    /// mend.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::ApiErrors(_) | Self::Operator(_) | Self::TektonUnavailable(_) | Self::Blind(_) | Self::Guard
        )
    }

    /// Returns the execution that it waits for, if that is one on its target.
    #[must_use]
    pub fn behind(&self) -> Option<&ExecutionId> {
        match self {
            Self::Turn(first) => Some(first),
            _ => None,
        }
    }

    /// Describes what it waits for, and what would end that.
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
