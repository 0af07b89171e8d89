//! One object that Tekton has made for a run: a `TaskRun`, a `CustomRun`, a child run or a pod.

use serde_json::Value;

use super::life::Life;
use super::text;
use crate::report::{Moment, ObjectRef};

/// One object that was made for a run.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) created: Moment,
    pub(crate) created_time: Option<&'a str>,
    /// When the object had finished or was deleted.
    pub(crate) over: Option<Moment>,
    /// When the recording first shows that one of the object's steps ran.
    pub(crate) ran: Option<Moment>,
}

impl<'a> Piece<'a> {
    pub(super) fn read(life: &Life<'a>) -> Self {
        let when = |is: fn(&Value) -> bool| life.states.iter().find(|(_, object)| is(object)).map(|(at, _)| *at);
        let (done, ran) = match life.kind {
            "Pod" => (when(pod_is_done), when(pod_ran)),
            "TaskRun" => (when(|object| succeeded(object).is_some()), when(task_run_ran)),
            _ => (when(|object| succeeded(object).is_some()), None),
        };
        let over = [done, life.gone].into_iter().flatten().min();
        let created_time = text(life.first(), "/metadata/creationTimestamp");
        Self { object: life.object(), created: life.begun(), created_time, over, ran }
    }

    /// Returns whether the object existed and was unfinished at a moment.
    pub(crate) fn is_unfinished_at(&self, moment: Moment) -> bool {
        self.created <= moment && self.over.is_none_or(|over| moment < over)
    }
}

/// Returns whether an object has succeeded by Tekton's condition `Succeeded`; `None` while it is undecided.
pub(super) fn succeeded(object: &Value) -> Option<bool> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    match conditions.iter().find(|condition| condition["type"] == "Succeeded")?["status"].as_str()? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

fn pod_is_done(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"))
}

/// Returns whether a step of a pod ran. The steps of a task are containers with this prefix; Tekton's own have other
/// names.
fn pod_ran(pod: &Value) -> bool {
    let containers = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    containers
        .into_iter()
        .flatten()
        .any(|one| one["name"].as_str().is_some_and(|name| name.starts_with("step-")) && has_run(&one["state"]))
}

fn task_run_ran(task_run: &Value) -> bool {
    let attempts = task_run.pointer("/status/retriesStatus").and_then(Value::as_array).into_iter().flatten();
    let steps = |status: &Value| status["steps"].as_array().is_some_and(|steps| steps.iter().any(has_run));
    task_run.get("status").into_iter().chain(attempts).any(steps)
}

/// Returns whether a step is running or has ended with a container id. Without the id, Tekton has invented the end.
fn has_run(state: &Value) -> bool {
    state["running"].is_object() || text(state, "/terminated/containerID").is_some()
}
