//! Tests that a watch reads every field of an object that its record needs.

#![allow(clippy::unwrap_used, unused_crate_dependencies)] // a test says what went wrong by panicking

#[path = "objects/mod.rs"]
mod objects;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_view::index::Kind;
use wfe_view::partial::PartialObject;
use wfe_view::read::read;

const TARGET: &str = "payment/deployment/payment-api";

fn all_kinds() -> Vec<(Kind, Value)> {
    let pod_owner =
        json!([{"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": "t", "uid": "u", "controller": true}]);
    let mut pod = objects::pod(1, TARGET, 0, true);
    pod["metadata"]["ownerReferences"] = pod_owner;
    vec![
        (Kind::Execution, objects::execution(1, TARGET)),
        (Kind::Execution, objects::running(1, TARGET)),
        (Kind::Execution, objects::ended(1, TARGET)),
        (Kind::Execution, objects::child(1, TARGET)),
        (Kind::Schedule, objects::schedule(1, TARGET)),
        (Kind::Run, objects::run(1, TARGET, 2, false)),
        (Kind::Run, objects::run(1, TARGET, 2, true)),
        (Kind::TaskRun, objects::task_run(1, TARGET, 0, true)),
        (Kind::Pod, pod),
        (
            Kind::Namespace,
            json!({"metadata": {"name": "n", "uid": "u", "annotations": {wfe_api::labels::ANNOTATION_PAUSED: "why"}}}),
        ),
    ]
}

fn records(kind: Kind, object: &Value) -> [String; 2] {
    let PartialObject { object: lean, is_cut } = serde_json::from_value(object.clone()).unwrap();
    assert!(!is_cut);
    assert_eq!(lean.metadata.managed_fields, None);
    let whole: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    [lean, whole].map(|object| format!("{:?}", read(kind, &object, objects::EXECUTION_NAMESPACE)))
}

#[test]
fn the_record_of_an_object_is_that_of_the_whole_one() {
    for (kind, object) in all_kinds() {
        let [lean, whole] = records(kind, &object);
        assert_eq!(lean, whole);
        assert!(lean.starts_with("Some("), "{object}: {lean}");
    }
}

#[test]
fn the_pod_of_a_stranger_has_no_record() {
    assert_eq!(records(Kind::Pod, &objects::stranger_pod(1)), ["None", "None"]);
}

#[test]
fn it_is_so_with_each_part_null_missing_or_of_another_shape() {
    for (kind, object) in all_kinds() {
        for part in ["spec", "status"] {
            for strange in [json!(null), json!([]), json!("text"), json!(1), json!({})] {
                let mut object = object.clone();
                object[part] = strange;
                let [lean, whole] = records(kind, &object);
                assert_eq!(lean, whole, "{object}");
            }
            let mut object = object.clone();
            object.as_object_mut().unwrap().remove(part);
            let [lean, whole] = records(kind, &object);
            assert_eq!(lean, whole, "{object}");
        }
        for (key, _) in object["metadata"].as_object().unwrap() {
            let mut object = object.clone();
            object["metadata"][key] = Value::Null;
            let [lean, whole] = records(kind, &object);
            assert_eq!(lean, whole, "{object}");
        }
    }
}

#[test]
fn of_the_parameters_of_a_schedule_nothing_is_kept() {
    let mut schedule = objects::schedule(1, TARGET);
    schedule["spec"]["template"]["spec"]["parameters"]["PASSWORD"] = "hunter2".into();
    let [lean, _] = records(Kind::Schedule, &schedule);
    assert!(lean.contains("plan: Ok(") && !lean.contains("hunter2") && !lean.contains("PASSWORD"), "{lean}");
}

/// Returns JSON with this depth of nesting.
fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"a":["#.repeat(depth / 2), "]}".repeat(depth / 2))
}

#[test]
fn what_is_nested_too_deep_is_skipped_and_the_rest_of_the_object_is_read() {
    let whole = objects::run(1, TARGET, 2, true);
    let text = serde_json::to_string(&whole).unwrap();
    for depth in [10, 100, 1_000, 100_000] {
        let deep = text.replacen(r#""spec":{"#, &format!(r#""spec":{{"free":{},"#, nested(depth)), 1);
        let PartialObject { object, is_cut } = PartialObject::from_bytes(deep.as_bytes()).unwrap();
        assert_eq!(is_cut, depth > 31, "{depth}");
        let [expected, _] = records(Kind::Run, &whole);
        assert_eq!(format!("{:?}", read(Kind::Run, &object, objects::EXECUTION_NAMESPACE)), expected, "{depth}");
    }
}

#[test]
fn an_object_of_which_only_the_metadata_can_be_read_counts_as_unfinished() {
    let text = serde_json::to_string(&objects::run(1, TARGET, 2, true)).unwrap();
    let broken = text.replacen(r#""spec":{"#, r#""spec":{"number":1e999,"#, 1);
    let PartialObject { object, is_cut } = PartialObject::from_bytes(broken.as_bytes()).unwrap();
    assert!(is_cut);
    let Some(wfe_view::index::Delivery::Run(_, run)) = read(Kind::Run, &object, objects::EXECUTION_NAMESPACE) else {
        panic!("it is a run of a chain")
    };
    assert!(run.is_unfinished() && run.owner.execution().is_some(), "{run:?}");
}
