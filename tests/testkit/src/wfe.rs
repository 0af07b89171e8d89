//! Builds WorkflowExecutions as plain JSON, which may also be invalid.

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::manifests;

/// Returns the API resource `workflowexecutions`.
#[must_use]
pub fn resource() -> ApiResource {
    manifests::resource("kubernaut.ai/v1alpha1", "WorkflowExecution")
}

/// Returns the API resource `workflowschedules`.
#[must_use]
pub fn schedules() -> ApiResource {
    manifests::resource("kubernaut.ai/v1alpha1", "WorkflowSchedule")
}

/// Returns an image that does not exist. Its repository is named after the workflow, in allowed characters.
fn image_of(workflow: &str) -> String {
    let path: String = workflow.to_lowercase().chars().filter(char::is_ascii_alphanumeric).take(200).collect();
    format!("registry.invalid/workflows/{path}x:1.0.0")
}

/// A WorkflowExecution under construction. At first it is valid.
#[derive(Clone)]
#[must_use = "nothing exists until `create`"]
pub struct WfeBuilder {
    client: Client,
    value: Value,
}

impl WfeBuilder {
    pub(crate) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let value = json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowExecution",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "targetResource": "payment/deployment/payment-api",
                "workflowRef": {
                    "workflowId": "restart",
                    "version": "1.0.0",
                    "containerImage": image_of("restart"),
                },
            },
        });
        Self { client, value }
    }

    /// Sets the target to this text.
    pub fn target(self, target: &str) -> Self {
        self.patch(|value| value["spec"]["targetResource"] = json!(target))
    }

    /// Sets the id of the workflow. Unless a bundle is set, the workflow gets an image of its own.
    pub fn workflow(self, id: &str) -> Self {
        self.patch(|value| {
            let workflow = &mut value["spec"]["workflowRef"];
            let is_default =
                workflow["workflowId"].as_str().is_some_and(|before| workflow["containerImage"] == image_of(before));
            if is_default {
                workflow["containerImage"] = json!(image_of(id));
            }
            workflow["workflowId"] = json!(id);
        })
    }

    /// Sets the workflow's version.
    pub fn version(self, version: &str) -> Self {
        self.patch(|value| value["spec"]["workflowRef"]["version"] = json!(version))
    }

    /// Sets the bundle.
    pub fn image(self, image: &str) -> Self {
        self.patch(|value| value["spec"]["workflowRef"]["containerImage"] = json!(image))
    }

    /// Pins the bundle to this digest.
    pub fn digest(self, digest: &str) -> Self {
        self.patch(|value| value["spec"]["workflowRef"]["containerDigest"] = json!(digest))
    }

    /// Adds a parameter.
    pub fn parameter(self, key: &str, parameter: &str) -> Self {
        self.patch(|value| value["spec"]["parameters"][key] = json!(parameter))
    }

    /// Sets the execution's time-out, such as `30m`.
    pub fn timeout(self, timeout: &str) -> Self {
        self.patch(|value| value["spec"]["executionConfig"]["timeout"] = json!(timeout))
    }

    /// Sets the service account of the workflow's pods.
    pub fn service_account(self, name: &str) -> Self {
        self.patch(|value| value["spec"]["executionConfig"]["serviceAccountName"] = json!(name))
    }

    /// Changes the object in any way.
    pub fn patch(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.value);
        self
    }

    /// Returns the object.
    #[must_use]
    pub fn json(&self) -> Value {
        self.value.clone()
    }

    /// Creates the object as the administrator, and returns the API server's answer.
    pub async fn create(&self) -> Result<DynamicObject> {
        let namespace = self.value["metadata"]["namespace"].as_str().context("no namespace")?;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource());
        let object: DynamicObject = serde_json::from_value(self.value.clone())?;
        Ok(api.create(&PostParams::default(), &object).await?)
    }
}
