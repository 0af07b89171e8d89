//! Awaited writes of this process, and the results of live reads.

use wfe_core::Time;
use wfe_core::name::Uid;

use super::keep::already_seen;
use super::{Expected, Index, Key, Kind, Live};

impl Index {
    /// Delays decisions on a target until the watch has delivered a write of this process.
    pub(super) fn expect(&mut self, key: &Key, expected: Expected, now: Time) {
        let object = expected.object();
        if self.places[&object.kind].get(&object.uid).is_some_and(|place| place != key) {
            return; // the watch has delivered the object already, for another target
        }
        let epoch = self.lists.get(&expected.kind()).map_or(0, |list| list.epoch);
        if let Some(entry) = self.targets.get_mut(key)
            && !already_seen(&entry.target, &entry.vanished, &expected)
        {
            entry.expected.add(expected, epoch, now);
        }
    }

    /// Returns the write of this process that a target waits for, and when its object is read live.
    #[must_use]
    pub fn awaits(&self, key: &Key) -> Option<(&Expected, Time)> {
        self.entry(key)?.expected.next()
    }

    /// Returns whether a write of this process to this object is awaited.
    #[must_use]
    pub fn is_awaited(&self, key: &Key, object: &Uid) -> bool {
        self.entry(key).is_some_and(|entry| entry.expected.contains(object))
    }

    /// Returns the writes that have been awaited for so long that their objects must be read live.
    pub fn take_overdue(&mut self, key: &Key, now: Time) -> Vec<Expected> {
        self.targets.get_mut(key).map(|entry| entry.expected.take_overdue(now)).unwrap_or_default()
    }

    /// Records the live read of an object whose write is awaited. A uid is never reused: an object that is gone stays
    /// gone, even if no watch delivers its deletion.
    pub(super) fn read_live(&mut self, key: &Key, expected: &Expected, live: Live) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.expected.read(expected, live);
        }
        if live == Live::Gone {
            let object = expected.object();
            self.vanish(key, object.kind, &object.uid);
        }
    }

    /// Removes an object that a live read found gone.
    pub fn vanish(&mut self, key: &Key, kind: Kind, uid: &Uid) {
        let place = self.places.entry(kind).or_default().remove(uid);
        if let Some(place) = place.filter(|place| place != key) {
            self.remove(kind, &place, uid);
        }
        self.remove(kind, key, uid);
    }
}
