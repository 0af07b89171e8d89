//! Facts about the schema of a `WorkflowSchedule`.

use super::*;
use crate::workflow_schedule::{NextRunReason, RunOutcome};

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
fn all_of_a_spec_may_change() {
    walk("spec", &spec(), &mut |path, node| {
        for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
            assert!(!rule["rule"].as_str().unwrap().contains("oldSelf"), "{path}: {rule}");
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
            "spread",
            "startingDeadlineSeconds",
            "suspend",
            "template",
            "timeZone"
        ]
    );
    assert_eq!(
        fields(&schema["properties"]["status"]),
        [
            "conditions",
            "failureCount",
            "lastMissed",
            "lastRun",
            "lastSuccessTime",
            "nextRunReason",
            "nextRunTime",
            "observedGeneration",
            "plannedFrom",
            "revision"
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

    let reasons = ["Interval", "Cron", "Backoff", "Hint", "ClampedMin", "ClampedMax", "CatchUp"];
    assert_eq!(status["nextRunReason"]["enum"], json!(reasons));
    assert_eq!(NextRunReason::ALL.map(NextRunReason::as_str), reasons);
    assert_eq!(serde_json::to_value(NextRunReason::ALL).unwrap(), json!(reasons));
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
            // A column of type date shows <invalid> for a time that is still to come.
            ("Next", "string", ".status.nextRunTime", 0),
            ("Why", "string", ".status.nextRunReason", 0),
            ("Held", "string", ".status.conditions[?(@.type==\"Held\")].reason", 0),
            ("Age", "date", ".metadata.creationTimestamp", 0),
            ("Zone", "string", ".spec.timeZone", 1),
            ("Target", "string", ".spec.template.spec.targetResource", 1),
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
