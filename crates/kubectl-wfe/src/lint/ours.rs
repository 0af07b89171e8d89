//! `WorkflowExecution`s and `WorkflowSchedule`s: what the API server would refuse, and what the operator could not use.
//! The rules are those of `wfe-api` and `wfe-view`.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_api::{WorkflowExecution, WorkflowSchedule};
use wfe_core::execution::ExecutionState;
use wfe_view::observe::{observe_execution, observe_schedule};

use super::finding::Findings;
use super::schema;

/// The template of a schedule.
const TEMPLATE: &str = "spec.template.";
/// The message if a spec cannot be read although its structure has no fault.
const UNREADABLE: &str = "does not have the shape of kubernaut.ai/v1alpha1";

/// Examines a `WorkflowExecution`.
pub(super) fn execution(object: &Value, found: &mut Findings) {
    let mut object = object.clone();
    schema::check("WorkflowExecution", &mut object, found);
    faults(&object, "", found);
    let observed = created(&object).and_then(|object| observe_execution(&object, ""));
    if let Some(ExecutionState::Undecided { unusable: Some(why), .. }) = observed.map(|it| it.execution.state) {
        told(&why, found);
    }
}

/// Examines a `WorkflowSchedule`.
pub(super) fn schedule(object: &Value, found: &mut Findings) {
    let mut object = object.clone();
    schema::check("WorkflowSchedule", &mut object, found);
    match serde_json::from_value::<WorkflowSchedule>(nameless(&object)) {
        Ok(_) => {
            let child = json!({"metadata": object["metadata"], "spec": object["spec"]["template"]["spec"]});
            faults(&child, TEMPLATE, found);
        }
        Err(_) => found.error_unless_known("spec", UNREADABLE),
    }
    let observed = created(&object).and_then(|object| observe_schedule(&object));
    if let Some(Err(why)) = observed.map(|it| it.schedule.plan) {
        told(&why, found);
    }
}

/// Adds the faults of an execution whose fields are at `prefix`.
fn faults(object: &Value, prefix: &str, found: &mut Findings) {
    let Ok(execution) = serde_json::from_value::<WorkflowExecution>(nameless(object)) else {
        return found.error_unless_known(&format!("{prefix}spec"), UNREADABLE);
    };
    for fault in execution.faults() {
        let prefix = if fault.field.starts_with("metadata.") { "" } else { prefix };
        found.error_unless_known(&format!("{prefix}{}", fault.field), &fault.problem.to_string());
    }
}

/// Adds a message that begins with its field, such as `spec.spread: must be ...` or `spec.cron has ...`.
fn told(why: &str, found: &mut Findings) {
    let is_of_field = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '[' | ']');
    let (field, problem) = why.split_at(why.find(|it| !is_of_field(it)).unwrap_or_default());
    found.error_unless_known(field, problem.trim_start_matches([':', ' ']));
}

