//! Lists of objects, taken into an index as the operator does.

use wfe_core::Time;
use wfe_view::index::{Delivery, Index, Key, Kind};

/// Takes one list in.
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
