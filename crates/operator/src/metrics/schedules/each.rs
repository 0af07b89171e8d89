//! The metrics of single schedules: the outcomes of their slots, and by when they should have succeeded again.

use std::collections::HashMap;

use prometheus::{IntCounterVec, IntGaugeVec};
use wfe_core::Time;
use wfe_core::name::{ScheduleId, Uid, Version};
use wfe_core::schedule::{Missed, Schedule, ScheduleStatus};
use wfe_core::target::Target;
use wfe_view::index::Key;

use super::OVERFLOW;
use crate::metrics::series::MAX_SERIES;

/// A slot that has an outcome, and a slot that passed without a run.
pub(super) const CAME_OF: [&str; 2] = ["Run", "Missed"];

/// Updates the series of each schedule. Owned by the engine.
pub(super) struct EachSchedule {
    /// By namespace, name and outcome of the slot. Both outcomes exist from the start: Prometheus sees no increase in a
    /// counter that begins with one.
    pub(super) slots: IntCounterVec,
    /// By namespace and name.
    pub(super) success_due: IntGaugeVec,
    /// How many schedules have their own series, and the limit.
    series: usize,
    pub(super) most: usize,
    known: HashMap<Key, HashMap<Uid, Known>>,
}

/// What was shown last of a schedule.
struct Known {
    id: ScheduleId,
    has_series: bool,
    /// The version of the schedule, and whether it was being deleted. While both are unchanged, so are the series of
    /// the schedule.
    of: Option<(Version, bool)>,
    seen: Seen,
    success_due: Option<Time>,
}

/// What the status of a schedule contained.
#[derive(Clone, Copy, PartialEq)]
struct Seen {
    /// The last used slot, and whether it has an outcome.
    last: Option<(Time, bool)>,
    missed: Option<Missed>,
}

impl Seen {
    fn of(status: &ScheduleStatus) -> Self {
        let last = status.last_run.as_ref().map(|last| (last.slot, last.outcome.is_some()));
        Self { last, missed: status.last_missed }
    }
}

impl EachSchedule {
    pub(super) fn new(slots: IntCounterVec, success_due: IntGaugeVec) -> Self {
        Self { slots, success_due, series: 0, most: MAX_SERIES, known: HashMap::new() }
    }

    /// Shows the schedules of a target.
    pub(super) fn show(&mut self, key: &Key, target: &Target) {
        let mut before = self.known.remove(key).unwrap_or_default();
        let mut known = HashMap::new();
        for schedule in target.schedules.values() {
            let uid = &schedule.id.uid;
            let was = before.remove(uid);
            known.insert(uid.clone(), self.show_one(schedule, was));
        }
        for gone in before.into_values() {
            self.remove(&gone);
        }
        if !known.is_empty() {
            self.known.insert(key.clone(), known);
        }
    }

    fn show_one(&mut self, schedule: &Schedule, was: Option<Known>) -> Known {
        let is = Seen::of(&schedule.status);
        let mut known = was.unwrap_or_else(|| self.begin(schedule, is));
        let of = Some((schedule.version.clone(), schedule.leaving));
        if known.of == of {
            return known; // most decisions on a target leave most of its schedules unchanged
        }
        known.of = of;
        if known.seen != is {
            let ended = is.last.filter(|(_, ended)| *ended);
            let runs = u32::from(ended.is_some() && ended != known.seen.last);
            let used = known.seen.last.map(|(slot, _)| slot).max(schedule.status.planned_from);
            let missed = is.missed.map_or(0, |missed| missed.beyond(known.seen.missed, used));
            for (came_of, count) in CAME_OF.iter().zip([runs, missed]) {
                self.slots.with_label_values(&known.labels(came_of)).inc_by(count.into());
            }
            known.seen = is;
        }
        let due = schedule.success_due();
        if known.has_series && known.success_due != due {
            let labels = [&*known.id.namespace, &*known.id.name];
            match due {
                Some(due) => self.success_due.with_label_values(&labels).set(due.timestamp()),
                None => drop(self.success_due.remove_label_values(&labels)),
            }
            known.success_due = due;
        }
        known
    }

    fn begin(&mut self, schedule: &Schedule, seen: Seen) -> Known {
        let has_series = self.series < self.most;
        self.series += usize::from(has_series);
        let known = Known { id: schedule.id.clone(), has_series, of: None, seen, success_due: None };
        for came_of in CAME_OF {
            let _ = self.slots.with_label_values(&known.labels(came_of));
        }
        known
    }

    /// Returns whether a schedule of a target is shown.
    pub(super) fn knows(&self, key: &Key) -> bool {
        self.known.contains_key(key)
    }

    /// Removes the schedules of a target.
    pub(super) fn forget(&mut self, key: &Key) {
        for gone in self.known.remove(key).into_iter().flat_map(HashMap::into_values) {
            self.remove(&gone);
        }
    }

    /// Removes all schedules.
    pub(super) fn forget_all(&mut self) {
        let all: Vec<Key> = self.known.keys().cloned().collect();
        for key in &all {
            self.forget(key);
        }
    }

    fn remove(&mut self, gone: &Known) {
        if !gone.has_series {
            return;
        }
        self.series -= 1;
        // A series that cannot be removed does not exist.
        for came_of in CAME_OF {
            let _ = self.slots.remove_label_values(&gone.labels(came_of));
        }
        let _ = self.success_due.remove_label_values(&[&*gone.id.namespace, &*gone.id.name]);
    }
}

impl Known {
    fn labels<'a>(&'a self, came_of: &'a str) -> [&'a str; 3] {
        let [namespace, name] = if self.has_series { [&*self.id.namespace, &*self.id.name] } else { OVERFLOW };
        [namespace, name, came_of]
    }
}

#[cfg(test)]
mod tests;
