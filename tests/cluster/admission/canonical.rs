//! The shipped manifests contain every default that the API server would add. A tool that compares manifests with the
//! cluster, such as Argo CD or a second manager of a server-side apply, therefore finds no difference.

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{manifests, repository};

use super::objects::report;
use super::people::installed;

#[tokio::test]
async fn kinds_and_policies_are_written_as_the_api_server_returns_them() -> Result<()> {
    let client = installed().await?.client().await?;
    let (mut compared, mut differences) = (0, Vec::new());
    for folder in ["crds", "config/admission"] {
        for object in manifests::read(&repository().join(folder))?.into_iter().filter(|it| !it["spec"].is_null()) {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (kind, name) = (text("/kind"), text("/metadata/name"));
            let api = Api::<DynamicObject>::all_with(client.clone(), &manifests::resource(text("/apiVersion"), kind));
            let found = if kind == "CustomResourceDefinition" {
                api.get(name).await?
            } else {
                // The dry run has another name, because other tests change the installed object.
                let mut copy: DynamicObject = serde_json::from_value(object.clone())?;
                copy.metadata.name = Some(format!("canonical-{name}"));
                api.create(&PostParams { dry_run: true, ..PostParams::default() }, &copy).await?
            };
            let spec = found.data.get("spec").context("an object without its spec")?;
            compare(&format!("{kind} {name}: spec"), &object["spec"], spec, &mut differences);
            compared += 1;
        }
    }
    ensure!(compared > 20, "{compared} objects were compared");
    report(&differences)
}

/// Collects the paths of all values that are different.
fn compare(path: &str, shipped: &Value, found: &Value, differences: &mut Vec<String>) {
    match (shipped, found) {
        (Value::Object(one), Value::Object(other)) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                compare(&format!("{path}.{key}"), &shipped[key], &found[key], differences);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (place, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{place}]"), one, other, differences);
            }
        }
        // In JSON, 1.0 and 1 are the same number.
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        _ if shipped == found => {}
        _ => differences.push(format!("{path}: {shipped} is written, and {found} is there")),
    }
}

#[test]
fn a_value_that_is_filled_in_or_changed_is_a_difference() {
    let mut differences = Vec::new();
    let shipped = json!({"a": 1, "b": [{"c": "x"}], "d": {}});
    compare("spec", &shipped, &json!({"a": 1.0, "b": [{"c": "y"}], "d": {}, "e": "*"}), &mut differences);
    let expected = ["spec.b[0].c: \"x\" is written, and \"y\" is there", "spec.e: null is written, and \"*\" is there"];
    assert_eq!(differences, expected);
}
