//! Invariant 7: the operator changes and deletes only its own objects, and every write has its precondition.
//!
//! The audit log shows which requests the operator sent. A refused request is judged too if the log contains its body:
//! a precondition must not be missing even if it would have changed nothing.

mod child_create;
mod execution_delete;
mod run_delete;
mod run_patch;

use serde_json::Value;
use wfe_api::labels::ANNOTATION_UID;
use wfe_core::chain::ChainName;

use crate::Evidence;
use crate::history::{object_ref, text};
use crate::input::Request;
use crate::report::{Counts, Violation, When};

/// The rule that a request breaks, and a clause that completes "the operator".
type Flaw = (&'static str, String);

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    let by_operator = |request: &&Request| request.is_write() && evidence.authors.is_operator(&request.user);
    let mut found = Vec::new();
    for request in evidence.requests.iter().filter(by_operator) {
        found.extend(judge_request(evidence, request).map(|flaw| violation(evidence, request, flaw)));
    }
    found
}

fn judge_request(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    let Request { group, resource, subresource, verb, .. } = request;
    match (group.as_str(), resource.as_str(), subresource.as_str(), verb.as_str()) {
        ("kubernaut.ai", "workflowexecutions" | "workflowschedules", "status", "patch" | "update") => {
            judge_status(request)
        }
        ("kubernaut.ai", "workflowexecutions", "", "create") => child_create::judge(evidence, request),
        ("kubernaut.ai", "workflowexecutions", "", "delete") => execution_delete::judge(evidence, request),
        ("tekton.dev", "pipelineruns", "", "create") => judge_create(request),
        ("tekton.dev", "pipelineruns", "", "patch") => run_patch::judge(evidence, request),
        ("tekton.dev", "pipelineruns", "", "delete") => run_delete::judge(evidence, request),
        // Events describe objects and do not change them. Reviews store nothing.
        ("events.k8s.io" | "", "events", "", "create")
        | ("authentication.k8s.io" | "authorization.k8s.io", _, _, "create")
        // Operators use leases for the leader election.
        | ("coordination.k8s.io", "leases", "", "create" | "update" | "patch") => None,
        _ => Some(("foreign", "did what is none of its business".to_owned())),
    }
}

/// Checks that a status write names the object and the version on which it was decided, and changes nothing else.
fn judge_status(request: &Request) -> Option<Flaw> {
    let (uid, version, elsewhere) = match &request.request {
        Value::Null => return None,
        Value::Array(patch) => {
            let tests = |path: &str| patch.iter().any(|step| step["op"] == "test" && step["path"] == path);
            let elsewhere = patch.iter().any(|step| {
                step["op"] != "test" && !step["path"].as_str().is_some_and(|path| path.starts_with("/status"))
            });
            (tests("/metadata/uid"), tests("/metadata/resourceVersion"), elsewhere)
        }
        body => {
            let has = |pointer: &str| text(body, pointer).is_some();
            let known = ["apiVersion", "kind", "metadata", "status"];
            let is_known = |key: &str| known.contains(&key) || request.verb == "update";
            let elsewhere = body.as_object().is_some_and(|body| body.keys().any(|key| !is_known(key)));
            (has("/metadata/uid"), has("/metadata/resourceVersion"), elsewhere)
        }
    };
    match (uid, version, elsewhere) {
        (true, true, false) => None,
        (false, ..) => Some(("status", "wrote a status without the object's uid".to_owned())),
        (_, false, _) => Some(("status", "wrote a status without the object's resourceVersion".to_owned())),
        (.., true) => Some(("status", "wrote more than a status".to_owned())),
    }
}

/// Checks that a run is created pending, with a name of the chain and the uid of its owner.
fn judge_create(request: &Request) -> Option<Flaw> {
    let body = &request.request;
    if body.is_null() {
        return None;
    }
    let what = if text(body, "/spec/status") != Some("PipelineRunPending") {
        "created a run that is not pending"
    } else if owner_uid(body).is_none() {
        "created a run without the uid of an execution"
    } else if ChainName::of_run(text(body, "/metadata/name").unwrap_or_default()).is_none() {
        "created a run whose name is not of a chain"
    } else {
        return None;
    };
    Some(("create", what.to_owned()))
}

/// Returns the owner's uid in a run.
fn owner_uid(run: &Value) -> Option<&str> {
    run["metadata"]["annotations"][ANNOTATION_UID].as_str().filter(|uid| !uid.is_empty())
}

fn violation(evidence: &Evidence<'_>, request: &Request, (rule, what): Flaw) -> Violation {
    let Request { verb, user, resource, subresource, code, .. } = request;
    let resource = if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let uid = text(&request.response, "/metadata/uid").or_else(|| text(&request.response, "/details/uid"));
    let uid = uid.or_else(|| text(&request.request, "/preconditions/uid")).unwrap_or_default();
    let object = object_ref(&resource, &request.namespace, &request.name, uid);
    let target = evidence
        .history
        .runs
        .get(uid)
        .map(|run| evidence.history.target_of(run))
        .or_else(|| evidence.history.executions.get(uid).map(crate::history::Execution::shown_target));
    Violation {
        invariant: 7,
        rule,
        target: target.unwrap_or_else(|| "no target of ours".to_owned()),
        objects: vec![object],
        at: vec![When::Request {
            received_at: request.received_at.clone(),
            resource_version: request.resource_version,
        }],
        text: format!("{user} {what} ({verb} {resource} {}/{}, answered {code})", request.namespace, request.name),
    }
}
