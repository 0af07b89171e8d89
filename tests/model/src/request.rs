//! What an operator asks of the API server: each write with its precondition, and the live reads before it.

use crate::object::{ExecutionId, Number, Phase, RunUid, Version};

/// One write, as it is on the wire. It can arrive late, twice or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// Creates a run, pending. Precondition: the name is absent.
    Create {
        /// For whom.
        owner: ExecutionId,
        /// Under which number.
        number: Number,
    },
    /// Writes the status of an execution. Precondition: its uid and version.
    Status {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// What it says.
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
        /// The version in which it was seen.
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

/// What a status write says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatusWrite {
    /// Phase Running: the commit to a run.
    Commit {
        /// Which run.
        run: RunUid,
        /// Its number.
        number: Number,
    },
    /// An attempt has failed, and there is another.
    Retry {
        /// Whether the status says of an attempt that something ran.
        ran: bool,
    },
    /// It will not commit to a run up to this number.
    GiveUp(Number),
    /// Phase Completed or Failed.
    Finish {
        /// Which.
        phase: Phase,
        /// The number that was tried, where it is new.
        number: Option<Number>,
        /// Whether it says that the target drains.
        draining: bool,
    },
    /// The target has drained after the end.
    Freed,
    /// Phase Skipped.
    Skip(Fact),
}

/// What a skip rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    /// This run is there and unfinished.
    Unfinished(RunUid),
    /// Something of this run is there and unfinished.
    Draining(RunUid),
    /// This execution is there and Running.
    Holds(ExecutionId),
}

/// A fact to read live before a write. Both are for ever once they are true, so the read and the write are one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Premise {
    /// Nothing to read.
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
        /// Who is to be gone, beside.
        premise: Premise,
        /// The write.
        request: Request,
    },
    /// The live read before a batch of skips. The writes come later.
    ReadFact {
        /// What they rest on.
        fact: Fact,
        /// Who is skipped then, with the versions that the decision rests on.
        skipped: Vec<(ExecutionId, Version)>,
    },
    /// The live read of an execution that no watch delivers.
    ReadOwner(ExecutionId),
}

/// What a live read has found of an execution that no watch delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerRead {
    /// It is terminal or gone.
    Over,
    /// It waits for its next attempt.
    Waits,
    /// Neither.
    Late,
}

/// What is read live some time before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Read {
    /// Nothing is left of other runs than this execution's.
    NothingLeft(ExecutionId),
    /// Nothing is left of any run.
    AllDrained,
    /// This execution is as it was seen.
    Unchanged(ExecutionId, Version),
}
