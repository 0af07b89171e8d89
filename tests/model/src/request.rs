//! The requests of an operator to the API server: each write with its precondition, and the live reads before it.

use crate::object::{ExecutionId, Number, Phase, RunUid, Version};

/// One write in flight. It can arrive late, twice or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Creates a run, pending. Precondition: the name is absent.
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
        /// The version that the decision rests on.
        version: Version,
        /// The change.
        write: StatusWrite,
    },
    /// Releases a run. Precondition: its uid, and that it is pending.
    Release {
        /// Which run.
        run: RunUid,
        /// Its name.
        number: Number,
    },
    /// Deletes a pending run. Precondition: its uid and version.
    Delete {
        /// Which run.
        run: RunUid,
        /// Its name.
        number: Number,
        /// The version in which the operator saw the run.
        version: Version,
    },
    /// Cancels a run. Precondition: its uid.
    Cancel {
        /// Which run.
        run: RunUid,
        /// Its name.
        number: Number,
    },
}

/// The change in a status write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatusWrite {
    /// Phase Running: the commit to a run.
    Commit {
        /// Which run.
        run: RunUid,
        /// Its number.
        number: Number,
    },
    /// An attempt has failed, and another follows.
    Retry {
        /// Whether the status says that something of an attempt ran.
        ran: bool,
    },
    /// The execution will not commit to a run up to this number.
    GiveUp(Number),
    /// Phase Completed or Failed.
    Finish {
        /// The final phase.
        phase: Phase,
        /// The number that was tried, if it is new.
        number: Option<Number>,
        /// Whether the status says that the target drains.
        draining: bool,
    },
    /// The target has drained after the end.
    Freed,
    /// Phase Skipped.
    Skip(Fact),
}

/// The fact that a skip rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    /// This run exists and is unfinished.
    Unfinished(RunUid),
    /// Something of this run exists and is unfinished.
    Draining(RunUid),
    /// This execution exists and is Running.
    Holds(ExecutionId),
}

/// A fact to read live before a write. It stays true once it is true, so the read and the write are one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Premise {
    /// Nothing is read.
    None,
    /// These executions are gone: a set of uids.
    OwnersGone(u8),
    /// This run is gone.
    RunGone(RunUid),
}

/// A part of a decision that is carried out on its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// One write.
    Write(Premise, Request),
    /// A live read of something that can change again before the write, which comes later.
    ReadFirst {
        /// What is read.
        read: Read,
        /// Which owners must be gone as well.
        premise: Premise,
        /// The write.
        request: Request,
    },
    /// The live read before a batch of skips. The writes come later.
    ReadFact {
        /// The fact that the skips rest on.
        fact: Fact,
        /// The executions to skip, with the versions that the decision rests on.
        skipped: Vec<(ExecutionId, Version)>,
    },
    /// The live read of an execution that no watch delivers.
    ReadOwner(ExecutionId),
}

/// What a live read found of an execution that no watch delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerRead {
    /// It is terminal or gone.
    Over,
    /// It waits for its next attempt.
    Waits,
    /// Neither.
    Late,
}

/// A fact that is read live some time before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Read {
    /// Nothing is left of runs of other executions.
    NothingLeft(ExecutionId),
    /// Nothing is left of any run.
    AllDrained,
    /// This execution still has this version.
    Unchanged(ExecutionId, Version),
}
