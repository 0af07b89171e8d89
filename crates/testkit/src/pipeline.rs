//! Pipelines whose tasks end as a test wants: annotations of their pods tell kwok how.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::manifests;

/// How the pod of a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Ok,
    /// Exit code 1.
    Exit1,
    /// Killed for its memory, exit code 137.
    Oom,
    /// Its image cannot be pulled; it waits for ever.
    ImagePull,
    /// Runs until its outcome is set (`World::set_outcome`).
    Hold,
}

impl Outcome {
    /// Returns the value of the annotation `test.kubernaut.ai/outcome`.
    #[must_use]
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Exit1 => "exit-1",
            Self::Oom => "oom",
            Self::ImagePull => "image-pull",
            Self::Hold => "hold",
        }
    }
}

/// A pipeline of tasks, each after the one before it.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    params: Vec<Value>,
    tasks: Vec<Task>,
}

#[derive(Debug, Clone)]
struct Task {
    name: String,
    annotations: BTreeMap<String, String>,
}

impl Pipeline {
    /// A pipeline without tasks, whose only parameter is `TARGET_RESOURCE`.
    #[must_use]
    pub fn new() -> Self {
        Self { params: vec![json!({"name": "TARGET_RESOURCE", "type": "string"})], tasks: Vec::new() }
    }

    /// Adds a task that runs for the default time (500 ms) and ends like this.
    #[must_use]
    pub fn task(mut self, name: &str, outcome: Outcome) -> Self {
        let annotations = BTreeMap::from([(format!("{ANNOTATIONS}outcome"), outcome.annotation().to_owned())]);
        self.tasks.push(Task { name: name.to_owned(), annotations });
        self
    }

    /// Sets how long the last task runs, such as `3s`.
    #[must_use]
    pub fn lasting(self, duration: &str) -> Self {
        self.annotated("duration", duration)
    }

    /// Sets the termination message of the last task's container.
    #[must_use]
    pub fn saying(self, message: &str) -> Self {
        self.annotated("message", message)
    }

    /// Keeps a deleted pod of the last task Terminating until its annotation goes.
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

    fn annotated(mut self, key: &str, value: &str) -> Self {
        if let Some(task) = self.tasks.last_mut() {
            task.annotations.insert(format!("{ANNOTATIONS}{key}"), value.to_owned());
        }
        self
    }

    /// Renders the Tekton Pipeline under this name (`workflow` is what the operator asks for).
    #[must_use]
    pub fn render(&self, name: &str) -> Value {
        let mut before: Option<&str> = None;
        let mut tasks = Vec::new();
        for task in &self.tasks {
            let mut value = json!({
                "name": task.name,
                "taskSpec": {
                    "metadata": {"annotations": task.annotations},
                    "steps": [{"name": "run", "image": "test.invalid/step", "script": "#!/bin/sh\ntrue\n"}],
                },
            });
            if let Some(before) = before {
                value["runAfter"] = json!([before]);
            }
            tasks.push(value);
            before = Some(&task.name);
        }
        json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "Pipeline",
            "metadata": {"name": name},
            "spec": {"params": self.params, "tasks": tasks},
        })
    }
}

const ANNOTATIONS: &str = "test.kubernaut.ai/";

/// Reads the objects of a bundle from a YAML file.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    manifests::read(path).context("the pipeline cannot be read")
}
