//! Puts targets into the queue, each for the namespace that has work on it.

use std::time::Duration;

use wfe_view::index::Key;

use super::{Asker, Engine};
use crate::perform::Performer;

impl Engine {
    /// Marks the targets that have changed, that a change of circuits affects, or that get a place in a concurrency
    /// limit.
    pub(super) fn enqueue_changed(&mut self) {
        self.update_circuits();
        if self.leads {
            self.index.give_places(self.settings.clock.now());
        }
        for key in self.index.take_dirty() {
            if self.leads {
                self.enqueue(key);
            } else if self.in_flight.is_empty() {
                self.index.settle(&key);
            }
        }
    }

    /// Marks every target in the order of the keys. The order of a hash table differs between processes, and a
    /// simulation must be repeatable.
    pub(super) fn enqueue_all(&mut self) {
        let mut keys: Vec<Key> = self.index.keys().cloned().collect();
        keys.sort_unstable();
        for key in keys {
            self.enqueue(key);
        }
    }

    pub(super) fn enqueue(&mut self, key: Key) {
        let asker = self.asker(&key);
        self.queue.enqueue(key, asker);
    }

    pub(super) fn mark_after(&mut self, key: Key, wait: Duration) {
        let asker = self.asker(&key);
        self.queue.mark_after(key, asker, wait);
    }

    /// Begins to work on a target. Returns a performer whose requests use the places of the namespace that has the
    /// work.
    pub(super) fn start(&mut self, key: Key) -> Performer {
        let asker = self.asker(&key);
        self.performer.clone().in_lane(self.queue.start(key, asker))
    }

    /// Returns the namespace that has work on a target: namespaces take turns (section 17).
    fn asker(&self, key: &Key) -> Asker {
        self.index.entry(key).and_then(|entry| entry.target.asker()).cloned()
    }
}
