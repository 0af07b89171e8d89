//! The objects of the model cluster, with small integers for what the API server gives out.
//!
//! Versions count the writes of one object: preconditions and expectations only ever compare versions of the same one.

use std::fmt;

/// Which `WorkflowExecution` object: its place in the order in which they were made, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId {
    /// The uid.
    pub uid: u8,
    /// The name, which a deleted one and one that was made again share.
    pub name: u8,
}

impl ExecutionId {
    /// Returns the namespace that it lives in, where there are two.
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

/// Which run: its place in the order in which the API server made them. It is the uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunUid(pub u8);

/// The place of a run in its chain: its name.
pub type Number = u8;

/// A `resourceVersion`, counted per object.
pub type Version = u8;

/// The phase of an execution, with what its status says beside it.
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
    /// How often it was written.
    pub version: Version,
    /// Its phase.
    pub phase: Phase,
    /// `status.runSequence`; 0 where there is none.
    pub sequence: Number,
    /// Whether somebody has asked for its cancellation.
    pub cancelled: bool,
    /// Whether its status says that the target drains.
    pub draining: bool,
    /// How many attempts its status has; 0 where it has no retry policy, or has not begun.
    pub attempts: u8,
    /// Whether the last of them waits to begin.
    pub waits: bool,
    /// Whether its status says of an attempt that is over that something ran.
    pub ran: bool,
}

/// How far a run is.
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
        /// Whether something of it may have run, where it did not.
        ran: bool,
    },
}

/// How Tekton ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// It succeeds, where nobody has cancelled it.
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
    /// Whose it is; `None`: a stranger's.
    pub owner: Option<ExecutionId>,
    /// How often it was written.
    pub version: Version,
    /// How far it is.
    pub progress: Progress,
    /// Whether somebody asked Tekton to cancel it.
    pub cancelled: bool,
}

impl Run {
    /// Returns whether it may still do something, or be made to.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.progress, Progress::Done { .. })
    }

    /// Returns whether it is with Tekton and not finished.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.progress == Progress::Released
    }
}

/// What a run has left behind: a pod. There is one from its release to some time after its end, by the run's uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Residue {
    /// Of which run.
    pub run: RunUid,
    /// Whose run.
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
