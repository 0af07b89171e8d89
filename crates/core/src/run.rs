//! One run of a chain (a `PipelineRun` object), with the fields that decisions need.

use std::time::Duration;

use crate::Time;
use crate::chain::RunNumber;
use crate::evidence::Proof;
use crate::findings::{Findings, TaskCount, Wait};
use crate::name::{ExecutionId, RunId, Version};

/// What the index keeps of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Which object it is.
    pub id: RunId,
    /// Its place in the chain, from its name.
    pub number: RunNumber,
    /// The version that was seen; a deletion carries it back.
    pub version: Version,
    /// When the API server created it, in whole seconds: for display, never for ordering.
    pub created: Time,
    /// Its position in the order of creation, as the watch delivered it.
    pub order: Order,
    /// Its owner.
    pub owner: Owner,
    /// How long it is kept when it is done.
    pub stays: Stays,
    /// How far it is.
    pub progress: Progress,
    /// Whether Tekton has been asked to cancel it, by anybody. It is cancelled only once it is done as well.
    pub cancelled: bool,
    /// Why the operator has asked for that, if it was the operator (from its annotation).
    pub cancel_reason: Option<CancelReason>,
    /// Whether a person has asked Tekton to start no further task of it. Running tasks continue.
    pub stopped: bool,
    /// What Tekton reports that it is doing (the reason of its condition), while it is not done.
    pub doing: Box<str>,
    /// How many tasks its pipeline has, once Tekton has fetched it.
    pub total_tasks: Option<u16>,
    /// How many of them were skipped.
    pub skipped_tasks: u16,
    /// The names of its parameters that its pipeline does not declare: no task gets their values.
    pub undeclared: Box<[Box<str>]>,
    /// The time-out that it was created with; the configuration may have another default since.
    pub timeout: Option<Duration>,
    /// When it was released, from its annotation; the operator's deadlines count from then. Without the annotation,
    /// Tekton's own start, or when this process saw the release.
    pub released_at: Option<Time>,
    /// Whether its deletion has begun; a finalizer of another controller still holds it.
    pub deleting: bool,
    /// The request to stop it, if there is one and it is not done. Few runs have one, so it is boxed.
    pub stop: Option<Box<StopRequest>>,
    /// What this process remembers of it.
    pub memory: RunMemory,
}

/// How long a run is kept when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stays {
    /// For the retention.
    #[default]
    ForItsRetention,
    /// The same, but no longer than its execution, which was made for a slot of a schedule (section 12.7).
    WithItsExecution,
}

/// What this process remembers of a run, in addition to its object. A new process remembers nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunMemory {
    /// What was seen of its descendants.
    pub seen: Seen,
    /// The result of examining it live, if it has failed.
    pub diagnosed: Option<Box<Look>>,
    /// When it was seen that it is done.
    pub done_seen: Option<Time>,
    /// Since when its release has been tried, without a break.
    pub release_tried: Option<Time>,
}

impl RunMemory {
    /// Returns the part that is kept after the end of its execution, whose status then has what was seen and found of
    /// the run.
    #[must_use]
    pub fn kept(self) -> Self {
        let seen = Seen { is_over: self.seen.is_over, ..Seen::default() };
        Self { seen, diagnosed: None, ..self }
    }
}

/// What this process has seen of a run's descendants while it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether anything of it has begun: a step, a task that has ended, or an object that only its own controller
    /// understands.
    pub has_started_anything: bool,
    /// The first proof that a step ran.
    pub proof: Option<Proof>,
    /// An object that only its own controller understands.
    pub opaque: Option<Box<str>>,
    /// A task whose pod was replaced while it ran, so that its steps ran again.
    pub replayed: Option<Box<str>>,
    /// Whether that has been announced.
    pub replay_told: bool,
    /// How many tasks of its pipeline are done.
    pub completed_tasks: u16,
    /// The last wait of the run or of one of its tasks that was seen.
    pub waits: Option<Wait>,
    /// Whether a live read has found nothing left of it, although it is unfinished: its deletion has begun, so Tekton
    /// starts nothing of it any more.
    pub is_over: bool,
}

impl Seen {
    /// Keeps what no watch delivers again.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        Self { replay_told: before.replay_told, is_over: before.is_over, ..self }
    }
}

/// The result of reading a failed run and its descendants live.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// When.
    pub at: Time,
    /// When the first read of this term was answered: the patience with a read that could not tell counts from then.
    pub since: Time,
    /// The findings.
    pub findings: Findings,
}

