//! The verdict of a rule on a contender, and the facts that a write depends on.

use crate::chain::RunNumber;
use crate::ending::Skip;
use crate::name::{ExecutionId, RunId, Uid};
use crate::reason::FailureReason;
use crate::residue::ResidueId;
use crate::waiting::Waiting;

/// The verdict of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The execution ends Failed, and nothing of it ran.
    Fail {
        /// The failure reason.
        reason: FailureReason,
        /// What is wrong.
        message: Box<str>,
        /// Whether the failure counts for the target (section 7).
        counts: bool,
    },
    /// The execution is skipped, if the fact holds.
    Skip {
        /// Why the execution is skipped.
        skip: Skip,
        /// The fact to read live.
        fact: Fact,
    },
    /// The execution waits for a fact.
    Wait(Waiting),
    /// The execution runs.
    Run,
}

impl Verdict {
    /// Describes the verdict and its reason.
    #[must_use]
    pub fn explain(&self, target: &str) -> String {
        match self {
            Self::Fail { reason, message, .. } => format!("fails, {reason}: {message}"),
            Self::Skip { skip, .. } => format!("skipped, {}: {}", skip.reason(), skip.message(target)),
            Self::Wait(waiting) => format!("waits, {}: {}", waiting.reason(), waiting.message()),
            Self::Run => "it runs".to_owned(),
        }
    }
}

/// A fact that a write depends on. It is read live before the write, because the view may be behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// This run exists and is unfinished.
    Unfinished(RunId),
    /// This task or pod exists and is unfinished.
    Draining(ResidueId),
    /// This execution exists, is terminal, and has not been cleared in the meantime.
    Stands(ExecutionId),
    /// This execution exists and is Running: it waits for its next attempt and holds the target.
    Holds(ExecutionId),
    /// This execution, which owns a run and is no longer in the view, is gone.
    OwnerGone(ExecutionId),
    /// This run, which is no longer in the view, is gone; the execution is committed to it.
    RunGone(ExecutionId, RunId),
    /// This execution, which is Running and whose status names no run, has no run.
    NoRunOf(ExecutionId),
    /// This execution, which ends without a run, has created none with this number. A watch may not show such a run:
    /// the answer to the create, or the label, may have been lost.
    NothingMade(ExecutionId, RunNumber),
    /// This finished run has no unfinished descendant.
    NothingLeft(RunId),
    /// No unfinished task or pod is left on the target of this execution, except its own.
    Drained(ExecutionId),
    /// No unfinished task or pod is left on the target of this execution, its own included.
    DrainedOfAll(ExecutionId),
}

impl Fact {
    /// Returns the uid of the object that is read.
    #[must_use]
    pub fn object(&self) -> &Uid {
        match self {
            Self::Stands(execution)
            | Self::Holds(execution)
            | Self::OwnerGone(execution)
            | Self::NoRunOf(execution)
            | Self::NothingMade(execution, _)
            | Self::Drained(execution)
            | Self::DrainedOfAll(execution) => &execution.uid,
            Self::Unfinished(run) | Self::RunGone(_, run) | Self::NothingLeft(run) => &run.uid,
            Self::Draining(residue) => &residue.uid,
        }
    }
}
