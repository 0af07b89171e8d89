//! Creates of executions: children of schedules, which follow the template (section 12.5), and analysts of their
//! failures (section 13.3).

use serde_json::{Map, Value, json};
use wfe_api::labels::{ANNOTATION_SCHEDULED_FOR, LABEL_SCHEDULE};
use wfe_core::duration;

use super::Flaw;
use crate::Evidence;
use crate::history::{ANALYST, ChildOf, Schedule, text};
use crate::input::Request;
use crate::moment::seconds_of;

/// The default time-out of an analyst.
const TIMEOUT: &str = "10m";
/// The fields in a child's spec that are not from the template.
const OWN: [&str; 2] = ["remediationRequestRef", "startBefore"];

/// Judges the creation of a child or an analyst. A child has the name of its slot, refers to its slot and schedule, and
/// has `startBefore`. It has no owner: deleting a schedule must neither cancel a run nor lift a block. Its spec follows
/// the template.
pub(super) fn judge(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    let body = &request.request;
    if body.is_null() {
        return None;
    }
    let flaw = |what: &str| Some(("child", format!("created an execution {what}")));
    // The namespace is in the path of the request, and may be missing in the body.
    let mut named = body.clone();
    named["metadata"]["namespace"] = request.namespace.clone().into();
    let meta = &body["metadata"];
    let (child, analysed) = (ChildOf::read(&named), ChildOf::analysed(&named));
    let Some(made_for) = child.or(analysed) else { return flaw("that is no child of a schedule, and no analyst") };
    let schedule = text(body, "/spec/remediationRequestRef/name");
    if child.is_some()
        && meta["annotations"][ANNOTATION_SCHEDULED_FOR].as_str().and_then(seconds_of) != Some(made_for.slot)
    {
        return flaw("that does not say which slot it is for");
    }
    if meta["labels"][LABEL_SCHEDULE].as_str() != schedule {
        return flaw("without the label of its schedule");
    }
    if meta["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty()) {
        return flaw("that goes when its schedule does");
    }
    if text(body, "/spec/startBefore").is_none() {
        return flaw("without startBefore: a restored one would run again");
    }
    let known = evidence.history.schedules.get(made_for.schedule)?;
    if analysed.is_some() {
        return is_analyst(body, &request.namespace, known).err().and_then(flaw);
    }
    let is_of = |object: &Value| {
        let (template, spec) = (adjusted(object), body["spec"].as_object());
        let spec = spec.map(|spec| spec.iter().filter(|(field, _)| !OWN.contains(&field.as_str())));
        spec.zip(template.as_ref()).is_some_and(|(spec, template)| spec.eq(template.iter()))
    };
    let is_of_template = known.versions.iter().any(|(_, object)| is_of(object));
    (!is_of_template).then(|| ("child", "created an execution that no template of its schedule says".to_owned()))
}

/// Returns the spec of a schedule's template, with the adjustments by a triage.
fn adjusted(schedule: &Value) -> Option<Map<String, Value>> {
    let mut spec = schedule.pointer("/spec/template/spec")?.as_object()?.clone();
    let adjust = &schedule["status"]["adjust"];
    if !adjust["timeout"].is_null() {
        spec.entry("executionConfig").or_insert_with(|| json!({}))["timeout"] = adjust["timeout"].clone();
    }
    if let Some(parameters) = spec.get_mut("parameters").and_then(Value::as_object_mut) {
        for (key, value) in parameters {
            let other = &adjust["parameters"][key.as_str()];
            if !other.is_null() {
                *value = other.clone();
            }
        }
    }
    Some(spec)
}

/// Judges the creation of an analyst. It has a target of its own, and the workflow, service account and time-out that
/// its schedule names.
fn is_analyst(body: &Value, namespace: &str, schedule: &Schedule<'_>) -> Result<(), &'static str> {
    let spec = &body["spec"];
    let child = text(body, "/metadata/name").and_then(|name| name.strip_suffix(ANALYST)).unwrap_or_default();
    if spec["targetResource"] != format!("{namespace}/workflowexecution/{child}") {
        return Err("that analyses on the target of others");
    }
    let is_of = |object: &Value| {
        let triage = &object["spec"]["triage"];
        let config = &spec["executionConfig"];
        let timeout = triage["timeout"].as_str().unwrap_or(TIMEOUT);
        let is_length = |text: &Value| text.as_str().map(duration::parse) == Some(duration::parse(timeout));
        triage["workflowRef"].is_object()
            && spec["workflowRef"] == triage["workflowRef"]
            && config["serviceAccountName"] == triage["serviceAccountName"]
            && is_length(&config["timeout"])
    };
    let is_named = schedule.versions.iter().any(|(_, object)| is_of(object));
    is_named.then_some(()).ok_or("that analyses otherwise than its schedule says")
}
