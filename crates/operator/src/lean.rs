//! Objects as a list or a watch brings them, read for what somebody here looks at.
//!
//! `DynamicObject` keeps all of an object and reads it twice over; `managedFields` alone are often half of it. A start reads
//! a hundred thousand objects, beside an API server that has as much to do to write them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject};
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// An object without what nobody reads: it has spec, status, and those of its metadata that say which object it is, whose,
/// when and of which version.
#[derive(Clone, Debug)]
pub struct LeanObject(pub DynamicObject);

impl<'de> Deserialize<'de> for LeanObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sent { metadata, spec, status } = Sent::deserialize(deserializer)?;
        let parts = [("spec", spec), ("status", status)];
        let data: Map<String, Value> =
            parts.into_iter().filter_map(|(key, part)| Some((key.to_owned(), part?))).collect();
        Ok(Self(DynamicObject { types: None, metadata: metadata.into(), data: Value::Object(data) }))
    }
}

/// What is read of an object; serde skips the rest without keeping it.
#[derive(Deserialize)]
struct Sent {
    #[serde(default)]
    metadata: Metadata,
    spec: Option<Value>,
    status: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<Metadata> for ObjectMeta {
    fn from(sent: Metadata) -> Self {
        Self {
            name: sent.name,
            namespace: sent.namespace,
            uid: sent.uid,
            resource_version: sent.resource_version,
            generation: sent.generation,
            creation_timestamp: sent.creation_timestamp,
            deletion_timestamp: sent.deletion_timestamp,
            labels: sent.labels,
            annotations: sent.annotations,
            owner_references: sent.owner_references,
            ..Self::default()
        }
    }
}

impl Resource for LeanObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}
