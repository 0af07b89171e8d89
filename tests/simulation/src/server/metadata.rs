//! Rules for the metadata of every kind: names, labels, finalizers, and fields that only the server may set.

use std::sync::LazyLock;

use chrono::SecondsFormat;
use regex::Regex;
use serde_json::{Map, Value};
use wfe_core::Time;

use super::answer::{Answer, bad_request};
use super::cause::Cause;
use super::kind::{Kind, Special};

/// The metadata fields that are kept. All others are dropped, including `managedFields`, which no client here reads.
const FIELDS: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];
/// The limit of kube-apiserver for the size of all annotations together, in bytes of keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Compiles a pattern. All patterns in this file are valid.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static SUBDOMAIN: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"));
static DNS_LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| pattern("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"));

fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Formats a time as in metadata, in whole seconds.
pub(super) fn timestamp(now: Time) -> Value {
    Value::String(now.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Returns a field of the metadata as text; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the finalizers of an object.
pub(super) fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map_or(&[], Vec::as_slice)
}

/// Cleans the metadata in a request by dropping unknown and empty fields.
pub(super) fn tidy(object: &mut Value) -> Result<(), Answer> {
    let meta = object.get_mut("metadata").map(Value::take).unwrap_or_default();
    let Value::Object(mut meta) = meta else {
        if meta.is_null() {
            object["metadata"] = Value::Object(Map::new());
            return Ok(());
        }
        return Err(bad_request("metadata is no object"));
    };
    meta.retain(|key, value| FIELDS.contains(&key.as_str()) && !is_nothing(value));
    for field in ["labels", "annotations"] {
        let Some(all) = meta.get(field) else { continue };
        if !all.as_object().is_some_and(|all| all.values().all(Value::is_string)) {
            return Err(bad_request(&format!("metadata.{field} is no map of strings")));
        }
    }
    object["metadata"] = Value::Object(meta);
    Ok(())
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Reports invalid metadata in an object that is to be written.
pub(super) fn check(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    let name = text(object, "name");
    if name.is_empty() {
        causes.push(Cause::new(
            "FieldValueRequired",
            "metadata.name",
            "Required value: name or generateName is required",
        ));
    } else {
        let good = match kind.traits.special {
            Special::Namespace => name.len() <= 63 && matches(&DNS_LABEL, name),
            _ => name.len() <= 253 && matches(&SUBDOMAIN, name),
        };
        if !good {
            causes.push(Cause::new("FieldValueInvalid", "metadata.name", format!("Invalid value: \"{name}\"")));
        }
    }
    let pairs = |field: &str| object["metadata"][field].as_object().into_iter().flatten();
    for (key, value) in pairs("labels") {
        let value = value.as_str().unwrap_or_default();
        if !is_qualified(key) || value.len() > 63 || !value.is_empty() && !matches(&WORD, value) {
            causes.push(Cause::new("FieldValueInvalid", "metadata.labels", format!("Invalid value: \"{value}\"")));
        }
    }
    let mut bytes = 0;
    for (key, value) in pairs("annotations") {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        if !is_qualified(&key.to_ascii_lowercase()) {
            causes.push(Cause::new("FieldValueInvalid", "metadata.annotations", format!("Invalid value: \"{key}\"")));
        }
    }
    if bytes > MAX_ANNOTATIONS {
        causes.push(Cause::new("FieldValueTooLong", "metadata.annotations", "Too long"));
    }
    for finalizer in finalizers(object) {
        if !finalizer.as_str().is_some_and(is_qualified) {
            causes.push(Cause::new("FieldValueInvalid", "metadata.finalizers", format!("Invalid value: {finalizer}")));
        }
    }
}

/// Returns whether a key is a qualified name: a name of at most 63 characters, after an optional prefix that is a
/// subdomain.
fn is_qualified(key: &str) -> bool {
    let (prefix, word) = key.split_once('/').map_or((None, key), |(prefix, word)| (Some(prefix), word));
    word.len() <= 63
        && matches(&WORD, word)
        && prefix.is_none_or(|prefix| prefix.len() <= 253 && matches(&SUBDOMAIN, prefix))
}
