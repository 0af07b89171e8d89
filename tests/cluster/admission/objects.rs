//! A valid object with every field that may be set at creation, the statuses of every phase, and helpers that try
//! changes.

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use wfe_api::WorkflowExecution;
use wfe_testkit::ControlPlane;

const TIME: &str = "2026-01-02T03:04:05Z";

/// A namespace of its own, and untyped objects in it. A typed client could not send the objects that the API server
/// must refuse.
pub(crate) struct Namespaced {
    pub(crate) control_plane: ControlPlane,
    pub(crate) namespace: String,
    pub(crate) api: Api<DynamicObject>,
}

/// The API server's message, if it has refused a request.
pub(crate) type Refusal = Option<String>;

impl Namespaced {
    /// Creates the namespace on the shared control plane.
    pub(crate) async fn new() -> Result<Self> {
        Self::on(ControlPlane::shared().await?).await
    }

    /// Creates the namespace on a given control plane.
    pub(crate) async fn on(control_plane: &ControlPlane) -> Result<Self> {
        let client: Client = control_plane.client().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"generateName": "admission-"}}))?;
        let namespace = namespaces.create(&PostParams::default(), &namespace).await?.name_any();
        let resource = ApiResource::erase::<WorkflowExecution>(&());
        let control_plane = control_plane.clone();
        Ok(Self { control_plane, api: Api::namespaced_with(client, &namespace, &resource), namespace })
    }

    /// Tries to create an object as a dry run.
    pub(crate) async fn try_create(&self, object: Value) -> Result<Refusal> {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        refusal(self.api.create(&dry_run, &serde_json::from_value(object)?).await)
    }

    /// Creates a valid object and brings it to `phase` (`""`: no phase) by legal changes. Returns the object's name.
    pub(crate) async fn create_in(&self, phase: &str) -> Result<String> {
        let object = serde_json::from_value(good())?;
        let name = self.api.create(&PostParams::default(), &object).await?.name_any();
        if phase == "Completed" {
            self.must(&name, entering("Running")).await?;
        }
        if !phase.is_empty() {
            self.must(&name, entering(phase)).await?;
        }
        Ok(name)
    }

    /// Tries to merge a patch into the status.
    pub(crate) async fn try_status(&self, name: &str, status: Value) -> Result<Refusal> {
        let patch = Patch::Merge(json!({"status": status}));
        refusal(self.api.patch_status(name, &PatchParams::default(), &patch).await)
    }

    /// Tries to replace the status.
    pub(crate) async fn try_replace_status(&self, name: &str, status: Option<Value>) -> Result<Refusal> {
        let mut object = self.api.get(name).await?;
        let data = object.data.as_object_mut().context("not an object")?;
        data.remove("status");
        data.extend(status.map(|status| ("status".to_owned(), status)));
        refusal(self.api.replace_status(name, &PostParams::default(), &object).await)
    }

    /// Merges a patch into the status. A refusal is an error.
    pub(crate) async fn must(&self, name: &str, status: Value) -> Result<()> {
        match self.try_status(name, status).await? {
            None => Ok(()),
            Some(message) => bail!("{name}: {message}"),
        }
    }
}

/// Returns a refusal (400, 403 or 422) as a value, and any other error as an error.
pub(crate) fn refusal<T>(answer: kube::Result<T>) -> Result<Refusal> {
    match answer {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Returns a function that checks whether a refusal contains these words.
pub(crate) fn says(words: &str) -> impl Fn(&Refusal) -> bool {
    move |refusal: &Refusal| refusal.as_ref().is_some_and(|why| why.contains(words))
}

/// Returns an error with all failed rows of a table.
pub(crate) fn report(failures: &[String]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    bail!("{} rows:\n{}", failures.len(), failures.join("\n"))
}

/// Records a failure unless the refusal contains all of `words`. Without words, any refusal is a failure.
pub(crate) fn expect(failures: &mut Vec<String>, row: &str, words: &[&str], refusal: Refusal) {
    match refusal {
        None if words.is_empty() => {}
        None => failures.push(format!("{row}: accepted")),
        Some(message) if !words.is_empty() && words.iter().all(|word| message.contains(word)) => {}
        Some(message) => failures.push(format!("{row}: {message}")),
    }
}

/// Returns a valid object with every spec field that may be set at creation.
pub(crate) fn good() -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {"generateName": "wfe-"},
        "spec": {
            "remediationRequestRef": {
                "apiVersion": "kubernaut.ai/v1alpha1", "kind": "RemediationRequest", "name": "rr-1",
                "namespace": "payment", "uid": "0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11",
            },
            "workflowRef": {
                "workflowId": "deployment-restart", "version": "1.0",
                "containerImage": "registry.example/workflows/deployment-restart:1.0",
                "containerDigest": format!("sha256:{}", "0f".repeat(32)),
            },
            "targetResource": "payment/deployment/payment-api",
            "parameters": {"READY_TIMEOUT": "90s"},
            "confidence": 0.5,
            "rationale": "the pods are out of memory",
            "executionConfig": {"timeout": "10m", "serviceAccountName": "kubernaut-workflow-runner"},
            "startBefore": "2099-01-01T00:00:00Z",
            "recoveryOf": "payment-scale",
            "ttlSecondsAfterFinished": 60,
            "retry": {"maxAttempts": 3, "initialDelay": "1s"},
        },
    })
}

/// Returns `good()` with `value` at `pointer`. Null removes the field.
pub(crate) fn good_but(pointer: &str, value: Value) -> Result<Value> {
    let mut object = good();
    let (parent, field) = pointer.rsplit_once('/').context("not a pointer")?;
    let parent = object.pointer_mut(parent).and_then(Value::as_object_mut).context("no such parent")?;
    if value.is_null() {
        parent.remove(field).context("no such field")?;
    } else {
        parent.insert(field.to_owned(), value);
    }
    Ok(object)
}

/// Returns a valid object that is not a recovery. To create a recovery requires an additional permission.
pub(crate) fn good_request() -> Value {
    let mut object = good();
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("recoveryOf");
    }
    object
}

/// Returns the smallest legal change of the status that enters `phase` (`""`: the phase is removed).
pub(crate) fn entering(phase: &str) -> Value {
    match phase {
        "" => json!({"phase": null}),
        "Running" => json!({"phase": phase, "startTime": TIME, "pipelineRunRef": run_ref(1)}),
        "Completed" => json!({"phase": phase, "completionTime": TIME}),
        "Failed" => json!({"phase": phase, "completionTime": TIME, "failureDetails": failure_details()}),
        "Skipped" => json!({"phase": phase, "completionTime": TIME, "skipDetails": skip_details()}),
        other => json!({"phase": other}),
    }
}

/// Returns a reference to the n-th PipelineRun.
pub(crate) fn run_ref(n: u32) -> Value {
    json!({"name": format!("wfe-{n}"), "uid": format!("u-{n}"), "namespace": "kubernaut-workflows"})
}

pub(crate) fn failure_details() -> Value {
    json!({
        "failedTaskIndex": 0, "failedTaskName": "", "reason": "ImagePullBackOff", "message": "no such image",
        "failedAt": TIME, "executionTimeBeforeFailure": "0s", "naturalLanguageSummary": "It did not start.",
        "wasExecutionFailure": false, "requiresManualReview": false,
    })
}

pub(crate) fn skip_details() -> Value {
    json!({"reason": "ResourceBusy", "message": "another execution holds the target", "skippedAt": TIME})
}
