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
    /// It ends Failed, and nothing of it ran.
    Fail {
        /// The reason, one of seven.
        reason: FailureReason,
        /// What is wrong.
        message: Box<str>,
        /// Whether that counts for the target (section 7).
        counts: bool,
    },
    /// It is skipped, if the fact holds.
    Skip {
        /// Why.
        skip: Skip,
        /// The fact to read live.
        fact: Fact,
    },
    /// It waits for a fact.
    Wait(Waiting),
    /// It runs.
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
    /// This execution exists, is terminal, and has not been cleared since.
    Stands(ExecutionId),
    /// This execution exists and is Running: it waits for its next attempt, and holds the target.
    Holds(ExecutionId),
    /// This execution, which owns a run and is not in the view any more, is gone.
    OwnerGone(ExecutionId),
    /// This run, which this execution is committed to and which is not in the view any more, is gone.
    RunGone(ExecutionId, RunId),
    /// This execution, which is Running and whose status names no run, has none.
    NoRunOf(ExecutionId),
    /// This execution, which ends without a run, has made none with this number: the answer to a create may have been
    /// lost, or the label by which a watch would show the run.
    NothingMade(ExecutionId, RunNumber),
    /// No unfinished descendant of this run, which is finished, is left.
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
