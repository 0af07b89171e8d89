//! Executions that do not exist, and are decided on as if they did.

use anyhow::{Context, Result};
use chrono::SubsecRound;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_core::target::TargetName;

use super::{Lookout, NOT_CREATED};

/// A workflow that has never run: it stands for all workflows that have not run on a target.
const NEVER_RAN: &str = "a-workflow-that-never-ran-here";

impl Lookout {
    /// Makes a new execution on a target.
    pub(crate) fn hypothetical(&self, target: &TargetName, workflow: Option<&str>) -> Result<DynamicObject> {
        self.completed(json!({
            "metadata": {"name": "a-new-execution"},
            "spec": {
                "targetResource": target.as_str(),
                "workflowRef": {
                    "workflowId": workflow.unwrap_or(NEVER_RAN),
                    "version": "1",
                    "containerImage": "registry.invalid/workflow:1",
                },
            },
        }))
    }

    /// Adds the fields that the API server would set on a new execution.
    pub(crate) fn completed(&self, mut object: Value) -> Result<DynamicObject> {
        let name = object.pointer("/metadata/name").or_else(|| object.pointer("/metadata/generateName"));
        let name = name.and_then(Value::as_str).unwrap_or("unnamed").to_owned();
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or(&self.namespace);
        let metadata = json!({
            "name": name,
            "namespace": namespace,
            "uid": NOT_CREATED,
            "resourceVersion": "0",
            "creationTimestamp": self.connection.now().trunc_subsecs(0).to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        });
        let fields = object.as_object_mut().context("is not an object")?;
        fields.insert("metadata".to_owned(), metadata);
        fields.remove("status");
        serde_json::from_value(object).context("does not have the shape of an object")
    }
}
