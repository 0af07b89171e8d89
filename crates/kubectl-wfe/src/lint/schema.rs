//! The structure of an object, compared with the schema of its CRD as this version of the plugin has it: types, limits,
//! missing and unknown fields. The rules of the CRD in CEL are not evaluated here.

use chrono::DateTime;
use serde_json::Value;

use super::finding::Findings;
use crate::nearest::did_you_mean;

/// Compares the spec of an object. `kind` is the kind of the object. A number in the place of a text becomes a text, so
/// that the checks behind this one can read the rest of the spec.
pub(super) fn check(kind: &str, object: &mut Value, found: &mut Findings) {
    let crd = wfe_api::crds().into_iter().find(|crd| crd.spec.names.kind == kind);
    let crd = crd.and_then(|crd| serde_json::to_value(crd).ok()).unwrap_or_default();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    if object["spec"].is_null() {
        return found.error("spec", "spec: is required");
    }
    below(&schema["properties"]["spec"], &mut object["spec"], "spec", found);
    // The API server ignores the status of a new object, and checks the other fields itself.
    let known = ["apiVersion", "kind", "metadata", "spec", "status"];
    for name in object.as_object().into_iter().flatten().map(|(name, _)| name).filter(|it| !known.contains(&&***it)) {
        unknown("", name, known.into_iter(), found);
    }
}

fn below(schema: &Value, value: &mut Value, path: &str, found: &mut Findings) {
    if let Some(problem) = type_problem(schema, value).or_else(|| value_problem(schema, value)) {
        if schema["type"] == "string" && (value.is_number() || value.is_boolean()) {
            *value = Value::String(value.to_string());
        }
        return found.error(path, format!("{path}: {problem}"));
    }
    match value {
        Value::Object(fields) => {
            let known = schema["properties"].as_object();
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                // The API server drops a null, so it is as if absent.
                if fields.get(name).is_none_or(Value::is_null) {
                    let field = format!("{path}.{name}");
                    found.error(&field, format!("{field}: is required"));
                }
            }
            for (name, value) in fields.iter_mut().filter(|(_, value)| !value.is_null()) {
                let values = &schema["additionalProperties"];
                match known.and_then(|known| known.get(name)) {
                    Some(schema) => below(schema, value, &format!("{path}.{name}"), found),
                    None if values.is_object() => below(values, value, &format!("{path}.{name}"), found),
                    None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
                    None => unknown(path, name, known.into_iter().flatten().map(|(name, _)| &**name), found),
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                below(&schema["items"], item, &format!("{path}[{place}]"), found);
            }
        }
        _ => {}
    }
}

fn unknown<'a>(path: &str, name: &str, known: impl Iterator<Item = &'a str>, found: &mut Findings) {
    let field = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    found.error(&field, format!("{field}: is unknown{}", did_you_mean(name, known)));
}

/// Returns what a value must be, if it has another type.
fn type_problem(schema: &Value, value: &Value) -> Option<String> {
    let (fits, expected) = match schema["type"].as_str()? {
        "object" => (value.is_object(), "an object"),
        "array" => (value.is_array(), "a list"),
        "string" => (value.is_string(), "a text"),
        "integer" => (value.is_i64() || value.is_u64(), "a whole number"),
        "number" => (value.is_number(), "a number"),
        "boolean" => (value.is_boolean(), "true or false"),
        _ => return None,
    };
    let quotes =
        if expected == "a text" && (value.is_number() || value.is_boolean()) { ": put it in quotes" } else { "" };
    (!fits).then(|| format!("must be {expected}{quotes}"))
}

/// Returns what is wrong with a value of the right type.
fn value_problem(schema: &Value, value: &Value) -> Option<String> {
    let limit = |name: &str| schema[name].as_u64();
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        return Some(format!("must be {}", allowed.join(" or ")));
    }
    let (size, least, most, of) = match value {
        Value::String(text) => (text.chars().count(), limit("minLength"), limit("maxLength"), "characters"),
        Value::Array(items) => (items.len(), limit("minItems"), limit("maxItems"), "items"),
        Value::Object(fields) => (fields.len(), limit("minProperties"), limit("maxProperties"), "entries"),
        _ => return number_problem(schema, value),
    };
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    if let Some(most) = most.filter(|most| size > *most) {
        return Some(format!("has {size} {of}, at most {most} are allowed"));
    }
    if let Some(least) = least.filter(|least| size < *least) {
        return Some(format!("has {size} {of}, at least {least} are required"));
    }
    let is_moment = |text: &str| DateTime::parse_from_rfc3339(text).is_ok();
    let is_no_moment = schema["format"] == "date-time" && !value.as_str().is_some_and(is_moment);
    is_no_moment.then(|| "must be a time such as 2026-01-02T03:04:05Z".to_owned())
}

fn number_problem(schema: &Value, value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
    let fits = least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
    match (least, most) {
        _ if fits => None,
        (Some(least), Some(most)) => Some(format!("must be from {least} to {most}")),
        (Some(least), None) => Some(format!("must be {least} or more")),
        (None, most) => Some(format!("must be {} or less", most.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_schema_refuses_is_named_with_its_field() {
        let good = json!({
            "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution", "metadata": {"name": "a"},
            "spec": {
                "targetResource": "node/n",
                "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "r/w:1"},
                "retry": {"maxAttempts": 3}, "confidence": 1, "rationale": null,
            },
        });
        let says = |pointer: &str, value: Value| {
            let mut object = good.clone();
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[name] = value;
            let mut found = Findings::default();
            check("WorkflowExecution", &mut object, &mut found);
            found.0.into_iter().map(|it| it.says).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(says("/spec/rationale", json!("why")), "");
        for (pointer, value, expected) in [
            ("/spec", Value::Null, "spec: is required"),
            ("/spec", json!("x"), "spec: must be an object"),
            ("/spce", json!({}), "spce: is unknown: did you mean spec?"),
            ("/spec/targetResource", Value::Null, "spec.targetResource: is required"),
            ("/spec/target", json!("node/n"), "spec.target: is unknown: did you mean targetResource?"),
            ("/spec/workflowRef/version", json!(1.5), "spec.workflowRef.version: must be a text: put it in quotes"),
            ("/spec/workflowRef/version", json!([]), "spec.workflowRef.version: must be a text"),
            (
                "/spec/workflowRef/workflowId",
                json!(""),
                "spec.workflowRef.workflowId: has 0 characters, at least 1 are required",
            ),
            ("/spec/parameters", json!({"A": 85}), "spec.parameters.A: must be a text: put it in quotes"),
            (
                "/spec/parameters",
                json!({"A": "x".repeat(9000)}),
                "spec.parameters.A: has 9000 characters, at most 8192 are allowed",
            ),
            ("/spec/confidence", json!(2), "spec.confidence: must be from 0 to 1"),
            ("/spec/ttlSecondsAfterFinished", json!(-1), "spec.ttlSecondsAfterFinished: must be 0 or more"),
            ("/spec/startBefore", json!("tomorrow"), "spec.startBefore: must be a time such as 2026-01-02T03:04:05Z"),
            ("/spec/retry", json!(21), "spec.retry: must be from 1 to 20"),
        ] {
            assert_eq!(says(pointer, value), expected, "{pointer}");
        }
    }
}
