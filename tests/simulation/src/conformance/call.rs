//! One request of a plan. Its placeholders stand for values that are known only from an answer.

use anyhow::{Context as _, Result};
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use super::names::Memory;

/// The collection that a request addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `workflowexecutions`.
    Executions,
    /// `workflowschedules`.
    Schedules,
    /// `pipelineruns`.
    Runs,
    /// `leases`.
    Leases,
    /// `events` of `events.k8s.io`.
    Events,
    /// `configmaps`.
    ConfigMaps,
    /// `namespaces`, which is cluster-scoped.
    Namespaces,
    /// `pods`.
    Pods,
    /// A kind that no server serves.
    Unknown,
}

impl Place {
    /// All kinds that the servers serve.
    pub const ALL: [Self; 8] = [
        Self::Executions,
        Self::Schedules,
        Self::Runs,
        Self::Leases,
        Self::Events,
        Self::ConfigMaps,
        Self::Namespaces,
        Self::Pods,
    ];

    /// Returns `apiVersion`, `kind` and the plural of a kind.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Executions => ("kubernaut.ai/v1alpha1", "WorkflowExecution", "workflowexecutions"),
            Self::Schedules => ("kubernaut.ai/v1alpha1", "WorkflowSchedule", "workflowschedules"),
            Self::Runs => ("tekton.dev/v1", "PipelineRun", "pipelineruns"),
            Self::Leases => ("coordination.k8s.io/v1", "Lease", "leases"),
            Self::Events => ("events.k8s.io/v1", "Event", "events"),
            Self::ConfigMaps => ("v1", "ConfigMap", "configmaps"),
            Self::Namespaces => ("v1", "Namespace", "namespaces"),
            Self::Pods => ("v1", "Pod", "pods"),
            Self::Unknown => ("example.invalid/v1", "Nothing", "nothings"),
        }
    }

    pub(super) fn path(self, namespace: &str) -> String {
        let (version, _, plural) = self.names();
        let root = if version.contains('/') { "apis" } else { "api" };
        if self == Self::Namespaces {
            return format!("/{root}/{version}/{plural}");
        }
        format!("/{root}/{version}/namespaces/{namespace}/{plural}")
    }
}

/// A request. In its query and body, `$uid`, `$version` and similar placeholders stand for values from earlier answers:
/// see [`super::names`].
#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    place: Place,
    /// The name of the object; empty for a collection. With `/status` at the end, the request addresses the status.
    name: String,
    query: String,
    media: &'static str,
    body: Option<Value>,
}

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

impl Call {
    fn new(method: Method, place: Place, name: &str, media: &'static str, body: Option<Value>) -> Self {
        Self { method, place, name: name.to_owned(), query: String::new(), media, body }
    }

    /// Reads an object.
    #[must_use]
    pub fn get(place: Place, name: &str) -> Self {
        Self::new(Method::GET, place, name, "", None)
    }

    /// Lists a collection, with the parameters of this query.
    #[must_use]
    pub fn list(place: Place, query: &str) -> Self {
        Self { query: query.to_owned(), ..Self::new(Method::GET, place, "", "", None) }
    }

    /// Creates an object. If apiVersion, kind or name are missing in the body, they are filled in.
    #[must_use]
    pub fn create(place: Place, name: &str, body: Value) -> Self {
        Self::new(Method::POST, place, "", "application/json", Some(named(place, name, body)))
    }

    /// Replaces an object, or its status if the name ends with `/status`.
    #[must_use]
    pub fn put(place: Place, name: &str, body: Value) -> Self {
        let body = named(place, name.trim_end_matches("/status"), body);
        Self::new(Method::PUT, place, name, "application/json", Some(body))
    }

    /// Sends a merge patch to an object, or to its status if the name ends with `/status`.
    #[must_use]
    pub fn merge(place: Place, name: &str, patch: Value) -> Self {
        Self::new(Method::PATCH, place, name, MERGE, Some(patch))
    }

    /// Sends a JSON patch to an object.
    #[must_use]
    pub fn operations(place: Place, name: &str, operations: Value) -> Self {
        Self::new(Method::PATCH, place, name, JSON_PATCH, Some(operations))
    }

    /// Deletes an object with these options.
    #[must_use]
    pub fn delete(place: Place, name: &str, options: Value) -> Self {
        Self::new(Method::DELETE, place, name, "application/json", Some(options).filter(|options| !options.is_null()))
    }

    pub(super) fn render(&self, memory: &Memory) -> Result<Request<Body>> {
        let mut uri = self.place.path(&memory.fill("$namespace"));
        if !self.name.is_empty() {
            uri = format!("{uri}/{}", self.name);
        }
        let query = memory.fill(&self.query);
        if !query.is_empty() {
            uri = format!("{uri}?{query}");
        }
        let body = self.body.clone().map(|mut body| {
            memory.fill_all(&mut body);
            serde_json::to_vec(&body)
        });
        let body = body.transpose()?.unwrap_or_default();
        let mut request = Request::builder().method(&self.method).uri(uri);
        if !self.media.is_empty() {
            request = request.header("content-type", self.media);
        }
        request.body(Body::from(body)).context("the request cannot be built")
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (_, _, plural) = self.place.names();
        write!(f, "{} {plural}", self.method)?;
        if !self.name.is_empty() {
            write!(f, "/{}", self.name)?;
        }
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        self.body.as_ref().map_or(Ok(()), |body| write!(f, " {body}"))
    }
}

fn named(place: Place, name: &str, mut body: Value) -> Value {
    let (version, kind, _) = place.names();
    for (field, value) in [("apiVersion", version), ("kind", kind)] {
        if body.get(field).is_none() {
            body[field] = json!(value);
        }
    }
    if body["metadata"].get("name").is_none() && !name.is_empty() {
        body["metadata"]["name"] = json!(name);
    }
    body
}
