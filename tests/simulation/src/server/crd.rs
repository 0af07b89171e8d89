//! The CRDs of this project as the API server shows them, and objects whose CRD lacks fields.

use serde_json::Value;

use super::answer::{Answer, page_not_found};

/// Returns a CRD by name, without the dropped fields of executions.
pub(super) fn named(name: &str, dropped: &[String]) -> Result<Answer, Answer> {
    let shipped = wfe_api::crds().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(name));
    let mut crd = shipped.and_then(|crd| serde_json::to_value(crd).ok()).ok_or_else(page_not_found)?;
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
