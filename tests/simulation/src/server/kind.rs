//! The kinds that the server knows, and the rules in which they differ.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema::Schema;

/// A kind of object.
#[derive(Debug)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
    /// The plural, such as `pods`.
    pub plural: String,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
    pub(super) traits: Traits,
    /// The schema of the objects. Without a schema, all fields are allowed.
    pub(super) schema: Option<Schema>,
}

/// The rules in which kinds differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    /// Whether a CRD defines the kind. An update must then name a version, and only a change outside of metadata and
    /// status increases `metadata.generation`.
    pub(super) custom: bool,
    /// Whether the status is a subresource, which a write to the object does not change.
    pub(super) status: bool,
    /// The special rules of the kind, if any.
    pub(super) special: Special,
}

impl Traits {
    /// Returns whether a PUT creates a missing object.
    pub(super) fn is_created_by_update(self) -> bool {
        matches!(self.special, Special::Lease | Special::Event)
    }

    /// Returns whether a PUT needs no version.
    pub(super) fn is_updated_without_version(self) -> bool {
        !self.custom && self.special != Special::Lease
    }
}

/// Kinds with special rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    None,
    /// The namespace has finalizers in its spec, and exists after its deletion until they are gone. The server never
    /// removes them.
    Namespace,
    /// A pod on a node is deleted with a grace period.
    Pod,
    Lease,
    Event,
}

const CUSTOM: Traits = Traits { custom: true, status: true, special: Special::None };
const BUILT_IN: Traits = Traits { custom: false, status: false, special: Special::None };

impl Kind {
    fn new(group: &str, version: &str, kind: &str, plural: &str, traits: Traits) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(str::to_owned);
        Self { group, version, kind, plural, namespaced: true, traits, schema: None }
    }

    /// Returns the `apiVersion` of the kind's objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the plural with the group, as in messages.
    pub(super) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// Returns all kinds. They are read once for all servers, because compiling the rules of a CRD takes longer than most
/// plans.
pub(super) fn kinds() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(read);
    &KINDS
}

/// Reads all kinds: this project's kinds from their generated CRDs, and the other kinds that the operator uses.
fn read() -> Vec<Kind> {
    let mut kinds: Vec<Kind> = wfe_api::crds().iter().flat_map(of_crd).collect();
    for (version, kind, plural) in
        [("v1", "PipelineRun", "pipelineruns"), ("v1", "TaskRun", "taskruns"), ("v1beta1", "CustomRun", "customruns")]
    {
        kinds.push(Kind::new("tekton.dev", version, kind, plural, CUSTOM));
    }
    let namespace = Traits { special: Special::Namespace, status: true, ..BUILT_IN };
    kinds.push(Kind { namespaced: false, ..Kind::new("", "v1", "Namespace", "namespaces", namespace) });
    kinds.push(Kind::new("", "v1", "ConfigMap", "configmaps", BUILT_IN));
    kinds.push(Kind::new("", "v1", "Pod", "pods", Traits { special: Special::Pod, status: true, ..BUILT_IN }));
    let lease = Traits { special: Special::Lease, ..BUILT_IN };
    kinds.push(Kind::new("coordination.k8s.io", "v1", "Lease", "leases", lease));
    let event = Traits { special: Special::Event, ..BUILT_IN };
    kinds.push(Kind::new("events.k8s.io", "v1", "Event", "events", event));
    kinds
}

fn of_crd(
    crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
) -> Vec<Kind> {
    let spec = &crd.spec;
    let served = spec.versions.iter().filter(|version| version.served);
    let kinds = served.map(|version| {
        let status = version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some());
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        Kind {
            namespaced: spec.scope == "Namespaced",
            schema: schema.map(|schema| Schema::read(&serde_json::to_value(schema).unwrap_or(Value::Null))),
            ..Kind::new(&spec.group, &version.name, &spec.names.kind, &spec.names.plural, Traits { status, ..CUSTOM })
        }
    });
    kinds.collect()
}
