//! The objects of the model cluster, with small integers for the values that the API server assigns.
//!
//! Versions count the writes of one object. Preconditions and expectations only compare versions of the same object.

use std::fmt;

/// Identifies a `WorkflowExecution`: its place in the order of creation, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId {
    /// The uid.
    pub uid: u8,
    /// The name. An execution that was made again shares it with the deleted one.
    pub name: u8,
}

impl ExecutionId {
    /// Returns its namespace, if there are two.
    #[must_use]
    pub fn namespace(self) -> u8 {
        self.name % 2
    }

    /// Returns the bit of this execution in a set of executions.
    #[must_use]
    pub fn bit(self) -> u8 {
        1 << self.uid
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.uid == self.name { write!(f, "w{}", self.name) } else { write!(f, "w{} (made again)", self.name) }
    }
}

/// Identifies a run: its place in the order of creation. It is the uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunUid(pub u8);

/// The place of a run in its chain, which is also its name.
pub type Number = u8;

/// A `resourceVersion`, counted per object.
pub type Version = u8;

/// The phase of an execution, with the related fields of its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// No phase, or Pending.
    Undecided,
    /// Committed to a run.
    Running(RunUid),
    /// Its run succeeded.
    Completed,
    /// It failed.
    Failed {
        /// `wasExecutionFailure`.
        ran: bool,
    },
    /// It was skipped.
    Skipped,
}

impl Phase {
    /// Returns whether it is final.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed { .. } | Self::Skipped)
    }

    /// Returns whether the record says that nothing of the workflow ran.
    #[must_use]
    pub fn says_nothing_ran(self) -> bool {
        matches!(self, Self::Skipped | Self::Failed { ran: false })
    }
}

/// A `WorkflowExecution` as the API server keeps it.
#[allow(clippy::struct_excessive_bools)] // each is a field of its own there, and any may go with any
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Execution {
    /// Which one.
    pub id: ExecutionId,
    /// How many times it was written.
    pub version: Version,
    /// Its phase.
    pub phase: Phase,
    /// `status.runSequence`; 0 if absent.
    pub sequence: Number,
    /// Whether a user has asked for its cancellation.
    pub cancelled: bool,
    /// Whether its status says that the target drains.
    pub draining: bool,
    /// How many attempts its status has; 0 without a retry policy, or before the first.
    pub attempts: u8,
    /// Whether the last attempt waits to begin.
    pub waits: bool,
    /// Whether its status says that something ran of an attempt that is over.
    pub ran: bool,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Progress {
    /// Created with `PipelineRunPending`.
    Pending,
    /// Released to Tekton.
    Released,
    /// Finished.
    Done {
        /// Whether it succeeded.
        ok: bool,
        /// Whether something of it may have run, if it did not succeed.
        ran: bool,
    },
}

/// How Tekton ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// It succeeds, unless a user has cancelled it.
    Well,
    /// It fails, and it is proven that nothing of it ran.
    Unstarted,
    /// It fails half way.
    Broken,
}

/// A run as the API server keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// Which one.
    pub uid: RunUid,
    /// Its place in the chain.
    pub number: Number,
    /// Its owner; `None` for a foreign run.
    pub owner: Option<ExecutionId>,
    /// How many times it was written.
    pub version: Version,
    /// How far it has come.
    pub progress: Progress,
    /// Whether Tekton was asked to cancel it.
    pub cancelled: bool,
}

impl Run {
    /// Returns whether it can still do something, by itself or after a release.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.progress, Progress::Done { .. })
    }

    /// Returns whether it was released and is not finished.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.progress == Progress::Released
    }
}

/// What a run leaves behind: a pod. It exists from the run's release to some time after its end. Its uid is the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Residue {
    /// The run that left it.
    pub run: RunUid,
    /// The owner of that run.
    pub owner: Option<ExecutionId>,
}

/// The watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Of `WorkflowExecution`s.
    Execution,
    /// Of runs.
    Run,
    /// Of what runs leave behind.
    Residue,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Execution, Self::Run, Self::Residue];
}
