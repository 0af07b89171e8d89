//! Takes the values of parameters out of a report. A value may appear elsewhere too, as in the message of a failure.

use std::collections::BTreeSet;

use kube::api::DynamicObject;
use serde_json::{Value, json};

const LEFT_OUT: &str = "(left out)";
/// The shortest value that is searched elsewhere, in bytes: shorter ones are parts of ordinary words and numbers.
const SHORTEST: usize = 4;
/// Values that are not searched elsewhere: they are no secrets, and settings have them too.
const ORDINARY: [&str; 2] = ["true", "false"];
/// The fields of an object that may have any content: parameters, and texts.
const PARAMETERS: [&str; 3] = ["/spec/parameters", "/spec/template/spec/parameters", "/status/adjust/parameters"];
const TEXTS: [&str; 2] = ["/spec/rationale", "/spec/template/spec/rationale"];
/// The annotations of this operator. The annotations of other programs may have a copy of the whole object.
const OURS: &str = "kubernaut.ai/";

/// Values that must not appear in a report.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeSet<String>);

impl Values {
    /// Returns an object without the values of its parameters, and remembers them.
    pub(super) fn take_from(&mut self, object: &DynamicObject) -> Value {
        let mut meta = object.metadata.clone();
        meta.managed_fields = None;
        if let Some(annotations) = &mut meta.annotations {
            annotations.retain(|key, _| key.starts_with(OURS));
        }
        let mut object = json!({"metadata": meta, "spec": object.data["spec"], "status": object.data["status"]});
        for pointer in PARAMETERS {
            let parameters = object.pointer_mut(pointer).and_then(Value::as_object_mut);
            for value in parameters.into_iter().flat_map(serde_json::Map::values_mut) {
                if let Some(text) = value.as_str().filter(|it| it.len() >= SHORTEST && !ORDINARY.contains(it)) {
                    self.0.extend([text.to_owned(), in_json(text)]);
                }
                *value = json!(LEFT_OUT);
            }
        }
        for pointer in TEXTS {
            if let Some(text) = object.pointer_mut(pointer) {
                *text = json!(LEFT_OUT);
            }
        }
        object
    }

    /// Replaces the values in all texts of a report. The longest goes first: a shorter one may be a part of it.
    pub(super) fn leave_out_of(&self, report: &mut Value) {
        let mut values: Vec<&str> = self.0.iter().map(String::as_str).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        replace(report, &values);
    }
}

/// Returns a text as a log line in JSON has it.
fn in_json(text: &str) -> String {
    json!(text).to_string().trim_matches('"').to_owned()
}

fn replace(value: &mut Value, values: &[&str]) {
    match value {
        Value::String(text) => {
            for value in values {
                if text.contains(value) {
                    *text = text.replace(value, LEFT_OUT);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, values)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
