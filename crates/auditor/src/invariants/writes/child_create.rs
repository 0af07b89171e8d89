//! Creates of executions: those of schedules, as their template says (section 12.5).

use serde_json::Value;
use wfe_api::labels::{ANNOTATION_SCHEDULED_FOR, LABEL_SCHEDULE};

use super::Flaw;
use crate::Evidence;
use crate::history::{ChildOf, text};
use crate::input::Request;
use crate::moment::seconds_of;

/// What a child has in its spec beside what the template says.
const OWN: [&str; 2] = ["remediationRequestRef", "startBefore"];

/// A child has the name of its slot, says which slot and schedule it is of, ends by itself, and has no owner, as
/// whoever deletes a schedule neither cancels a run nor lifts a block. What it runs is in the template.
pub(super) fn judge(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    let body = &request.request;
    if body.is_null() {
        return None;
    }
    let flaw = |what: &str| Some(("child", format!("created an execution {what}")));
    // The name of a namespace that is in the path need not be in the body.
    let mut named = body.clone();
    named["metadata"]["namespace"] = request.namespace.clone().into();
    let Some(child) = ChildOf::read(&named) else { return flaw("that is no child of a schedule") };
    let meta = &body["metadata"];
    let schedule = text(body, "/spec/remediationRequestRef/name");
    if meta["annotations"][ANNOTATION_SCHEDULED_FOR].as_str().and_then(seconds_of) != Some(child.slot) {
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
    let known = evidence.history.schedules.get(child.schedule)?;
    let is_of = |object: &Value| {
        let template = object.pointer("/spec/template/spec").and_then(Value::as_object);
        let spec = body["spec"].as_object().map(|spec| spec.iter().filter(|(field, _)| !OWN.contains(&field.as_str())));
        spec.is_some_and(|spec| template.is_some_and(|template| spec.eq(template.iter())))
    };
    let is_of_template = known.versions.iter().any(|(_, object)| is_of(object));
    (!is_of_template).then(|| ("child", "created an execution that no template of its schedule says".to_owned()))
}
