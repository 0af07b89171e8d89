//! Creates executions, and plays Tekton: it finishes each run right after its release, by writing the run's status.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{SecondsFormat, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use wfe_testkit::{WfeBuilder, World};

use crate::api::{self, Object, changes};

/// The number of requests that the benchmark itself has in flight at the same time.
pub(crate) const PARALLEL: usize = 16;
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
/// The pause before the player opens a watch again.
const REOPEN: Duration = Duration::from_millis(500);

/// Returns a builder for an execution. Its bundle need not exist.
pub(crate) fn execution(world: &World, name: &str, target: &str) -> WfeBuilder {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    world.wfe(name).target(target).image("registry.invalid/workflows/restart:1.0.0").digest(&digest).parameter("A", "b")
}

/// Creates executions, `PARALLEL` of them at a time.
pub(crate) async fn create_all(world: &World, executions: impl IntoIterator<Item = (String, String)>) -> Result<()> {
    stream::iter(executions)
        .map(|(name, target)| async move { execution(world, &name, &target).create().await.map(drop) })
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

/// Deletes all executions, runs and events of a world, and the objects that were made for its runs.
pub(crate) async fn clear(world: &World) -> Result<()> {
    let (client, namespace, execution) = (world.client(), world.namespace(), world.execution_namespace());
    let mut collections: Vec<String> =
        api::watched(namespace, &execution).into_iter().take(5).map(|collection| collection.path).collect();
    collections.push(format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"));
    for path in collections {
        // Without a grace period, because no kubelet ends the pod.
        let answer = api::send(&client, "DELETE", &format!("{path}?gracePeriodSeconds=0"), "", String::new()).await?;
        ensure!(answer.code == 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    Ok(())
}

/// Which objects of a run are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only the run's status.
    Plain,
    /// Also a TaskRun and a pod, written as Tekton does.
    Tasks,
}

/// Finishes every released run in a namespace, until the player is dropped.
#[derive(Debug)]
pub(crate) struct Player(JoinHandle<()>);

impl Drop for Player {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Player {
    pub(crate) fn start(client: Client, namespace: &str, mode: Mode) -> Self {
        Self(tokio::spawn(play(client, namespace.to_owned(), mode)))
    }
}

async fn play(client: Client, namespace: String, mode: Mode) {
    loop {
        // An API server that was just restarted refuses or breaks watches.
        let ended = follow(&client, &namespace, mode).await;
        eprintln!("the watch of the played Tekton is opened again: {ended:?}");
        tokio::time::sleep(REOPEN).await;
    }
}

/// Finishes the runs that a watch delivers until the watch ends. Finished runs are skipped.
async fn follow(client: &Client, namespace: &str, mode: Mode) -> Result<()> {
    // Without a version, the watch first delivers all existing runs. A list would be counted as the operator's.
    let changes = changes(api::runs(namespace).watch(client, "").await?);
    let slots = Arc::new(Semaphore::new(PARALLEL));
    let mut changes = std::pin::pin!(changes);
    while let Some(change) = changes.next().await {
        let object = change?.object;
        if !object.spec.status.is_empty() || !object.status.completion_time.is_empty() {
            continue;
        }
        let slot = Arc::clone(&slots).acquire_owned().await?;
        let (client, namespace) = (client.clone(), namespace.to_owned());
        tokio::spawn(async move {
            // The run may have been deleted. The step that waits for its end then reports this.
            if let Err(error) = finish(&client, &namespace, &object, mode).await {
                eprintln!("the run {} could not be played: {error:#}", object.metadata.name);
            }
            drop(slot);
        });
    }
    Ok(())
}

/// Returns the status of a successful run.
fn succeeded() -> Value {
    let now = now();
    json!({"status": {
        "startTime": now,
        "completionTime": now,
        "conditions": [{
            "type": "Succeeded", "status": "True", "reason": "Succeeded", "lastTransitionTime": now,
            "message": "Tasks Completed: 1 (Failed: 0, Cancelled 0), Skipped: 0",
        }],
    }})
}

async fn finish(client: &Client, namespace: &str, run: &Object, mode: Mode) -> Result<()> {
    let mut status = succeeded();
    if mode == Mode::Tasks {
        let task = play_task(client, namespace, run).await?;
        status["status"]["childReferences"] = json!([
            {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": task, "pipelineTaskName": "apply"}
        ]);
    }
    let uri = format!("{}/{}/status", api::runs(namespace).path, run.metadata.name);
    api::send(client, "PATCH", &uri, MERGE, status.to_string()).await?.object().context("the run")?;
    Ok(())
}

/// Plays the only task of a run, and returns the task's name.
async fn play_task(client: &Client, namespace: &str, run: &Object) -> Result<String> {
    let (tasks, pods) = (
        format!("/apis/tekton.dev/v1/namespaces/{namespace}/taskruns"),
        format!("/api/v1/namespaces/{namespace}/pods"),
    );
    let name = format!("{}-apply", run.metadata.name);
    let pod_name = format!("{name}-pod");
    let labels = |more: Value| {
        let mut labels = json!({
            "kubernaut.ai/workflow-execution": run.metadata.labels.owner,
            "tekton.dev/pipelineRun": run.metadata.name,
            "tekton.dev/pipelineRunUID": run.metadata.uid,
            "tekton.dev/pipelineTask": "apply",
            "tekton.dev/memberOf": "tasks",
        });
        if let (Some(labels), Value::Object(more)) = (labels.as_object_mut(), more) {
            labels.extend(more);
        }
        labels
    };
    let owner = |kind: &str, version: &str, name: &str, uid: &str| json!([{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let task = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {
            "name": name, "labels": labels(json!({})),
            "ownerReferences": owner("PipelineRun", "tekton.dev/v1", &run.metadata.name, &run.metadata.uid),
        },
        "spec": {"taskSpec": {"steps": [{"name": "run", "image": "registry.invalid/step:1", "script": "true"}]}},
    });
    let task = api::send(client, "POST", &tasks, JSON, task.to_string()).await?.object().context("the TaskRun")?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": pod_name, "labels": labels(json!({"tekton.dev/taskRun": name})),
            "ownerReferences": owner("TaskRun", "tekton.dev/v1", &name, &task.metadata.uid),
        },
        "spec": {
            "serviceAccountName": "kubernaut-workflow-runner", "automountServiceAccountToken": false,
            "restartPolicy": "Never", "containers": [{"name": "step-run", "image": "registry.invalid/step:1"}],
        },
    });
    api::send(client, "POST", &pods, JSON, pod.to_string()).await?.object().context("the pod")?;
    let began = now();
    let patch = async |uri: String, status: Value| {
        let body = json!({"status": status}).to_string();
        api::send(client, "PATCH", &format!("{uri}/status"), MERGE, body).await?.object()
    };
    let condition = |status: &str, reason: &str| json!([{"type": "Succeeded", "status": status, "reason": reason, "message": reason, "lastTransitionTime": now()}]);
    let of_pod = |phase: &str, state: Value| {
        let container = json!({
            "name": "step-run", "image": "registry.invalid/step:1", "imageID": "registry.invalid/step@sha256:0",
            "containerID": "containerd://0123456789abcdef", "ready": phase == "Running", "restartCount": 0,
            "state": state,
        });
        json!({"phase": phase, "startTime": began, "containerStatuses": [container]})
    };
    let (pod_uri, task_uri) = (format!("{pods}/{pod_name}"), format!("{tasks}/{name}"));
    let running = json!({"startedAt": began});
    patch(pod_uri.clone(), of_pod("Running", json!({"running": running}))).await?;
    let steps = json!([{"name": "run", "container": "step-run", "running": running}]);
    let status =
        json!({"podName": pod_name, "startTime": began, "steps": steps, "conditions": condition("Unknown", "Running")});
    patch(task_uri.clone(), status).await?;
    let ended = json!({
        "containerID": "containerd://0123456789abcdef", "exitCode": 0, "reason": "Completed",
        "startedAt": began, "finishedAt": now(),
    });
    patch(pod_uri, of_pod("Succeeded", json!({"terminated": ended}))).await?;
    let steps = json!([{"name": "run", "container": "step-run", "running": null, "terminated": ended}]);
    let status = json!({"completionTime": now(), "steps": steps, "conditions": condition("True", "Succeeded")});
    patch(task_uri, status).await?;
    Ok(name)
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// How long any operation may take before the benchmark gives up.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);
