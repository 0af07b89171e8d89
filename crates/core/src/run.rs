//! One run of a chain (a `PipelineRun` object), as far as decisions need it.

use crate::Time;
use crate::name::{ExecutionId, RunId, Version};
use crate::target::RunNumber;

/// What the index keeps of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Which object it is.
    pub id: RunId,
    /// Its place in the chain, from its name.
    pub number: RunNumber,
    /// The version that was seen; what a deletion carries back.
    pub version: Version,
    /// When the API server made it, in whole seconds: to show, never to order by.
    pub created: Time,
    /// Its place in the order of creation, as the watch delivered it.
    pub order: Order,
    /// Whose it is.
    pub owner: Owner,
    /// How far it is.
    pub progress: Progress,
    /// Whether somebody has asked Tekton to cancel or stop it.
    pub cancelled: bool,
    /// Why we have asked for that, where it was us (from its annotation).
    pub cancel_reason: Option<CancelReason>,
    /// Whether something of it was seen to have started: a pod that left Pending, or a finished task.
    pub started: bool,
    /// Whether Tekton ever made a task of it.
    pub tasks: Tasks,
    /// When this process saw that it is done.
    pub done_seen: Option<Time>,
}

/// What is known of the tasks that Tekton has made of a run: the proof that nothing of the workflow ran (SPEC section 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tasks {
    /// Nobody can tell; it counts as if there had been some.
    #[default]
    Unknown,
    /// At least one was made.
    Made,
    /// The run has ended and says that none was made, and none was seen. Before something rests on it, that is read live.
    NoneMade,
}

/// Why the operator cancels a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Its execution was deleted.
    OwnerDeleted,
    /// A person asked for it in the execution's spec.
    Requested,
    /// Nothing of it started in time.
    NotStarted,
    /// It did not finish in time, and Tekton did not end it.
    TimedOut,
}

/// A place in the order in which the API server created the runs of a target.
///
/// All runs of one list share a place: their order among each other is unknown, and each counts as earlier than the
/// other (section 5, 1b).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order(pub u64);

/// Whose run it is: from its annotations, never from its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Owner {
    /// A `WorkflowExecution`.
    Execution {
        /// Which one.
        id: ExecutionId,
        /// Its `workflowId`, so that a rival can name it even when this process does not see its object.
        workflow_id: Box<str>,
        /// What is known of it beside the executions in the target.
        presence: Presence,
    },
    /// It has a name of the chain and no owner of ours: never touched, never adopted.
    Nobody,
}

impl Owner {
    /// Tells whether it is this execution.
    #[must_use]
    pub fn is(&self, execution: &ExecutionId) -> bool {
        matches!(self, Self::Execution { id, .. } if id.uid == execution.uid)
    }
}

/// What is known of a run's owner where the target does not hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It should be in the target's executions. Where it is not, it is gone or not delivered yet: only a live read
    /// can tell.
    Watched,
    /// It is proven to be gone: its deletion was seen, or a live read found its uid no more. A uid never comes back.
    Gone,
    /// It lives in a namespace that this process does not watch.
    Elsewhere,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Created with `PipelineRunPending`: Tekton starts nothing.
    Pending,
    /// Released to Tekton, and not finished.
    Released,
    /// Finished.
    Done(Outcome),
}

/// How Tekton says that a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether its `Succeeded` condition is True.
    pub succeeded: bool,
    /// The condition's reason.
    pub reason: Box<str>,
    /// The condition's message, cut to a limit.
    pub message: Box<str>,
    /// `status.completionTime`, where it has one.
    pub completed_at: Option<Time>,
}

impl Run {
    /// Tells whether it may still do something, or be made to.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.progress, Progress::Done(_))
    }

    /// Tells whether it was created and not yet released.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.progress, Progress::Pending)
    }

    /// Tells whether this execution made it.
    #[must_use]
    pub fn is_owned_by(&self, execution: &ExecutionId) -> bool {
        self.owner.is(execution)
    }

    /// Tells whether it counts as created before the other one.
    #[must_use]
    pub fn precedes(&self, other: &Self) -> bool {
        self.id.uid != other.id.uid && self.order <= other.order
    }
}
