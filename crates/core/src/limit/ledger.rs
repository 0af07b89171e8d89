//! Counts the places of all targets, and gives free places to those that have waited longest (section 18).
//!
//! A target holds a place in each limit that matches the work on it, as the view shows. A given place counts as taken
//! until the view shows what its owner created. If the next decision does not use a given place, it is free again.
//!
//! There is a line for each set of limits. Only the heads of the lines are examined: every other request in a line
//! needs the same places as the head, and is younger.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use super::{LimitSet, Limits, Places, SeenPlaces};
use crate::Time;
use crate::moment::after;
use crate::name::Uid;

/// The maximum number of older requests that are counted for a message: nobody needs a higher exact number.
pub(super) const MOST_AHEAD: usize = 1000;
/// At the beginning of a term, no place is given until every target was decided on once. Before that, a younger request
/// could be at the head of a line. If no decision is made for this long, the remaining targets cannot be decided on,
/// and places are given without them.
const FIRST_ROUND: Duration = Duration::from_secs(10);

/// A request for a place in every limit of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The limits.
    pub limits: LimitSet,
    /// The time by which the line is ordered: the creation of the execution, or the slot of the schedule.
    pub since: Time,
    /// The execution or schedule.
    pub uid: Uid,
}

/// The counts of one limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many targets have a place.
    pub running: u32,
    /// How many requests wait: for each target, the oldest of each set of limits.
    pub waiting: usize,
}

/// The places of all targets, by the key of the target.
#[derive(Clone, Debug)]
pub struct Ledger<K> {
    limits: Limits,
    /// The limits in which each target holds a place, as the view shows.
    held: HashMap<K, LimitSet>,
    /// The places that were given and that the view does not show yet.
    given: HashMap<K, Given>,
    asks: HashMap<K, Vec<Ask>>,
    lines: BTreeMap<LimitSet, Line<K>>,
    counts: Vec<Count>,
    /// The targets without a decision in this term, and the time at which a target last got its first decision.
    first_round: Option<(HashSet<K>, Time)>,
    /// Whether anything has changed since places were last given.
    is_changed: bool,
}

/// The requests for one set of limits, oldest first.
type Line<K> = BTreeMap<(Time, Uid), K>;

/// A place that was given.
#[derive(Clone, Debug)]
struct Given {
    to: Uid,
    limits: LimitSet,
}

impl<K: Clone + Eq + Hash> Ledger<K> {
    /// Creates the ledger of a new term, in which no target has been decided on.
    #[must_use]
    pub fn new(limits: Limits, targets: impl IntoIterator<Item = K>, now: Time) -> Self {
        Self {
            counts: vec![Count::default(); limits.len()],
            limits,
            held: HashMap::new(),
            given: HashMap::new(),
            asks: HashMap::new(),
            lines: BTreeMap::new(),
            first_round: Some((targets.into_iter().collect(), now)),
            is_changed: true,
        }
    }

    /// Returns the limits that the ledger counts.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the counts of each limit, in the order of the configuration.
    #[must_use]
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Returns the targets that have a place in a limit of a set.
    pub fn holders(&self, limits: LimitSet) -> impl Iterator<Item = &K> {
        self.held.iter().filter(move |(_, held)| held.intersects(limits)).map(|(key, _)| key)
    }

    /// Returns the places as a decision on a target sees them.
    #[must_use]
    pub fn seen(&self, key: &K) -> Places {
        let given = self.given.get(key).map(|given| given.to.clone());
        let taken = self.counts.iter().map(|count| count.running).collect();
        let oldest = self.asks.get(key).and_then(|asks| asks.iter().min_by_key(|ask| (ask.since, &ask.uid)));
        SeenPlaces { given, taken, ahead: oldest.map(|ask| self.ahead_of(ask)) }.into()
    }

    /// Returns the targets whose given place the view does not show yet, with the execution or schedule that has the
    /// place.
    pub fn given(&self) -> impl Iterator<Item = (&K, &Uid)> {
        self.given.iter().map(|(key, given)| (key, &given.to))
    }

    /// Takes over a place that a ledger with other limits gave.
    pub fn take_over(&mut self, key: &K, to: Uid, limits: LimitSet) {
        self.change(key, |ledger| ledger.given.insert(key.clone(), Given { to, limits }));
    }

    /// Records the limits in which a target holds a place.
    pub fn hold(&mut self, key: &K, limits: LimitSet) {
        self.change(key, |ledger| {
            if limits.is_empty() {
                ledger.held.remove(key);
            } else {
                ledger.held.insert(key.clone(), limits);
            }
        });
    }

