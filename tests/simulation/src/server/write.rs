//! Creating and replacing objects: which fields the server sets, keeps and refuses.

use serde_json::{Value, json};
use wfe_core::Time;

use super::Server;
use super::answer::{
    Answer, already_exists, bad_request, conflict, internal_error, invalid, namespace_terminating, no_version,
    not_found, outdated,
};
use super::cause::Cause;
use super::kind::{Kind, Special};
use super::metadata::{check, finalizers, text, tidy, timestamp};
use super::store::Key;
use super::target::{Part, Target};

/// The label that every namespace gets, even if a write sets another value.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

impl Server {
    /// Creates an object (POST).
    pub(super) fn create(&mut self, target: &Target, body: &Value, now: Time) -> Result<Answer, Answer> {
        let mut object = body.clone();
        self.decode(target, &mut object)?;
        self.create_decoded(target, object, now)
    }

    fn create_decoded(&mut self, target: &Target, mut object: Value, now: Time) -> Result<Answer, Answer> {
        let kind = self.kind(target);
        let name = text(&object, "name").to_owned();
        let namespace = target.namespace.clone().unwrap_or_default();
        let is_typed = is_typed(kind, &object);
        let has_default = kind.schema.as_ref().is_some_and(|schema| schema.has_default("status"));
        if kind.namespaced {
            self.admit_namespace(kind, &name, &namespace)?;
        }
        let meta = &mut object["metadata"];
        for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            meta.as_object_mut().map(|meta| meta.remove(field));
        }
        if kind.namespaced {
            meta["namespace"] = json!(namespace);
        }
        meta["creationTimestamp"] = timestamp(now);
        begin(kind, &mut object);
        let mut causes = Vec::new();
        check(kind, &object, &mut causes);
        self.settle(target, &mut object, None, causes)?;
        if !text(&object, "resourceVersion").is_empty() {
            return Err(internal_error("resourceVersion should not be set on objects to be created"));
        }
        let key = target.key(&name);
        if self.store.get(&key).is_some() {
            return Err(already_exists(self.kind(target), &name));
        }
        let uid = self.store.uid();
        object["metadata"]["uid"] = json!(uid);
        if has_default {
            self.undefaulted.insert(uid.clone());
        }
        if !is_typed {
            self.unmanaged.insert(uid);
        }
        Ok(Answer::created(Value::clone(&self.store.put(&key, object))))
    }

    /// Replaces an object (PUT). For some kinds, a PUT also creates a missing object.
    pub(super) fn replace(
        &mut self,
        target: &Target,
        name: &str,
        mut body: Value,
        now: Time,
    ) -> Result<Answer, Answer> {
        self.decode(target, &mut body)?;
        let kind = self.kind(target);
        if text(&body, "name") != name {
            return Err(bad_request("the name of the object does not match the name on the URL"));
        }
        let uid = text(&body, "uid");
        let Some(old) = self.store.get(&target.key(name)).cloned() else {
            if !kind.traits.is_created_by_update() || target.part != Part::Object {
                return Err(not_found(kind, name));
            }
            if !uid.is_empty() {
                return Err(conflict(kind, name, &format!("Precondition failed: UID in precondition: {uid}")));
            }
            body["metadata"].as_object_mut().map(|meta| meta.remove("resourceVersion"));
            return self.create_decoded(target, body, now);
        };
        let old = self.shown(target.kind, &old);
        if !uid.is_empty() && uid != text(&old, "uid") {
            return Err(conflict(kind, name, &format!("Precondition failed: UID in precondition: {uid}")));
        }
        if text(&body, "resourceVersion").is_empty() {
            if !kind.traits.is_updated_without_version() {
                return Err(no_version(kind, name));
            }
            body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        }
        self.update(target, name, &old, body)
    }

    /// Stores the result of a write. A write without a change creates a new version in two cases: it removes the
    /// object's `managedFields`, or it is the first after the creation and stores the status's defaults.
    pub(super) fn update(
        &mut self,
        target: &Target,
        name: &str,
        old: &Value,
        mut new: Value,
    ) -> Result<Answer, Answer> {
        let kind = self.kind(target);
        if text(&new, "resourceVersion") != text(old, "resourceVersion") {
            return Err(outdated(kind, name));
        }
        let is_typed = is_typed(kind, &new);
        keep(kind, target.part, old, &mut new);
        let mut causes = Vec::new();
        for field in ["name", "namespace", "uid"] {
            if text(&new, field) != text(old, field) {
                causes.push(Cause::new("FieldValueInvalid", &format!("metadata.{field}"), "field is immutable"));
            }
        }
        if !text(old, "deletionTimestamp").is_empty()
            && finalizers(&new).iter().any(|finalizer| !finalizers(old).contains(finalizer))
        {
            let message = "Forbidden: no new finalizers can be added if the object is being deleted";
            causes.push(Cause::new("FieldValueForbidden", "metadata.finalizers", message));
        }
        check(kind, &new, &mut causes);
        self.settle(target, &mut new, Some(old), causes)?;
        let kind = self.kind(target);
        if kind.traits.custom && !same_but_for_metadata(old, &new, kind.traits.status) {
            new["metadata"]["generation"] = json!(old["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        }
        let key = target.key(name);
        if is_let_go(old, &new) {
            // Watches deliver the last stored state, which still has the finalizer.
            self.store.remove(&key);
            return Ok(Answer::ok(new));
        }
        let loses_managed_fields = !is_typed && self.unmanaged.insert(text(old, "uid").to_owned());
        let stores_default = self.undefaulted.remove(text(old, "uid"));
        if *old == new && !loses_managed_fields && !stores_default {
            return Ok(Answer::ok(new));
        }
        Ok(Answer::ok(Value::clone(&self.store.put(&key, new))))
    }

    /// Drops unknown fields, and refuses violations of the schema.
    fn settle(&self, target: &Target, new: &mut Value, old: Option<&Value>, causes: Vec<Cause>) -> Result<(), Answer> {
        let (kind, mut causes) = (self.kind(target), causes);
        if let Some(schema) = &kind.schema {
            schema.prune(new);
            // A CRD without these fields would have other rules, which no test relies on.
            if self.drops_of(target.kind) {
                super::crd::drop(new, &self.dropped);
            } else {
                schema.check(new, old, &mut causes);
            }
        }
        special(kind, new, &mut causes);
        if causes.is_empty() { Ok(()) } else { Err(invalid(kind, text(new, "name"), &causes)) }
    }

    /// Checks and cleans the object in a request.
    pub(super) fn decode(&self, target: &Target, object: &mut Value) -> Result<(), Answer> {
        let kind = self.kind(target);
        let said = |field: &str| object[field].as_str().unwrap_or_default();
        if said("kind") != kind.kind || said("apiVersion") != kind.api_version() {
            // An object of a custom kind must name its kind. For a built-in kind, the path is enough.
            let silent = said("kind").is_empty() && said("apiVersion").is_empty();
            if kind.traits.custom || !silent {
                return Err(bad_request("the kind and the version of the object do not match the path"));
            }
            object["kind"] = json!(kind.kind);
            object["apiVersion"] = json!(kind.api_version());
        }
        tidy(object)?;
        let (namespace, asked) = (text(object, "namespace"), target.namespace.as_deref().unwrap_or_default());
        if kind.namespaced && !namespace.is_empty() && namespace != asked {
            return Err(bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if kind.namespaced {
            object["metadata"]["namespace"] = json!(asked);
        } else if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("namespace");
        }
        Ok(())
    }

    fn admit_namespace(&self, kind: &Kind, name: &str, namespace: &str) -> Result<(), Answer> {
        let Some(namespaces) = self.kinds.iter().position(|kind| kind.traits.special == Special::Namespace) else {
            return Ok(());
        };
        let Some(found) = self.store.get(&Key::new(namespaces, "", namespace)) else {
            return Err(not_found(&self.kinds[namespaces], namespace));
        };
        if text(found, "deletionTimestamp").is_empty() {
            return Ok(());
        }
        Err(namespace_terminating(kind, name, namespace))
    }
}

/// Sets the initial fields of a new object.
fn begin(kind: &Kind, object: &mut Value) {
    let name = text(object, "name").to_owned();
    if kind.traits.status
        && let Some(object) = object.as_object_mut()
    {
        object.remove("status");
    }
    if kind.traits.custom {
        object["metadata"]["generation"] = json!(1);
    }
    match kind.traits.special {
        Special::Namespace => {
            object["metadata"]["labels"][NAME_LABEL] = json!(name);
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        Special::Pod => {
            object["metadata"]["generation"] = json!(1);
            object["status"] = json!({"phase": "Pending"});
        }
        Special::None | Special::Lease | Special::Event => {}
    }
}

/// Restores the fields that this write may not change.
fn keep(kind: &Kind, part: Part, old: &Value, new: &mut Value) {
    let spared = |new: &mut Value, field: &str| match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => drop(new.as_object_mut().map(|new| new.remove(field))),
    };
    if part == Part::Status {
        let status = new.get("status").cloned();
        if kind.traits.custom {
            *new = old.clone();
        } else {
            let meta = new["metadata"].take();
            *new = old.clone();
            new["metadata"] = meta;
        }
        match status {
            Some(status) => new["status"] = status,
            None => drop(new.as_object_mut().map(|new| new.remove("status"))),
        }
    } else if kind.traits.status {
        spared(new, "status");
    }
    if kind.traits.special == Special::Namespace {
        spared(new, "spec");
        new["metadata"]["labels"][NAME_LABEL] = old["metadata"]["name"].clone();
    }
    let (meta, was) = (&mut new["metadata"], &old["metadata"]);
    if meta["uid"].is_null() {
        meta["uid"] = was["uid"].clone();
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        match was.get(field) {
            Some(value) => meta[field] = value.clone(),
            None => drop(meta.as_object_mut().map(|meta| meta.remove(field))),
        }
    }
    // Assigning `null` would not remove the field.
    if meta["uid"].is_null() {
        meta.as_object_mut().map(|meta| meta.remove("uid"));
    }
}

/// Returns whether all fields in a request have the types of the schema, including fields that the write ignores.
fn is_typed(kind: &Kind, object: &Value) -> bool {
    kind.schema.as_ref().is_none_or(|schema| {
        let mut object = object.clone();
        schema.prune(&mut object);
        schema.is_typed(&object)
    })
}

fn same_but_for_metadata(old: &Value, new: &Value, status_apart: bool) -> bool {
    let rest = |object: &Value| {
        let fields = object.as_object().into_iter().flatten();
        let fields = fields.filter(|(key, _)| *key != "metadata" && !(status_apart && *key == "status"));
        fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
    };
    rest(old) == rest(new)
}

/// Returns whether a write removes the last finalizer from an object that is being deleted.
fn is_let_go(old: &Value, new: &Value) -> bool {
    !text(old, "deletionTimestamp").is_empty()
        && old["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds == 0)
        && finalizers(new).is_empty()
}

/// Reports violations of a kind's rules that are not part of a schema.
fn special(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    if kind.traits.special == Special::Lease
        && object["spec"]["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0)
    {
        let message = "Invalid value: must be greater than 0";
        causes.push(Cause::new("FieldValueInvalid", "spec.leaseDurationSeconds", message));
    }
    if kind.traits.special == Special::Event {
        for field in ["reason", "action", "reportingController", "reportingInstance"] {
            if object[field].as_str().is_none_or(str::is_empty) {
                causes.push(Cause::new("FieldValueRequired", field, "Required value"));
            }
        }
    }
}
