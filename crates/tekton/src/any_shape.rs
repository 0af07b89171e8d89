//! Tests reading objects of any shape: the reader does not panic, does limited work, and reports only proofs that an
//! object contains.
//!
//! The objects are real ones with parts replaced, removed, repeated and moved, and random ones made of Tekton's keys.
//! `PROPTEST_CASES=1000000 cargo test -p wfe-tekton any_shape` tries a million cases.

use proptest::prelude::*;
use serde_json::{Value, json};
use wfe_core::evidence::Started;
use wfe_core::name::Uid;
use wfe_core::residue::ResidueKind;
use wfe_core::run::Order;

use crate::evidence::{Evidence, Remains, Sighting};
use crate::examine::examine;
use crate::object::Object;
use crate::observe::{observe_descendant, observe_run};
use crate::testing::{Event, Owned, World, stories, story, watch};
use crate::words::MAX_MESSAGE;

const KEYS: &[&str] = &[
    "spec",
    "status",
    "params",
    "name",
    "value",
    "statusMessage",
    "conditions",
    "type",
    "reason",
    "message",
    "completionTime",
    "startTime",
    "pipelineSpec",
    "tasks",
    "finally",
    "childReferences",
    "kind",
    "pipelineTaskName",
    "skippedTasks",
    "retriesStatus",
    "podName",
    "steps",
    "sidecars",
    "waiting",
    "running",
    "terminated",
    "terminationReason",
    "exitCode",
    "containerID",
    "startedAt",
    "finishedAt",
    "phase",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "lastState",
];

const TEXTS: &[&str] = &[
    "",
    "Succeeded",
    "True",
    "False",
    "Unknown",
    "Failed",
    "Running",
    "Pending",
    "PipelineRunPending",
    "PipelineRunTimeout",
    "CouldntGetPipeline",
    "TaskRunImagePullFailed",
    "TaskRunCancelled",
    "OOMKilled",
    "TaskRun",
    "CustomRun",
    "check",
    "step-run",
    "sidecar-proxy",
    "2026-11-22T05:56:49Z",
    "9999-99-99T99:99:99Z",
    "kwok://step-run",
    "[{\"key\":\"a\",\"value\":\"x is forbidden: User \\\"",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        6 => prop::sample::select(TEXTS).prop_map(Value::from),
        1 => "\\PC{0,12}".prop_map(Value::from),
        1 => (2000..40_000_usize).prop_map(|length| "ä".repeat(length).into()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(7, 60, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(prop::sample::select(KEYS), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// A change to a part of an object.
#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Double(usize),
    Empty,
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => leaf().prop_map(Change::Replace),
        1 => any_json().prop_map(Change::Replace),
        3 => Just(Change::Remove),
        1 => (2..50_usize).prop_map(Change::Double),
        1 => Just(Change::Empty),
    ]
}

/// Lists the paths of all parts of an object.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| paths(value, &format!("{path}/{key}"), found)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, value)| paths(value, &format!("{path}/{index}"), found));
        }
        _ => {}
    }
}

fn apply(object: &mut Value, place: prop::sample::Index, change: &Change) {
    let mut places = Vec::new();
    paths(object, "", &mut places);
    // Kind and metadata stay, because a watch delivers no object without them.
    places.retain(|place| place.starts_with("/status/") || place.starts_with("/spec"));
    if places.is_empty() {
        return;
    }
    let path = place.get(&places);
    let Some((parent, key)) = path.rsplit_once('/') else { return };
    match (change, object.pointer_mut(path)) {
        (Change::Replace(new), Some(part)) => *part = new.clone(),
        (Change::Empty, Some(Value::Array(list))) => list.clear(),
        (Change::Empty, Some(Value::Object(map))) => map.clear(),
        (Change::Double(times), Some(Value::Array(list))) => {
            list.extend(list.first().cloned().into_iter().cycle().take(*times).collect::<Vec<_>>());
        }
        (Change::Remove, _) => match object.pointer_mut(parent) {
            Some(Value::Object(map)) => drop(map.remove(key)),
            Some(Value::Array(list)) => drop(key.parse().map(|index: usize| list.remove(index))),
            _ => {}
        },
        _ => {}
    }
}

/// Returns whether a step of a `TaskRun` runs or ended in a container. The function shares no code with the reader
/// under test. Steps in places that Tekton does not define (steps of a step, or of an artifact) prove nothing. If
/// `steps` is not a list, such a step counts at any depth.
fn shows_a_step(status: &Value) -> bool {
    let retries = match &status["retriesStatus"] {
        Value::Array(attempts) => attempts.iter().any(steps_show),
        other => nested(other, &steps_show),
    };
    retries || steps_show(status)
}

fn steps_show(attempt: &Value) -> bool {
    match &attempt["steps"] {
        Value::Array(steps) if steps.iter().all(Value::is_object) => steps.iter().any(is_sign),
        other => nested(other, &is_sign),
    }
}

fn is_sign(step: &Value) -> bool {
    step["running"].is_object() || step["terminated"]["containerID"].as_str().is_some_and(|id| !id.is_empty())
}

