//! What was found of a run that failed, when it had ended: whether anything of it ran, and why it failed (section
//! 9).

use crate::evidence::{Doubt, Started};
use crate::reason::FailureReason;

/// What a look at a run that failed has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Whether anything ran.
    pub started: Started,
    /// Why it failed.
    pub cause: Cause,
    /// What it waited for in vain, where that was seen.
    pub waited: Option<Waited>,
    /// Whether its bundle never gave a pipeline, for one of several causes of which nobody says which.
    pub unresolved: bool,
    /// Whether it ended because somebody cancelled it or a task of it.
    pub was_cancelled: bool,
    /// How many tasks of the pipeline were done.
    pub completed_tasks: u16,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Which of the seven.
    pub reason: FailureReason,
    /// What Tekton says, cut to a limit.
    pub message: Box<str>,
    /// The task that failed or was stopped, where one was.
    pub task: Option<FailedTask>,
}

/// The task of the pipeline that failed or was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTask {
    /// Its name in the pipeline.
    pub name: Box<str>,
    /// Its place in the pipeline, counted from 0; finally tasks come after the others.
    pub index: u32,
    /// The step that failed, where one is to blame.
    pub step: Option<Box<str>>,
    /// The exit code of the container that failed, where one really ended.
    pub exit_code: Option<i32>,
    /// The host of the image that could not be pulled, where that is why and the task names it.
    pub registry: Option<Box<str>>,
}

/// What a run of which nothing started was waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// Which of the seven that is.
    pub reason: FailureReason,
    /// Names it for people.
    pub words: Box<str>,
}

/// What a run or a task waits for before anything of it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Tekton, which has not taken it up.
    Controller,
    /// The bundle.
    Bundle,
    /// The definition of a task.
    Task,
    /// Room in a quota of pods.
    Quota,
    /// A node with room for the pod.
    Node,
    /// An image.
    Image,
    /// The pod, for no known cause.
    Pod,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskCount {
    /// How many tasks of the pipeline are done; skipped ones are not among them.
    pub completed: u16,
    /// How many tasks the pipeline has.
    pub total: u16,
}

impl Findings {
    /// What is known of a run that could not be looked at.
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

    /// Tells whether another look, a little later, may find more.
    #[must_use]
    pub fn may_change(&self) -> bool {
        matches!(&self.started, Started::Unknown(doubt) if doubt.may_pass())
    }
}

impl Wait {
    /// Returns the reason of a failure for having waited for this in vain.
    #[must_use]
    pub fn reason(self) -> FailureReason {
        match self {
            Self::Bundle | Self::Image => FailureReason::ImagePullBackOff,
            Self::Quota | Self::Node => FailureReason::ResourceExhausted,
            Self::Controller | Self::Task | Self::Pod => FailureReason::Unknown,
        }
    }

    /// Names it for people.
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
