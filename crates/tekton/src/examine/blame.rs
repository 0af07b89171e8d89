//! Finds the task that is to blame for the failure of a run, and the reason.

use std::collections::BTreeMap;

use serde_json::Value;
use wfe_api::limits::{NAME, cut};
use wfe_core::Time;
use wfe_core::findings::FailedTask;
use wfe_core::findings::Wait;
use wfe_core::reason::FailureReason;

use super::registry::registry_of_step;
use crate::evidence::Remains;
use crate::object::{End, Object, Step, TaskRun, list, text};
use crate::reasons::{CustomReason, Meaning, RunReason, StepReason, TaskReason};
use crate::words::denial;

/// The `spec.statusMessage` of a TaskRun that was cancelled because its run timed out (1.9, 1.12).
const CANCELLED_FOR_TIMEOUT: &str = "TaskRun cancelled as the PipelineRun it belongs to has timed out.";
/// The container runtime's reason for a container that used too much memory.
const OOM_KILLED: &str = "OOMKilled";

/// The task to blame.
#[derive(Clone, Debug)]
pub(super) struct Blamed<'a> {
    pub(super) task: FailedTask,
    pub(super) reason: FailureReason,
    pub(super) message: String,
    /// Whether a person or program cancelled the task, and not a time-out.
    pub(super) was_cancelled: bool,
    /// Whether the task did not fail by itself: it was stopped, or is still running.
    was_stopped: bool,
    /// When the task ended, its position and its name, to order several tasks.
    order: (Option<Time>, u32, &'a str),
}

/// Finds the task to blame: the first that failed. A stopped task is blamed only if no task failed, or if the whole run
/// timed out, because then the stopped task took too long.
pub(super) fn blame<'a>(
    remains: Remains<'a>,
    has_timed_out: bool,
    waiting: Option<(Wait, Option<&str>)>,
) -> Option<Blamed<'a>> {
    let task_runs = remains.task_runs.iter().filter_map(|object| {
        let task_run = TaskRun(*object);
        let mut blamed = of_task_run(task_run, waiting)?;
        let waited = waiting.filter(|(wait, _)| *wait == Wait::Image).map(|(_, step)| step);
        // A task that was stopped while it waited for its image names its registry, too.
        if blamed.reason == FailureReason::ImagePullBackOff || waited.is_some() {
            let step = blamed.task.step.as_deref().or(waited.flatten());
            blamed.task.registry = registry_of_step(remains, task_run, step);
        }
        Some(blamed)
    });
    let others = remains.others.iter().filter_map(|object| of_other(*object));
    let places = places(remains.run);
    let candidates = task_runs.chain(others).map(|mut blamed| {
        blamed.task.index = places.get(&*blamed.task.name).copied().unwrap_or(0);
        blamed.order.1 = blamed.task.index;
        blamed
    });
    candidates.min_by_key(|blamed| {
        let (ended_at, index, name) = blamed.order;
        (blamed.was_stopped != has_timed_out, ended_at.is_none(), ended_at, index, name)
    })
}

/// Returns the positions of the tasks in the pipeline. Finally tasks come after the others. The tasks of a matrix share
/// one position.
fn places(run: Option<Object<'_>>) -> BTreeMap<&str, u32> {
    let pipeline = run.and_then(|run| run.data.pointer("/status/pipelineSpec")).unwrap_or(&Value::Null);
    let tasks = list(pipeline, "tasks").chain(list(pipeline, "finally"));
    tasks.zip(0..).filter_map(|(task, place)| Some((text(task, "name")?, place))).collect()
}

fn blamed(object: Object<'_>, reason: FailureReason) -> Blamed<'_> {
    let condition = object.condition();
    let task =
        FailedTask { name: cut(object.task(), NAME).into(), index: 0, step: None, exit_code: None, registry: None };
    let message = format!("{}: {}: {}", object.name(), condition.reason, condition.message);
    Blamed {
        task,
        reason,
        message,
        was_cancelled: false,
        was_stopped: false,
        order: (object.completed_at(), 0, object.name()),
    }
}

fn of_task_run<'a>(task_run: TaskRun<'a>, waiting: Option<(Wait, Option<&str>)>) -> Option<Blamed<'a>> {
    let object = task_run.0;
    let condition = object.condition();
    let meaning = TaskReason::parse(condition.reason).map(TaskReason::means);
    if condition.status == "True" || condition.is_done() && meaning == Some(Meaning::Succeeded) {
        return None;
    }
    if !condition.is_done() {
        // The task is still running, or the run ended without waiting for it.
        return Some(Blamed { was_stopped: true, ..blamed(object, FailureReason::Unknown) });
    }
    Some(match meaning {
        Some(Meaning::Cancelled) => {
            let said = object.data.pointer("/spec/statusMessage");
            let timed_out = said.is_some_and(|said| said == CANCELLED_FOR_TIMEOUT);
            let reason = if timed_out { FailureReason::DeadlineExceeded } else { FailureReason::Unknown };
            Blamed { was_cancelled: !timed_out, was_stopped: true, ..blamed(object, reason) }
        }
        Some(Meaning::Failed(FailureReason::ImagePullBackOff)) => {
            let mut blamed = blamed(object, FailureReason::ImagePullBackOff);
            blamed.task.step = step_that_waited(task_run, waiting);
            blamed
        }
        Some(Meaning::Failed(reason)) => Blamed { task: of_steps(task_run).task, ..blamed(object, reason) },
        // If the reason is unknown, the steps show the cause.
        _ => of_steps(task_run),
    })
}

