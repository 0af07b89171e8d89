//! Facts about the schema of a `WorkflowSchedule`.

use super::*;
use crate::workflow_schedule::{Analyst, NextRunReason, RunOutcome, TriageState, TriageVerdict};

fn spec() -> Value {
    schema_of(SCHEDULE)["properties"]["spec"].clone()
}

fn fields(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_template_has_the_limits_of_an_execution() {
    let (of_execution, schedule) = (schema(), spec());
    let template = &schedule["properties"]["template"]["properties"]["spec"];
    assert_eq!(
        fields(template),
        [
            "executionConfig",
            "parameters",
            "rationale",
            "retry",
            "targetResource",
            "ttlSecondsAfterFinished",
            "workflowRef"
        ]
    );
    for name in fields(template) {
        let without_description = |schema: &Value, moved: &str| {
            let mut schema = schema["properties"][name].clone();
            schema.as_object_mut().unwrap().remove("description");
            serde_json::to_string(&schema).unwrap().replace(moved, "\"spec.")
        };
        let (ours, theirs) = (
            without_description(template, "\"spec.template.spec."),
            without_description(&of_execution["properties"]["spec"], "\"spec."),
        );
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn what_a_triage_runs_and_adjusts_has_the_limits_of_an_execution() {
    let without_descriptions = |mut schema: Value| {
        fn strip(schema: &mut Value) {
            match schema {
                Value::Object(fields) => {
                    fields.retain(|name, value| name != "description" || !value.is_string());
                    fields.values_mut().for_each(strip);
                }
                Value::Array(items) => items.iter_mut().for_each(strip),
                _ => {}
            }
        }
        strip(&mut schema);
        serde_json::to_string(&schema).unwrap()
    };
    let (of_execution, of_schedule) = (schema(), schema_of(SCHEDULE));
    for (path, name) in [("spec.triage", "workflowRef"), ("status.adjust", "parameters")] {
        let part = path.split('.').fold(&of_schedule, |schema, name| &schema["properties"][name]);
        let ours = without_descriptions(part["properties"][name].clone());
        let theirs = without_descriptions(of_execution["properties"]["spec"]["properties"][name].clone());
        assert_eq!(ours.replace(&format!("\"{path}."), "\"spec."), theirs, "{path}.{name}");
        assert!(ours.contains(&format!("\"{path}.{name}")), "its messages name another field: {ours}");
    }
}

#[test]
fn all_of_a_spec_may_change() {
    walk("spec", &spec(), &mut |path, node| {
        for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
            // An entry of allowAdjust that has no effect may stay listed.
            let rule_ = rule["rule"].as_str().unwrap();
            let is_transition = rule_.contains("oldSelf");
            let may_be_one = rule_.contains("'interval' in");
            assert_eq!(is_transition, may_be_one, "{path}: {rule}");
            assert!(!is_transition || rule["optionalOldSelf"] == true, "{path}: {rule}");
        }
    });
}

#[test]
fn only_fields_of_a_schedule_that_do_something_are_there() {
    let schema = schema_of(SCHEDULE);
    assert_eq!(
        fields(&schema["properties"]["spec"]),
        [
            "cron",
            "hint",
            "history",
            "interval",
            "maxInterval",
            "minInterval",
            "resume",
            "spread",
            "startingDeadlineSeconds",
            "suspend",
            "template",
            "timeZone",
            "triage"
        ]
    );
    assert_eq!(
        fields(&schema["properties"]["status"]),
        [
            "adjust",
            "conditions",
            "failureCount",
            "lastMissed",
            "lastRun",
            "lastSuccessTime",
            "nextRunReason",
            "nextRunTime",
            "observedGeneration",
            "phase",
            "plannedFrom",
            "revision",
            "triage"
        ]
    );
}

#[test]
fn closed_words_of_a_schedule_are_spelled_as_programs_match_them() {
    let schema = schema_of(SCHEDULE);
    let status = &schema["properties"]["status"]["properties"];
    let outcomes = ["Completed", "Failed", "Skipped", "Cancelled", "TooLate", "Deleted", "Refused"];
    assert_eq!(status["lastRun"]["properties"]["outcome"]["enum"], json!(outcomes));
    assert_eq!(RunOutcome::ALL.map(RunOutcome::as_str), outcomes);
    assert_eq!(serde_json::to_value(RunOutcome::ALL).unwrap(), json!(outcomes));

    let reasons = ["Interval", "Cron", "Backoff", "Hint", "ClampedMin", "ClampedMax", "CatchUp", "Again"];
    assert_eq!(status["nextRunReason"]["enum"], json!(reasons));
    assert_eq!(NextRunReason::ALL.map(NextRunReason::as_str), reasons);
    assert_eq!(serde_json::to_value(NextRunReason::ALL).unwrap(), json!(reasons));

    let spec = &schema["properties"]["spec"]["properties"];
    let analysts = ["Off", "BuiltIn", "Pipeline"];
    assert_eq!(spec["triage"]["properties"]["analyst"]["enum"], json!(analysts));
    assert_eq!(status["triage"]["properties"]["analyst"]["enum"], json!(analysts));
    assert_eq!(Analyst::ALL.map(Analyst::as_str), analysts);
    assert_eq!(serde_json::to_value(Analyst::ALL).unwrap(), json!(analysts));

    let verdicts = ["DoNothing", "FileFix", "PauseAndNotify", "AdjustConfig"];
    assert_eq!(status["triage"]["properties"]["verdict"]["enum"], json!(verdicts));
    assert_eq!(TriageVerdict::ALL.map(TriageVerdict::as_str), verdicts);
    assert_eq!(serde_json::to_value(TriageVerdict::ALL).unwrap(), json!(verdicts));

    let stages = ["Analysing", "Noted", "Filed", "Failed", "Paused", "Adjusted", "Over"];
    assert_eq!(status["triage"]["properties"]["state"]["enum"], json!(stages));
    assert_eq!(TriageState::ALL.map(TriageState::as_str), stages);
    assert_eq!(serde_json::to_value(TriageState::ALL).unwrap(), json!(stages));
}

#[test]
fn kubectl_shows_these_columns_of_a_schedule() {
    let crd = crd(SCHEDULE);
    assert_eq!(
        columns(&crd),
        [
            ("Every", "string", ".spec.interval", 0),
            ("Cron", "string", ".spec.cron", 0),
            ("Suspend", "boolean", ".spec.suspend", 0),
            ("Failures", "integer", ".status.failureCount", 0),
            ("Last", "date", ".status.lastRun.slot", 0),
            // A column of type date shows <invalid> for a time in the future.
            ("Next", "string", ".status.nextRunTime", 0),
            ("Why", "string", ".status.nextRunReason", 0),
            ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status", 0),
            ("Held", "string", ".status.conditions[?(@.type==\"Held\")].reason", 0),
            ("Age", "date", ".metadata.creationTimestamp", 0),
            ("Zone", "string", ".spec.timeZone", 1),
            ("Target", "string", ".spec.template.spec.targetResource", 1),
            ("Triage", "string", ".status.triage.state", 1),
        ]
    );
}

#[test]
fn kubectl_finds_a_schedule_by_these_names() {
    let crd = crd(SCHEDULE);
    assert_eq!(crd["metadata"]["name"], "workflowschedules.kubernaut.ai");
    assert_eq!(crd["spec"]["names"]["kind"], crate::workflow_schedule::KIND);
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["wfs"]));
    assert_eq!(crd["spec"]["names"]["categories"], json!(["kubernaut"]));
    assert_eq!(crd["spec"]["scope"], "Namespaced");
}
