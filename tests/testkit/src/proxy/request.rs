//! Parses what a request asks of the API server, from its method, path and body.

use std::fmt;
use std::sync::Arc;

use hyper::Method;
use serde_json::Value;

/// The verb of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many objects.
    List,
    /// Follows changes.
    Watch,
    /// Creates one object.
    Create,
    /// Replaces one object.
    Update,
    /// Changes one object.
    Patch,
    /// Deletes one object, or a collection.
    Delete,
}

impl Verb {
    /// Returns the name of the verb in RBAC and in the audit log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// Returns whether the verb changes objects.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One request as the proxy has parsed it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The position of the request among all requests, counted from 1.
    pub number: u64,
    /// The position of the request among the writes, counted from 1; `None` if it is not a write.
    pub write: Option<u64>,
    /// The verb of the request.
    pub verb: Verb,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, such as `pipelineruns`; empty for paths that are not of a resource.
    pub resource: String,
    /// Such as `status`; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for requests across namespaces.
    pub namespace: String,
    /// Name; for a create, the name in the body; empty for lists.
    pub name: String,
    /// Path and query.
    pub uri: String,
    /// The body, if it is JSON.
    pub body: Arc<Value>,
}

impl Request {
    /// Parses a request. The proxy assigns the numbers later.
    pub(super) fn read(method: &Method, path: &str, query: &str, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            _ => ("", &[][..]),
        };
        let (namespace, rest) = match rest {
            // A namespace is an object too: `namespaces/x` and `namespaces/x/status`.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            _ => ("", rest),
        };
        let at = |n: usize| rest.get(n).copied().unwrap_or_default().to_owned();
        let (resource, mut name, subresource) = (at(0), at(1), at(2));
        if name.is_empty() {
            body["metadata"]["name"].as_str().unwrap_or_default().clone_into(&mut name);
        }
        let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"));
        let verb = match method.as_str() {
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" => Verb::Delete,
            _ if watches => Verb::Watch,
            _ if name.is_empty() && !resource.is_empty() => Verb::List,
            _ => Verb::Get,
        };
        let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let (group, namespace) = (group.to_owned(), namespace.to_owned());
        let body = Arc::new(body);
        Self { number: 0, write: None, verb, group, resource, subresource, namespace, name, uri, body }
    }

    /// Returns whether the request has this verb and resource, such as `patch workflowexecutions/status`.
    #[must_use]
    pub fn is(&self, what: &str) -> bool {
        self.what() == what
    }

    /// Returns the verb and resource, such as `patch workflowexecutions/status`.
    #[must_use]
    pub fn what(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.verb, self.resource, self.subresource)
    }

    /// Returns whether the request changes objects.
    #[must_use]
    pub const fn is_write(&self) -> bool {
        self.verb.is_write()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {} ({} {}/{})", self.number, self.what(), self.namespace, self.name)
    }
}
