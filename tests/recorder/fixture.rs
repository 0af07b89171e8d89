//! Turns a recording into a fixture. The fixture has only the relevant changes, without fields that differ between
//! recordings or have no meaning for a test.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use wfe_testkit::{Change, Observed, World};
use wfe_tests::stable;

use crate::merge::{difference, merge};

/// The time at which every fixture begins.
const BEGIN: &str = "2026-01-01T00:00:00Z";

/// Returns the relevant changes of a recording, in order.
pub(crate) fn story(world: &World, recorded: Vec<Observed>) -> Result<Vec<Observed>> {
    let mut story = telling(recorded.into_iter().filter(|one| one.kind != "WorkflowExecution").collect());
    let mut uids = Uids::default();
    let begin = story.first().and_then(|one| moment(&one.object["metadata"]["creationTimestamp"]));
    let begin = begin.context("nothing was recorded")?;
    let shift = moment(&json!(BEGIN)).context("BEGIN is no time")? - begin;
    for (place, one) in (1_u64..).zip(&mut story) {
        one.resource_version = place;
        one.at_ms = 0;
        one.object = trimmed(&one.kind, &one.object);
        one.object["metadata"]["resourceVersion"] = json!(place.to_string());
        uids.learn(&one.object);
        rewrite(&mut one.object, &|text| match DateTime::parse_from_rfc3339(text) {
            Ok(time) if text.ends_with('Z') => show(time.to_utc() + shift),
            _ => uids.replace(&stable(world, text)),
        });
    }
    Ok(story)
}

/// Writes a story with one line for each change. A new object is written as a whole, and a later version as its
/// difference from the version before.
pub(crate) fn write(file: &Path, story: &[Observed]) -> Result<()> {
    let mut lines = String::new();
    let mut last: HashMap<String, Value> = HashMap::new();
    for one in story {
        let name = &one.object["metadata"]["name"];
        let before = last.insert(format!("{} {name}", one.kind), one.object.clone());
        let line = match before.filter(|_| one.change != Change::Added) {
            None => json!({"change": one.change, "kind": one.kind, "name": name, "object": one.object}),
            Some(mut before) => {
                let patch = difference(&before, &one.object);
                merge(&mut before, &patch);
                ensure!(before == one.object, "no patch leads to {}", one.object);
                json!({"change": one.change, "kind": one.kind, "name": name, "patch": patch})
            }
        };
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    fs::create_dir_all(file.parent().context("a fixture without a directory")?)?;
    fs::write(file, lines)?;
    Ok(())
}

/// Drops each change whose gist is the same as before, except creations, deletions and the last change of each object.
fn telling(recorded: Vec<Observed>) -> Vec<Observed> {
    let mut said: HashMap<String, Value> = HashMap::new();
    let mut last: HashMap<String, u64> = HashMap::new();
    let uid = |one: &Observed| one.object["metadata"]["uid"].to_string();
    for one in &recorded {
        last.insert(uid(one), one.resource_version);
    }
    let mut kept = recorded;
    kept.retain(|one| {
        let says = gist(&one.object);
        let new = said.insert(uid(one), says.clone()).is_none_or(|before| before != says);
        new || matches!(one.change, Change::Added | Change::Deleted)
            || last.get(&uid(one)) == Some(&one.resource_version)
    });
    kept
}

/// Returns the relevant part of an object: its progress, its children, and the states of its containers.
fn gist(object: &Value) -> Value {
    let status = &object["status"];
    let condition = &status["conditions"][0];
    let count = |list: &str| status[list].as_array().map_or(0, Vec::len);
    let containers = |list: &str| -> Vec<Value> { status[list].as_array().into_iter().flatten().map(state).collect() };
    json!([
        [object["spec"]["status"], object["metadata"]["deletionTimestamp"].is_null()],
        if status["phase"].is_null() {
            json!([condition["status"], condition["reason"]])
        } else {
            status["phase"].clone()
        },
        [count("childReferences"), count("skippedTasks"), count("retriesStatus")],
        [containers("steps"), containers("sidecars"), containers("containerStatuses")],
        status["podName"],
    ])
}

/// Returns the state of a step, a sidecar or a container, without its times.
fn state(container: &Value) -> Value {
    let state = if container["state"].is_object() { &container["state"] } else { container };
    json!([
        state["waiting"]["reason"],
        state["running"].is_object(),
        state["terminated"]["reason"],
        state["terminated"]["exitCode"],
    ])
}

/// Returns an object without the fields that do not concern an outcome.
fn trimmed(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if kind == "Pod" {
        let status = &object["status"];
        let containers = status["containerStatuses"].as_array().cloned().unwrap_or_default();
        let containers: Vec<Value> =
            containers.iter().map(|one| json!({"name": one["name"], "state": one["state"]})).collect();
        let mut kept = Map::new();
        for field in ["phase", "reason", "message"] {
            if !status[field].is_null() {
                kept.insert(field.to_owned(), status[field].clone());
            }
        }
        if !containers.is_empty() {
            kept.insert("containerStatuses".to_owned(), json!(containers));
        }
        object["status"] = json!(kept);
        object["spec"] = json!({});
    }
    drop_fields(&mut object, &["managedFields", "provenance", "taskSpec", "finalizers"], kind == "TaskRun");
    object
}

/// Removes nulls, and fields with these names, at any depth. `taskSpec` is removed only from TaskRuns, where it repeats
/// the pipeline.
fn drop_fields(value: &mut Value, fields: &[&str], task_run: bool) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                !value.is_null() && (!fields.contains(&key.as_str()) || (key == "taskSpec" && !task_run))
            });
            map.values_mut().for_each(|value| drop_fields(value, fields, task_run));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| drop_fields(value, fields, task_run)),
        _ => (),
    }
}

fn rewrite(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| rewrite(value, change)),
        Value::Object(map) => map.values_mut().for_each(|value| rewrite(value, change)),
        _ => (),
    }
}

fn moment(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok()).map(|time| time.to_utc())
}

fn show(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

/// The uids of a recording, and their replacements in a fixture.
#[derive(Default)]
struct Uids(Vec<String>);

impl Uids {
    /// Assigns the object's uid a number, unless the uid has one.
    fn learn(&mut self, object: &Value) {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && !self.0.iter().any(|known| known == uid) {
            self.0.push(uid.to_owned());
        }
    }

    fn replace(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (number, uid) in (1..).zip(&self.0) {
            text = text.replace(uid, &format!("00000000-0000-0000-0000-{number:012}"));
        }
        text
    }
}
