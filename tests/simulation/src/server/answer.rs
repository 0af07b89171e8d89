//! Answers to requests. Refusals have the form of kube-apiserver's `Status`.

use serde_json::{Value, json};

use super::cause::Cause;
use super::kind::Kind;

/// A complete answer to any request except a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status code.
    pub code: u16,
    /// The body as JSON; a string if the server answers with plain text.
    pub body: Value,
}

impl Answer {
    /// Returns an answer with the status 200.
    pub(super) fn ok(body: Value) -> Self {
        Self { code: 200, body }
    }

    /// Returns an answer with the status 201.
    pub(super) fn created(body: Value) -> Self {
        Self { code: 201, body }
    }
}

fn status(code: u16, reason: &str, message: &str, details: Value) -> Answer {
    let mut body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    });
    if !details.is_null() {
        body["details"] = details;
    }
    if reason.is_empty() {
        body.as_object_mut().map(|body| body.remove("reason"));
    }
    Answer { code, body }
}

fn details(kind: &Kind, name: &str) -> Value {
    let mut details = json!({"name": name, "kind": kind.plural});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    details
}

/// The path is unknown, because the kind is not installed.
pub(super) fn page_not_found() -> Answer {
    Answer { code: 404, body: json!("404 page not found\n") }
}

/// The kind does not have this subresource.
pub(super) fn no_resource() -> Answer {
    status(404, "NotFound", "the server could not find the requested resource", json!({}))
}

pub(super) fn not_found(kind: &Kind, name: &str) -> Answer {
    status(404, "NotFound", &format!("{} \"{name}\" not found", kind.resource()), details(kind, name))
}

pub(super) fn already_exists(kind: &Kind, name: &str) -> Answer {
    status(409, "AlreadyExists", &format!("{} \"{name}\" already exists", kind.resource()), details(kind, name))
}

pub(super) fn conflict(kind: &Kind, name: &str, why: &str) -> Answer {
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource());
    status(409, "Conflict", &message, details(kind, name))
}

/// The version in a write is not the newest one.
pub(super) fn outdated(kind: &Kind, name: &str) -> Answer {
    conflict(kind, name, "the object has been modified; please apply your changes to the latest version and try again")
}

pub(super) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Answer {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let message = format!("{} \"{name}\" is forbidden: {why}", kind.resource());
    let mut details = details(kind, name);
    let message_of_cause = format!("namespace {namespace} is being terminated");
    details["causes"] =
        json!([{"reason": "NamespaceTerminating", "message": message_of_cause, "field": "metadata.namespace"}]);
    status(403, "Forbidden", &message, details)
}

pub(super) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Answer {
    let said: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let said = if let [one] = said.as_slice() { one.clone() } else { format!("[{}]", said.join(", ")) };
    let full = if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) };
    let mut details = details(kind, name);
    details["kind"] = json!(kind.kind);
    let causes =
        causes.iter().map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}));
    details["causes"] = causes.collect();
    status(422, "Invalid", &format!("{full} \"{name}\" is invalid: {said}"), details)
}

/// An update of a kind that requires a version names no version. The message contains the resource in place of the
/// kind.
pub(super) fn no_version(kind: &Kind, name: &str) -> Answer {
    let message = "Invalid value: 0: must be specified for an update";
    let mut answer = invalid(kind, name, &[Cause::new("FieldValueInvalid", "metadata.resourceVersion", message)]);
    answer.body["details"]["kind"] = json!(kind.plural);
    answer
}

/// A patch cannot be applied, for example because one of its tests fails.
pub(super) fn unprocessable(why: &str) -> Answer {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    status(422, "Invalid", &message, json!({}))
}

pub(super) fn bad_request(why: &str) -> Answer {
    status(400, "BadRequest", why, Value::Null)
}

/// An internal error, which has no reason on the real server.
pub(super) fn internal_error(why: &str) -> Answer {
    status(500, "", why, Value::Null)
}

pub(super) fn expired(why: &str) -> Answer {
    status(410, "Expired", why, Value::Null)
}

pub(super) fn method_not_allowed() -> Answer {
    status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", json!({}))
}

pub(super) fn too_large(limit: usize) -> Answer {
    status(413, "RequestEntityTooLarge", &format!("Request entity too large: limit is {limit}"), Value::Null)
}

pub(super) fn unsupported_media_type(media: &str) -> Answer {
    let message = format!("the body of the request was in an unknown format: {media}");
    status(415, "UnsupportedMediaType", &message, json!({}))
}

/// The answer to a deletion that is complete.
pub(super) fn deleted(kind: &Kind, name: &str, uid: &str) -> Answer {
    let mut details = details(kind, name);
    details["uid"] = json!(uid);
    Answer::ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}))
}
