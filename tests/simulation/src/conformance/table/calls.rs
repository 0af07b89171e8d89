//! Requests that several rows use.

use serde_json::{Value, json};

use crate::conformance::Place::{Executions, Leases, Runs};
use crate::conformance::generate::valid;
use crate::conformance::{Call, Place};

pub(super) fn make(place: Place, name: &str) -> Call {
    Call::create(place, name, valid(place))
}

/// Creates an execution, and writes these statuses one after the other.
pub(super) fn written(name: &str, statuses: &[Value]) -> Vec<Call> {
    let mut calls = vec![make(Executions, name)];
    let status = format!("{name}/status");
    calls.extend(statuses.iter().map(|said| Call::merge(Executions, &status, json!({"status": said}))));
    calls
}

pub(super) fn running() -> Value {
    json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
        "pipelineRunRef": {"name": "run", "namespace": "workflows", "uid": "u"}})
}

pub(super) fn completed() -> Value {
    json!({"phase": "Completed", "completionTime": "2026-01-01T00:01:00Z", "duration": "1m0s"})
}

pub(super) fn skipped() -> Value {
    json!({"phase": "Skipped", "completionTime": "2026-01-01T00:01:00Z",
        "skipDetails": {"message": "busy", "reason": "ResourceBusy", "skippedAt": "2026-01-01T00:01:00Z"}})
}

pub(super) fn failed() -> Value {
    json!({"phase": "Failed", "completionTime": "2026-01-01T00:01:00Z", "failureDetails": {
        "executionTimeBeforeFailure": "0s", "failedAt": "2026-01-01T00:01:00Z", "failedTaskIndex": 0,
        "failedTaskName": "", "message": "m", "naturalLanguageSummary": "m", "reason": "Unknown",
        "requiresManualReview": false, "wasExecutionFailure": false}})
}

/// A first attempt in progress.
pub(super) fn begun() -> Value {
    json!({"attempt": 1, "pipelineRun": "run", "startTime": "2026-01-01T00:00:00Z"})
}

/// A first attempt that has failed.
pub(super) fn ended() -> Value {
    json!({"attempt": 1, "pipelineRun": "run", "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:01:00Z", "started": "False", "reason": "Unknown", "message": "m"})
}

/// A second attempt that has not begun yet.
pub(super) fn waits() -> Value {
    json!({"attempt": 2, "delay": "1s", "notBefore": "2026-01-01T00:01:01Z"})
}

pub(super) fn begins(run: &str) -> Value {
    json!({"attempt": 2, "delay": "1s", "notBefore": "2026-01-01T00:01:01Z", "pipelineRun": run,
        "startTime": "2026-01-01T00:01:02Z"})
}

/// Creates a running execution, and writes these attempts one write after the other. The last write names this run.
pub(super) fn tried(name: &str, attempts: &[&[Value]], run: &str) -> Vec<Call> {
    let mut statuses: Vec<Value> = Vec::new();
    for all in attempts {
        let mut status = running();
        status["attempts"] = json!(all);
        statuses.push(status);
    }
    if let Some(last) = statuses.last_mut() {
        last["pipelineRunRef"]["name"] = json!(run);
    }
    written(name, &statuses)
}

/// Creates an execution with this field in the spec.
pub(super) fn asks(name: &str, field: &str, value: Value) -> Vec<Call> {
    let mut body = valid(Executions);
    body["spec"][field] = value;
    vec![Call::create(Executions, name, body)]
}

/// Creates an execution, and merges this patch into it.
pub(super) fn merged(name: &str, patch: Value) -> Vec<Call> {
    vec![make(Executions, name), Call::merge(Executions, name, patch)]
}

/// Creates a run, and patches it with these operations.
pub(super) fn operated(name: &str, operations: Value) -> Vec<Call> {
    vec![make(Runs, name), Call::operations(Runs, name, operations)]
}

/// Creates a run with a finalizer, and deletes it.
pub(super) fn held(name: &str) -> Vec<Call> {
    held_in(Runs, name)
}

/// Creates an object with a finalizer, and deletes it.
pub(super) fn held_in(place: Place, name: &str) -> Vec<Call> {
    let mut body = valid(place);
    body["metadata"]["finalizers"] = json!(["kubernaut.ai/hold"]);
    vec![Call::create(place, name, body), Call::delete(place, name, Value::Null)]
}

pub(super) fn then(mut calls: Vec<Call>, more: impl IntoIterator<Item = Call>) -> Vec<Call> {
    calls.extend(more);
    calls
}

/// Changes a run, and then deletes it under these preconditions.
pub(super) fn deleted(name: &str, preconditions: &Value) -> Vec<Call> {
    let change = Call::merge(Runs, name, json!({"metadata": {"labels": {"team": "a"}}}));
    vec![make(Runs, name), change, Call::delete(Runs, name, json!({"preconditions": preconditions}))]
}

pub(super) fn lease(name: &str, version: Option<&str>) -> Call {
    let mut body = valid(Leases);
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = json!(format!("{version}:Lease/{name}"));
    }
    Call::put(Leases, name, body)
}