/// Returns the object with the name that the API server could make from `generateName`.
fn nameless(object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(format!("{}/{}", wfe_api::GROUP, wfe_api::VERSION));
    if !object["kind"].is_string() {
        object["kind"] = json!("WorkflowExecution");
    }
    let generated = object["metadata"]["generateName"].as_str().map(|begins| format!("{begins}x"));
    if let (Some(name), true) = (generated, object["metadata"]["name"].is_null()) {
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// Returns the object as if it were created now.
fn created(object: &Value) -> Option<DynamicObject> {
    let mut object = nameless(object);
    let name = object["metadata"]["name"].as_str().unwrap_or("unnamed").to_owned();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let fields = object.as_object_mut()?;
    fields.insert("metadata".to_owned(), json!({"name": name, "namespace": namespace, "uid": "not-created"}));
    fields.remove("status");
    serde_json::from_value(object).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(examine: fn(&Value, &mut Findings), object: &Value) -> Vec<String> {
        let mut found = Findings::default();
        examine(object, &mut found);
        found.0.into_iter().map(|it| it.says).collect()
    }

    fn changed(object: &Value, pointer: &str, value: Value) -> Value {
        let mut object = object.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value;
        object
    }

    fn spec() -> Value {
        json!({
            "targetResource": "node/n",
            "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "r.example/w:1"},
            "parameters": {"A": "secret"},
        })
    }

    #[test]
    fn each_fault_of_an_execution_is_told_once() {
        let good = json!({"kind": "WorkflowExecution", "metadata": {"generateName": "a-"}, "spec": spec()});
        assert_eq!(says(execution, &good), Vec::<String>::new());
        for (pointer, value, expected) in [
            ("/metadata", json!({}), "metadata.name: must be a DNS subdomain"),
            ("/metadata/namespace", json!("A_B"), "metadata.namespace: must be a DNS label"),
            ("/spec/targetResource", json!("deployment/api"), "spec.targetResource: must be namespace/deployment/api"),
            (
                "/spec/workflowRef/containerImage",
                json!("Not an image"),
                "spec.workflowRef.containerImage: must be an image",
            ),
            ("/spec/parameters", json!({"lower": "secret"}), "spec.parameters: must be a map with keys in UPPER_SNAKE"),
            ("/spec/parameters", json!({"A": "$(context.secret)"}), "spec.parameters.A: a value must not refer to"),
            ("/spec/parameters", json!({"TARGET_RESOURCE": "secret"}), "spec.parameters.TARGET_RESOURCE: is reserved"),
            ("/spec/executionConfig", json!({"timeout": "2d"}), "spec.executionConfig.timeout: must be a Go duration"),
            ("/spec/retry", json!("often"), "spec.retry: must be true, a whole number"),
            ("/spec/retry", json!({"maxTries": 3}), "spec.retry.maxTries: is not known"),
            ("/spec/retry", json!({"retryWhen": "exitCode == '1'"}), "spec.retry.retryWhen: compares int with string"),
            ("/spec/retry", json!({"maxDelay": "1s", "initialDelay": "5s"}), "spec.retry.maxDelay: must not be below"),
            ("/spec/clearance", json!({"reason": "x", "clearedBy": "y"}), "spec.clearance: may be set only on"),
            ("/spec/recoveryOf", json!("A B"), "spec.recoveryOf: must be a DNS subdomain"),
            ("/spec/targetResource", Value::Null, "spec.targetResource: is required"),
            ("/spec/startBefore", json!("2026-13-01T00:00:00Z"), "spec.startBefore: must be a time such as"),
        ] {
            let told = says(execution, &changed(&good, pointer, value));
            assert!(matches!(&told[..], [one] if one.starts_with(expected)), "{expected}: {told:?}");
            assert!(!told[0].contains("secret"), "{told:?}");
        }
    }

    #[test]
    fn a_number_in_the_place_of_a_text_hides_no_other_fault() {
        let mut object = json!({"kind": "WorkflowExecution", "metadata": {"name": "a"}, "spec": spec()});
        object["spec"]["workflowRef"]["version"] = json!(1.5);
        object["spec"]["retry"] = json!({"retryWhen": "reason == 'Nope'"});
        let told = says(execution, &object);
        assert_eq!(told[0], "spec.workflowRef.version: must be a text: put it in quotes");
        assert!(told.len() == 2 && told[1].starts_with("spec.retry.retryWhen: compares reason with"), "{told:?}");
    }

    #[test]
    fn each_fault_of_a_schedule_is_told_once() {
        let good = json!({
            "kind": "WorkflowSchedule", "metadata": {"name": "nightly", "namespace": "ops"},
            "spec": {"cron": "0 2 * * *", "timeZone": "Europe/Berlin", "template": {"spec": spec()}},
        });
        assert_eq!(says(schedule, &good), Vec::<String>::new());
        for (pointer, value, expected) in [
            ("/metadata/name", json!("x".repeat(64)), "metadata.name: is longer than 63 characters"),
            ("/spec/cron", json!("0 25 * * *"), "spec.cron: "),
            ("/spec/cron", Value::Null, "spec: has neither interval nor cron"),
            ("/spec/timeZone", json!("Europe/Berln"), "spec.timeZone: "),
            ("/spec/interval", json!("5m"), "spec: has both interval and cron"),
            ("/spec/intervall", json!("5m"), "spec.intervall: is unknown: did you mean interval?"),
            ("/spec/spread", json!("soon"), "spec.spread: must be a duration"),
            ("/spec/history", json!({"failed": 101}), "spec.history.failed: must be from 0 to 100"),
            ("/spec/startingDeadlineSeconds", json!(1), "spec.startingDeadlineSeconds: must be from 10 to"),
            ("/spec/template/spec/targetResource", json!("n"), "spec.template.spec.targetResource: must be"),
            ("/spec/template/spec/parameters", json!({"a": "secret"}), "spec.template.spec.parameters: must be a map"),
            ("/spec/template/spec/recoveryOf", json!("x"), "spec.template.spec.recoveryOf: is unknown"),
            (
                "/spec/template/spec/retry",
                json!({"stopWhen": "1 +"}),
                "spec.template.spec.retry.stopWhen: is not a CEL",
            ),
            ("/spec/triage", json!({"analyst": "Nobody"}), "spec.triage.analyst: must be "),
        ] {
            let told = says(schedule, &changed(&good, pointer, value));
            assert!(matches!(&told[..], [one] if one.starts_with(expected)), "{expected}: {told:?}");
            assert!(!told[0].contains("secret"), "{told:?}");
        }
    }
}
