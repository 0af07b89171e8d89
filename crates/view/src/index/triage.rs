//! Records when triages by a workflow begin in the whole cluster (section 13.2), and what this process has learned for
//! a triage.
//!
//! The status of each schedule shows when its latest triage began, and the analyst. A requested triage counts from the
//! request on. Otherwise, targets that are decided on at the same time would begin too many triages together.

use std::sync::Arc;

use wfe_core::Time;
use wfe_core::name::Uid;
use wfe_core::schedule::{Heard, Schedule};
use wfe_core::triage::{Analyst, Began, Begun, Gathered, HOUR};

use super::{Index, Key};

impl Index {
    /// Records when the latest triage of a schedule began, according to its status.
    pub(super) fn note_triage(&mut self, schedule: &Schedule) {
        if let Some(triage) = schedule.status.triage.as_ref().filter(|triage| triage.analyst == Analyst::Pipeline) {
            let namespace = self.share(&schedule.id.namespace);
            let known = self.triages.entry(schedule.id.uid.clone()).or_insert((namespace, triage.at));
            known.1 = triage.at.max(known.1);
        }
    }

    /// Records that a triage of a schedule is requested.
    pub(super) fn begin_triage(&mut self, key: &Key, schedule: &Uid, now: Time) {
        let begins = self.schedule_at(key, schedule).filter(|it| it.triage.analyst == Analyst::Pipeline);
        if let Some(namespace) = begins.map(|it| Arc::clone(&it.id.namespace)) {
            self.triages.insert(schedule.clone(), (namespace, now));
        }
    }

    /// Copies the times of other schedules' triages into a target that is about to be decided on.
    pub fn tell_of_triages(&mut self, key: &Key, now: Time) {
        let Some(entry) = self.targets.get_mut(key).filter(|entry| !entry.target.schedules.is_empty()) else { return };
        // Times older than an hour no longer count, so few are stored. The triage of a deleted schedule still counts
        // for an hour.
        self.triages.retain(|_, (_, at)| (now - *at).abs().to_std().is_ok_and(|between| between < HOUR));
        for schedule in entry.target.schedules.values_mut() {
            let id = &schedule.id;
            let others = self.triages.iter().filter(|(of, _)| **of != id.uid);
            let began = others.map(|(_, (namespace, at))| Began { at: *at, beside: *namespace == id.namespace });
            schedule.memory.others_begun = Begun::within_the_hour(began, now);
        }
    }

    /// Records the evidence that was gathered for a triage of a schedule.
    pub(super) fn gathered(&mut self, key: &Key, schedule: &Uid, gathered: Gathered) {
        if let Some(schedule) = self.schedule_at(key, schedule) {
            schedule.memory.triage_evidence = Some(Box::new(gathered));
        }
    }

    /// Records the verdict of the analyst of a schedule, or why there is none.
    pub(super) fn heard(&mut self, key: &Key, schedule: &Uid, heard: Heard) {
        if let Some(schedule) = self.schedule_at(key, schedule) {
            schedule.memory.analyst_answer = Some(Box::new(heard));
        }
    }

    fn schedule_at(&mut self, key: &Key, schedule: &Uid) -> Option<&mut Schedule> {
        self.targets.get_mut(key)?.target.schedules.get_mut(schedule)
    }
}
