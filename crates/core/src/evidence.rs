//! Whether anything of a workflow ran: three answers, each with its evidence (section 9).

use std::fmt;

use crate::Time;

/// Whether anything ran. Names and times in the evidence are as their source wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// It is proven that nothing ran.
    NotStarted(Absence),
    /// A step ran.
    Started(Proof),
    /// Unknown. This counts as if something had run, because repeating a workflow that ran is unsafe.
    Unknown(Doubt),
}

/// Whether anything ran, as one word; ordered from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ran {
    /// It is proven that nothing ran.
    No,
    /// It is unknown whether something ran.
    Unknown,
    /// A step ran.
    Yes,
}

/// The proof that nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// No run was released to Tekton.
    NoRun,
    /// Tekton never created a task of the run.
    NoTaskRun,
    /// Tekton created tasks, but their steps were only ever waiting.
    OnlyWaited,
}

/// The proof that a step ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What was seen.
    pub sign: Sign,
    /// The task and step, with the container or the time.
    pub words: Box<str>,
    /// When the step started, if that is known.
    pub at: Option<Time>,
}

/// The kind of proof that a step ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// The step was seen running.
    StepRunning,
    /// The step ended in a container with an id. An end without a container id did not really happen.
    StepEnded,
    /// The pod of a running task was replaced, so its steps ran, and then ran again.
    PodReplaced,
}

/// Why it is unknown whether anything ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The run and everything that Tekton created for it are gone.
    RunGone,
    /// Tekton created an object of this name that only its own controller understands: a custom run, or a pipeline in
    /// the pipeline.
    Opaque(Box<str>),
    /// A task of this name is gone.
    Vanished(Box<str>),
    /// A task of this name is unfinished.
    Unfinished(Box<str>),
    /// A step of this task ended without a container, or left the state `waiting` without being seen.
    Ambiguous(Box<str>),
    /// This task was not followed without a gap, because the operator restarted or its watch was interrupted.
    Unfollowed(Box<str>),
    /// The pod of this task is gone, and its last state was not seen.
    Unseen(Box<str>),
    /// The run has more descendants than can be followed.
    TooMany,
    /// The descendants of the run could not be read.
    Unread,
    /// In this earlier attempt something ran or may have run.
    Attempt(u32),
}

impl Ran {
    /// All words.
    pub const ALL: [Self; 3] = [Self::No, Self::Unknown, Self::Yes];

    /// Returns the word in the spelling of the condition's status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "False",
            Self::Unknown => "Unknown",
            Self::Yes => "True",
        }
    }
}

impl Started {
    /// Returns whether something ran or may have run: the value of `wasExecutionFailure`.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        !matches!(self, Self::NotStarted(_))
    }

    /// Returns the answer as one word.
    #[must_use]
    pub fn ran(&self) -> Ran {
        match self {
            Self::NotStarted(_) => Ran::No,
            Self::Started(_) => Ran::Yes,
            Self::Unknown(_) => Ran::Unknown,
        }
    }

    /// Returns the status of the condition `Started`.
    #[must_use]
    pub fn status(&self) -> &'static str {
        self.ran().as_str()
    }

    /// Returns the reason of the condition `Started`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotStarted(absence) => absence.as_str(),
            Self::Started(proof) => proof.sign.as_str(),
            Self::Unknown(doubt) => doubt.as_str(),
        }
    }
}

impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(absence) => f.write_str(absence.words()),
            Self::Started(proof) => f.write_str(&proof.words),
            Self::Unknown(doubt) => doubt.fmt(f),
        }
    }
}

impl Absence {
    /// Returns the word that programs match on.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRun => "NoRun",
            Self::NoTaskRun => "NoTaskRun",
            Self::OnlyWaited => "OnlyWaited",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NoRun => "no PipelineRun was started",
            Self::NoTaskRun => "Tekton made no task of the PipelineRun",
            Self::OnlyWaited => "no step of any task left the state waiting",
        }
    }
}

