//! The result of examining a failed run: whether anything of it ran, and why it failed (section 9).

use crate::evidence::{Doubt, Started};
use crate::reason::FailureReason;

/// The result of examining a failed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Whether anything ran.
    pub started: Started,
    /// Why the run failed.
    pub cause: Cause,
    /// What the run waited for in vain, if that was seen.
    pub waited: Option<Waited>,
    /// Whether the run's bundle never yielded a pipeline, for one of several causes that Tekton does not distinguish.
    pub unresolved: bool,
    /// Whether the run ended because a person cancelled it or one of its tasks.
    pub was_cancelled: bool,
    /// How many tasks of the pipeline were done.
    pub completed_tasks: u16,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// The failure reason.
    pub reason: FailureReason,
    /// The message from Tekton, cut to a limit.
    pub message: Box<str>,
    /// The task that failed or was stopped, if any.
    pub task: Option<FailedTask>,
}

/// The task of the pipeline that failed or was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTask {
    /// The name of the task in the pipeline.
    pub name: Box<str>,
    /// The position in the pipeline, from 0; finally tasks come after the others.
    pub index: u32,
    /// The step that failed, if one did.
    pub step: Option<Box<str>>,
    /// The exit code of the container that failed, if a container really ended.
    pub exit_code: Option<i32>,
    /// The host of the image that could not be pulled, if that is the cause and the task names the image.
    pub registry: Option<Box<str>>,
}

/// What a run was waiting for before anything of it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The failure reason for this wait.
    pub reason: FailureReason,
    /// A description of the wait.
    pub words: Box<str>,
}

/// What a run or a task waits for before anything starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Tekton has not accepted the run yet.
    Controller,
    /// The bundle must be fetched.
    Bundle,
    /// The definition of a task must be fetched.
    Task,
    /// The quota of pods has no room.
    Quota,
    /// No node has room for the pod.
    Node,
    /// An image must be pulled.
    Image,
    /// The pod does not start, for an unknown cause.
    Pod,
}

/// How many tasks of a run are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCount {
    /// How many tasks of the pipeline are done, without skipped tasks.
    pub completed: u16,
    /// How many tasks the pipeline has.
    pub total: u16,
}

impl Findings {
    /// Returns the findings for a run that could not be examined.
    #[must_use]
    pub fn unread(message: Box<str>) -> Self {
        Self {
            started: Started::Unknown(Doubt::Unread),
            cause: Cause { reason: FailureReason::Unknown, message, task: None },
            waited: None,
            unresolved: false,
            was_cancelled: false,
            completed_tasks: 0,
        }
    }

    /// Returns whether a later examination may find more.
    #[must_use]
    pub fn may_change(&self) -> bool {
        matches!(&self.started, Started::Unknown(doubt) if doubt.may_pass())
    }
}

impl Wait {
    /// Returns the failure reason of a run that waited for this in vain.
    #[must_use]
    pub fn reason(self) -> FailureReason {
        match self {
            Self::Bundle | Self::Image => FailureReason::ImagePullBackOff,
            Self::Quota | Self::Node => FailureReason::ResourceExhausted,
            Self::Controller | Self::Task | Self::Pod => FailureReason::Unknown,
        }
    }

    /// Describes the wait.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "Tekton to take it up",
            Self::Bundle => "the bundle to be fetched",
            Self::Task => "the definition of a task to be fetched",
            Self::Quota => "room in the quota of the execution namespace",
            Self::Node => "a node with room for its pod",
            Self::Image => "an image to be pulled",
            Self::Pod => "its pod to start",
        }
    }
}
