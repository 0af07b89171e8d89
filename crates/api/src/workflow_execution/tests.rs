//! A value that is written and read again is unchanged.

use serde_json::{Value, json};

use super::*;

/// One object with every field of the schema, more than any phase allows at once.
fn full() -> Value {
    let time = "2026-01-02T03:04:05Z";
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {"name": "payment-restart", "namespace": "payment"},
        "spec": {
            "remediationRequestRef": {
                "apiVersion": "kubernaut.ai/v1alpha1", "kind": "RemediationRequest", "name": "rr-1",
                "namespace": "payment", "uid": "0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11"
            },
            "workflowRef": {
                "workflowId": "restart", "version": "1.0", "containerImage": "registry.example/workflows/restart:1.0",
                "containerDigest": format!("sha256:{}", "0".repeat(64))
            },
            "targetResource": "payment/Deployment/payment-api",
            "parameters": {"GRACE": "30"},
            "confidence": 0.92,
            "rationale": "the pods are out of memory",
            "executionConfig": {"timeout": "10m", "serviceAccountName": "runner"},
            "startBefore": time,
            "recoveryOf": "payment-scale",
            "ttlSecondsAfterFinished": 604_800,
            "retry": {
                "maxAttempts": 5, "initialDelay": "5s", "backoffMultiplier": 1.5, "maxDelay": "1m", "jitter": true,
                "retryWhen": "exitCode != 1", "stopWhen": "attempt == 4", "retryExecutionFailures": true,
                "maxDuration": "2h"
            },
            "cancellation": {"reason": "wrong cluster", "requestedBy": "jane"},
            "clearance": {"reason": "looked at it", "clearedBy": "jane"}
        },
        "status": {
            "target": "payment/deployment/payment-api",
            "phase": "Failed",
            "summary": "Exit 137: clean-up",
            "nextStep": {"action": "RetryAfter", "notBefore": time, "why": "w"},
            "startTime": time,
            "completionTime": time,
            "duration": "1m30s",
            "pipelineRunRef": {"name": "wfe-cf0cc089293b1165-7", "uid": "u", "namespace": "kubernaut-workflows"},
            "runSequence": 7,
            "pipelineRunStatus": {
                "status": "False", "reason": "Failed", "message": "m", "completedTasks": 1, "totalTasks": 2
            },
            "attempts": [{
                "attempt": 1, "delay": "1.5s", "notBefore": time, "pipelineRun": "wfe-cf0cc089293b1165-7",
                "startTime": time, "completionTime": time, "started": "True", "reason": "OOMKilled", "message": "m"
            }],
            "failureReason": "m",
            "failureDetails": {
                "failedTaskIndex": 1, "failedTaskName": "clean-up", "failedStepName": "run", "reason": "OOMKilled",
                "message": "m", "exitCode": 137, "failedAt": time, "executionTimeBeforeFailure": "1m30s",
                "naturalLanguageSummary": "s", "wasExecutionFailure": true, "requiresManualReview": true,
                "fingerprint": "OOMKilled/workflow/w@1/t/137", "sharedOutage": true
            },
            "skipDetails": {
                "reason": "ResourceBusy", "message": "m", "skippedAt": time,
                "conflictingWorkflow": {
                    "namespace": "payment", "name": "other", "workflowId": "restart", "startedAt": time,
                    "targetResource": "payment/deployment/payment-api"
                },
                "recentRemediation": {
                    "namespace": "payment", "name": "other", "workflowId": "restart", "completedAt": time, "outcome": "Completed",
                    "targetResource": "payment/deployment/payment-api", "cooldownRemaining": "4m30s"
                }
            },
            "consecutiveFailures": 2,
            "nextAllowedExecution": time,
            "clearance": {"clearedBy": "jane", "clearedAt": time, "reason": "looked at it"},
            "conditions": [{
                "type": "Succeeded", "status": "False", "reason": "OOMKilled", "message": "m",
                "lastTransitionTime": time, "observedGeneration": 1
            }],
            "observedGeneration": 1
        }
    })
}

/// Fails on the first property of `schema` that `value` does not set.
fn assert_full(path: &str, schema: &Value, value: &Value) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(!value[name].is_null(), "the sample does not set {path}");
        assert_full(&path, property, &value[name]);
    }
    if schema["items"].is_object() {
        assert_full(&format!("{path}[]"), &schema["items"], &value[0]);
    }
}

#[test]
fn every_field_survives_reading_and_writing() {
    let crds = serde_json::to_value(crate::crds()).unwrap();
    assert_full("", &crds[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &full());

    let read: WorkflowExecution = serde_json::from_value(full()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full());
}

#[test]
fn what_is_absent_is_not_written() {
    let least = json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {"name": "least"},
        "spec": {
            "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "i"},
            "targetResource": "node/worker-1"
        },
        "status": {}
    });
    let read: WorkflowExecution = serde_json::from_value(least.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), least);
}

#[test]
fn a_duration_is_a_string_whatever_it_says() {
    let mut object = full();
    object["spec"]["executionConfig"]["timeout"] = json!("99999999999999999999h");
    let read: WorkflowExecution = serde_json::from_value(object).unwrap();
    assert_eq!(read.spec.execution_config.unwrap().timeout.unwrap(), "99999999999999999999h");
}

#[test]
fn a_bad_retry_policy_does_not_hide_the_rest_of_the_spec() {
    for retry in [json!("3"), json!([]), json!({"maxAttempts": "many"}), json!(1e300)] {
        let mut object = full();
        object["spec"]["retry"] = retry.clone();
        let read: WorkflowExecution = serde_json::from_value(object).unwrap();
        assert_eq!(read.spec.retry, Some(retry));
    }
    let mut object = full();
    object["spec"]["retry"] = Value::Null;
    let read: WorkflowExecution = serde_json::from_value(object).unwrap();
    assert_eq!(read.spec.retry, None);
}
