//! Follows all objects of the server, and records which objects each object owns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::scripts::uid;
use crate::server::Server;

/// Kinds without owners and dependents. Their objects have many versions.
const LEFT_OUT: [&str; 2] = ["Event", "Lease"];

/// A change of one object.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) was: Option<Arc<Value>>,
    pub(super) is: Option<Arc<Value>>,
}

/// The objects of the server at the last call of `news`.
#[derive(Debug, Default)]
pub(super) struct Follower {
    revision: u64,
    objects: BTreeMap<String, Arc<Value>>,
    /// The uids of each object's dependents. The object itself need not exist.
    owned: BTreeMap<String, BTreeSet<String>>,
}

impl Follower {
    /// Returns an object.
    pub(super) fn get(&self, uid: &str) -> Option<&Arc<Value>> {
        self.objects.get(uid)
    }

    /// Returns the objects that an object owns, in the order of their uids.
    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<Value>> {
        self.owned.get(uid).into_iter().flatten().filter_map(|uid| self.objects.get(uid))
    }

    /// Returns the changes since the last call, oldest first. After a compaction, or after a restore of an older state,
    /// all objects are compared. Several changes of one object then appear as one.
    pub(super) fn news(&mut self, server: &Server) -> Vec<Seen> {
        let seen: Vec<Seen> = match server.changes_after(self.revision) {
            Some(changes) => changes.map(|change| Seen { was: change.was.clone(), is: change.is.clone() }).collect(),
            None => self.compared(server),
        };
        self.revision = server.revision();
        let is_followed = |seen: &Seen| {
            let kind = seen.is.as_ref().or(seen.was.as_ref()).and_then(|object| object["kind"].as_str());
            kind.is_some_and(|kind| !LEFT_OUT.contains(&kind))
        };
        let seen: Vec<Seen> = seen.into_iter().filter(is_followed).collect();
        for seen in &seen {
            self.take_in(seen);
        }
        seen
    }

    fn compared(&self, server: &Server) -> Vec<Seen> {
        let there: BTreeSet<&str> = server.objects().map(|object| uid(object)).collect();
        let gone = self.objects.iter().filter(|(uid, _)| !there.contains(uid.as_str()));
        let gone = gone.map(|(_, was)| Seen { was: Some(Arc::clone(was)), is: None });
        let changed = server.objects().filter_map(|is| {
            let was = self.objects.get(uid(is));
            let is_news = was.is_none_or(|was| was["metadata"]["resourceVersion"] != is["metadata"]["resourceVersion"]);
            is_news.then(|| Seen { was: was.cloned(), is: Some(Arc::clone(is)) })
        });
        gone.chain(changed).collect()
    }

    fn take_in(&mut self, seen: &Seen) {
        if let Some(was) = &seen.was {
            for owner in owners(was) {
                if let Some(owned) = self.owned.get_mut(owner) {
                    owned.remove(uid(was));
                    if owned.is_empty() {
                        self.owned.remove(owner);
                    }
                }
            }
            self.objects.remove(uid(was));
        }
        if let Some(is) = &seen.is {
            for owner in owners(is) {
                self.owned.entry(owner.to_owned()).or_default().insert(uid(is).to_owned());
            }
            self.objects.insert(uid(is).to_owned(), Arc::clone(is));
        }
    }
}

/// Returns the uids of the owners of an object.
pub(super) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    owners.iter().filter_map(|owner| owner["uid"].as_str())
}
