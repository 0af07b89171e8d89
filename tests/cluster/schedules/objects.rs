//! Two valid schedules, and helpers that try changes.

use anyhow::{Context as _, Result};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, Request};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use wfe_api::WorkflowSchedule;
use wfe_testkit::ControlPlane;

use crate::admission::objects::{Namespaced, Refusal, refusal};

/// A namespace of its own, and untyped schedules in it.
pub(super) struct Schedules {
    pub(super) control_plane: ControlPlane,
    pub(super) namespace: String,
    pub(super) client: Client,
    pub(super) api: Api<DynamicObject>,
}

impl Schedules {
    /// Creates the namespace on the shared control plane.
    pub(super) async fn new() -> Result<Self> {
        Self::of(&Namespaced::new().await?).await
    }

    /// Uses an existing namespace for schedules.
    pub(super) async fn of(namespaced: &Namespaced) -> Result<Self> {
        let (control_plane, namespace) = (namespaced.control_plane.clone(), namespaced.namespace.clone());
        let client = control_plane.client().await?;
        let api = Api::namespaced_with(client.clone(), &namespace, &kind());
        Ok(Self { control_plane, namespace, client, api })
    }

    /// Tries to create a schedule as a dry run. Unknown fields are refused too.
    pub(super) async fn try_create(&self, object: Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(&kind(), Some(&self.namespace));
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let mut request = Request::new(url).create(&dry_run, serde_json::to_vec(&object)?)?;
        // `PostParams` cannot express this parameter.
        *request.uri_mut() = format!("{}&fieldValidation=Strict", request.uri()).parse()?;
        refusal(self.client.request::<DynamicObject>(request).await)
    }

    /// Creates a schedule, and returns its name.
    pub(super) async fn create(&self, object: Value) -> Result<String> {
        let object = serde_json::from_value(object)?;
        Ok(self.api.create(&PostParams::default(), &object).await?.name_any())
    }

    /// Tries to merge a patch into the spec.
    pub(super) async fn try_spec(&self, name: &str, spec: Value) -> Result<Refusal> {
        let patch = Patch::Merge(json!({"spec": spec}));
        refusal(self.api.patch(name, &PatchParams::default(), &patch).await)
    }

    /// Tries to create a schedule as this user, as a dry run.
    pub(super) async fn try_create_as(&self, user: &str, object: Value) -> Result<Refusal> {
        create_as(&self.client, user, &kind(), &self.namespace, &object).await
    }

    /// Tries to merge a patch into the status as this user.
    pub(super) async fn patch_status_as(&self, user: &str, name: &str, status: &Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(&kind(), Some(&self.namespace));
        let patch = Patch::Merge(json!({"status": status}));
        let mut request = Request::new(url).patch_subresource("status", name, &PatchParams::default(), &patch)?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await)
    }

    /// Tries to merge a patch as this user.
    pub(super) async fn patch_as(&self, user: &str, name: &str, patch: Value) -> Result<Refusal> {
        let url = DynamicObject::url_path(&kind(), Some(&self.namespace));
        let mut request = Request::new(url).patch(name, &PatchParams::default(), &Patch::Merge(patch))?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await)
    }
}

fn kind() -> ApiResource {
    ApiResource::erase::<WorkflowSchedule>(&())
}

/// Tries to create an object of any kind as this user, as a dry run.
pub(super) async fn create_as(
    client: &Client,
    user: &str,
    kind: &ApiResource,
    namespace: &str,
    object: &Value,
) -> Result<Refusal> {
    let url = DynamicObject::url_path(kind, Some(namespace));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut request = Request::new(url).create(&dry_run, serde_json::to_vec(object)?)?;
    request.headers_mut().insert("Impersonate-User", user.parse()?);
    refusal(client.request::<DynamicObject>(request).await)
}

/// Returns a valid schedule with an interval, and with every other field that may be set at creation.
pub(super) fn good() -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowSchedule",
        "metadata": {"generateName": "wfs-"},
        "spec": {
            "interval": "1h",
            "spread": "1m",
            "minInterval": "5m",
            "maxInterval": "12h",
            "startingDeadlineSeconds": 600,
            "suspend": false,
            "template": {
                "metadata": {"labels": {"team": "payment"}, "annotations": {"example.com/why": "it leaks"}},
                "spec": {
                    "workflowRef": {
                        "workflowId": "deployment-restart", "version": "1.0",
                        "containerImage": "registry.example/workflows/deployment-restart:1.0",
                        "containerDigest": format!("sha256:{}", "0f".repeat(32)),
                    },
                    "targetResource": "payment/deployment/payment-api",
                    "parameters": {"READY_TIMEOUT": "90s"},
                    "executionConfig": {"timeout": "10m", "serviceAccountName": "kubernaut-workflow-runner"},
                    "rationale": "it leaks memory",
                    "ttlSecondsAfterFinished": 60,
                    "retry": {"maxAttempts": 3, "initialDelay": "1s"},
                },
            },
            "history": {"successful": 3, "failed": 3},
            "hint": {
                "nextRunAt": "2098-01-02T03:04:05Z", "expiresAt": "2098-01-02T03:14:05Z", "reason": "quiet until then",
            },
            "triage": {
                "analyst": "Pipeline",
                "after": 3,
                "workflowRef": {
                    "workflowId": "analyst", "version": "1.0",
                    "containerImage": "registry.example/workflows/analyst:1.0",
                    "containerDigest": format!("sha256:{}", "0f".repeat(32)),
                },
                "serviceAccountName": "kubernaut-workflow-runner",
                "timeout": "5m",
                "allowAdjust": ["interval", "timeout", "parameters.READY_TIMEOUT"],
            },
        },
    })
}

/// Returns a valid schedule with a cron expression.
pub(super) fn by_cron() -> Result<Value> {
    let adjustable = json!(["timeout", "parameters.READY_TIMEOUT"]);
    but(
        good(),
        &[
            ("interval", json!(null)),
            ("cron", json!("0 2 * * MON-FRI")),
            ("timeZone", json!("Europe/Berlin")),
            ("triage/allowAdjust", adjustable),
        ],
    )
}

/// Returns the object with these fields set. Null removes a field. A path is relative to `spec`, or to the object if it
/// begins with a slash.
pub(super) fn but(mut object: Value, changes: &[(&str, Value)]) -> Result<Value> {
    for (field, value) in changes {
        let pointer = if field.starts_with('/') { (*field).to_owned() } else { format!("/spec/{field}") };
        let (parent, name) = pointer.rsplit_once('/').context("not a pointer")?;
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        let parent = parent.with_context(|| format!("{field} has no parent"))?;
        if value.is_null() {
            parent.remove(name).with_context(|| format!("no {field}"))?;
        } else {
            parent.insert(name.to_owned(), value.clone());
        }
    }
    Ok(object)
}
