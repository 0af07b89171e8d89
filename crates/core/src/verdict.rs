//! What a rule says of a contender, and the facts that a write rests on.

use crate::chain::RunNumber;
use crate::ending::Skip;
use crate::name::{ExecutionId, RunId, Uid};
use crate::reason::FailureReason;
use crate::residue::ResidueId;
use crate::waiting::Waiting;

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It ends Failed, and nothing of it ran.
    Fail {
        /// Which of the seven.
        reason: FailureReason,
        /// What is wrong.
        message: Box<str>,
        /// Whether that counts for the target (section 7).
        counts: bool,
    },
    /// It is skipped, as long as the fact holds.
    Skip {
        /// Why.
        skip: Skip,
        /// What to read live first.
        fact: Fact,
    },
    /// It waits for a fact.
    Wait(Waiting),
    /// It runs.
    Run,
}

impl Verdict {
    /// Tells a person what it is and why.
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

/// A fact that a write rests on, to be read live before it is written: the view may be behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// This run is there and unfinished.
    Unfinished(RunId),
    /// This task or pod is there and unfinished.
    Draining(ResidueId),
    /// This execution is there, terminal, and nobody has cleared it since.
    Stands(ExecutionId),
    /// This execution is there and Running: it waits for its next attempt, and holds the target.
    Holds(ExecutionId),
    /// This execution, which owns a run and is not known any more, is gone.
    OwnerGone(ExecutionId),
    /// This run, to which this execution is committed and which is not seen any more, is gone.
    RunGone(ExecutionId, RunId),
    /// This execution, which is Running and whose status names no run, has none.
    NoRunOf(ExecutionId),
    /// This execution, which ends without a run, has made none by this number: the answer to a create may have been
    /// lost, and the label by which a watch would show the run.
    NothingMade(ExecutionId, RunNumber),
    /// Nothing unfinished is left of what was made for this run, which is finished.
    NothingLeft(RunId),
    /// No unfinished task or pod is left on the target of this execution, but its own.
    Drained(ExecutionId),
    /// No unfinished task or pod is left on the target of this execution, not its own either.
    DrainedOfAll(ExecutionId),
}

impl Fact {
    /// Returns the uid of what is read.
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
