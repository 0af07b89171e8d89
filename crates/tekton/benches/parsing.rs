//! Measures the cost of reading objects from Tekton (recorded in `tests/fixtures`), and of rendering a run.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::Criterion;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::residue::ResidueKind;
use wfe_core::run::Order;
use wfe_core::target::TargetName;
use wfe_tekton::{Defaults, RunRequest, observe_descendant, observe_run, render_run};

/// The recording of a run of two tasks that succeeds.
const STORY: &str = include_str!("../tests/fixtures/v1.12.0/success/story.jsonl");

fn main() {
    let short = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
    let mut criterion = short.configure_from_args();
    let mut group = criterion.benchmark_group("tekton");
    let (meta, data) = last("PipelineRun");
    group.bench_function("observe-run", |bencher| {
        bencher.iter(|| observe_run(black_box(&meta), black_box(&data), Order(0)));
    });
    for (name, kind) in [("TaskRun", ResidueKind::TaskRun), ("Pod", ResidueKind::Pod)] {
        let (meta, data) = last(name);
        group.bench_function(format!("observe-{}", name.to_lowercase()), |bencher| {
            bencher.iter(|| observe_descendant(kind, black_box(&meta), black_box(&data)));
        });
    }
    if let Some(request) = request() {
        let defaults = Defaults {
            execution_namespace: "kubernaut-workflows".to_owned(),
            service_account: "kubernaut-workflow-runner".to_owned(),
            timeout: Duration::from_mins(30),
        };
        group.bench_function("render-run", |bencher| bencher.iter(|| render_run(black_box(&request), 3, &defaults)));
    }
    group.finish();
    criterion.final_summary();
}

/// Returns the last version of the first object of a kind.
fn last(kind: &str) -> (ObjectMeta, Value) {
    let changes: Vec<Value> = STORY.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let first = changes.iter().find(|change| change["kind"] == kind).map(|change| change["name"].clone());
    let mut object = Value::Null;
    for change in changes.iter().filter(|change| change["kind"] == kind && Some(&change["name"]) == first.as_ref()) {
        match &change["object"] {
            Value::Null => merge(&mut object, &change["patch"]),
            whole => object = whole.clone(),
        }
    }
    (serde_json::from_value(object["metadata"].clone()).unwrap_or_default(), object)
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    object.remove(key);
                } else {
                    merge(object.entry(key).or_insert(Value::Null), change);
                }
            }
        }
        (object, patch) => *object = patch.clone(),
    }
}

fn request() -> Option<RunRequest> {
    let target = TargetName::parse("payment/deployment/payment-api").ok()?;
    Some(RunRequest {
        execution: ExecutionId {
            namespace: "kubernaut-system".into(),
            name: "remediation-7c9f4d2b-1".into(),
            uid: Uid::new("0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11"),
        },
        workflow_id: "increase-memory-conservative".to_owned(),
        bundle: format!("registry.example/workflows/increase-memory:1.0.0@sha256:{}", "ab".repeat(32)),
        target,
        parameters: Arc::new([("MEMORY_LIMIT".into(), "512Mi".into()), ("REPLICAS".into(), "3".into())]),
        timeout: None,
        service_account: None,
        scheduled_for: None,
    })
}
