//! Pipelines whose tasks end as a test requires. Annotations of their pods tell kwok how the pods end.

use serde_json::{Value, json};

/// How the pod of a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Ok,
    /// The containers end with this exit code.
    Exit(u8),
    /// The kernel kills the containers because of their memory (exit code 137).
    Oom,
    /// The containers wait for ever with this reason, and none of them starts.
    Waiting(&'static str),
    /// Its image cannot be pulled: the containers wait with the reason `ImagePullBackOff`.
    ImagePull,
    /// The pod runs until its outcome is set (`World::set_outcome`).
    Hold,
}

impl Outcome {
    /// Returns the value of the annotation `test.kubernaut.ai/outcome`.
    #[must_use]
    pub fn annotation(self) -> String {
        match self {
            Self::Ok => "ok".to_owned(),
            Self::Exit(code) => format!("exit-{code}"),
            Self::Oom => "oom".to_owned(),
            Self::Waiting(reason) => format!("waiting-{reason}"),
            Self::ImagePull => Self::Waiting("ImagePullBackOff").annotation(),
            Self::Hold => "hold".to_owned(),
        }
    }
}

/// A pipeline of tasks that run one after the other.
#[derive(Debug, Clone)]
pub struct Pipeline {
    params: Vec<Value>,
    tasks: Vec<Value>,
    finally: Vec<Value>,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::new()
    }
}

impl Pipeline {
    /// A pipeline without tasks, whose only parameter is `TARGET_RESOURCE`.
    #[must_use]
    pub fn new() -> Self {
        let params = vec![json!({"name": "TARGET_RESOURCE", "type": "string"})];
        Self { params, tasks: Vec::new(), finally: Vec::new() }
    }

    /// Adds a task that runs for the default time (500 ms) and has this outcome.
    #[must_use]
    pub fn task(self, name: &str, outcome: Outcome) -> Self {
        self.add(task(name, outcome))
    }

    /// Adds a task that runs after all other tasks have ended. Only further tasks of this kind may follow.
    #[must_use]
    pub fn finally(mut self, name: &str, outcome: Outcome) -> Self {
        self.finally.push(task(name, outcome));
        self
    }

    /// Adds a task for another controller: a `CustomRun` that ends when a test ends it.
    #[must_use]
    pub fn custom(self, name: &str) -> Self {
        self.add(json!({"name": name, "taskRef": {"apiVersion": "example.test/v1", "kind": "Approval"}}))
    }

    /// Adds another pipeline as a task.
    #[must_use]
    pub fn pipeline(self, name: &str, inner: &Self) -> Self {
        self.add(json!({"name": name, "pipelineSpec": {"tasks": inner.tasks}}))
    }

    /// Adds a step with this outcome to the last task. All steps of a task end at the same moment.
    #[must_use]
    pub fn step(self, name: &str, outcome: Outcome) -> Self {
        self.container("steps", "step", name, outcome)
    }

    /// Adds a sidecar with this outcome to the last task. It ends at the same moment as the task's steps.
    #[must_use]
    pub fn sidecar(self, name: &str, outcome: Outcome) -> Self {
        self.container("sidecars", "sidecar", name, outcome)
    }

    /// Sets how long the last task runs, such as `3s`.
    #[must_use]
    pub fn lasting(self, duration: &str) -> Self {
        self.annotated("duration", duration)
    }

    /// Sets the termination message of the last task's containers.
    #[must_use]
    pub fn saying(self, message: &str) -> Self {
        self.annotated("message", message)
    }

    /// Keeps a deleted pod of the last task Terminating until its annotation is removed.
    #[must_use]
    pub fn terminating_slowly(self) -> Self {
        self.annotated("terminate", "hold")
    }

    /// Adds a parameter without a default.
    #[must_use]
    pub fn param(mut self, name: &str) -> Self {
        self.params.push(json!({"name": name, "type": "string"}));
        self
    }

    /// Sets the annotation `test.kubernaut.ai/KEY` on the last task's pods (see `tests/controlplane/pod-stages.yaml`).
    #[must_use]
    pub fn annotated(self, key: &str, value: &str) -> Self {
        self.patch(|task| task["taskSpec"]["metadata"]["annotations"][format!("{ANNOTATIONS}{key}")] = json!(value))
    }

    /// Changes any field of the last task.
    #[must_use]
    pub fn patch(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if let Some(task) = self.finally.last_mut().or(self.tasks.last_mut()) {
            change(task);
        }
        self
    }

    /// Renders the Tekton Pipeline under this name. The operator requires the name `workflow`.
    #[must_use]
    pub fn render(&self, name: &str) -> Value {
        let mut pipeline = json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "Pipeline",
            "metadata": {"name": name},
            "spec": {"params": self.params, "tasks": self.tasks},
        });
        if !self.finally.is_empty() {
            pipeline["spec"]["finally"] = json!(self.finally);
        }
        pipeline
    }

    fn add(mut self, mut task: Value) -> Self {
        if let Some(before) = self.tasks.last() {
            task["runAfter"] = json!([before["name"]]);
        }
        self.tasks.push(task);
        self
    }

    fn container(self, list: &str, prefix: &str, name: &str, outcome: Outcome) -> Self {
        self.annotated(&format!("outcome.{prefix}-{name}"), &outcome.annotation()).patch(|task| {
            let containers = &mut task["taskSpec"][list];
            if let Some(containers) = containers.as_array_mut() {
                containers.push(container(name));
            } else {
                *containers = json!([container(name)]);
            }
        })
    }
}

const ANNOTATIONS: &str = "test.kubernaut.ai/";

fn task(name: &str, outcome: Outcome) -> Value {
    let annotations = json!({format!("{ANNOTATIONS}outcome"): outcome.annotation()});
    json!({"name": name, "taskSpec": {"metadata": {"annotations": annotations}, "steps": [container("run")]}})
}

fn container(name: &str) -> Value {
    json!({"name": name, "image": "test.invalid/step", "script": "#!/bin/sh\ntrue\n"})
}
