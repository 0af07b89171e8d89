//! The garbage collector, which deletes objects without remaining owners, and the kubelet, which ends deleted pods.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use wfe_core::Time;

use super::follow::{Follower, Seen, owners};
use super::hand::Hand;
use super::scripts::uid;
use super::{delay, random_for};

/// How long an object may outlive its last owner.
const COLLECTED_WITHIN: Duration = Duration::from_secs(3);
/// How long a pod may take to end.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// Collects garbage and ends pods.
#[derive(Debug)]
pub(super) struct Collector {
    hand: Hand,
    seed: u64,
    /// The chores by time. Chores at the same time are in the order in which they arose.
    chores: BTreeMap<(Time, u64), Chore>,
    count: u64,
}

#[derive(Debug)]
enum Chore {
    /// Delete an object without owners.
    Collect(String),
    /// Remove a deleted pod.
    Remove(String),
}

impl Collector {
    pub(super) fn new(hand: Hand, seed: u64) -> Self {
        Self { hand, seed, chores: BTreeMap::new(), count: 0 }
    }

    /// Records the chores that follow from a change.
    pub(super) fn see(&mut self, seen: &Seen, objects: &Follower, now: Time) {
        let Some(is) = &seen.is else {
            let Some(was) = &seen.was else { return };
            let lost: Vec<&Value> = objects.owned_by(uid(was)).map(AsRef::as_ref).collect();
            lost.into_iter().filter(|object| is_garbage(object, objects)).for_each(|object| self.collect(object, now));
            return;
        };
        if seen.was.is_none() && is_garbage(is, objects) {
            self.collect(is, now);
        }
        let is_marked = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
        if is["kind"] == "Pod" && is_marked(is) && !seen.was.as_deref().is_some_and(is_marked) {
            let after = delay(&mut random_for(self.seed, "kubelet", is), ENDED_WITHIN);
            self.add(now + after, Chore::Remove(uid(is).to_owned()));
        }
    }

    fn collect(&mut self, object: &Value, now: Time) {
        let after = delay(&mut random_for(self.seed, "collector", object), COLLECTED_WITHIN);
        self.add(now + after, Chore::Collect(uid(object).to_owned()));
    }

    fn add(&mut self, due: Time, chore: Chore) {
        self.count += 1;
        self.chores.insert((due, self.count), chore);
    }

    /// Returns the time of the next chore.
    pub(super) fn wake(&self) -> Option<Time> {
        self.chores.first_key_value().map(|((due, _), _)| *due)
    }

    /// Does the next chore.
    pub(super) fn act(&mut self, objects: &Follower) -> Result<()> {
        match self.chores.pop_first() {
            Some((_, Chore::Collect(uid))) => match objects.get(&uid).filter(|object| is_garbage(object, objects)) {
                Some(object) => self.hand.delete(object, None),
                None => Ok(()),
            },
            Some((_, Chore::Remove(uid))) => match objects.get(&uid) {
                Some(pod) => self.hand.delete(pod, Some(0)),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }
}

/// Returns whether an object has owner references, but none of the owners exists.
fn is_garbage(object: &Value, objects: &Follower) -> bool {
    let mut owners = owners(object).peekable();
    owners.peek().is_some() && owners.all(|owner| objects.get(owner).is_none())
}
