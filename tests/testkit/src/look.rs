//! Reads the objects of a world, and waits until they satisfy a condition.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::awaits::{DEADLINE, Objects, plain, watch_until};
use crate::world::World;
use crate::{manifests, wfe};

/// Returns the API resource `pipelineruns`.
#[must_use]
pub fn pipeline_runs() -> ApiResource {
    manifests::resource("tekton.dev/v1", "PipelineRun")
}

/// Returns the API resource `taskruns`.
#[must_use]
pub fn task_runs() -> ApiResource {
    manifests::resource("tekton.dev/v1", "TaskRun")
}

/// Returns the API resource `customruns`.
#[must_use]
pub fn custom_runs() -> ApiResource {
    manifests::resource("tekton.dev/v1beta1", "CustomRun")
}

/// Returns the API resource `pods`.
#[must_use]
pub fn pods() -> ApiResource {
    manifests::resource("v1", "Pod")
}

impl World {
    /// Waits until `is` accepts a WorkflowExecution, and returns the execution. `what` completes the error "awaited
    /// that it ...".
    pub async fn await_wfe(&self, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        self.await_wfe_within(DEADLINE, name, what, is).await
    }

    /// Waits as [`World::await_wfe`] does, with another deadline.
    pub async fn await_wfe_within(
        &self,
        deadline: Duration,
        name: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let what = format!("WorkflowExecution {name} {what}");
        self.search(self.api(&wfe::resource(), self.namespace()), config, &what, deadline, |objects| {
            objects.get(name).filter(|object| is(object)).cloned()
        })
        .await
    }

    /// Waits until a WorkflowExecution is in a phase, and returns the execution.
    pub async fn await_phase(&self, name: &str, phase: &str) -> Result<Value> {
        self.await_wfe(name, &format!("is {phase}"), |wfe| wfe["status"]["phase"] == phase).await
    }

    /// Waits until a WorkflowExecution is Completed, Failed or Skipped, and returns the execution.
    pub async fn await_terminal(&self, name: &str) -> Result<Value> {
        self.await_wfe(name, "is terminal", is_terminal).await
    }

    /// Waits until `are` accepts the set of all WorkflowExecutions, and returns them by name.
    pub async fn await_wfes(&self, what: &str, are: impl Fn(&Objects) -> bool) -> Result<Objects> {
        self.await_wfes_within(DEADLINE, what, are).await
    }

    /// Waits as [`World::await_wfes`] does, with another deadline.
    pub async fn await_wfes_within(
        &self,
        deadline: Duration,
        what: &str,
        are: impl Fn(&Objects) -> bool,
    ) -> Result<Objects> {
        let api = self.api(&wfe::resource(), self.namespace());
        self.search(api, watcher::Config::default(), what, deadline, |objects| are(objects).then(|| objects.clone()))
            .await
    }

    /// Waits until `is` accepts one of the PipelineRuns, and returns that run.
    pub async fn await_run(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        self.await_some(&pipeline_runs(), what, is).await
    }

    /// Waits until `are` accepts the set of all PipelineRuns, and returns them by name.
    pub async fn await_runs(&self, what: &str, are: impl Fn(&Objects) -> bool) -> Result<Objects> {
        self.await_all(&pipeline_runs(), what, are).await
    }

    /// Waits until `is` accepts a pod of the execution namespace, and returns that pod.
    pub async fn await_pod(&self, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        self.await_some(&pods(), what, is).await
    }

    /// Waits until Tekton reports for any task that a step runs.
    ///
    /// A wait for the pod would be over too early: Tekton may not have recorded the pod's name yet. If the task is then
    /// cancelled, Tekton never deletes the pod.
    pub async fn await_running_step(&self) -> Result<Value> {
        self.await_some(&task_runs(), "says that a step runs", |task| task["status"]["steps"][0]["running"].is_object())
            .await
    }

    /// Waits until `is` accepts an object of this kind in the execution namespace, and returns that object.
    pub async fn await_some(&self, resource: &ApiResource, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let api = self.api(resource, &self.execution_namespace());
        let what = format!("a {} {what}", resource.kind);
        self.search(api, watcher::Config::default(), &what, DEADLINE, |objects| {
            objects.values().find(|object| is(object)).cloned()
        })
        .await
    }

    /// Waits until `are` accepts the set of all objects of a kind in the execution namespace.
    pub async fn await_all(
        &self,
        resource: &ApiResource,
        what: &str,
        are: impl Fn(&Objects) -> bool,
    ) -> Result<Objects> {
        self.await_many(resource, &self.execution_namespace(), what, are).await
    }

    /// Waits until `are` accepts the set of all objects of a kind in a namespace, and returns them by name.
    pub async fn await_many(
        &self,
        resource: &ApiResource,
        namespace: &str,
        what: &str,
        are: impl Fn(&Objects) -> bool,
    ) -> Result<Objects> {
        let api = self.api(resource, namespace);
        self.search(api, watcher::Config::default(), what, DEADLINE, |objects| are(objects).then(|| objects.clone()))
            .await
    }

    /// Waits until `is` accepts one object, and returns the object. `what` completes the error "awaited that it ...".
    pub async fn await_one(
        &self,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let what = format!("{} {name} {what}", resource.kind);
        self.search(self.api(resource, namespace), config, &what, DEADLINE, |objects| {
            objects.get(name).filter(|object| is(object)).cloned()
        })
        .await
    }

