//! Answers from a proxy in front of the API server, or from its authorizer.

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::OPERATOR;
use crate::service::Answered;

/// Returns an answer with this HTTP status, in the API server's words.
pub(super) fn of_code(code: u16) -> Answered {
    let (reason, message, details) = match code {
        403 => ("Forbidden", "forbidden by a policy of this cluster", json!({})),
        410 => ("Expired", "The resourceVersion for the provided watch is too old.", Value::Null),
        429 => ("TooManyRequests", "too many requests, please try again later", json!({"retryAfterSeconds": 1})),
        500 => ("InternalError", "Internal error occurred: etcdserver: leader changed", Value::Null),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request", Value::Null),
        504 => ("Timeout", "Timeout: request did not complete within requested timeout", Value::Null),
        _ => ("Unknown", "an error on the server has prevented the request from succeeding", Value::Null),
    };
    status(code, reason, message, details)
}

/// Returns the API server's answer to an operator that lacks a permission (RBAC).
pub(super) fn denied(verb: &str, resource: &str, path: &[&str]) -> Answered {
    let place = path.iter().position(|segment| *segment == resource).unwrap_or_default();
    let group = if path.get(1) == Some(&"apis") { path.get(2).copied().unwrap_or_default() } else { "" };
    let name = path.get(place + 1).copied().unwrap_or_default();
    let namespace = path.iter().position(|segment| *segment == "namespaces").filter(|at| *at < place);
    let scope = match namespace.and_then(|at| path.get(at + 1)) {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let dotted = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    let message = format!(
        "{dotted}{named} is forbidden: User \"{OPERATOR}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" \
         {scope}"
    );
    status(403, "Forbidden", &message, json!({"group": group, "kind": resource, "name": name}))
}

/// Returns the API server's answer for a kind whose CRD is missing.
pub(super) fn not_served() -> Answered {
    answer(404, "text/plain; charset=utf-8", "404 page not found\n".to_owned())
}

fn status(code: u16, reason: &str, message: &str, details: Value) -> Answered {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    if !details.is_null() {
        body["details"] = details;
    }
    answer(code, "application/json", body.to_string())
}

fn answer(code: u16, media: &str, text: String) -> Answered {
    let body = Full::new(Bytes::from(text)).boxed_unsync();
    Response::builder().status(code).header("content-type", media).body(body).unwrap_or_default()
}
