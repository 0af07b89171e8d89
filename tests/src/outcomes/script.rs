//! The interventions in a run during a play, and when they happen.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, World, look};

/// A moment in the life of a run. Tasks have their names in the pipeline. A combination of a matrix is `task-0`.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// Tekton waits for the bundle.
    Resolving,
    /// The pod of this task exists, and none of its steps has started.
    Waiting(&'static str),
    /// Tekton reports that a step of this task runs.
    Running(&'static str),
    /// After a failure, a step of this task runs again.
    Retrying(&'static str),
    /// This task is handed over to another controller.
    HandedOver(&'static str),
    /// The controller of this task is asked to stop.
    ToldToStop(&'static str),
}

/// An act on a run in a play.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// Sets `spec.status` of the run, such as `Cancelled`.
    Set(&'static str),
    /// Deletes the run.
    Delete,
    /// Deletes the pod of this task, and waits until Tekton's replacement of the pod runs.
    DeletePod(&'static str),
    /// Evicts the pod of this task, as a kubelet with too little memory does.
    Evict(&'static str),
    /// Ends the held pod of this task with an outcome.
    End(&'static str, Outcome),
    /// Sets the result of this task in place of its controller: `True` or `False`.
    Answer(&'static str, &'static str),
}

impl When {
    pub(super) async fn comes(self, world: &World, run: &str) -> Result<()> {
        match self {
            Self::Resolving => {
                let resolving = |object: &Value| {
                    object["metadata"]["name"] == run
                        && object["status"]["conditions"][0]["reason"] == "ResolvingPipelineRef"
                };
                world.await_run("waits for its bundle", resolving).await?;
            }
            Self::Waiting(task) => {
                await_task(world, run, task, |status| status["steps"][0]["waiting"].is_object()).await?;
            }
            Self::Running(task) => {
                await_task(world, run, task, |status| status["steps"][0]["running"].is_object()).await?;
            }
            Self::Retrying(task) => {
                let again = |status: &Value| {
                    status["steps"][0]["running"].is_object() && status["retriesStatus"][0].is_object()
                };
                await_task(world, run, task, again).await?;
            }
            Self::HandedOver(task) => await_custom(world, run, task, &Value::Null).await?,
            Self::ToldToStop(task) => await_custom(world, run, task, &json!("RunCancelled")).await?,
        }
        Ok(())
    }
}

async fn await_task(world: &World, run: &str, task: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    let name = format!("{run}-{task}");
    let is = |object: &Value| object["metadata"]["name"] == name.as_str() && is(&object["status"]);
    world.await_some(&look::task_runs(), &format!("{name} is as wanted"), is).await?;
    Ok(())
}

async fn await_custom(world: &World, run: &str, task: &str, asked: &Value) -> Result<()> {
    let name = format!("{run}-{task}");
    let is = |object: &Value| object["metadata"]["name"] == name.as_str() && object["spec"]["status"] == *asked;
    world.await_some(&look::custom_runs(), &format!("{name} is asked for {asked}"), is).await?;
    Ok(())
}

impl Act {
    pub(super) async fn perform(self, world: &World, run: &str) -> Result<()> {
        let namespace = world.execution_namespace();
        let runs = world.api(&look::pipeline_runs(), &namespace);
        match self {
            Self::Set(status) => {
                let patch = Patch::Merge(json!({"spec": {"status": status}}));
                runs.patch(run, &PatchParams::default(), &patch).await?;
            }
            Self::Delete => {
                runs.delete(run, &DeleteParams::background()).await?;
            }
            Self::DeletePod(task) => {
                let pod = running_pod(world, run, task, &Value::Null).await?;
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                world.api(&look::pods(), &namespace).delete(name, &DeleteParams::default()).await?;
                running_pod(world, run, task, &pod["metadata"]["uid"]).await?;
            }
            Self::Evict(task) => {
                let pod = running_pod(world, run, task, &Value::Null).await?;
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                let evicted = Patch::Merge(evicted(&pod));
                world.api(&look::pods(), &namespace).patch_status(name, &PatchParams::default(), &evicted).await?;
            }
            Self::End(task, outcome) => {
                let ended = world.set_outcome(&pod_selector(run, task), &outcome.annotation()).await?;
                ensure!(ended > 0, "no pod to end");
            }
            Self::Answer(task, status) => {
                let reason = if status == "True" { "Approved" } else { "Denied" };
                let condition = json!({"type": "Succeeded", "status": status, "reason": reason, "message": reason});
                let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
                let custom_runs = world.api(&look::custom_runs(), &namespace);
                custom_runs.patch_status(&format!("{run}-{task}"), &PatchParams::default(), &patch).await?;
            }
        }
        Ok(())
    }
}

fn pod_selector(run: &str, task: &str) -> String {
    format!("tekton.dev/taskRun={run}-{task}")
}

/// Waits until a pod of this task runs that has another uid than `not`.
async fn running_pod(world: &World, run: &str, task: &str, not: &Value) -> Result<Value> {
    let task_run = format!("{run}-{task}");
    let is = |pod: &Value| {
        let metadata = &pod["metadata"];
        metadata["labels"]["tekton.dev/taskRun"] == task_run.as_str()
            && metadata["uid"] != *not
            && metadata["deletionTimestamp"].is_null()
            && pod["status"]["phase"] == "Running"
    };
    world.await_pod(&format!("of {task_run} runs"), is).await
}

/// Returns the status of a pod that was evicted while running.
fn evicted(pod: &Value) -> Value {
    let mut containers = pod["status"]["containerStatuses"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        let started = container["state"]["running"]["startedAt"].clone();
        container["ready"] = json!(false);
        container["state"] = json!({"terminated": {
            "containerID": container["containerID"],
            "exitCode": 137,
            "reason": "Error",
            "startedAt": started,
            "finishedAt": started,
        }});
    }
    json!({"status": {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "The node was low on resource: memory.",
        "containerStatuses": containers,
    }})
}
