//! When triages by a workflow begin in the whole cluster (section 13.2), and what this process has learned for one.
//!
//! Each schedule's status says when its latest triage began, and by which analyst. One that was asked for counts from
//! then on, so that targets that are decided on at the same moment do not begin too many together.

use std::sync::Arc;

use wfe_core::Time;
use wfe_core::name::Uid;
use wfe_core::schedule::{Heard, Schedule};
use wfe_core::triage::{Analyst, Began, Begun, Gathered, HOUR};

use super::{Index, Key};

impl Index {
    /// Notes when the latest triage of a schedule began, as its status says.
    pub(super) fn note_triage(&mut self, schedule: &Schedule) {
        if let Some(triage) = schedule.status.triage.as_ref().filter(|triage| triage.analyst == Analyst::Pipeline) {
            let namespace = self.share(&schedule.id.namespace);
            let known = self.triages.entry(schedule.id.uid.clone()).or_insert((namespace, triage.at));
            known.1 = triage.at.max(known.1);
        }
    }

    /// Notes that a triage of a schedule is asked for.
    pub(super) fn begin_triage(&mut self, key: &Key, schedule: &Uid, now: Time) {
        let begins = self.schedule_at(key, schedule).filter(|it| it.triage.analyst == Analyst::Pipeline);
        if let Some(namespace) = begins.map(|it| Arc::clone(&it.id.namespace)) {
            self.triages.insert(schedule.clone(), (namespace, now));
        }
    }

    /// Tells the schedules of a target when triages of others began, before it is decided on.
    pub fn tell_of_triages(&mut self, key: &Key, now: Time) {
        let Some(entry) = self.targets.get_mut(key).filter(|entry| !entry.target.schedules.is_empty()) else { return };
        // What is older says nothing any more, so that few are left. That of a schedule which is gone counts as long.
        self.triages.retain(|_, (_, at)| (now - *at).abs().to_std().is_ok_and(|between| between < HOUR));
        for schedule in entry.target.schedules.values_mut() {
            let id = &schedule.id;
            let others = self.triages.iter().filter(|(of, _)| **of != id.uid);
            let began = others.map(|(_, (namespace, at))| Began { at: *at, beside: *namespace == id.namespace });
            schedule.memory.others_begun = Begun::within_the_hour(began, now);
        }
    }

    /// Records the evidence that was gathered for a triage of a schedule.
    pub fn gathered(&mut self, key: &Key, schedule: &Uid, gathered: Gathered) {
        if let Some(schedule) = self.schedule_at(key, schedule) {
            schedule.memory.gathered = Some(Box::new(gathered));
        }
    }

    /// Records what the analyst of a schedule has said.
    pub fn heard(&mut self, key: &Key, schedule: &Uid, heard: Heard) {
        if let Some(schedule) = self.schedule_at(key, schedule) {
            schedule.memory.heard = Some(Box::new(heard));
        }
    }

    fn schedule_at(&mut self, key: &Key, schedule: &Uid) -> Option<&mut Schedule> {
        self.targets.get_mut(key)?.target.schedules.get_mut(schedule)
    }
}