/// Returns whether a value, or any value inside it, satisfies a predicate.
fn nested(value: &Value, holds: &impl Fn(&Value) -> bool) -> bool {
    holds(value)
        || match value {
            Value::Object(map) => map.values().any(|value| nested(value, holds)),
            Value::Array(list) => list.iter().any(|value| nested(value, holds)),
            _ => false,
        }
}

proptest! {
    #[test]
    fn any_shape_of_a_run_and_its_tasks_has_findings(
        index in any::<prop::sample::Index>(),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any_change()), 1..6),
    ) {
        let names = stories();
        let mut story = story(names[index.index(names.len())]);
        for (which, place, change) in &changes {
            let event = which.index(story.events.len());
            apply(&mut story.events[event].object.data, *place, change);
        }
        let (mut evidence, mut world) = (Evidence::default(), World::default());
        for event in &story.events {
            world.take_in(event);
            watch(&mut evidence, &story.run, event);
        }
        let of_run = |object: &&Owned| object.kind == ResidueKind::TaskRun && object.view().run().as_ref() == Some(&story.run);
        let ran = world.objects.values().filter(of_run).any(|object| shows_a_step(&object.data["status"]));
        let findings = world.remains(&story.run, |remains| examine(&evidence, remains));
        prop_assert!(findings.cause.message.chars().count() <= MAX_MESSAGE as usize);
        if ran {
            // If `steps` is not a list, a sign inside it proves neither that a step ran nor that none did.
            prop_assert!(matches!(findings.started, Started::Started(_) | Started::Unknown(_)), "{findings:?}");
        }
    }

    #[test]
    fn any_json_at_all_has_an_answer(data in any_json()) {
        let object = json!({"metadata": {
            "name": "wfe-ac45b7d6911e97a5-2",
            "uid": "u",
            "annotations": {"kubernaut.ai/target-resource": "node/worker-node-1"},
            "labels": {"tekton.dev/pipelineRunUID": "r", "tekton.dev/pipelineTask": "check", "tekton.dev/taskRunUID": "u"},
        }});
        let meta = serde_json::from_value(object["metadata"].clone()).unwrap();
        prop_assert!(observe_run(&meta, &data, Order(1)).is_some());
        let view = Object { meta: &meta, data: &data };
        let mut evidence = Evidence::default();
        for kind in [ResidueKind::Pod, ResidueKind::TaskRun, ResidueKind::CustomRun, ResidueKind::PipelineRun] {
            prop_assert!(observe_descendant(kind, &meta, &data).is_some());
            let sighting = Sighting::of(kind, view).unwrap();
            evidence.observe(&sighting);
            evidence.observe_deletion(&sighting);
        }
        let remains = Remains { run: Some(view), task_runs: &[view], others: &[view], pods: &[view] };
        let findings = examine(&evidence, remains);
        prop_assert!(findings.started.may_have_run(), "a task was deleted: {findings:?}");
    }
}

/// Reads a run of 2,000 tasks, each with a retry and a message of a megabyte. The work must not be quadratic.
#[test]
fn a_huge_run_is_no_more_work_than_its_size() {
    let failed =
        json!([{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "x".repeat(1_000_000)}]);
    let labels = |number: usize| {
        json!({"tekton.dev/pipelineRunUID": "r", "tekton.dev/pipelineTask": format!("t{number}"),
               "tekton.dev/taskRun": format!("t{number}"), "tekton.dev/taskRunUID": format!("t{number}")})
    };
    let children: Vec<Value> = (0..2000).map(|n| json!({"kind": "TaskRun", "name": format!("t{n}")})).collect();
    let tasks: Vec<Value> = (0..2000).map(|n| json!({"name": format!("t{n}")})).collect();
    let status = json!({"conditions": failed, "childReferences": children, "pipelineSpec": {"tasks": tasks}});
    let mut events = vec![json!({"kind": "PipelineRun", "metadata": {"name": "r", "uid": "r"}, "status": status})];
    for number in 0..2000 {
        let attempt = json!({"podName": format!("t{number}-pod"), "steps": [{"name": "run", "waiting": {}}]});
        let status = json!({"conditions": [{"type": "Succeeded", "status": "False", "reason": "TaskRunTimeout"}],
                            "podName": format!("t{number}-pod-retry1"), "retriesStatus": [attempt]});
        let metadata = |name: String| json!({"name": name, "uid": name, "labels": labels(number)});
        events.push(json!({"kind": "TaskRun", "metadata": metadata(format!("t{number}")), "status": status}));
        for pod in [format!("t{number}-pod"), format!("t{number}-pod-retry1")] {
            events.push(json!({"kind": "Pod", "metadata": metadata(pod), "status": {"phase": "Pending"}}));
        }
    }
    let (run, mut evidence, mut world) = (Uid::new("r"), Evidence::default(), World::default());
    for event in &events {
        let event = Event { is_deletion: false, object: Owned::new(event) };
        world.take_in(&event);
        watch(&mut evidence, &run, &event);
    }
    let findings = world.remains(&run, |remains| examine(&evidence, remains));
    assert_eq!((findings.started.reason(), findings.completed_tasks), ("TooMany", 2000));
    assert!(findings.cause.message.chars().count() <= MAX_MESSAGE as usize);
}
