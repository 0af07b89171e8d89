//! JSON merge patches (RFC 7386). A fixture stores each later version of an object as the patch from the version
//! before.

use serde_json::{Map, Value};

/// Returns the patch that turns `before` into `after`. Neither value may contain a null outside of a list.
pub(crate) fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(old) if old == value => (),
            Some(old) => drop(patch.insert(key.clone(), difference(old, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

/// Applies a patch to a value.
pub(crate) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Value::Object(into) = into else { return };
    for (key, value) in patch {
        if value.is_null() {
            into.remove(key);
        } else {
            merge(into.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_leads_from_one_version_to_the_next() {
        let versions = [
            json!({"a": 1, "b": {"c": [1, 2], "d": "x"}}),
            json!({"a": 1, "b": {"c": [1, null]}}),
            json!({"a": {"e": {}}, "b": [{"c": null}]}),
            json!({}),
            json!({"a": {"e": {"f": true}}}),
        ];
        let mut at = versions[0].clone();
        for next in &versions {
            let patch = difference(&at, next);
            merge(&mut at, &patch);
            assert_eq!(at, *next, "{patch}");
        }
        assert_eq!(difference(&versions[0], &versions[1]), json!({"b": {"c": [1, null], "d": null}}));
    }
}
