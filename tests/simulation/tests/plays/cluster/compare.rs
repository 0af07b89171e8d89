//! Compares the objects of a run with the recorded objects, except names, uids, versions and the time of the start.
//! Reads the fixtures independently of the simulation.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::{Value, json};
use wfe_core::Time;

use super::stage::NAMESPACE;

/// The final objects of a run, by kind and name.
pub(crate) type Left = BTreeMap<(String, String), Value>;

/// Returns the lines of a fixture.
pub(crate) fn recorded(version: &str, story: &str) -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/tekton/tests/fixtures");
    let text = std::fs::read_to_string(format!("{folder}/{version}/{story}/story.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the final objects of a fixture, renamed for the run with this name.
pub(crate) fn expected(version: &str, story: &str, run: &str) -> Left {
    let mut objects: BTreeMap<(String, String), Value> = BTreeMap::new();
    for line in recorded(version, story) {
        let key = (line["kind"].as_str().unwrap().to_owned(), line["name"].as_str().unwrap().to_owned());
        if line["change"] == "DELETED" {
            objects.remove(&key);
        } else if line["object"].is_object() {
            objects.insert(key, line["object"].clone());
        } else {
            json_patch::merge(objects.get_mut(&key).unwrap(), &line["patch"]);
        }
    }
    let renamed = objects.into_values().map(|object| {
        let text = object.to_string().replace("wfe-ac45b7d6911e97a5-1", run).replace("kubernaut-workflows", NAMESPACE);
        serde_json::from_str(&text).unwrap()
    });
    plain(renamed.collect(), DateTime::from_timestamp(1_767_225_600, 0).unwrap())
}

/// Replaces uids by kinds and names, and times by the duration since the start. Removes versions, fields that the
/// recorder leaves out, and a run's labels and annotations about its execution.
pub(crate) fn plain(mut objects: Vec<Value>, begun: Time) -> Left {
    let name = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&object["kind"]), text(&object["metadata"]["name"]))
    };
    let uids: BTreeMap<String, String> = objects
        .iter()
        .map(|object| {
            let (kind, name) = name(object);
            (object["metadata"]["uid"].as_str().unwrap().to_owned(), format!("{kind} {name}"))
        })
        .collect();
    for object in &mut objects {
        let meta = object["metadata"].as_object_mut().unwrap();
        meta.remove("resourceVersion");
        if object["kind"] == "Pod" {
            object["spec"] = json!({});
        }
        if object["kind"] == "PipelineRun" && object["metadata"].get("ownerReferences").is_none() {
            // The test creates the run before the story begins.
            for field in ["generation", "creationTimestamp", "annotations"] {
                object["metadata"].as_object_mut().unwrap().remove(field);
            }
            object["spec"] = json!({});
        }
        for field in ["labels", "annotations"] {
            let Some(all) = object["metadata"][field].as_object_mut() else { continue };
            all.retain(|key, _| !key.starts_with("kubernaut.ai/"));
        }
        each_text(object, &|text| {
            if let Ok(time) = DateTime::parse_from_rfc3339(text) {
                return format!("after {} s", (time.to_utc() - begun).num_milliseconds() / 1000);
            }
            uids.get(text).cloned().unwrap_or_else(|| text.to_owned())
        });
    }
    objects.into_iter().map(|object| (name(&object), object)).collect()
}

pub(crate) fn each_text(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(all) => all.iter_mut().for_each(|value| each_text(value, change)),
        Value::Object(all) => all.values_mut().for_each(|value| each_text(value, change)),
        _ => {}
    }
}

/// Removes all times from the objects.
pub(crate) fn timeless(left: Left) -> Left {
    let without = |mut object: Value| {
        each_text(&mut object, &|text| {
            if text.starts_with("after ") { "some time".to_owned() } else { text.to_owned() }
        });
        object
    };
    left.into_iter().map(|(key, object)| (key, without(object))).collect()
}

/// Fails if the objects differ, and shows the differences.
pub(crate) fn assert_same(title: &str, is: &Left, wanted: &Left) {
    let names = |left: &Left| left.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(is), names(wanted), "{title}");
    for (key, object) in is {
        let wanted = &wanted[key];
        assert!(object == wanted, "{title}, {key:?}:\n{object:#}\n\nis not\n\n{wanted:#}");
    }
}
