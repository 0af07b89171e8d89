//! The CRDs of this project as the API server shows them, and objects whose CRD lacks fields.

use std::sync::LazyLock;

use serde_json::Value;

use super::answer::{Answer, page_not_found};

/// The shipped CRDs. They are built once: that takes milliseconds, and each replica asks for them every minute.
static SHIPPED: LazyLock<Vec<Value>> =
    LazyLock::new(|| wfe_api::crds().into_iter().filter_map(|crd| serde_json::to_value(crd).ok()).collect());

/// Returns a CRD by name, without the dropped fields of executions.
pub(super) fn named(name: &str, dropped: &[String]) -> Result<Answer, Answer> {
    let mut crd = SHIPPED.iter().find(|crd| crd["metadata"]["name"] == name).cloned().ok_or_else(page_not_found)?;
    if name == wfe_api::crd::EXECUTIONS_CRD {
        for field in dropped {
            let path = field.replace('.', "/properties/");
            remove(&mut crd, &format!("/spec/versions/0/schema/openAPIV3Schema/properties/{path}"));
        }
    }
    Ok(Answer::ok(crd))
}

/// Drops fields from an object.
pub(super) fn drop(object: &mut Value, fields: &[String]) {
    for field in fields {
        remove(object, &format!("/{}", field.replace('.', "/")));
    }
}

fn remove(value: &mut Value, pointer: &str) {
    if let Some((parent, last)) = pointer.rsplit_once('/')
        && let Some(parent) = value.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        parent.remove(last);
    }
}
