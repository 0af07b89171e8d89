//! What was listed, and lists of objects that are taken into an index as the operator does.

use anyhow::Result;
use kube::api::DynamicObject;
use wfe_core::Time;
use wfe_core::execution::Execution;
use wfe_core::name::Uid;
use wfe_core::target::{Target, TargetName};
use wfe_view::index::{Delivery, ExecutionRecord, Index, Key, Kind};

use super::Seen;

impl Seen {
    /// Returns all executions.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &DynamicObject> {
        self.executions.iter()
    }

    /// Returns an execution by its name.
    pub(crate) fn named(&self, namespace: &str, name: &str) -> Option<&DynamicObject> {
        self.executions
            .iter()
            .find(|it| it.metadata.namespace.as_deref() == Some(namespace) && it.metadata.name.as_deref() == Some(name))
    }

    /// Returns an execution by its uid.
    pub(crate) fn of_uid(&self, uid: &Uid) -> Option<&DynamicObject> {
        self.executions.get(*self.by_uid.get(uid)?)
    }

    /// Returns what the index holds of a listed execution, and of its target.
    pub(crate) fn known(&self, object: &DynamicObject) -> Option<(&Target, &Execution)> {
        self.index.execution(&Uid::new(object.metadata.uid.as_deref()?))
    }

    /// Reads an execution as the operator does. For a listed execution, [`Self::known`] costs less.
    pub(crate) fn record(&self, object: &DynamicObject) -> Result<ExecutionRecord> {
        self.installation.record(object)
    }

    /// Returns a target, if something is known of it.
    pub(crate) fn target(&self, name: &TargetName) -> Option<&Target> {
        Some(&self.index.entry(&Key::Chain(name.chain()))?.target)
    }

    /// Returns whether the schedules could be listed.
    pub(crate) fn sees_schedules(&self) -> bool {
        self.index.sees_schedules()
    }

    /// Returns all that was listed, as the operator keeps it.
    pub(crate) fn into_index(self) -> Index {
        self.index
    }
}

/// Delivers one list to an index.
pub(crate) fn take_in(index: &mut Index, kind: Kind, listed: impl Iterator<Item = Delivery>, now: Time) {
    index.apply(Delivery::ListBegins(kind), now);
    for delivery in listed {
        index.apply(delivery, now);
    }
    index.apply(Delivery::ListEnds(kind), now);
}

/// Passes the beginnings of triages to all targets, as the operator does before it decides on one.
pub(super) fn tell_of_triages(index: &mut Index, now: Time) {
    let keys: Vec<Key> = index.keys().cloned().collect();
    for key in &keys {
        index.tell_of_triages(key, now);
    }
}
