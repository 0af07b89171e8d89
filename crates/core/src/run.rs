//! One run of a chain (a `PipelineRun` object), with the fields that decisions need.

use std::time::Duration;

use crate::Time;
use crate::chain::RunNumber;
use crate::evidence::Proof;
use crate::findings::{Findings, TaskCount, Wait};
use crate::name::{ExecutionId, RunId, Version};

/// The fields of one run that the index keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The object.
    pub id: RunId,
    /// The number of the run in the chain, from its name.
    pub number: RunNumber,
    /// The version that was read; a deletion sends it back.
    pub version: Version,
    /// When the API server created the run, in whole seconds. Used for display, never for ordering.
    pub created: Time,
    /// The position in the order of creation, as the watch delivered it.
    pub order: Order,
    /// The owner of the run.
    pub owner: Owner,
    /// How long the run is kept after it is done.
    pub stays: Stays,
    /// The phase of the run.
    pub progress: Progress,
    /// Whether the operator or a user has asked Tekton to cancel the run. The cancellation is complete only when the
    /// run is done.
    pub cancelled: bool,
    /// Why the operator asked for the cancellation, from its annotation, if it was the operator.
    pub cancel_reason: Option<CancelReason>,
    /// Whether a person has asked Tekton to start no further task of the run. Running tasks continue.
    pub stopped: bool,
    /// What Tekton reports that the run is doing (the reason of its condition), while it is not done.
    pub doing: Box<str>,
    /// The number of tasks of the pipeline, once Tekton has fetched the pipeline.
    pub total_tasks: Option<u16>,
    /// The number of skipped tasks.
    pub skipped_tasks: u16,
    /// The names of parameters that the pipeline does not declare: no task gets their values.
    pub undeclared: Box<[Box<str>]>,
    /// The time-out with which the run was created; the default may have changed since.
    pub timeout: Option<Duration>,
    /// When the run was released, from its annotation; the operator's deadlines count from then. Without the
    /// annotation: when Tekton started the run, or when this process saw the release.
    pub released_at: Option<Time>,
    /// Whether the run is being deleted; a finalizer of another controller still holds it.
    pub deleting: bool,
    /// The request to stop the run, if there is one and the run is not done. Few runs have one, so it is boxed.
    pub stop: Option<Box<StopRequest>>,
    /// What this process remembers of the run.
    pub memory: RunMemory,
}

/// How long a run is kept after it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stays {
    /// The run is kept for the retention.
    #[default]
    ForItsRetention,
    /// The run is kept for the retention, but no longer than its execution, which was created for a slot of a schedule
    /// (section 12.7).
    WithItsExecution,
}

/// What this process remembers of a run that its object does not contain. A new process remembers nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunMemory {
    /// What was seen of the run's descendants.
    pub seen: Seen,
    /// The result of examining the run live, if it has failed.
    pub diagnosed: Option<Box<Look>>,
    /// When this process first saw that the run is done.
    pub done_seen: Option<Time>,
    /// Since when the operator has tried to release the run, without a break.
    pub release_tried: Option<Time>,
}

impl RunMemory {
    /// Returns the part that is kept after the execution has ended: its status then contains what was seen and found of
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
    /// Whether anything of the run has begun: a step, a task that has ended, or an object that only its own controller
    /// understands.
    pub has_started_anything: bool,
    /// The first proof that a step ran.
    pub proof: Option<Proof>,
    /// An object that only its own controller understands.
    pub opaque: Option<Box<str>>,
    /// A task whose pod was replaced while it ran, so that its steps ran again.
    pub replayed: Option<Box<str>>,
    /// Whether the replay has been announced.
    pub replay_told: bool,
    /// The number of tasks of the pipeline that are done.
    pub completed_tasks: u16,
    /// The last wait of the run, or of one of its tasks, that was seen.
    pub waits: Option<Wait>,
    /// Whether a live read has found no task or pod left of an unfinished run that is being deleted. Tekton no longer
    /// starts anything of such a run.
    pub is_over: bool,
}

impl Seen {
    /// Keeps the facts that no watch delivers again.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        Self { replay_told: before.replay_told, is_over: before.is_over, ..self }
    }
}

/// The result of reading a failed run and its descendants live.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// When the run was read.
    pub at: Time,
    /// When the first read of this term was answered. The operator repeats inconclusive reads for some time, which
    /// counts from then.
    pub since: Time,
    /// The findings.
    pub findings: Findings,
}

