//! The ends of runs that are stopped while in progress. Such a run gets what Tekton wrote in the recorded story of a
//! stopped run. Tekton's words are only in the fixtures.

use serde_json::{Map, Value, json};
use wfe_core::Time;

use super::replay::{Names, change_texts, rendered};
use super::scripts::{Change, Story, StoryError, as_time, name_of, story, uid};

/// Why a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A user has requested the stop in `spec.status`.
    Asked,
    /// The run has exceeded `spec.timeouts.pipeline`.
    TimedOut,
}

/// What a story writes to an object after the stop, as patches of its spec and its status.
struct Closing<'a> {
    story: &'a Story,
    /// The name of the object in the story.
    name: &'a str,
    spec: Value,
    status: Value,
}

/// Returns the patch of a child's spec by which a run stops this child. The child's status changes later.
pub(super) fn stopped_child(version: &str, stop: Stop, child: &Value) -> Result<Value, &'static StoryError> {
    // No story stops a child run. For either reason, a child run is therefore cancelled like a run that a user cancels.
    let stop = if child["kind"] == "PipelineRun" { Stop::Asked } else { stop };
    let Some(closing) = closing(version, stop, child)? else { return Ok(Value::Null) };
    Ok(if closing.spec.is_null() { Value::Null } else { json!({"spec": closing.spec}) })
}

/// Returns the patch of the status that ends a run or one of its children.
pub(super) fn ended(version: &str, stop: Stop, object: &Value, now: Time) -> Result<Value, &'static StoryError> {
    let Some(closing) = closing(version, stop, object)? else { return Ok(Value::Null) };
    let (recorded_pod, pod) = (closing.pod(), object["status"]["podName"].as_str().unwrap_or_default());
    let timeout = |run: &Value| {
        let timeout = run["spec"]["timeouts"]["pipeline"].as_str().map(|timeout| format!("\"{timeout}\""));
        timeout.unwrap_or_default()
    };
    let names = Names::new([
        (recorded_pod.as_str(), pod),
        (closing.name, name_of(object)),
        (timeout(&closing.story.run).as_str(), timeout(object).as_str()),
    ]);
    let mut status = closing.status;
    change_texts(&mut status, &mut |text| Some(as_time(text).map_or_else(|| names.rename(text), |_| rendered(now))));
    if object["kind"] == "TaskRun" {
        end_steps(object, &mut status);
    }
    Ok(json!({"status": status}))
}

/// Ends the steps of a TaskRun in the same way as the only step of the recorded TaskRun.
fn end_steps(task_run: &Value, status: &mut Value) {
    let recorded = status["steps"][0].take();
    let created = &task_run["metadata"]["creationTimestamp"];
    let text = |step: &Value, field: &str| step[field].as_str().unwrap_or_default().to_owned();
    let steps = task_run["status"]["steps"].as_array().map_or(&[][..], Vec::as_slice).iter().map(|step| {
        if step["terminated"].is_object() {
            return step.clone();
        }
        let names = Names::new([(
            format!("Step {} ", text(&recorded, "name")).as_str(),
            format!("Step {} ", text(step, "name")).as_str(),
        )]);
        let mut ended = recorded.clone();
        change_texts(&mut ended["terminated"]["message"], &mut |message| Some(names.rename(message)));
        ended["name"] = step["name"].clone();
        ended["container"] = json!(format!("step-{}", text(step, "name")));
        match step.get("imageID") {
            Some(image) => ended["imageID"] = image.clone(),
            None => drop(ended.as_object_mut().map(|ended| ended.remove("imageID"))),
        }
        // Tekton gives a waiting step the time at which its TaskRun was created.
        let started = step["running"].get("startedAt").unwrap_or(created);
        ended["terminated"]["startedAt"] = started.clone();
        ended
    });
    let steps: Vec<Value> = steps.collect();
    let Some(status) = status.as_object_mut() else { return };
    if steps.is_empty() {
        status.remove("steps");
    } else {
        status.insert("steps".to_owned(), Value::Array(steps));
    }
}

/// Finds the end of an object of this kind in the matching story.
fn closing(version: &str, stop: Stop, object: &Value) -> Result<Option<Closing<'static>>, &'static StoryError> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = match (kind, stop) {
        ("PipelineRun", Stop::Asked) if object["status"].get("startTime").is_none() => "cancel-while-resolving",
        ("CustomRun", Stop::Asked) => "custom-run-cancelled",
        ("CustomRun", Stop::TimedOut) => "custom-run-times-out",
        (_, Stop::Asked) => "cancel-after",
        (_, Stop::TimedOut) => "timeout-of-run-after",
    };
    let Some(story) = story(version, name)? else { return Ok(None) };
    // The patch of a run without a status must contain the whole status.
    let from_the_begin = kind == "PipelineRun" && object["status"].get("startTime").is_none();
    let steps = if from_the_begin { &story.steps[..] } else { story.stopped() };
    let is_of_kind =
        |step: &&super::scripts::Step| step.kind == kind && (kind != "PipelineRun" || step.uid == uid(&story.run));
    let mut merged = Value::Object(Map::new());
    let mut name = "";
    for step in steps.iter().filter(is_of_kind) {
        if let Change::Changed(patch) = &step.change {
            json_patch::merge(&mut merged, patch);
            name = &step.name;
        }
    }
    Ok(Some(Closing { story, name, spec: merged["spec"].take(), status: merged["status"].take() }))
}

impl Closing<'_> {
    /// Returns the name of the recorded pod.
    fn pod(&self) -> String {
        let pod = self.story.steps.iter().find(|step| step.kind == "Pod");
        pod.map(|step| step.name.clone()).unwrap_or_default()
    }
}
