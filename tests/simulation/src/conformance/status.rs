//! Random specs and statuses of executions, most of them valid.

use fastrand::Rng;
use serde_json::{Value, json};

use super::spoil::spoil;

/// Returns the smallest valid spec of an execution.
pub(super) fn least_spec() -> Value {
    json!({
        "targetResource": "payment/deployment/api",
        "workflowRef": {"workflowId": "restart", "version": "1.0.0", "containerImage": "registry.invalid/restart:1"},
    })
}

/// Draws a spec of an execution. In most cases it is valid.
pub(super) fn spec(random: &mut Rng) -> Value {
    let mut spec = least_spec();
    let policies = [
        json!(true),
        json!(3),
        json!(0),
        json!(2.5),
        json!("3"),
        json!({"maxAttempts": null, "jitter": true}),
        json!({"maxAttempts": 5, "initialDelay": "5s", "retryWhen": "exitCode == 75", "unknown": {"a": null}}),
        json!({"maxAttempts": 21, "backoffMultiplier": 0.5}),
    ];
    let policy = random.choice(policies).unwrap_or_default();
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
    add("retry", policy);
    if random.u8(..4) == 0 {
        spoil(random, &mut spec);
    }
    spec
}

const TIMES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00.000Z"];

/// Draws the attempts of an execution that has two or waits for its second. In most cases they are valid.
fn attempts(random: &mut Rng) -> (Value, u32) {
    let ended = json!({
        "attempt": 1, "pipelineRun": "wfe-1", "startTime": TIMES[0], "completionTime": TIMES[1],
        "started": "False", "reason": "Unknown", "message": "it failed",
    });
    let waiting = json!({"attempt": 2, "delay": "1s", "notBefore": TIMES[1]});
    let mut second = waiting.clone();
    second["pipelineRun"] = json!("wfe-2");
    second["startTime"] = json!(TIMES[1]);
    let mut over = second.clone();
    over["completionTime"] = json!(TIMES[2]);
    over["started"] = json!("Unknown");
    let mut first = ended.clone();
    for field in ["completionTime", "started", "reason", "message"] {
        first.as_object_mut().map(|first| first.remove(field));
    }
    let told = [
        (json!([first]), 1),
        (json!([ended.clone(), waiting.clone()]), 1),
        (json!([ended.clone(), second]), 2),
        (json!([ended.clone(), over]), 2),
        (json!([waiting, ended]), 1),
    ];
    random.choice(told).unwrap_or_default()
}

/// Draws a status with a random phase. In most cases it is valid, but it may not be a legal successor of the current
/// status.
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
        if random.bool() {
            let (attempts, run) = attempts(random);
            status["attempts"] = attempts;
            status["pipelineRunRef"]["name"] = json!(format!("wfe-{run}"));
        }
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
