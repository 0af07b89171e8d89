//! Lists of objects, taken into an index as the operator does.

use kube::api::DynamicObject;
use wfe_core::Time;
use wfe_core::target::{Target, TargetName};
use wfe_view::index::{Delivery, Index, Key, Kind};

use super::Seen;

impl Seen {
    /// Returns all executions.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &DynamicObject> {
        self.executions.iter()
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
