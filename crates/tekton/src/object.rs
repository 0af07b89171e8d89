//! Typed views of Tekton's objects and pods, which read single fields. A missing field reads as empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use wfe_api::limits::{NAME, cut};
use wfe_core::Time;
use wfe_core::evidence::Proof;
use wfe_core::name::Uid;

use crate::moment::{moment, parse_moment};

/// The label with the uid of the run for which Tekton created an object. Tekton sets it since 0.63.
pub const RUN_UID_LABEL: &str = "tekton.dev/pipelineRunUID";
const TASK: &str = "tekton.dev/pipelineTask";
/// The label with the name of the `TaskRun` that a pod belongs to.
pub(crate) const TASK_RUN: &str = "tekton.dev/taskRun";
/// The label with the name of the run for which Tekton created an object.
pub(crate) const RUN_LABEL: &str = "tekton.dev/pipelineRun";
const TASK_RUN_UID: &str = "tekton.dev/taskRunUID";
/// The limit of a stored container id, in characters: those of containerd have 77.
const CONTAINER_ID: u32 = 128;

/// An object of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// The metadata of the object.
    pub meta: &'a ObjectMeta,
    /// All other fields.
    pub data: &'a Value,
}

impl<'a> Object<'a> {
    pub(crate) fn uid(self) -> Uid {
        Uid::new(self.meta.uid.as_deref().unwrap_or_default())
    }

    pub(crate) fn name(self) -> &'a str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    fn label(self, key: &str) -> &'a str {
        self.meta.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str).unwrap_or_default()
    }

    /// Returns the value of a label that is not empty.
    pub(crate) fn labelled(self, key: &str) -> Option<&'a str> {
        Some(self.label(key)).filter(|value| !value.is_empty())
    }

    /// Returns the uid of the run that the object was created for.
    #[must_use]
    pub fn run(self) -> Option<Uid> {
        self.labelled(RUN_UID_LABEL).map(Uid::new)
    }

    /// Returns the name of the object's task in the pipeline.
    #[must_use]
    pub fn task(self) -> &'a str {
        self.label(TASK)
    }

    pub(crate) fn condition(self) -> Condition<'a> {
        Condition::of(&self.data["status"])
    }

    pub(crate) fn completed_at(self) -> Option<Time> {
        text(&self.data["status"], "completionTime").and_then(parse_moment)
    }
}

/// The condition `Succeeded`; empty if the object has none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Condition<'a> {
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl<'a> Condition<'a> {
    pub(crate) fn of(status: &'a Value) -> Self {
        let Some(found) = list(status, "conditions").find(|condition| condition["type"] == "Succeeded") else {
            return Self::default();
        };
        let text = |key| text(found, key).unwrap_or_default();
        Self { status: text("status"), reason: text("reason"), message: text("message") }
    }

    pub(crate) fn is_done(self) -> bool {
        matches!(self.status, "True" | "False")
    }
}

/// A `TaskRun`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskRun<'a>(pub(crate) Object<'a>);

impl<'a> TaskRun<'a> {
    /// Returns the status of each attempt: the retried ones, and the last one.
    pub(crate) fn attempts(self) -> impl Iterator<Item = Attempt<'a>> {
        let status = &self.0.data["status"];
        list(status, "retriesStatus").chain([status]).map(Attempt)
    }

    pub(crate) fn last_attempt(self) -> Attempt<'a> {
        Attempt(&self.0.data["status"])
    }

    /// Returns the first proof that a step ran.
    pub(crate) fn proof(self) -> Option<Proof> {
        self.attempts().flat_map(Attempt::steps).find_map(|step| proof(self.0.name(), step.name(), step.0))
    }

    /// Returns whether a step ended in a way that proves neither that it ran nor that it did not. Such a step has no
    /// container, and its time is not the one that Tekton writes for steps that never began. A `steps` field that is
    /// not a list proves nothing either.
    pub(crate) fn is_ambiguous(self) -> bool {
        let is_odd = |value: &Value, key: &str| {
            let objects = |list: &Vec<Value>| list.iter().all(Value::is_object);
            value.get(key).is_some_and(|it| !it.is_null() && !it.as_array().is_some_and(objects))
        };
        if is_odd(&self.0.data["status"], "retriesStatus") || self.attempts().any(|it| is_odd(it.0, "steps")) {
            return true;
        }
        let created = self.0.meta.creation_timestamp.as_ref().map(moment);
        self.attempts().flat_map(Attempt::steps).any(|step| {
            step.terminated().is_some_and(|terminated| {
                let started = text(terminated, "startedAt").and_then(parse_moment);
                !is_real(terminated) && (started.is_none() || started != created)
            })
        })
    }
}

