//! A server with a cluster, and runs as the operator creates them.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta};
use http::Request;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wfe_core::Time;
use wfe_operator::clock::Clock;
use wfe_simulation::cluster::{Cluster, Weather};
use wfe_simulation::server::Reply;
use wfe_simulation::service::FakeApi;

/// The namespace of the runs.
pub(crate) const NAMESPACE: &str = "runs";

pub(crate) struct Stage {
    pub(crate) api: FakeApi,
    pub(crate) clock: Clock,
    pub(crate) weather: watch::Sender<Weather>,
    cluster: JoinHandle<anyhow::Result<()>>,
}

impl Stage {
    pub(crate) fn set(seed: u64) -> Self {
        let begun = Instant::now();
        let epoch = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let clock = Clock::new(move || epoch + begun.elapsed());
        let api = FakeApi::new(seed, {
            let clock = clock.clone();
            move || clock.now()
        });
        let (weather, met) = watch::channel(Weather::default());
        let cluster = Cluster::start(api.clone(), clock.clone(), seed, met);
        let stage = Self { api, clock, weather, cluster };
        stage.send("POST", "/api/v1/namespaces", "application/json", &json!({"metadata": {"name": NAMESPACE}}));
        stage
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn send(&self, method: &str, path: &str, media: &str, body: &Value) -> Value {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path).header("content-type", media).body(body).unwrap();
        match self.api.with(|server| server.handle(&request, self.now())) {
            Reply::Answer(answer) if answer.code < 300 => answer.body,
            other => panic!("{method} {path}: {other:?}"),
        }
    }

    /// Creates a pending run with this story, as the operator does.
    pub(crate) fn make(&self, name: &str, version: &str, story: &str) -> Value {
        self.make_with_timeout(name, &format!("registry.test/{version}/{story}:1.0"), "30m0s")
    }

    pub(crate) fn make_with_timeout(&self, name: &str, bundle: &str, timeout: &str) -> Value {
        let run = json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "annotations": {
                    "kubernaut.ai/target-resource": "payment/deployment/api",
                    "kubernaut.ai/workflow-execution": format!("people/{name}"),
                    "kubernaut.ai/workflow-execution-uid": "0f0f0f0f-0000-4000-a000-00000000000f",
                    "kubernaut.ai/workflow-id": "restart-api",
                },
                "labels": {
                    "app.kubernetes.io/managed-by": "wfe-operator",
                    "kubernaut.ai/run-sequence": "4",
                    "kubernaut.ai/source-namespace": "people",
                    "kubernaut.ai/workflow-execution": name,
                },
            },
            "spec": {
                "params": [{"name": "TARGET_RESOURCE", "value": "payment/deployment/api"}],
                "pipelineRef": {
                    "params": [
                        {"name": "bundle", "value": bundle},
                        {"name": "name", "value": "workflow"},
                        {"name": "kind", "value": "pipeline"},
                    ],
                    "resolver": "bundles",
                },
                "status": "PipelineRunPending",
                "taskRunTemplate": {"serviceAccountName": "kubernaut-workflow-runner"},
                "timeouts": {"pipeline": timeout},
            },
        });
        self.send("POST", &path("pipelineruns", ""), "application/json", &run)
    }

    /// Releases a run, as the operator does.
    pub(crate) fn release(&self, name: &str) {
        let operations = json!([
            {"op": "test", "path": "/spec/status", "value": "PipelineRunPending"},
            {"op": "remove", "path": "/spec/status"},
        ]);
        self.send("PATCH", &path("pipelineruns", name), "application/json-patch+json", &operations);
    }

    /// Sends a merge patch to a run.
    pub(crate) fn merge(&self, name: &str, patch: &Value) {
        self.send("PATCH", &path("pipelineruns", name), "application/merge-patch+json", patch);
    }

    pub(crate) fn delete(&self, name: &str) {
        self.send("DELETE", &path("pipelineruns", name), "application/json", &Value::Null);
    }

    /// Waits in virtual time.
    pub(crate) async fn wait(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        assert!(!self.cluster.is_finished(), "the cluster has ended with an error");
    }

    /// Returns all objects except the namespaces.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let all = self.api.look(|server| server.objects().map(|object| Value::clone(object)).collect::<Vec<_>>());
        all.into_iter().filter(|object| object["kind"] != "Namespace").collect()
    }

    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.objects().into_iter().filter(|object| object["kind"] == kind).collect()
    }

    /// Returns the condition of a run by name.
    pub(crate) fn condition(&self, name: &str) -> Value {
        let runs = self.of_kind("PipelineRun");
        let run = runs.iter().find(|run| run["metadata"]["name"] == name).unwrap();
        run["status"]["conditions"][0].clone()
    }

    /// Returns all changes so far.
    pub(crate) fn log(&self) -> Vec<(u64, Option<Value>)> {
        let change = |change: &wfe_simulation::server::Change| (change.revision, change.is.as_deref().cloned());
        self.api.look(|server| server.changes().map(change).collect())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.cluster.abort();
    }
}

pub(crate) fn path(plural: &str, name: &str) -> String {
    let collection = format!("/apis/tekton.dev/v1/namespaces/{NAMESPACE}/{plural}");
    if name.is_empty() { collection } else { format!("{collection}/{name}") }
}