/// A request to stop a run that is not done: a cancel or its deletion, with what this process remembers of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopRequest {
    /// When it was made: from the annotation of the operator's cancels, else the beginning of the deletion. A person's
    /// cancel has no time, so this is when this process first saw it.
    pub since: Option<Time>,
    /// When the deletion of the run began, if it has.
    pub deleted_at: Option<Time>,
    /// What Tekton reports of the run: the reason of its condition, with the message.
    pub said: Box<str>,
    /// Whether Tekton reports that it has stopped the tasks and runs the finally tasks.
    pub runs_finally: bool,
    /// `spec.managedBy`, if it is set: then another controller works on the run.
    pub managed_by: Option<Box<str>>,
    /// The finalizers that hold it, separated by commas.
    pub finalizers: Box<str>,
    /// How often the operator has asked for the cancel.
    pub asked: u32,
    /// When this process asked for it last, in this term.
    pub asked_at: Option<Time>,
    /// Whether it was announced that the request is not answered.
    pub told: bool,
    /// Since when this process has seen nothing left of the run, without a break.
    pub bare_since: Option<Time>,
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

/// A position in the order in which the API server created the runs of a target.
///
/// All runs of one list share a position: their order is unknown, and each counts as earlier than the other (section
/// 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order(pub u64);

/// The owner of a run: from its annotations, never from its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Owner {
    /// A `WorkflowExecution`.
    Execution {
        /// The execution.
        id: ExecutionId,
        /// Its `workflowId`, so that a rival can name it even when this process does not see its object.
        workflow_id: Box<str>,
        /// What is known about the owner if it is not among the executions of the target.
        presence: Presence,
    },
    /// It has a name of the chain and none of our annotations: never changed, never adopted.
    Nobody,
}

impl Owner {
    /// Returns the execution, if it is one.
    #[must_use]
    pub fn execution(&self) -> Option<&ExecutionId> {
        match self {
            Self::Execution { id, .. } => Some(id),
            Self::Nobody => None,
        }
    }

    /// Returns whether it is this execution.
    #[must_use]
    pub fn is(&self, execution: &ExecutionId) -> bool {
        self.execution().is_some_and(|id| id.uid == execution.uid)
    }
}

/// What is known of a run's owner that is not among the executions of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It should be among the executions of the target. If it is not, it is gone or not delivered yet, and only a live
    /// read can tell.
    Watched,
    /// It is proven to be gone: its deletion was seen, or a live read did not find its uid. A uid never comes back.
    Gone,
    /// It lives in a namespace that this process does not watch.
    Unwatched,
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

/// How a run ended, as Tekton reports it.
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
    /// Returns how far it is, if that is known.
    #[must_use]
    pub fn tasks(&self, completed: u16) -> Option<TaskCount> {
        self.total_tasks.map(|total| TaskCount { completed, total })
    }

    /// Returns whether it may still do something, or be released.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.progress, Progress::Done(_)) && !self.never_starts() && !self.memory.seen.is_over
    }

    /// Returns whether its deletion has begun while it runs, and it is not known to be over. Tekton starts nothing of
    /// such a run, and stops nothing of it.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.deleting && matches!(self.progress, Progress::Released) && !self.memory.seen.is_over
    }

    /// Returns whether it is pending for ever: its deletion has begun, and Tekton starts nothing that is being deleted.
    #[must_use]
    pub fn never_starts(&self) -> bool {
        self.deleting && self.is_pending()
    }

    /// Returns whether it was created and not yet released.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.progress, Progress::Pending)
    }

    /// Returns whether this execution made it.
    #[must_use]
    pub fn is_owned_by(&self, execution: &ExecutionId) -> bool {
        self.owner.is(execution)
    }

    /// Returns whether it counts as created before the other one.
    #[must_use]
    pub fn precedes(&self, other: &Self) -> bool {
        self.id.uid != other.id.uid && self.order <= other.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, done, looked, run};

    #[test]
    fn what_a_status_says_of_a_run_is_not_remembered_beside_it() {
        let mut memory = looked(run(1, "a", done(false))).memory;
        memory.seen.has_started_anything = true;
        (memory.done_seen, memory.release_tried) = (Some(at(1)), Some(at(2)));
        assert!(memory.diagnosed.is_some());
        let kept = RunMemory { done_seen: Some(at(1)), release_tried: Some(at(2)), ..RunMemory::default() };
        assert_eq!(memory.clone().kept(), kept);
        memory.seen.is_over = true;
        assert!(memory.kept().seen.is_over, "its object says no more than before that it is unfinished");
    }
}
