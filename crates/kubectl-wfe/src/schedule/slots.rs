//! The coming slots of a schedule, as its plan has them.

use std::iter::from_fn;

use wfe_core::Time;
use wfe_core::schedule::plan::phase_after;
use wfe_core::schedule::{Every, LastRun, Outcome, Planned, Schedule};

/// Predicts the slots of a schedule, without end unless the plan has one. The first slot is the planned one. Each
/// further slot follows a successful run.
pub(super) fn slots(schedule: &Schedule, now: Time) -> impl Iterator<Item = Planned> {
    let mut schedule = schedule.clone();
    let mut now = now;
    from_fn(move || {
        let next = schedule.next_run(now)?;
        // A slot that is too late does not run; the next one does.
        let planned = next.late.unwrap_or(Some(next.planned))?;
        let slot = planned.at;
        let past = schedule.past(now);
        let phase = schedule.plan_by(&schedule.status).and_then(|plan| phase_after(&plan, past, slot));
        schedule.status.phase = phase;
        now = now.max(slot);
        schedule.status.planned_from.get_or_insert(now);
        schedule.status.failure_count = 0;
        schedule.status.last_run = Some(LastRun {
            again: false,
            slot,
            started_at: Some(slot),
            ended_at: Some(slot),
            outcome: Some(Outcome::Completed),
            reason: None,
            fingerprint: None,
            message: None,
        });
        Some(planned)
    })
}

/// Returns a time in the zone of the cron expression of a schedule.
pub(super) fn zone(schedule: &Schedule, time: Time) -> Option<String> {
    match &schedule.plan.as_ref().ok()?.every {
        Every::Cron(cron) => Some(cron.in_zone(time)),
        Every::Interval(_) => None,
    }
}
