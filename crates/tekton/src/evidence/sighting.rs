//! The facts that one version of a task or pod shows.

use wfe_api::limits::{NAME, cut};
use wfe_core::evidence::Proof;
use wfe_core::findings::Wait;
use wfe_core::name::Uid;
use wfe_core::residue::ResidueKind;

use crate::object::{Object, Pod as PodObject, Step, TaskRun};
use crate::reasons::{Meaning, TaskReason, is_about_an_image};

/// What one version of a task or pod shows about whether steps ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The uid of the run that the object was created for.
    pub run: Uid,
    pub(super) shows: Shows,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shows {
    Child(Uid, Child),
    Pod(Pod),
}

/// A task of the run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Child {
    pub(super) name: Box<str>,
    pub(super) task: Box<str>,
    pub(super) is_task_run: bool,
    pub(super) is_done: bool,
    pub(super) proof: Option<Proof>,
    /// The name of the pod in which the first step runs, and since when that step runs.
    pub(super) running: Option<(Box<str>, Box<str>)>,
    pub(super) waiting: Option<Waiting>,
}

/// What a task waits for, and which step waits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waiting {
    pub(super) wait: Wait,
    pub(super) step: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pod {
    pub(super) task_run: Box<str>,
    pub(super) task_run_uid: Uid,
    pub(super) name: Box<str>,
    pub(super) uid: Uid,
    pub(super) proof: Option<Proof>,
    pub(super) has_left_waiting: bool,
}

impl Pod {
    pub(super) fn key(&self) -> (Uid, Box<str>) {
        (self.task_run_uid.clone(), self.name.clone())
    }
}

impl Sighting {
    /// Reads an object that Tekton created for a run; `None` if the object does not name the run.
    #[must_use]
    pub fn of(kind: ResidueKind, object: Object<'_>) -> Option<Self> {
        let run = object.run()?;
        let shows = match kind {
            ResidueKind::Pod => Shows::Pod(pod(object)),
            ResidueKind::TaskRun => Shows::Child(object.uid(), task_run(object)),
            ResidueKind::CustomRun | ResidueKind::PipelineRun => Shows::Child(object.uid(), other(object)),
        };
        Some(Self { run, shows })
    }
}

fn name(text: &str) -> Box<str> {
    cut(text, NAME).into()
}

fn other(object: Object<'_>) -> Child {
    Child {
        name: name(object.name()),
        task: name(object.task()),
        is_task_run: false,
        is_done: object.condition().is_done(),
        proof: None,
        running: None,
        waiting: None,
    }
}

fn task_run(object: Object<'_>) -> Child {
    let task_run = TaskRun(object);
    let condition = object.condition();
    let (reason, attempt) = (TaskReason::parse(condition.reason), task_run.last_attempt());
    // With another reason, the steps may be those of an earlier pod.
    let is_running = !condition.is_done() && reason == Some(TaskReason::Running);
    let first = attempt.steps().next().filter(|_| is_running);
    let since = first.and_then(Step::running_since);
    let wait = match reason.filter(|_| !condition.is_done()).map(TaskReason::means) {
        Some(Meaning::Waits(wait)) => Some(wait),
        _ => None,
    };
    let step = attempt.steps().find(|step| step.waiting_for().is_some_and(is_about_an_image));
    Child {
        is_task_run: true,
        proof: task_run.proof(),
        running: since.map(|since| (name(attempt.pod()), name(since))),
        waiting: wait.map(|wait| Waiting { wait, step: step.map(|step| name(step.name())) }),
        ..other(object)
    }
}

fn pod(object: Object<'_>) -> Pod {
    let pod = PodObject(object);
    Pod {
        task_run: name(pod.task_run()),
        task_run_uid: pod.task_run_uid(),
        name: name(object.name()),
        uid: object.uid(),
        proof: pod.proof(),
        has_left_waiting: pod.has_ever_run(),
    }
}