/// Returns the step whose image was not available: the only step, or the step that was seen waiting for its image.
fn step_that_waited(task_run: TaskRun<'_>, waiting: Option<(Wait, Option<&str>)>) -> Option<Box<str>> {
    let mut steps = task_run.last_attempt().steps().map(Step::name);
    let name = match (steps.next(), steps.next(), waiting) {
        (Some(only), None, _) => only,
        (_, _, Some((Wait::Image, Some(step)))) => step,
        _ => return None,
    };
    Some(cut(name, NAME).into())
}

/// Reads why a TaskRun failed, from those of its steps and sidecars whose container really ended.
fn of_steps(task_run: TaskRun<'_>) -> Blamed<'_> {
    let attempt = task_run.last_attempt();
    let failed = |step: Step<'_>| step.end().is_some_and(has_failed);
    let killed = |step: Step<'_>| step.end().is_some_and(|end| end.reason == OOM_KILLED);
    let step = attempt.steps().find(|step| killed(*step)).or_else(|| attempt.steps().find(|step| failed(*step)));
    let sidecars = || attempt.sidecars();
    let sidecar = sidecars().find(|sidecar| killed(*sidecar)).or_else(|| sidecars().find(|sidecar| failed(*sidecar)));
    // A crashed sidecar is the likely cause, because it stops the steps, too.
    let is_sidecar = match TaskReason::parse(task_run.0.condition().reason) {
        Some(TaskReason::SidecarFailed | TaskReason::SidecarOom) => true,
        Some(TaskReason::StepFailed | TaskReason::StepOom) => false,
        _ => step.is_none() || sidecar.is_some_and(killed) && !step.is_some_and(killed),
    };
    let mut blamed = blamed(task_run.0, FailureReason::Unknown);
    let container = if is_sidecar { sidecar } else { step };
    let Some(end) = container.and_then(Step::end) else { return blamed };
    blamed.task.step = container.filter(|_| !is_sidecar).map(|step| cut(step.name(), NAME).into());
    blamed.task.exit_code = end.exit_code;
    blamed.reason = if end.reason == OOM_KILLED {
        FailureReason::OomKilled
    } else if StepReason::parse(end.by_tekton) == Some(StepReason::TimeoutExceeded) {
        FailureReason::DeadlineExceeded
    } else if let Some(denial) = denial(end.message) {
        blamed.message = format!("{}; {denial}", blamed.message);
        FailureReason::Forbidden
    } else {
        FailureReason::Unknown
    };
    blamed
}

fn has_failed(end: End<'_>) -> bool {
    end.exit_code.is_some_and(|code| code != 0) && StepReason::parse(end.by_tekton).is_none_or(StepReason::is_failure)
}

/// Reads why a custom run or child pipeline run failed, from its condition alone.
fn of_other(object: Object<'_>) -> Option<Blamed<'_>> {
    let condition = object.condition();
    if condition.status == "True" {
        return None;
    }
    if !condition.is_done() {
        return Some(Blamed { was_stopped: true, ..blamed(object, FailureReason::Unknown) });
    }
    let custom = CustomReason::parse(condition.reason).map(CustomReason::means);
    let meaning = match custom {
        None | Some(Meaning::Failed(FailureReason::Unknown)) => {
            RunReason::parse(condition.reason).map(RunReason::means).or(custom)
        }
        custom => custom,
    };
    Some(match meaning {
        Some(Meaning::Cancelled) => {
            Blamed { was_cancelled: true, was_stopped: true, ..blamed(object, FailureReason::Unknown) }
        }
        Some(Meaning::Failed(reason)) => blamed(object, reason),
        _ => blamed(object, FailureReason::Unknown),
    })
}