    /// Records a decision on a target: who requests a place, and whether the given place is used.
    pub fn decided(&mut self, key: &K, asks: Vec<Ask>, uses_place: bool, now: Time) {
        if let Some((open, moved)) = &mut self.first_round
            && open.remove(key)
        {
            *moved = now;
        }
        if uses_place {
            return self.ask(key, Vec::new());
        }
        if self.given.contains_key(key) {
            self.change(key, |ledger| ledger.given.remove(key));
        }
        self.ask(key, asks);
    }

    /// Forgets a target that is gone.
    pub fn forget(&mut self, key: &K) {
        if let Some((open, _)) = &mut self.first_round {
            open.remove(key);
        }
        self.ask(key, Vec::new());
        self.change(key, |ledger| {
            ledger.held.remove(key);
            ledger.given.remove(key);
        });
    }

    /// Gives free places to the oldest requests, and returns their targets with the limits. The last free place of a
    /// limit is kept for the oldest request that waits for it. Otherwise a request that needs two limits could be
    /// overtaken for ever.
    pub fn give(&mut self, now: Time) -> Vec<(K, LimitSet)> {
        let is_shut = |(open, moved): &(HashSet<K>, Time)| !open.is_empty() && now < after(*moved, FIRST_ROUND);
        if self.first_round.as_ref().is_some_and(is_shut) {
            return Vec::new();
        }
        self.first_round = None;
        if !std::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let mut heads: BTreeSet<((Time, Uid), LimitSet)> =
            self.lines.keys().filter_map(|set| self.head(*set)).collect();
        let (mut kept, mut given) = (LimitSet::default(), Vec::new());
        while let Some(head) = heads.pop_first() {
            let (place, limits) = &head;
            if self.head(*limits).as_ref() != Some(&head) {
                heads.extend(self.head(*limits)); // another request of its target has got a place
                continue;
            }
            if !self.has_room(*limits, kept) {
                kept = kept.union(*limits);
                continue;
            }
            let Some(key) = self.lines.get(limits).and_then(|line| line.get(place)).cloned() else { continue };
            self.ask(&key, Vec::new()); // a target needs one place only
            self.take_over(&key, place.1.clone(), *limits);
            heads.extend(self.head(*limits));
            given.push((key, *limits));
        }
        self.is_changed = false;
        given
    }

    fn head(&self, limits: LimitSet) -> Option<((Time, Uid), LimitSet)> {
        let (place, _) = self.lines.get(&limits)?.first_key_value()?;
        Some((place.clone(), limits))
    }

    /// Returns whether every limit of a set has a free place besides those that are kept.
    fn has_room(&self, limits: LimitSet, kept: LimitSet) -> bool {
        let places = self.limits.iter().zip(&self.counts).enumerate();
        let mut asked = places.filter(|(position, _)| limits.contains(*position));
        asked.all(|(position, (limit, count))| {
            limit.max_running.saturating_sub(count.running) > u32::from(kept.contains(position))
        })
    }

    /// Replaces the requests of a target.
    fn ask(&mut self, key: &K, asks: Vec<Ask>) {
        if self.asks.get(key).map_or(asks.is_empty(), |before| *before == asks) {
            return;
        }
        self.is_changed = true;
        for Ask { limits, since, uid } in self.asks.remove(key).unwrap_or_default() {
            if let Some(line) = self.lines.get_mut(&limits) {
                line.remove(&(since, uid));
            }
            limits.positions().for_each(|position| self.counts[position].waiting -= 1);
        }
        for Ask { limits, since, uid } in &asks {
            self.lines.entry(*limits).or_default().insert((*since, uid.clone()), key.clone());
            limits.positions().for_each(|position| self.counts[position].waiting += 1);
        }
        self.lines.retain(|_, line| !line.is_empty());
        if !asks.is_empty() {
            self.asks.insert(key.clone(), asks);
        }
    }

    /// Counts the older requests for a limit of a set.
    fn ahead_of(&self, ask: &Ask) -> usize {
        let lines = self.lines.iter().filter(|(limits, _)| limits.intersects(ask.limits));
        let older = lines.flat_map(|(_, line)| line.range(..(ask.since, ask.uid.clone())));
        older.take(MOST_AHEAD + 1).count()
    }

    /// Changes what a target holds, and updates the counts.
    fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut Self) -> T) {
        let before = self.taken_by(key);
        change(self);
        let now = self.taken_by(key);
        self.is_changed |= !before.difference(now).is_empty();
        before.difference(now).positions().for_each(|position| self.counts[position].running -= 1);
        now.difference(before).positions().for_each(|position| self.counts[position].running += 1);
    }

    fn taken_by(&self, key: &K) -> LimitSet {
        let held = self.held.get(key).copied().unwrap_or_default();
        self.given.get(key).map_or(held, |given| held.union(given.limits))
    }
}

#[cfg(test)]
mod tests;
