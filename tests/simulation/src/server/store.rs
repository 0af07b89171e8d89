//! The objects, the revision counter, and the log of all changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use wfe_core::Time;

/// How many changes the log contains before the oldest are compacted. They take some hundred megabytes at most, and
/// cover many times the longest lag of the operator's watches.
const MAX_CHANGES: usize = 200_000;

/// The key of an object: the index of its kind, and `namespace/name`. Keys sort as in etcd.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) kind: usize,
    pub(super) path: String,
}

impl Key {
    pub(super) fn new(kind: usize, namespace: &str, name: &str) -> Self {
        Self { kind, path: format!("{namespace}/{name}") }
    }
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision of the change, which is also the new `resourceVersion` of the object.
    pub revision: u64,
    pub(super) key: Key,
    /// The object before the change; absent if it was created.
    pub was: Option<Arc<Value>>,
    /// The object after the change; absent if it was deleted.
    pub is: Option<Arc<Value>>,
    /// When the change was made.
    pub at: Time,
}

/// The objects and their history.
#[derive(Debug)]
pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    log: VecDeque<Change>,
    revision: u64,
    /// The last compacted revision. The log contains the changes after it.
    compacted: u64,
    /// All changes, even compacted ones, if records are kept.
    archive: Option<Vec<Change>>,
    /// The time of the request that is being answered.
    pub(super) now: Time,
    random: fastrand::Rng,
}

impl Store {
    pub(super) fn new(seed: u64) -> Self {
        // A real etcd does not have a revision 0 either: in requests, 0 means any revision.
        Self {
            objects: BTreeMap::new(),
            log: VecDeque::new(),
            revision: 1,
            compacted: 1,
            archive: None,
            now: Time::UNIX_EPOCH,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.log.iter()
    }

    /// Returns the changes after a revision.
    pub(super) fn changes_after(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let first = self.log.partition_point(|change| change.revision <= revision);
        self.log.range(first..)
    }

    /// Keeps all further changes, even after a compaction.
    pub(super) fn keep_archive(&mut self) {
        self.archive.get_or_insert_default();
    }

    pub(super) fn archive(&self) -> &[Change] {
        self.archive.as_deref().unwrap_or_default()
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.values()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// Returns all objects of a kind as they were at a revision, which must not be compacted.
    pub(super) fn all_at(&self, kind: usize, revision: u64) -> BTreeMap<&str, Arc<Value>> {
        let first = Key { kind, path: String::new() };
        let now = self.objects.range(first..).take_while(|(key, _)| key.kind == kind);
        let mut all: BTreeMap<&str, Arc<Value>> =
            now.map(|(key, object)| (key.path.as_str(), Arc::clone(object))).collect();
        for change in self.changes_after(revision).collect::<Vec<_>>().into_iter().rev() {
            if change.key.kind != kind {
                continue;
            }
            match &change.was {
                Some(was) => all.insert(&change.key.path, Arc::clone(was)),
                None => all.remove(change.key.path.as_str()),
            };
        }
        all
    }

    /// Writes an object, and returns it with its new revision.
    pub(super) fn put(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Arc::new(object);
        let was = self.objects.insert(key.clone(), Arc::clone(&object));
        self.log(key, was, Some(Arc::clone(&object)));
        object
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, key: &Key) {
        let Some(was) = self.objects.remove(key) else { return };
        self.revision += 1;
        self.log(key, Some(was), None);
    }

    fn log(&mut self, key: &Key, was: Option<Arc<Value>>, is: Option<Arc<Value>>) {
        let change = Change { revision: self.revision, key: key.clone(), was, is, at: self.now };
        if let Some(archive) = &mut self.archive {
            archive.push(change.clone());
        }
        self.log.push_back(change);
        if self.log.len() > MAX_CHANGES
            && let Some(oldest) = self.log.pop_front()
        {
            self.compacted = oldest.revision;
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.log.retain(|change| change.revision > revision);
        self.compacted = self.compacted.max(revision);
    }

    /// Generates a uid of version 4, as a real server does.
    pub(super) fn uid(&mut self) -> String {
        let hex = format!("{:032x}", self.random.u128(..));
        format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}
