//! Specs and statuses of executions, as they are mostly right.

use fastrand::Rng;
use serde_json::{Value, json};

use super::spoil::spoil;

/// Returns the smallest spec that is allowed.
pub(super) fn least_spec() -> Value {
    json!({
        "targetResource": "payment/deployment/api",
        "workflowRef": {"workflowId": "restart", "version": "1.0.0", "containerImage": "registry.invalid/restart:1"},
    })
}

/// Makes a spec, most often a good one.
pub(super) fn spec(random: &mut Rng) -> Value {
    let mut spec = least_spec();
    let mut add = |name: &str, value: Value| {
        if random.u8(..4) == 0 {
            spec[name] = value;
        }
    };
    add("confidence", json!(0.25));
    add("parameters", json!({"DISK": "85", "A_B": ""}));
    add("executionConfig", json!({"serviceAccountName": "runner", "timeout": "90s"}));
    add("startBefore", json!("2026-01-02T03:04:05Z"));
    add("recoveryOf", json!("other"));
    add("ttlSecondsAfterFinished", json!(60));
    add("rationale", json!("why not"));
    add("remediationRequestRef", json!({"name": "rr", "kind": "RemediationRequest"}));
    add("targetResource", json!("node/worker-1"));
    if random.u8(..4) == 0 {
        spoil(random, &mut spec);
    }
    spec
}

const TIMES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00.000Z"];

/// Makes a status of some phase, most often a good one; whether it may follow what is there is another matter.
pub(super) fn status(random: &mut Rng) -> Value {
    let phase = random.choice(["Pending", "Running", "Running", "Completed", "Failed", "Skipped"]).unwrap_or_default();
    let time = random.choice(TIMES).unwrap_or_default();
    let mut status = json!({"phase": phase, "target": "payment/deployment/api", "observedGeneration": 1});
    let condition = json!({
        "type": "Succeeded", "status": "Unknown", "reason": phase, "message": "", "lastTransitionTime": time,
    });
    status["conditions"] = json!([condition]);
    if matches!(phase, "Running" | "Completed") {
        status["startTime"] = json!(TIMES[0]);
        status["pipelineRunRef"] = json!({"name": "wfe-1", "namespace": "workflows", "uid": "u-1"});
        status["runSequence"] = json!(1);
        status["pipelineRunStatus"] = json!({"status": "Unknown", "completedTasks": 1, "totalTasks": 2});
    }
    if matches!(phase, "Completed" | "Failed" | "Skipped") {
        status["completionTime"] = json!(time);
        status["consecutiveFailures"] = json!(u8::from(phase == "Failed"));
    }
    if phase == "Completed" {
        status["duration"] = json!("1m0s");
    }
    if phase == "Failed" {
        let execution = random.bool();
        status["failureReason"] = json!("it failed");
        status["failureDetails"] = json!({
            "executionTimeBeforeFailure": "", "failedAt": time, "failedTaskIndex": 0, "failedTaskName": "",
            "message": "it failed", "naturalLanguageSummary": "it failed", "reason": "Unknown",
            "requiresManualReview": execution, "wasExecutionFailure": execution,
        });
        status["failureDetails"]["executionTimeBeforeFailure"] = json!(random.choice(["0s", "1m30s", "1.5s"]));
    }
    if phase == "Skipped" {
        status["skipDetails"] = json!({"message": "busy", "reason": "ResourceBusy", "skippedAt": time});
    }
    if random.u8(..3) == 0 {
        spoil(random, &mut status);
    }
    status
}
