//! Complete objects as the tests expect them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Returns a PipelineRun without the fields that the API server sets at every creation.
pub(crate) fn as_sent(run: &Value) -> Value {
    let mut run = run.clone();
    if let Some(metadata) = run["metadata"].as_object_mut() {
        for server_made in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(server_made);
        }
    }
    run
}

/// Returns the first PipelineRun of `payment/deployment/payment-api` as it is created (section 8). Tekton's webhook
/// would not change it.
pub(crate) fn first_run(wfe: &Value, execution_namespace: &str, bundle: &str, params: &Value) -> Value {
    let (namespace, name) = (&wfe["metadata"]["namespace"], &wfe["metadata"]["name"]);
    json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {
            "name": "wfe-cf0cc089293b1165-1",
            "namespace": execution_namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "wfe-operator",
                "kubernaut.ai/run-sequence": "1",
                "kubernaut.ai/source-namespace": namespace,
                "kubernaut.ai/target-resource": "payment__deployment__payment-api",
                "kubernaut.ai/workflow-execution": name,
                "kubernaut.ai/workflow-id": "restart",
            },
            "annotations": {
                "kubernaut.ai/cancel-asked": "",
                "kubernaut.ai/cancel-reason": "",
                "kubernaut.ai/cancelled-at": "",
                "kubernaut.ai/released-at": "",
                "kubernaut.ai/scheduled-for": "",
                "kubernaut.ai/target-resource": "payment/deployment/payment-api",
                "kubernaut.ai/workflow-execution": format!("{}/{}", text(namespace), text(name)),
                "kubernaut.ai/workflow-execution-uid": wfe["metadata"]["uid"],
                "kubernaut.ai/workflow-id": "restart",
            },
        },
        "spec": {
            "status": "PipelineRunPending",
            "pipelineRef": {
                "resolver": "bundles",
                "params": [
                    {"name": "bundle", "value": bundle},
                    {"name": "name", "value": "workflow"},
                    {"name": "kind", "value": "pipeline"},
                ],
            },
            "params": params,
            "timeouts": {"pipeline": "10m0s"},
            "taskRunTemplate": {"serviceAccountName": "kubernaut-workflow-runner"},
        },
    })
}

/// Returns the string in a value; empty if the value is not a string.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a condition of a WorkflowExecution as `status reason`; empty if there is none.
pub(crate) fn condition(wfe: &Value, kind: &str) -> String {
    let conditions = wfe["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    found.map(|condition| format!("{} {}", text(&condition["status"]), text(&condition["reason"]))).unwrap_or_default()
}

/// Returns the names of the fields in a status.
pub(crate) fn fields(wfe: &Value) -> BTreeSet<&str> {
    wfe["status"].as_object().into_iter().flatten().map(|(field, _)| field.as_str()).collect()
}

/// Returns the default status that the API server gives a new execution.
pub(crate) fn unwritten() -> Value {
    json!({"observedGeneration": -1})
}
