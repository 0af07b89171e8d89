//! Parts of an object as it was read.

use kube::api::DynamicObject;
use serde_json::Value;

/// Returns a text of an object; none if it is absent or empty.
pub(crate) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a str> {
    object.data.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns a condition of an object, from its status.
pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|it| it["type"] == kind)
}
