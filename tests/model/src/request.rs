//! The requests of an operator to the API server: writes with their preconditions, and live reads before them.

use crate::object::{ExecutionId, Number, Phase, RunUid, Version};

/// A write in flight. It can arrive late, twice or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Creates a pending run. Precondition: the name does not exist.
    Create {
        /// The owner of the run.
        owner: ExecutionId,
        /// The number of the run.
        number: Number,
    },
    /// Writes the status of an execution. Precondition: its uid and version.
    Status {
        /// The execution.
        execution: ExecutionId,
        /// The version on which the decision was made.
        version: Version,
        /// The change.
        write: StatusWrite,
    },
    /// Releases a run. Precondition: the run has this uid and is pending.
    Release {
        /// The uid of the run.
        run: RunUid,
        /// The number in the run's name.
        number: Number,
    },
    /// Deletes a pending run. Precondition: its uid and version.
    Delete {
        /// The uid of the run.
        run: RunUid,
        /// The number in the run's name.
        number: Number,
        /// The version of the run that the operator has seen.
        version: Version,
    },
    /// Cancels a run. Precondition: its uid.
    Cancel {
        /// The uid of the run.
        run: RunUid,
        /// The number in the run's name.
        number: Number,
    },
}

/// The change in a status write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatusWrite {
    /// Phase Running: the commit to a run.
    Commit {
        /// The uid of the run.
        run: RunUid,
        /// The number of the run.
        number: Number,
    },
    /// An attempt has failed, and another follows.
    Retry {
        /// Whether the status says that something of an attempt ran.
        ran: bool,
    },
    /// The execution will not commit to any run up to this number.
    GiveUp(Number),
    /// Phase Completed or Failed.
    Finish {
        /// The final phase.
        phase: Phase,
        /// The number that the last attempt used, if it is new.
        number: Option<Number>,
        /// Whether the status says that the target still drains.
        draining: bool,
    },
    /// After the end of the execution, the target has drained.
    Freed,
    /// Phase Skipped.
    Skip(Fact),
}

/// The fact on which a skip is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    /// This run exists and is unfinished.
    Unfinished(RunUid),
    /// Something of this run exists and is unfinished.
    Draining(RunUid),
    /// This execution exists and is Running.
    Holds(ExecutionId),
}

/// A fact that is read live before a write. Once true it stays true, so the read and the write are one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Premise {
    /// No fact is read.
    None,
    /// These executions are gone. They are a set of uids.
    OwnersGone(u8),
    /// This run is gone.
    RunGone(RunUid),
}

/// A part of a decision that is performed separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// One write.
    Write(Premise, Request),
    /// A live read of a fact that may change again before the write. The write is a later step.
    ReadFirst {
        /// The fact to read.
        read: Read,
        /// Owners that must be gone too.
        premise: Premise,
        /// The write.
        request: Request,
    },
    /// A live read before several skips. The writes are later steps.
    ReadFact {
        /// The fact on which the skips are based.
        fact: Fact,
        /// The executions to skip, with the versions on which the decision was made.
        skipped: Vec<(ExecutionId, Version)>,
    },
    /// A live read of an execution that no watch delivers.
    ReadOwner(ExecutionId),
}

/// The result of a live read of an execution that no watch delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerRead {
    /// The execution is terminal or gone.
    Over,
    /// The execution waits for its next attempt.
    Waits,
    /// Neither is the case.
    Late,
}

/// A fact that is read live some time before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Read {
    /// Nothing is left of the runs of other executions.
    NothingLeft(ExecutionId),
    /// Nothing is left of any run.
    AllDrained,
    /// This execution still has this version.
    Unchanged(ExecutionId, Version),
}
