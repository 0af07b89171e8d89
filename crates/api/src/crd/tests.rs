//! Facts about the schema that hold for every field, including fields that are added later.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{FailureReason, Phase, SkipReason, limits};

const EXECUTION: &str = "workflowexecutions";
const SCHEDULE: &str = "workflowschedules";

/// Renders the CRD of a resource as JSON.
fn crd(plural: &str) -> Value {
    let crds = crds();
    let names: Vec<&str> = crds.iter().map(|crd| crd.spec.names.plural.as_str()).collect();
    assert_eq!(names, [EXECUTION, SCHEDULE]);
    let found = crds.iter().find(|crd| crd.spec.names.plural == plural).unwrap();
    serde_json::to_value(found).unwrap()
}

fn schema_of(plural: &str) -> Value {
    crd(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

fn schema() -> Value {
    schema_of(EXECUTION)
}

/// Calls `see` with the path and schema of every node.
fn walk(path: &str, node: &Value, see: &mut impl FnMut(&str, &Value)) {
    see(path, node);
    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(&path, property, see);
    }
    if node["items"].is_object() {
        walk(&format!("{path}[]"), &node["items"], see);
    }
    if node["additionalProperties"].is_object() {
        walk(&format!("{path}{{}}"), &node["additionalProperties"], see);
    }
}

/// Lists the paths of all kinds for which `bad` returns true.
fn offenders(bad: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut paths = Vec::new();
    for plural in [EXECUTION, SCHEDULE] {
        walk("", &schema_of(plural), &mut |path, node| {
            if bad(path, node) {
                paths.push(format!("{plural}: {path}"));
            }
        });
    }
    paths
}

const NONE: &[String] = &[];

#[test]
fn every_value_is_bounded() {
    let unbounded = offenders(|path, node| match node["type"].as_str() {
        Some("string") => node["maxLength"].is_null() && node["enum"].is_null() && node["format"].is_null(),
        Some("array") => node["maxItems"].is_null(),
        Some("object") if node["properties"].is_null() => node["maxProperties"].is_null(),
        Some("object" | "integer" | "number" | "boolean") => false,
        // The field has no type, because it may be a flag, a number or an object. The admission policy limits it.
        None => path != "spec.retry" && path != "spec.template.spec.retry",
        _ => true,
    });
    assert_eq!(unbounded, NONE, "without type or limit");
}

#[test]
fn every_field_is_described_on_one_line() {
    let undescribed = offenders(|path, node| {
        let description = node["description"].as_str().unwrap_or_default();
        !path.is_empty()
            && !path.ends_with("[]")
            && !path.ends_with("{}")
            && (description.is_empty() || description.contains('\n') || !description.ends_with('.'))
    });
    assert_eq!(undescribed, NONE);
}

#[test]
fn a_field_has_its_own_description_not_that_of_its_type() {
    let mut descriptions = std::collections::BTreeMap::<String, String>::new();
    walk("", &schema(), &mut |path, node| {
        if node["enum"].is_array() {
            descriptions.insert(path.to_owned(), node["description"].to_string());
        }
    });
    assert!(descriptions["status.phase"].contains("see skipDetails"), "{descriptions:#?}");
    assert!(descriptions["status.failureDetails.reason"].contains("a quota was full"), "{descriptions:#?}");
}

#[test]
fn nothing_is_nullable_and_only_a_new_status_has_a_default() {
    assert_eq!(schema()["properties"]["status"]["default"], json!({"observedGeneration": -1}));
    let nullable = offenders(|path, node| {
        !node["nullable"].is_null()
            || (!node["default"].is_null() && path != "status")
            || node["enum"].as_array().is_some_and(|values| values.contains(&Value::Null))
    });
    assert_eq!(nullable, NONE);
}

#[test]
fn every_rule_names_its_field_in_its_message() {
    for (plural, least) in [(EXECUTION, 50), (SCHEDULE, 30)] {
        let mut seen = 0;
        walk("", &schema_of(plural), &mut |path, node| {
            for rule in node["x-kubernetes-validations"].as_array().into_iter().flatten() {
                seen += 1;
                let message = rule["message"].as_str().unwrap_or_default();
                let field = format!("{}{}", path.replace("[]", ""), rule["fieldPath"].as_str().unwrap_or_default());
                // Metadata is not in the schema, and so no rule can have it as its field.
                let field = if field.is_empty() { "metadata.name" } else { field.trim_start_matches('.') };
                assert!(message.starts_with(&format!("{field}: ")), "{field}: {rule}");
            }
        });
        assert!(seen > least, "only {seen} rules on {plural}");
    }
}

#[test]
fn a_final_status_changes_in_four_fields_only() {
    let schema = schema();
    let status = &schema["properties"]["status"];
    let frozen: BTreeSet<_> = status["x-kubernetes-validations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["message"].as_str().unwrap().contains("may not change once phase is Completed"))
        .map(|rule| rule["fieldPath"].as_str().unwrap().trim_start_matches('.'))
        .collect();
    let free: Vec<_> =
        status["properties"].as_object().unwrap().keys().filter(|name| !frozen.contains(name.as_str())).collect();
    assert_eq!(
        free,
        ["clearance", "conditions", "nextStep", "observedGeneration", "phase"],
        "phase has a rule of its own"
    );
}

#[test]
fn a_spec_changes_in_two_fields_only() {
    let schema = schema();
    let spec = &schema["properties"]["spec"];
    let immutable: BTreeSet<_> = spec["x-kubernetes-validations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["message"].as_str().unwrap().contains("is immutable once created"))
        .map(|rule| rule["fieldPath"].as_str().unwrap().trim_start_matches('.'))
        .collect();
    let free: Vec<_> =
        spec["properties"].as_object().unwrap().keys().filter(|name| !immutable.contains(name.as_str())).collect();
    assert_eq!(free, ["cancellation", "clearance"], "they have rules of their own");
}

#[test]
fn closed_words_are_spelled_as_programs_match_them() {
    let schema = schema();
    let status = &schema["properties"]["status"]["properties"];
    let reasons = [
        "OOMKilled",
        "DeadlineExceeded",
        "Forbidden",
        "ResourceExhausted",
        "ConfigurationError",
        "ImagePullBackOff",
        "Unknown",
    ];
    assert_eq!(status["failureDetails"]["properties"]["reason"]["enum"], json!(reasons));
    assert_eq!(FailureReason::ALL.map(FailureReason::as_str), reasons);
    assert_eq!(serde_json::to_value(FailureReason::ALL).unwrap(), json!(reasons));

    let reasons = ["ResourceBusy", "RecentlyRemediated", "ExhaustedRetries", "PreviousExecutionFailed"];
    assert_eq!(status["skipDetails"]["properties"]["reason"]["enum"], json!(reasons));
    assert_eq!(SkipReason::ALL.map(SkipReason::as_str), reasons);
    assert_eq!(serde_json::to_value(SkipReason::ALL).unwrap(), json!(reasons));

    let phases = ["Pending", "Running", "Completed", "Failed", "Skipped"];
    assert_eq!(status["phase"]["enum"], json!(phases));
    assert_eq!(Phase::ALL.map(Phase::as_str), phases);
    assert_eq!(serde_json::to_value(Phase::ALL).unwrap(), json!(phases));
}

#[test]
fn a_retry_policy_is_a_number_in_range_or_an_object_of_these_fields() {
    let retry = schema()["properties"]["spec"]["properties"]["retry"].clone();
    assert_eq!(retry["type"], Value::Null, "it would take one kind of value only");
    assert_eq!(
        retry["x-kubernetes-preserve-unknown-fields"], true,
        "or the API server drops an unknown field in silence"
    );
    assert_eq!([&retry["minimum"], &retry["maximum"], &retry["multipleOf"]], [&json!(1.0), &json!(20.0), &json!(1.0)]);
    let fields: BTreeSet<_> = retry["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, crate::retry::FIELDS.into());
    for (name, field) in retry["properties"].as_object().unwrap() {
        let description = field["description"].as_str().unwrap();
        assert!(description.contains("Absent: "), "{name} does not tell its default: {description}");
    }
}

#[test]
fn an_attempt_is_told_from_others_by_its_number() {
    let attempts = schema()["properties"]["status"]["properties"]["attempts"].clone();
    assert_eq!(attempts["x-kubernetes-list-type"], "map");
    assert_eq!(attempts["x-kubernetes-list-map-keys"], json!(["attempt"]));
    assert_eq!(attempts["maxItems"], limits::ATTEMPTS);
    assert_eq!(attempts["items"]["required"], json!(["attempt"]));
}

#[test]
fn only_fields_that_do_something_are_in_spec() {
    let schema = schema();
    let fields: Vec<_> = schema["properties"]["spec"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "cancellation",
            "clearance",
            "confidence",
            "executionConfig",
            "parameters",
            "rationale",
            "recoveryOf",
            "remediationRequestRef",
            "retry",
            "startBefore",
            "targetResource",
            "ttlSecondsAfterFinished",
            "workflowRef"
        ]
    );
}

/// Lists the columns of a kind: name, type, field, and priority, which is 1 for those that only the wide form has.
fn columns(crd: &Value) -> Vec<(&str, &str, &str, i64)> {
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    columns
        .iter()
        .map(|column| {
            let text = |key: &str| column[key].as_str().unwrap();
            (text("name"), text("type"), text("jsonPath"), column["priority"].as_i64().unwrap_or(0))
        })
        .collect()
}

#[test]
fn kubectl_shows_these_columns() {
    let crd = crd(EXECUTION);
    assert_eq!(
        columns(&crd),
        [
            ("Phase", "string", ".status.phase", 0),
            ("Why", "string", ".status.summary", 0),
            ("Blocks", "string", ".status.conditions[?(@.type==\"Blocked\")].status", 0),
            ("Target", "string", ".spec.targetResource", 0),
            ("Age", "date", ".metadata.creationTimestamp", 0),
            ("Workflow", "string", ".spec.workflowRef.workflowId", 1),
            ("Reason", "string", ".status.conditions[?(@.type==\"Succeeded\")].reason", 1),
            ("Duration", "string", ".status.duration", 1),
            ("PipelineRun", "string", ".status.pipelineRunRef.name", 1),
            // A column of type date shows <invalid> for a time in the future.
            ("Next-Allowed", "string", ".status.nextAllowedExecution", 1),
        ]
    );
}

#[test]
fn kubectl_finds_it_by_these_names_and_fields() {
    let crd = crd(EXECUTION);
    assert_eq!(crd["metadata"]["name"], "workflowexecutions.kubernaut.ai");
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["wfe"]));
    assert_eq!(crd["spec"]["names"]["categories"], json!(["kubernaut"]));
    assert_eq!(
        crd["spec"]["versions"][0]["selectableFields"],
        json!([
            {"jsonPath": ".spec.targetResource"},
            {"jsonPath": ".spec.remediationRequestRef.name"},
            {"jsonPath": ".status.target"},
            {"jsonPath": ".status.phase"},
        ])
    );
}

#[test]
fn limits_and_patterns_agree() {
    let schema = schema();
    let spec = &schema["properties"]["spec"]["properties"];
    assert_eq!(limits::TARGET, limits::NAMESPACE + 1 + limits::NAME + 1 + limits::NAME);
    let size = spec["parameters"]["x-kubernetes-validations"][2].to_string();
    assert_eq!(size.matches(&limits::PARAMETERS_SIZE.to_string()).count(), 2, "in the rule and in its message: {size}");
    let keys = spec["parameters"]["x-kubernetes-validations"][0]["rule"].as_str().unwrap();
    assert!(keys.contains(&format!("{{0,{}}}$", limits::PARAMETER_KEY - 1)), "{keys}");
    assert_eq!(spec["parameters"]["maxProperties"], limits::PARAMETERS);
}

#[test]
fn yaml_says_the_same_as_the_types() {
    let text = crds_yaml().unwrap();
    assert_eq!(text, crds_yaml().unwrap(), "not the same text every time");
    let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(read, [crd(EXECUTION), crd(SCHEDULE)]);
}

#[test]
fn the_files_in_crds_are_the_generated_ones() {
    let read = |plural: &str| {
        let path = format!("{}/../../crds/kubernaut.ai_{plural}.yaml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let files = [EXECUTION, SCHEDULE].map(read).concat();
    assert!(files == crds_yaml().unwrap(), "crds/ is out of date: run `make generate`");
}

mod schedule;
