//! What a decision asks for: writes with their preconditions, and the facts to read live before them.

use crate::Time;
use crate::ending::{Failure, Skip, Success};
use crate::name::{ExecutionId, RunId, Version};
use crate::target::RunNumber;

/// The answer of [`decide`](crate::decide::decide).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now. The actions are independent of each other: any subset may fail its precondition, and then the
    /// target is looked at again.
    pub actions: Vec<Action>,
    /// Who waits, and for what.
    pub waiting: Vec<(ExecutionId, Waiting)>,
    /// When the answer can change by time alone.
    pub wake: Option<Time>,
}

/// One write, or one batch of like writes, each with its precondition.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Step (a): create the chain's next run, pending. Precondition: its name is absent.
    Create {
        /// For whom.
        execution: ExecutionId,
        /// Which number.
        number: RunNumber,
    },
    /// Step (c): phase Running and the run in the execution's status. Precondition: the execution's version.
    Commit {
        /// Who commits.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// To which run.
        run: RunId,
        /// The run's number.
        number: RunNumber,
        /// `startTime`.
        started_at: Time,
        /// Owners of finished runs that are not known any more: read live that they are gone.
        gone: Vec<ExecutionId>,
    },
    /// Step (d): hand the run to Tekton. Precondition: its uid, and that it is still pending.
    Release {
        /// Which run.
        run: RunId,
    },
    /// The terminal write. Precondition: the execution's version.
    Finish {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// How it ended.
        ending: Ending,
        /// A run that is not seen any more: read live that it is gone.
        lost: Option<RunId>,
    },
    /// Skips all of these. Preconditions: the fact, read live once for all, and the version of each.
    Skip {
        /// Who is skipped.
        skipped: Vec<(ExecutionId, Version)>,
        /// Why.
        skip: Skip,
        /// The fact that the skip rests on: this run is there and unfinished.
        unfinished: RunId,
    },
    /// Deletes a pending run that never ran. Precondition: its uid and version, so that it is pending still.
    Delete {
        /// Which run.
        run: RunId,
        /// The version in which it was seen pending.
        version: Version,
        /// Why.
        why: Unneeded,
        /// An owner that is not known any more: read live that it is gone.
        gone: Option<ExecutionId>,
    },
    /// Asks Tekton to cancel a run whose owner was deleted. Precondition: its uid.
    Cancel {
        /// Which run.
        run: RunId,
        /// The owner, to read live that it is gone; nothing where that is proven already.
        gone: Option<ExecutionId>,
    },
}

/// How an execution ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Phase Completed.
    Completed(Success),
    /// Phase Failed.
    Failed(Failure),
}

/// Why a pending run is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unneeded {
    /// At the look another run of the target came first.
    Withdrawn,
    /// Its owner is gone, terminal, on its way out, or committed to another run.
    Leftover,
}

/// What an execution waits for. Waiting is not skipping: it is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// An older rival goes first.
    Turn,
    /// Another execution's run is pending: it may commit, or be withdrawn.
    RivalUndecided,
    /// A run on the target is done, and its owner's status does not say so yet.
    OwnerLate,
}