impl Sign {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::StepRunning, Self::StepEnded, Self::PodReplaced];

    /// Returns the word that programs match on.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StepRunning => "StepRunning",
            Self::StepEnded => "StepEnded",
            Self::PodReplaced => "PodReplaced",
        }
    }
}

impl Proof {
    /// Returns the proof that a step was seen running. `since` is in the spelling of its source.
    #[must_use]
    pub fn running(task_run: &str, step: &str, since: &str, at: Option<Time>) -> Self {
        let words = format!("step {step} of TaskRun {task_run} was seen running, since {since}").into();
        Self { sign: Sign::StepRunning, words, at }
    }

    /// Returns the proof that a step ended in a container.
    #[must_use]
    pub fn ended(task_run: &str, step: &str, container_id: &str, at: Option<Time>) -> Self {
        let words = format!("step {step} of TaskRun {task_run} ended in container {container_id}").into();
        Self { sign: Sign::StepEnded, words, at }
    }

    /// Returns the proof that the pod of a task was replaced while the task was running.
    #[must_use]
    pub fn replaced(task_run: &str) -> Self {
        let words = format!("the pod of TaskRun {task_run} was replaced, so its steps have run, and ran again").into();
        Self { sign: Sign::PodReplaced, words, at: None }
    }

    /// Reads a proof back from the condition in which it was recorded.
    #[must_use]
    pub fn recorded(reason: &str, message: &str, at: Option<Time>) -> Option<Self> {
        let sign = Sign::ALL.into_iter().find(|sign| sign.as_str() == reason)?;
        Some(Self { sign, words: message.into(), at })
    }
}

impl Doubt {
    /// Returns the word that programs match on.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::RunGone => "RunGone",
            Self::Opaque(_) => "Opaque",
            Self::Vanished(_) => "TaskRunGone",
            Self::Unfinished(_) => "TaskRunUnfinished",
            Self::Ambiguous(_) => "Ambiguous",
            Self::Unfollowed(_) => "NotFollowed",
            Self::Unseen(_) => "PodUnseen",
            Self::TooMany => "TooMany",
            Self::Unread => "NotRead",
            Self::Attempt(_) => "EarlierAttempt",
        }
    }

    /// Returns whether a later examination may find an answer.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unfinished(_) | Self::Unseen(_))
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunGone => f.write_str("the PipelineRun is gone, and what it made went with it"),
            Self::Opaque(name) => write!(f, "{name} is no TaskRun: only its own controller knows what it did"),
            Self::Vanished(name) => write!(f, "TaskRun {name} is gone"),
            Self::Unfinished(name) => write!(f, "TaskRun {name} is not finished"),
            Self::Ambiguous(name) => write!(f, "a container of TaskRun {name} may have run"),
            Self::Unfollowed(name) => write!(f, "TaskRun {name} was not followed all the time"),
            Self::Unseen(name) => write!(f, "the pod of TaskRun {name} is gone, and how it ended was not seen"),
            Self::TooMany => f.write_str("the run made more tasks than are followed"),
            Self::Unread => f.write_str("what the run made could not be read"),
            Self::Attempt(attempt) => write!(f, "of attempt {attempt} something ran, or nobody could tell"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_read_back_from_its_condition() {
        for proof in [
            Proof::running("t", "run", "2026-11-22T05:56:49Z", Some(crate::testing::at(0))),
            Proof::ended("t", "run", "containerd://1", None),
            Proof::replaced("t"),
        ] {
            let shown = Started::Started(proof.clone());
            assert_eq!((shown.status(), shown.may_have_run()), ("True", true));
            assert_eq!(Proof::recorded(shown.reason(), &shown.to_string(), proof.at), Some(proof));
        }
        assert_eq!(Proof::recorded("Opaque", "m", None), None);
    }

    #[test]
    fn only_what_is_proven_not_to_have_run_may_be_repeated() {
        assert!(!Started::NotStarted(Absence::OnlyWaited).may_have_run());
        assert!(Started::Unknown(Doubt::Unread).may_have_run());
        assert_eq!(Started::Unknown(Doubt::RunGone).status(), "Unknown");
        assert_eq!(Started::NotStarted(Absence::NoRun).status(), "False");
    }
}