/// The part of a `TaskRun`'s status that describes one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a>(&'a Value);

impl<'a> Attempt<'a> {
    /// Returns the name of the attempt's pod; empty if there is none.
    pub(crate) fn pod(self) -> &'a str {
        text(self.0, "podName").unwrap_or_default()
    }

    pub(crate) fn steps(self) -> impl Iterator<Item = Step<'a>> {
        list(self.0, "steps").map(Step)
    }

    pub(crate) fn sidecars(self) -> impl Iterator<Item = Step<'a>> {
        list(self.0, "sidecars").map(Step)
    }
}

/// A step or a sidecar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a>(&'a Value);

impl<'a> Step<'a> {
    pub(crate) fn name(self) -> &'a str {
        text(self.0, "name").unwrap_or_default()
    }

    pub(crate) fn running_since(self) -> Option<&'a str> {
        self.0.get("running").filter(|state| state.is_object()).map(|state| text(state, "startedAt").unwrap_or("?"))
    }

    pub(crate) fn waiting_for(self) -> Option<&'a str> {
        text(self.0.get("waiting")?, "reason")
    }

    fn terminated(self) -> Option<&'a Value> {
        self.0.get("terminated").filter(|state| state.is_object())
    }

    /// Returns how the step's container ended, if a container really ended.
    pub(crate) fn end(self) -> Option<End<'a>> {
        let terminated = self.terminated().filter(|terminated| is_real(terminated))?;
        Some(End {
            exit_code: terminated["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()),
            reason: text(terminated, "reason").unwrap_or_default(),
            message: text(terminated, "message").unwrap_or_default(),
            by_tekton: text(self.0, "terminationReason").unwrap_or_default(),
        })
    }
}

/// How a container ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) exit_code: Option<i32>,
    /// The reason according to the container runtime.
    pub(crate) reason: &'a str,
    /// The termination message that the step wrote.
    pub(crate) message: &'a str,
    /// Tekton's reason; empty if there is none.
    pub(crate) by_tekton: &'a str,
}

/// The pod of a `TaskRun`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pod<'a>(pub(crate) Object<'a>);

impl<'a> Pod<'a> {
    pub(crate) fn task_run_uid(self) -> Uid {
        Uid::new(self.0.label(TASK_RUN_UID))
    }

    pub(crate) fn task_run(self) -> &'a str {
        self.0.label(TASK_RUN)
    }

    /// Returns the first proof that a step ran.
    pub(crate) fn proof(self) -> Option<Proof> {
        list(&self.0.data["status"], "containerStatuses").find_map(|container| {
            let step = text(container, "name")?.strip_prefix("step-")?;
            proof(self.task_run(), step, &container["state"])
        })
    }

    /// Returns whether a container of the workflow has left the state `waiting`. Tekton's own containers, which prepare
    /// the pod, do not count. Tekton's own and injected containers are init containers without the prefix of a sidecar.
    pub(crate) fn has_ever_run(self) -> bool {
        let status = &self.0.data["status"];
        let is_sidecar = |container: &&Value| text(container, "name").is_some_and(|name| name.starts_with("sidecar-"));
        let containers = list(status, "containerStatuses");
        let sidecars = list(status, "initContainerStatuses").filter(is_sidecar);
        let has_left = |container: &Value| {
            ["state", "lastState"]
                .into_iter()
                .any(|state| ["running", "terminated"].into_iter().any(|kind| container[state][kind].is_object()))
        };
        // In a pod that is no longer Pending, a container ran or may have run.
        !matches!(text(status, "phase"), None | Some("Pending")) || containers.chain(sidecars).any(has_left)
    }
}

/// Returns the proof that the state of a step's container contains, if there is one.
fn proof(task_run: &str, step: &str, state: &Value) -> Option<Proof> {
    let (task_run, step) = (cut(task_run, NAME), cut(step, NAME));
    if let Some(since) = Step(state).running_since() {
        return Some(Proof::running(&task_run, &step, &cut(since, 32), parse_moment(since)));
    }
    let terminated = Step(state).terminated().filter(|terminated| is_real(terminated))?;
    let at = text(terminated, "startedAt").and_then(parse_moment);
    Some(Proof::ended(&task_run, &step, &cut(text(terminated, "containerID")?, CONTAINER_ID), at))
}

/// Returns whether a container really ended. A state that Tekton made up has no container id.
fn is_real(terminated: &Value) -> bool {
    text(terminated, "containerID").is_some_and(|id| !id.is_empty())
}

/// Returns a text field of an object.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Returns the entries of a list field of an object.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}
