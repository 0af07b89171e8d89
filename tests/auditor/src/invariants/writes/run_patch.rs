//! Patches of runs, which may only release or cancel.

use serde_json::Value;

use super::{Flaw, owner_uid};
use crate::Evidence;
use crate::history::text;
use crate::input::Request;

/// Checks that a patch contains the run's uid, is for one of our runs, and changes only `spec.status` or annotations. A
/// release is a JSON patch that also tests that the run is pending, because Tekton may change the version at any time.
pub(super) fn judge(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    let patch = match &request.request {
        Value::Null => return None,
        Value::Array(steps) => Patch::of_steps(steps),
        body => Patch::of_merge(body),
    };
    let Some(uid) = patch.uid else {
        return Some(("patch", "changed a run without its uid as a precondition".to_owned()));
    };
    if !is_ours(evidence, uid, &request.response) {
        return Some(("foreign", "changed a run that is not ours".to_owned()));
    }
    if let Some(stray) = patch.strays.first() {
        return Some(("patch", format!("changed {stray} of a run")));
    }
    (patch.lets_go && !patch.tests_pending)
        .then(|| ("release", "released a run without testing that it is pending".to_owned()))
}

/// The content of a patch in either format.
struct Patch<'a> {
    /// The uid that the patch requires.
    uid: Option<&'a str>,
    tests_pending: bool,
    lets_go: bool,
    /// Paths that the patch changes although the operator never may.
    strays: Vec<String>,
}

impl<'a> Patch<'a> {
    /// Reads a JSON patch.
    fn of_steps(steps: &'a [Value]) -> Self {
        let tested = |path: &str| {
            let test = steps.iter().find(|step| step["op"] == "test" && step["path"] == path);
            test.and_then(|test| test["value"].as_str())
        };
        let mut read = Self {
            uid: tested("/metadata/uid"),
            tests_pending: tested("/spec/status") == Some("PipelineRunPending"),
            lets_go: false,
            strays: Vec::new(),
        };
        for step in steps.iter().filter(|step| step["op"] != "test") {
            match step["path"].as_str().unwrap_or_default() {
                "/spec/status" => read.lets_go |= step["value"] != "Cancelled",
                place if place.starts_with("/metadata/annotations/") => {}
                place => read.strays.push(place.to_owned()),
            }
        }
        read
    }

    /// Reads a merge patch. Because of its uid, it fails on any other object.
    fn of_merge(body: &'a Value) -> Self {
        let known = |part: &str, names: &'static [&str]| {
            let fields = if part.is_empty() { Some(body) } else { body.get(part) };
            let fields = fields.and_then(Value::as_object).into_iter().flatten();
            let strays: Vec<String> = fields
                .filter(|(name, _)| !names.contains(&name.as_str()))
                .map(|(name, _)| format!("{part}/{name}"))
                .collect();
            strays
        };
        let mut strays = known("", &["apiVersion", "kind", "metadata", "spec"]);
        strays.extend(known("metadata", &["uid", "resourceVersion", "name", "namespace", "annotations"]));
        strays.extend(known("spec", &["status"]));
        Self {
            uid: text(body, "/metadata/uid"),
            tests_pending: false,
            lets_go: body.pointer("/spec/status").is_some_and(|status| status != "Cancelled"),
            strays,
        }
    }
}

/// Returns whether a run has the uid of an execution, according to the recording or the answer. If neither shows the
/// run, because the patch was refused, it counts as ours.
fn is_ours(evidence: &Evidence<'_>, uid: &str, answer: &Value) -> bool {
    if evidence.history.runs.contains_key(uid) {
        return true;
    }
    let is_answered = text(answer, "/metadata/uid").is_some();
    !evidence.history.strangers.contains(uid) && (!is_answered || owner_uid(answer).is_some())
}