/// A request to stop a run that is not done (a cancel or its deletion), with what this process remembers of the
/// request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopRequest {
    /// When the request was made: from the annotation of the operator's cancel, or the beginning of the deletion. A
    /// person's cancel has no time, so this is when this process first saw it.
    pub since: Option<Time>,
    /// When the deletion of the run began, if it is being deleted.
    pub deleted_at: Option<Time>,
    /// What Tekton reports of the run: the reason of its condition, with the message.
    pub said: Box<str>,
    /// Whether Tekton reports that it has stopped the tasks and runs the finally tasks.
    pub runs_finally: bool,
    /// `spec.managedBy`, if it is set: another controller then reconciles the run.
    pub managed_by: Option<Box<str>>,
    /// The finalizers that hold the run, separated by commas.
    pub finalizers: Box<str>,
    /// How many times the operator has asked for the cancellation.
    pub asked: u32,
    /// When this process last asked for the cancellation, in this term.
    pub asked_at: Option<Time>,
    /// Whether the missing reaction to the request was announced.
    pub told: bool,
    /// Since when this process has seen no task or pod of the run, without a break.
    pub bare_since: Option<Time>,
}

/// Why the operator cancels a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The execution of the run was deleted.
    OwnerDeleted,
    /// A person cancelled the execution in its spec.
    Requested,
    /// Nothing of the run started in time.
    NotStarted,
    /// The run did not finish in time, and Tekton did not end it.
    TimedOut,
}

/// A position in the order in which the API server created the runs of a target.
///
/// All runs from the same list share a position. Their order is unknown, so each counts as earlier than the others
/// (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order(pub u64);

/// The owner of a run, from the annotations of the run and never from its name.
#[derive(Clone, Debug, PartialEq)]
pub enum Owner {
    /// A `WorkflowExecution`.
    Execution {
        /// The execution.
        id: ExecutionId,
        /// The execution's `workflowId`, so that a rival can name it even if this process does not see the object.
        workflow_id: Box<str>,
        /// What is known about the owner, if it is not among the executions of the target.
        presence: Presence,
    },
    /// No owner: the run has a name of the chain but none of the operator's annotations. The operator never changes it.
    Nobody,
}

impl Owner {
    /// Returns the owning execution, if there is one.
    #[must_use]
    pub fn execution(&self) -> Option<&ExecutionId> {
        match self {
            Self::Execution { id, .. } => Some(id),
            Self::Nobody => None,
        }
    }

    /// Returns whether this execution is the owner.
    #[must_use]
    pub fn is(&self, execution: &ExecutionId) -> bool {
        self.execution().is_some_and(|id| id.uid == execution.uid)
    }
}

/// What is known about a run's owner that is not among the executions of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The owner should be among the executions of the target. If it is not, it is gone or not delivered yet; only a
    /// live read shows which.
    Watched,
    /// The owner is proven to be gone: its deletion was seen, or a live read did not find its uid. A uid never comes
    /// back.
    Gone,
    /// The owner lives in a namespace that this process does not watch.
    Unwatched,
}

/// The phase of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The run was created with `PipelineRunPending`: Tekton starts nothing.
    Pending,
    /// The run was released to Tekton, and is not finished.
    Released,
    /// The run is finished.
    Done(Outcome),
}

/// How a run ended, as Tekton reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the condition `Succeeded` of the run is True.
    pub succeeded: bool,
    /// The reason of that condition.
    pub reason: Box<str>,
    /// The message of that condition, cut to a limit.
    pub message: Box<str>,
    /// `status.completionTime`, if the run has one.
    pub completed_at: Option<Time>,
}

impl Run {
    /// Returns how many tasks of the run are done, if the number of tasks is known.
    #[must_use]
    pub fn tasks(&self, completed: u16) -> Option<TaskCount> {
        self.total_tasks.map(|total| TaskCount { completed, total })
    }

    /// Returns whether the run may still do something, or be released.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.progress, Progress::Done(_)) && !self.never_starts() && !self.memory.seen.is_over
    }

    /// Returns whether the run is being deleted while it runs, and is not known to be over. Tekton neither starts nor
    /// stops anything of such a run.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.deleting && matches!(self.progress, Progress::Released) && !self.memory.seen.is_over
    }

    /// Returns whether the run is pending for ever: Tekton starts nothing of a run that is being deleted.
    #[must_use]
    pub fn never_starts(&self) -> bool {
        self.deleting && self.is_pending()
    }

    /// Returns whether the run was created and not yet released.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.progress, Progress::Pending)
    }

    /// Returns whether this execution created the run.
    #[must_use]
    pub fn is_owned_by(&self, execution: &ExecutionId) -> bool {
        self.owner.is(execution)
    }

    /// Returns whether the run counts as created before another one.
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
