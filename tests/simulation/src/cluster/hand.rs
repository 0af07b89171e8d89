//! How the controllers of a cluster write. Their requests reach the server directly, at the time of the cluster's
//! clock.

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use wfe_core::Time;
use wfe_operator::clock::Clock;

use crate::server::{Answer, Reply};
use crate::service::FakeApi;

/// Sends a controller's writes to the server.
#[derive(Clone)]
pub(super) struct Hand {
    pub(super) api: FakeApi,
    pub(super) clock: Clock,
}

impl Hand {
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Creates an object.
    pub(super) fn create(&self, object: &Value) -> Result<Created> {
        let path = self.path(object)?;
        let collection = path.rsplit_once('/').map_or(path.as_str(), |(collection, _)| collection);
        let answer = self.send(Method::POST, collection, "application/json", object)?;
        match answer.code {
            201 => Ok(Created::Yes(answer.body)),
            409 => Ok(Created::Taken),
            403 | 404 => Ok(Created::Nowhere),
            _ => unexpected(&Method::POST, &path, &answer),
        }
    }

    /// Merges these changes into an object, and their `status` into its status subresource. If the object is deleted,
    /// nothing happens.
    pub(super) fn merge(&self, object: &Value, changes: &Value) -> Result<()> {
        let path = self.path(object)?;
        let mut rest = changes.clone();
        let status = rest.as_object_mut().and_then(|rest| rest.remove("status"));
        if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
            self.merge_at(&path, &rest)?;
        }
        status.map_or(Ok(()), |status| self.merge_at(&format!("{path}/status"), &json!({"status": status})))
    }

    fn merge_at(&self, path: &str, changes: &Value) -> Result<()> {
        let answer = self.send(Method::PATCH, path, "application/merge-patch+json", changes)?;
        match answer.code {
            200 | 404 => Ok(()),
            _ => unexpected(&Method::PATCH, path, &answer),
        }
    }

    /// Deletes the object with this uid. Without `grace_seconds`, the object's own grace period applies.
    pub(super) fn delete(&self, object: &Value, grace_seconds: Option<u32>) -> Result<()> {
        let path = self.path(object)?;
        let mut options = json!({"preconditions": {"uid": object["metadata"]["uid"]}});
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        let answer = self.send(Method::DELETE, &path, "application/json", &options)?;
        match answer.code {
            // 409: another object has the same name now.
            200 | 404 | 409 => Ok(()),
            _ => unexpected(&Method::DELETE, &path, &answer),
        }
    }

    /// Returns the URL path of an object from its kind, namespace and name.
    fn path(&self, object: &Value) -> Result<String> {
        let found = self.api.look(|server| {
            let kind = server.kind_of(object)?;
            let (root, version) = (if kind.group.is_empty() { "api" } else { "apis" }, kind.api_version());
            Some((kind.namespaced, format!("/{root}/{version}"), kind.plural.clone()))
        });
        let Some((namespaced, root, plural)) = found else { bail!("the server does not know the kind of {object}") };
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let namespace = if namespaced { format!("/namespaces/{}", text("namespace")) } else { String::new() };
        Ok(format!("{root}{namespace}/{plural}/{}", text("name")))
    }

    fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<Answer> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path).header("content-type", media).body(body)?;
        match self.api.with(|server| server.handle(&request, self.now())) {
            Reply::Answer(answer) => Ok(answer),
            Reply::Watch(_) => bail!("{path} is no watch"),
        }
    }
}

impl std::fmt::Debug for Hand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hand").finish_non_exhaustive()
    }
}

/// The result of a create.
#[derive(Debug)]
pub(super) enum Created {
    Yes(Value),
    /// Another object has the same name.
    Taken,
    /// The namespace does not exist, or is being deleted.
    Nowhere,
}

fn unexpected<T>(method: &Method, path: &str, answer: &Answer) -> Result<T> {
    bail!("{method} {path} was answered with {}: {}", answer.code, answer.body)
}
