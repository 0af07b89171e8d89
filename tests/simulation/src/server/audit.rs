//! The audit log: requests with their users and answers, as in the log of a real API server.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;
use wfe_core::Time;

use super::answer::Answer;
use super::target::{Part, Query, Target};
use super::{Reply, Server};

/// The header with the user's name. A front proxy of a real API server sends the same header.
pub const USER: &str = "x-remote-user";

/// One finished request.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The verb, such as `create` or `patch`.
    pub verb: &'static str,
    /// The user of the request, from the header [`USER`].
    pub user: String,
    /// API group; empty for the core group.
    pub group: String,
    /// The plural, such as `pipelineruns`.
    pub resource: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: &'static str,
    /// Namespace; empty if there is none.
    pub namespace: String,
    /// Name; empty if only the object in the body contains it.
    pub name: String,
    /// HTTP status of the answer.
    pub code: u16,
    /// The body of a write; null if the request is a read.
    pub request: Value,
    /// The answer to a write; null if the request is a read.
    pub response: Value,
    /// When the request was received.
    pub at: Time,
}

impl Server {
    /// Returns the audit log; empty unless records are kept.
    #[must_use]
    pub fn audit_log(&self) -> &[Entry] {
        self.audit_log.as_deref().unwrap_or_default()
    }

    pub(super) fn audit(&mut self, request: &Request<Bytes>, reply: &Reply, now: Time) {
        let Some(log) = &mut self.audit_log else { return };
        let Some(target) = Target::parse(self.kinds, request.uri().path()) else { return };
        let kind = &self.kinds[target.kind];
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let verb = match (request.method(), &target.name) {
            (&Method::GET, None) if query.is_true("watch") => "watch",
            (&Method::GET, None) => "list",
            (&Method::GET, Some(_)) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, None) => "deletecollection",
            (&Method::DELETE, Some(_)) => "delete",
            _ => return,
        };
        let is_write = request.method() != Method::GET;
        let (code, response) = match reply {
            Reply::Answer(Answer { code, body }) => (*code, if is_write { body.clone() } else { Value::Null }),
            Reply::Watch(_) => (200, Value::Null),
        };
        let name_in = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        let sent: Value =
            if is_write { serde_json::from_slice(request.body()).unwrap_or_default() } else { Value::Null };
        log.push(Entry {
            verb,
            user: request.headers().get(USER).and_then(|user| user.to_str().ok()).unwrap_or_default().to_owned(),
            group: kind.group.clone(),
            resource: kind.plural.clone(),
            subresource: if target.part == Part::Status { "status" } else { "" },
            namespace: target.namespace.unwrap_or_default(),
            name: target.name.or_else(|| name_in(&sent)).unwrap_or_default(),
            code,
            request: sent,
            response,
            at: now,
        });
    }
}
