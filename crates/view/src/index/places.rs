//! The places of all targets in the concurrency limits (section 18).
//!
//! The rules are in `wfe_core::limit`. This module counts the places that targets hold, and wakes a target that gets a
//! place. If no limit is set, it does nothing.

use std::collections::BTreeMap;

use wfe_core::Time;
use wfe_core::action::Decision;
use wfe_core::limit::{Count, Ledger, Limit, LimitSet, Limits, Places};
use wfe_core::name::Uid;
use wfe_core::target::Target;

use super::{Index, Key};

/// The places of all targets. If no limit is set, there is no ledger.
#[derive(Debug, Default)]
pub(super) struct AllPlaces {
    ledger: Option<Ledger<Key>>,
    /// How many places of each limit this process has given, by the name of the limit.
    given: BTreeMap<Box<str>, u64>,
}

/// A limit and its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCount {
    /// The limit.
    pub limit: Limit,
    /// How many targets have a place, and how many wait for one.
    pub count: Count,
    /// How many places this process has given.
    pub given: u64,
}

impl Index {
    /// Copies the places into a target that is about to be decided on. If `limits` differ from those in force, counts
    /// the places of all targets anew.
    pub fn show_places(&mut self, key: &Key, limits: &Limits, now: Time) {
        if self.limited.ledger.as_ref().map_or(limits.is_empty(), |ledger| ledger.limits() == limits) {
            self.count_places(key);
        } else {
            self.limit(limits, now);
        }
        if let Some(ledger) = &self.limited.ledger
            && let Some(entry) = self.targets.get_mut(key)
        {
            entry.target.places = ledger.seen(key);
        }
    }

    /// Records after a decision which places the target asks for, and whether its place is used.
    pub fn ask_for_places(&mut self, key: &Key, decision: &Decision, now: Time) {
        if let Some(ledger) = &mut self.limited.ledger {
            ledger.decided(key, decision.asks.clone(), decision.uses_place, now);
        }
    }

    /// Gives free places, and marks the targets that get one. During a list nothing is decided, so no places are given.
    pub fn give_places(&mut self, now: Time) {
        if self.limited.ledger.is_none() || !self.is_synced() || self.is_listing() {
            return;
        }
        let changed: Vec<Key> = self.dirty.iter().cloned().collect();
        for key in &changed {
            self.count_places(key);
        }
        let Some(ledger) = &mut self.limited.ledger else { return };
        for (key, limits) in ledger.give(now) {
            for (_, limit) in ledger.limits().iter().enumerate().filter(|(position, _)| limits.contains(*position)) {
                let given = self.limited.given.entry(limit.name.clone()).or_default();
                *given = given.saturating_add(1);
            }
            self.dirty.insert(key);
        }
    }

    /// Forgets the places at the end of a term, because the next leader gives them from now on.
    pub fn forget_places(&mut self) {
        self.limited.ledger = None;
    }

    /// Returns the limits and their counts.
    #[must_use]
    pub fn limit_counts(&self) -> Vec<LimitCount> {
        let Some(ledger) = &self.limited.ledger else { return Vec::new() };
        let of = |(limit, count): (&Limit, &Count)| LimitCount {
            limit: limit.clone(),
            count: *count,
            given: self.limited.given.get(&limit.name).copied().unwrap_or_default(),
        };
        ledger.limits().iter().zip(ledger.counts()).map(of).collect()
    }

    /// Counts the places that a target holds in the present view.
    fn count_places(&mut self, key: &Key) {
        let Some(ledger) = &mut self.limited.ledger else { return };
        match self.targets.get(key) {
            Some(entry) => {
                let held = entry.target.limits_in_use(ledger.limits());
                ledger.hold(key, held);
            }
            None => ledger.forget(key),
        }
    }

    /// Applies new limits, and counts the places of all targets. A place that was already given stays given, because
    /// the run that it was given for may not be seen yet.
    fn limit(&mut self, limits: &Limits, now: Time) {
        let before = self.limited.ledger.take();
        if limits.is_empty() {
            self.targets.values_mut().for_each(|entry| entry.target.places = Places::default());
            return;
        }
        let mut ledger = Ledger::new(limits.clone(), self.targets.keys().cloned(), now);
        for (key, entry) in &self.targets {
            ledger.hold(key, entry.target.limits_in_use(limits));
        }
        for (key, to) in before.iter().flat_map(Ledger::given) {
            if let Some(entry) = self.targets.get(key) {
                ledger.take_over(key, to.clone(), limits_of(&entry.target, to, limits));
            }
        }
        self.limited.ledger = Some(ledger);
    }
}

/// Returns the limits that apply to an execution or a schedule of a target.
fn limits_of(target: &Target, uid: &Uid, limits: &Limits) -> LimitSet {
    match (target.executions.get(uid), target.schedules.get(uid)) {
        (Some(execution), _) => target.limits_of(execution, limits),
        (None, schedule) => target.limits_matching(schedule.map(|it| &*it.workflow_id), limits),
    }
}
