//! The objects of the model. Small integers replace the values that the API server assigns.
//!
//! Versions count the writes of one object. Preconditions and expectations only compare versions of the same object.

use std::fmt;

/// Identifies a `WorkflowExecution` by its position in the order of creation, and by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId {
    /// The uid.
    pub uid: u8,
    /// The name. An execution that was created again has the name of the deleted one.
    pub name: u8,
}

impl ExecutionId {
    /// Returns the execution's namespace, if there are two namespaces.
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

/// Identifies a run by its position in the order of creation, which is its uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunUid(pub u8);

/// The position of a run in its chain, which is also its name.
pub type Number = u8;

/// A `resourceVersion`, which is counted for each object.
pub type Version = u8;

/// The phase of an execution, with related fields of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// No phase, or Pending.
    Undecided,
    /// Committed to a run.
    Running(RunUid),
    /// The run of the execution has succeeded.
    Completed,
    /// The execution has failed.
    Failed {
        /// The value of `wasExecutionFailure`.
        ran: bool,
    },
    /// The execution was skipped.
    Skipped,
}

impl Phase {
    /// Returns whether the phase is final.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed { .. } | Self::Skipped)
    }

    /// Returns whether the status says that nothing of the workflow ran.
    #[must_use]
    pub fn says_nothing_ran(self) -> bool {
        matches!(self, Self::Skipped | Self::Failed { ran: false })
    }
}

/// A `WorkflowExecution` in the API server.
#[allow(clippy::struct_excessive_bools)] // each is a separate field in the status, and all combinations are possible
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Execution {
    /// The identity of the execution.
    pub id: ExecutionId,
    /// The number of writes so far.
    pub version: Version,
    /// The phase of the execution.
    pub phase: Phase,
    /// The value of `status.runSequence`; 0 if it is absent.
    pub sequence: Number,
    /// Whether a user has requested the cancellation.
    pub cancelled: bool,
    /// Whether the status says that the target drains.
    pub draining: bool,
    /// The number of attempts in the status; 0 without a retry policy, or before the first attempt.
    pub attempts: u8,
    /// Whether the last attempt has not begun yet.
    pub waits: bool,
    /// Whether the status says that something of a finished attempt ran.
    pub ran: bool,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Progress {
    /// Created with `PipelineRunPending`.
    Pending,
    /// Released to Tekton.
    Released,
    /// Finished.
    Done {
        /// Whether the run succeeded.
        ok: bool,
        /// Whether something of the run may have run, if the run did not succeed.
        ran: bool,
    },
}

/// The end that Tekton gives a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The run succeeds, unless a user has cancelled it.
    Well,
    /// The run fails, and it is proven that nothing of it ran.
    Unstarted,
    /// The run fails half-way.
    Broken,
}

/// A run in the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// The identity of the run.
    pub uid: RunUid,
    /// The position of the run in its chain.
    pub number: Number,
    /// The owner of the run; `None` for a foreign run.
    pub owner: Option<ExecutionId>,
    /// The number of writes so far.
    pub version: Version,
    /// The progress of the run.
    pub progress: Progress,
    /// Whether Tekton was asked to cancel the run.
    pub cancelled: bool,
}

impl Run {
    /// Returns whether the run can still do something, possibly after a release.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.progress, Progress::Done { .. })
    }

    /// Returns whether the run is released and unfinished.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.progress == Progress::Released
    }
}

/// A pod of a run. It exists from the release of the run until some time after the run's end, and has the run's uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Residue {
    /// The run to which the pod belongs.
    pub run: RunUid,
    /// The owner of the run.
    pub owner: Option<ExecutionId>,
}

/// The kinds of watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The watch of `WorkflowExecution`s.
    Execution,
    /// The watch of runs.
    Run,
    /// The watch of the remains of runs.
    Residue,
}

impl Kind {
    /// All kinds of watches.
    pub const ALL: [Self; 3] = [Self::Execution, Self::Run, Self::Residue];
}
