//! Reads only those parts of a listed or watched object that the operator uses.
//!
//! `DynamicObject` keeps the whole object and parses it twice; `managedFields` alone are often half of it. A start may
//! read a hundred thousand objects.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject};
use kube::core::DynamicResourceScope;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// How deep the parts of an object are read. The used fields lie at most ten levels deep. The parser's own limit is 128
/// levels for the whole answer; beyond that limit the whole answer would be unreadable.
const DEPTH: usize = 32;

/// An object with only the used parts: spec, status, and the metadata for its identity, owner, times and version.
#[derive(Clone, Debug)]
pub struct PartialObject {
    /// The object.
    pub object: DynamicObject,
    /// Whether a part of the object could not be read, because it is nested too deep or is JSON that cannot be stored.
    pub is_cut: bool,
}

impl PartialObject {
    /// Reads an object from its bytes. An unreadable spec or status is omitted: the object then counts as unfinished,
    /// and other objects are not affected.
    ///
    /// # Errors
    /// If the object has no readable metadata.
    pub fn from_bytes(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes).or_else(|_| {
            let Marked { metadata } = serde_json::from_slice(bytes)?;
            let data = Value::Object(Map::new());
            Ok(Self { object: DynamicObject { types: None, metadata: metadata.into(), data }, is_cut: true })
        })
    }
}

impl From<DynamicObject> for PartialObject {
    fn from(object: DynamicObject) -> Self {
        Self { object, is_cut: false }
    }
}

/// Serializes the whole object, as it is sent.
impl Serialize for PartialObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PartialObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Parts)
    }
}

/// Reads the used parts of an object; serde skips the rest without storing it.
struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = PartialObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PartialObject, A::Error> {
        let (mut metadata, mut data, is_cut) = (Metadata::default(), Map::new(), Cell::new(false));
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "metadata" => metadata = map.next_value::<Option<Metadata>>()?.unwrap_or_default(),
                "spec" | "status" => {
                    let part = map.next_value_seed(Part { depth: DEPTH, is_cut: &is_cut })?;
                    if !part.is_null() {
                        data.insert(key.into_owned(), part);
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let object = DynamicObject { types: None, metadata: metadata.into(), data: Value::Object(data) };
        Ok(PartialObject { object, is_cut: is_cut.get() })
    }
}

/// Reads a part of an object up to a depth. Deeper parts are skipped, however deep they are.
#[derive(Clone, Copy)]
struct Part<'a> {
    depth: usize,
    is_cut: &'a Cell<bool>,
}

impl Part<'_> {
    fn below(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > 0 {
            return deserializer.deserialize_any(self);
        }
        self.is_cut.set(true);
        IgnoredAny::deserialize(deserializer)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_element_seed(self.below())? {
            all.push(entry);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            all.insert(key, fields.next_value_seed(self.below())?);
        }
        Ok(Value::Object(all))
    }
}

/// The fields of an object that are read if nothing else is readable.
#[derive(Deserialize)]
struct Marked {
    metadata: Metadata,
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
    finalizers: Option<Vec<String>>,
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
            finalizers: sent.finalizers,
            labels: sent.labels,
            annotations: sent.annotations,
            owner_references: sent.owner_references,
            ..Self::default()
        }
    }
}

impl Resource for PartialObject {
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
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}
