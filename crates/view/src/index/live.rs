//! The writes that this process waits for, and the results of reading objects live that no watch delivers.

use wfe_core::Time;
use wfe_core::name::Uid;

use super::keep::already_seen;
use super::{Expected, Index, Key, Kind, Live};

impl Index {
    /// Delays decisions on a target until the watch has delivered a write of this process.
    pub fn expect(&mut self, key: &Key, expected: Expected, now: Time) {
        let object = expected.object();
        if self.places[&object.kind].get(&object.uid).is_some_and(|place| place != key) {
            return; // the watch has delivered it, with another target
        }
        let epoch = self.lists.get(&expected.kind()).map_or(0, |list| list.epoch);
        if let Some(entry) = self.targets.get_mut(key)
            && !already_seen(&entry.target, &entry.vanished, &expected)
        {
            entry.expected.add(expected, epoch, now);
        }
    }

    /// Returns which write of this process a target waits for, and when the object is read live.
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

    /// Records the result of reading an object live whose write is awaited. A uid never comes back: an object that is
    /// gone stays gone, whether or not a watch will deliver that.
    pub fn read_live(&mut self, key: &Key, expected: &Expected, live: Live) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.expected.read(expected, live);
        }
        if live == Live::Gone {
            let object = expected.object();
            self.vanish(key, object.kind, &object.uid);
        }
    }

    /// Records that a live read has found an object gone.
    pub fn vanish(&mut self, key: &Key, kind: Kind, uid: &Uid) {
        let place = self.places.entry(kind).or_default().remove(uid);
        if let Some(place) = place.filter(|place| place != key) {
            self.remove(kind, &place, uid);
        }
        self.remove(kind, key, uid);
    }
}