    /// Waits until `are` accepts the set of all pods of the execution namespace, and returns them by name.
    pub async fn await_pods(&self, what: &str, are: impl Fn(&Objects) -> bool) -> Result<Objects> {
        self.await_all(&pods(), what, are).await
    }

    /// Waits for an event with this reason about a WorkflowExecution, and returns the event.
    pub async fn await_event(&self, about: &str, reason: &str) -> Result<Value> {
        self.await_event_in(self.namespace(), about, reason).await
    }

    /// Waits for an event with this reason in a namespace about an object of this name, and returns the event.
    pub async fn await_event_in(&self, namespace: &str, about: &str, reason: &str) -> Result<Value> {
        let api = self.api(&manifests::resource("events.k8s.io/v1", "Event"), namespace);
        let what = format!("an event {reason} about {about}");
        self.search(api, watcher::Config::default(), &what, DEADLINE, |objects| {
            let fits = |event: &&Value| event["reason"] == reason && event["regarding"]["name"] == about;
            objects.values().find(fits).cloned()
        })
        .await
    }

    /// Waits for an event of this name in the namespace of the WorkflowExecutions, and returns the event.
    pub async fn await_event_named(&self, name: &str) -> Result<Value> {
        let api = self.api(&manifests::resource("events.k8s.io/v1", "Event"), self.namespace());
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let what = format!("an event named {name}");
        self.search(api, config, &what, DEADLINE, |objects| objects.get(name).cloned()).await
    }

    /// Returns the WorkflowExecutions of this world.
    pub async fn wfes(&self) -> Result<Vec<Value>> {
        self.list(&wfe::resource(), self.namespace()).await
    }

    /// Returns one WorkflowExecution.
    pub async fn get_wfe(&self, name: &str) -> Result<Value> {
        plain(&self.api(&wfe::resource(), self.namespace()).get(name).await?)
    }

    /// Deletes a WorkflowExecution.
    pub async fn delete_wfe(&self, name: &str) -> Result<()> {
        self.api(&wfe::resource(), self.namespace()).delete(name, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    /// Returns the PipelineRuns of this world.
    pub async fn runs(&self) -> Result<Vec<Value>> {
        self.list(&pipeline_runs(), &self.execution_namespace()).await
    }

    /// Returns the events of the namespace of the WorkflowExecutions (`events.k8s.io/v1`).
    pub async fn events(&self) -> Result<Vec<Value>> {
        self.events_in(self.namespace()).await
    }

    /// Returns the events of a namespace (`events.k8s.io/v1`).
    pub async fn events_in(&self, namespace: &str) -> Result<Vec<Value>> {
        self.list(&manifests::resource("events.k8s.io/v1", "Event"), namespace).await
    }

    /// Returns the pods of the execution namespace.
    pub async fn pods(&self) -> Result<Vec<Value>> {
        self.list(&pods(), &self.execution_namespace()).await
    }

    /// Ends held pods: sets the outcome (`ok`, `exit-1`, `oom`) of the pod with this name, or of all pods with this
    /// label selector (anything with `=`; empty: all pods). Returns the number of pods. No pod is an error.
    pub async fn set_outcome(&self, pods: &str, outcome: &str) -> Result<usize> {
        self.annotate_pods(pods, &json!({"test.kubernaut.ai/outcome": outcome})).await
    }

    /// Releases deleted pods that are held (`Pipeline::terminating_slowly`). The argument is the same as in
    /// [`World::set_outcome`].
    pub async fn let_pods_go(&self, pods: &str) -> Result<usize> {
        self.annotate_pods(pods, &json!({"test.kubernaut.ai/terminate": null})).await
    }

    async fn annotate_pods(&self, pods: &str, annotations: &Value) -> Result<usize> {
        let api = self.api(&self::pods(), &self.execution_namespace());
        let names = if pods.is_empty() || pods.contains('=') {
            let found = api.list(&ListParams::default().labels(pods)).await?;
            found.items.into_iter().filter_map(|pod| pod.metadata.name).collect()
        } else {
            vec![pods.to_owned()]
        };
        ensure!(!names.is_empty(), "no pod matches {pods:?}");
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        for name in &names {
            api.patch(name, &PatchParams::default(), &patch)
                .await
                .with_context(|| format!("the pod {name} cannot be annotated"))?;
        }
        Ok(names.len())
    }

    /// Returns an API for the objects of a namespace.
    #[must_use]
    pub fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), namespace, resource)
    }

    async fn search<T>(
        &self,
        api: Api<DynamicObject>,
        config: watcher::Config,
        what: &str,
        deadline: Duration,
        found: impl FnMut(&Objects) -> Option<T>,
    ) -> Result<T> {
        self.note_trouble(watch_until(api, config, what, deadline, found).await)
    }

    async fn list(&self, resource: &ApiResource, namespace: &str) -> Result<Vec<Value>> {
        let objects = self.api(resource, namespace).list(&ListParams::default()).await?;
        objects.items.iter().map(plain).collect()
    }
}

/// Returns whether a WorkflowExecution is Completed, Failed or Skipped.
#[must_use]
pub fn is_terminal(wfe: &Value) -> bool {
    matches!(wfe["status"]["phase"].as_str(), Some("Completed" | "Failed" | "Skipped"))
}
