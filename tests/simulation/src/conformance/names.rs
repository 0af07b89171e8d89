//! Values that are known only from an answer: their placeholders in requests, and their new names in answers.
//!
//! | in a request | stands for |
//! |---|---|
//! | `$version:Kind/name` | the newest `resourceVersion` of this object that was seen |
//! | `$before:Kind/name` | the one before |
//! | `$uid:Kind/name` | the newest uid that was seen under this name |
//! | `$gone:Kind/name` | the uid before |
//! | `$namespace` | the namespace of the plan |
//! | `$continue` | the newest token of a list that has more |

use std::collections::HashMap;

use serde_json::{Value, json};

/// The values of placeholders before any answer: a version that is never the newest, and a uid that no object has.
const NO_VERSION: &str = "1";
const NO_UID: &str = "00000000-0000-4000-8000-000000000000";

/// The values in the answers so far.
#[derive(Debug, Default)]
pub(super) struct Memory {
    versions: HashMap<String, Vec<String>>,
    uids: HashMap<String, Vec<String>>,
    namespace: String,
    token: String,
    renamed: HashMap<String, String>,
}

impl Memory {
    /// Creates a memory for a plan with this namespace.
    pub(super) fn of(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..Self::default() }
    }

    /// Remembers the version and the uid of an object.
    pub(super) fn note(&mut self, object: &Value) {
        let meta = &object["metadata"];
        if let Some(token) = meta["continue"].as_str() {
            token.clone_into(&mut self.token);
        }
        let (Some(kind), Some(name)) = (object["kind"].as_str(), meta["name"].as_str()) else { return };
        let key = format!("{kind}/{name}");
        for (all, value) in [(&mut self.versions, &meta["resourceVersion"]), (&mut self.uids, &meta["uid"])] {
            let Some(value) = value.as_str() else { continue };
            let all = all.entry(key.clone()).or_default();
            if all.last().is_none_or(|last| last != value) {
                all.push(value.to_owned());
            }
        }
    }

    /// Replaces the placeholders in a text.
    pub(super) fn fill(&self, text: &str) -> String {
        if text == "$namespace" {
            return self.namespace.clone();
        }
        if let Some((head, "")) = text.split_once("$continue") {
            return format!("{head}{}", self.token);
        }
        let nth = |all: &HashMap<String, Vec<String>>, key: &str, back: usize, none: &str| {
            let all = all.get(key).map_or(&[][..], Vec::as_slice);
            all.iter().rev().nth(back).map_or(none.to_owned(), Clone::clone)
        };
        match text.split_once(':') {
            Some(("$version", key)) => nth(&self.versions, key, 0, NO_VERSION),
            Some(("$before", key)) => nth(&self.versions, key, 1, NO_VERSION),
            Some(("$uid", key)) => nth(&self.uids, key, 0, NO_UID),
            Some(("$gone", key)) => nth(&self.uids, key, 1, NO_UID),
            _ => text.to_owned(),
        }
    }

    pub(super) fn fill_all(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with('$') => *text = self.fill(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_all(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill_all(field)),
            _ => {}
        }
    }

    /// Renames uids, versions and times in an object. Removes fields that only a real server sets and that no client
    /// here reads.
    pub(super) fn rename(&mut self, object: &Value) -> Value {
        let mut object = object.clone();
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if object["items"].is_array() {
            return self.rename_list(&object, &kind);
        }
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("managedFields");
            for field in ["creationTimestamp", "deletionTimestamp"] {
                if meta.get(field).is_some_and(Value::is_string) {
                    meta.insert(field.to_owned(), json!("a time"));
                }
            }
            for field in ["uid", "resourceVersion"] {
                if let Some(value) = meta.get(field).and_then(Value::as_str) {
                    let renamed = self.renamed(field, value);
                    meta.insert(field.to_owned(), json!(renamed));
                }
            }
        }
        if kind == "Pod" {
            // A pod's spec contains many defaults, and no decision here uses the spec.
            let status = ["phase", "reason", "message"].map(|field| (field, object["status"][field].take()));
            let status: Value = status
                .into_iter()
                .filter(|(_, said)| !said.is_null())
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<serde_json::Map<_, _>>()
                .into();
            return json!({"kind": kind, "metadata": object["metadata"], "status": status});
        }
        if kind == "Event"
            && let Some(event) = object.as_object_mut()
        {
            event.retain(|field, _| !field.starts_with("deprecated"));
        }
        object
    }

    fn rename_list(&mut self, list: &Value, kind: &str) -> Value {
        let of = kind.trim_end_matches("List");
        let items = list["items"].as_array().into_iter().flatten().map(|item| {
            // In the list of a built-in kind, the items lack `kind` and `apiVersion`.
            let mut item = item.clone();
            item["kind"] = json!(of);
            item["apiVersion"] = list["apiVersion"].clone();
            self.note(&item);
            self.rename(&item)
        });
        let items: Vec<Value> = items.collect();
        let meta = &list["metadata"];
        let more = meta["continue"].as_str().is_some_and(|token| !token.is_empty());
        json!({"kind": kind, "items": items, "more": more, "left": meta["remainingItemCount"]})
    }

    fn renamed(&mut self, what: &str, value: &str) -> String {
        let next = self.renamed.len();
        self.renamed.entry(format!("{what} {value}")).or_insert_with(|| format!("{what} {next}")).clone()
    }
}

/// Returns those parts of a refusal that the operator or another client may use.
pub(super) fn refusal(code: u16, status: &Value) -> Value {
    let mut fields: Vec<&str> = Vec::new();
    // Only refusals by this project's own schemas are compared field by field.
    if status["details"]["kind"] == "WorkflowExecution" {
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        fields = causes.filter_map(|cause| cause["field"].as_str()).filter(|field| *field != "<nil>").collect();
        fields.sort_unstable();
        fields.dedup();
    }
    json!({"code": code, "reason": status["reason"], "fields": fields})
}
