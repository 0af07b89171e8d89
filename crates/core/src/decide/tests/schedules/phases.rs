//! No edit, hint or lost race changes the phase of a schedule. A slot that was lost in a race is planned again
//! (sections 12.2 and 12.4).

use std::sync::Arc;

use super::*;
use crate::schedule::Every;
use crate::schedule::cron::Cron;

/// An edit of the template.
const EDITED_TEMPLATE: Revision = Revision(8);
/// An edit of interval, cron, zone or spread.
const EDITED_PLAN: Revision = Revision(7 | 1 << 20);
/// The same spec under another uid.
const RESTORED: Revision = Revision(7 | 1 << 40);

fn cron(it: &mut Schedule, expression: &str) {
    plan(it).every = Every::Cron(Arc::new(Cron::parse(expression, "UTC").unwrap()));
}

/// A schedule with slots at 08:00 UTC, which is second 0.
fn nightly() -> Schedule {
    with(|it| cron(it, "0 8 * * *"))
}

fn next(schedule: &Schedule, second: i64) -> (i64, PlannedBy) {
    let planned = schedule.next_run(at(second)).unwrap().planned;
    ((planned.at - at(0)).num_seconds(), planned.why)
}

/// Applies all writes of the operator one after the other, and returns the slots of the children that it creates.
fn settle(schedule: &mut Schedule, second: i64) -> Vec<i64> {
    for _ in 0..10 {
        let actions = decided(schedule, second).actions;
        let mut wanted = None;
        for action in actions {
            match action {
                Action::Record(record) => wanted = Some(*record.status),
                Action::CreateChild { slot, .. } => return vec![(slot - at(0)).num_seconds()],
                _ => {}
            }
        }
        let Some(wanted) = wanted else { return vec![] };
        schedule.status = wanted;
    }
    panic!("it writes for ever: {schedule:?}");
}

/// Runs the slot that is due, and records its success after some seconds.
fn run(schedule: &mut Schedule, second: i64, takes: i64) -> Option<i64> {
    let slot = settle(schedule, second).first().copied()?;
    schedule.children = vec![ended_child(slot, Outcome::Completed, second + takes)];
    settle(schedule, second + takes);
    schedule.children.clear();
    Some(slot)
}

#[test]
fn an_edit_of_the_template_keeps_the_phase_and_begins_the_count_anew() {
    let edited = with(|it| {
        it.revision = EDITED_TEMPLATE;
        it.status.failure_count = 3;
        it.status.last_run = Some(last_run(0, Some((Outcome::Failed, 10))));
    });
    for (second, then) in [(50, 60), (60, 120), (100, 120), (100_010, 100_020)] {
        let status = said(&edited, second);
        assert_eq!((status.planned_from, status.failure_count), (Some(at(second)), 0));
        assert_eq!(status.next, Some(Planned { at: at(then), why: PlannedBy::Interval }), "edited at {second}");
        let seen = Schedule { status, ..edited.clone() };
        assert_eq!(decided(&seen, then).actions, [made(then, then + 3600)]);
    }
    // The template is edited before the first slot, again and again.
    let mut young = with(|it| (it.revision, it.status.last_run) = (EDITED_TEMPLATE, None));
    for edit in 0..20_u32 {
        young.revision = Revision(100 + u64::from(edit));
        assert_eq!(settle(&mut young, i64::from(edit)), [0; 0]);
        assert_eq!(next(&young, i64::from(edit)).0 % 60, 20, "the plan began 1,000 seconds before");
    }
}

#[test]
fn a_release_every_23_hours_does_not_keep_a_daily_schedule_from_running() {
    let mut schedule = with(|it| it.plan = Ok(every(86_400)));
    let mut slots = Vec::new();
    for hour in 0..29 * 23 {
        slots.extend(run(&mut schedule, hour * 3600, 10));
        if hour % 23 == 22 {
            schedule.revision = Revision(100 + u64::try_from(hour).unwrap());
            settle(&mut schedule, hour * 3600 + 1800);
        }
    }
    assert_eq!(slots, (1..=27).map(|day| day * 86_400).collect::<Vec<_>>());
}

#[test]
fn another_interval_zone_or_object_begins_anew() {
    for revision in [EDITED_PLAN, RESTORED] {
        let status = said(&with(|it| it.revision = revision), 50);
        assert_eq!((status.phase, status.next.unwrap().at), (None, at(110)));
    }
    let resumed = with(|it| it.status.held = held(HeldBy::Suspended));
    assert_eq!(said(&resumed, 50).next.unwrap().at, at(110));
}

#[test]
fn another_spread_runs_no_night_twice_and_loses_none() {
    let share = |spread| i64::try_from(crate::schedule::plan::offset(&schedule("s").id.uid, spread).as_secs()).unwrap();
    let hour = Duration::from_hours(1);
    let moved = share(hour);
    assert!(moved > 60, "the case needs a share that is not over at once: {moved}");
    // The schedule ran at 08:00. From 08:00:50 on it has a spread.
    for revision in [EDITED_PLAN, RESTORED] {
        let mut spread = nightly();
        (plan(&mut spread).spread, spread.revision) = (hour, revision);
        assert_eq!(settle(&mut spread, 50), [0; 0]);
        assert_eq!(next(&spread, 50).0, 86_400 + moved, "tonight has run");
        // A run that a person requests changes nothing.
        spread.hint = Some(hint(Wish::At(at(70)), 500).into());
        plan(&mut spread).min_interval = Duration::from_secs(1);
        assert_eq!(run(&mut spread, 70, 5), Some(70));
        spread.hint = None;
        assert_eq!(next(&spread, 80).0, 86_400 + moved);
        assert_eq!(run(&mut spread, 86_400 + moved, 5), Some(86_400 + moved));
        assert_eq!(spread.status.phase, None, "it has nothing to say any more");
    }
    // The schedule has not run tonight.
    let mut waits = nightly();
    waits.status.last_run = Some(last_run(-86_400, Some((Outcome::Completed, -86_390))));
    waits.status.planned_from = Some(at(-100_000));
    (plan(&mut waits).spread, waits.revision) = (hour, EDITED_PLAN);
    settle(&mut waits, 50);
    assert_eq!(next(&waits, 50).0, moved);
}

#[test]
fn a_run_that_a_person_asks_for_does_not_move_the_others() {
    let mut hourly = with(|it| {
        it.plan = Ok(every(3600));
        it.hint = Some(hint(Wish::At(at(1000)), 2000).into());
    });
    assert_eq!(run(&mut hourly, 1000, 10), Some(1000));
    assert_eq!(next(&hourly, 1010), (3600, PlannedBy::Interval));
    // A second run by a hint does not move the slots either. Afterwards the phase is again that of the plan.
    hourly.hint = Some(hint(Wish::At(at(1500)), 2000).into());
    assert_eq!(run(&mut hourly, 1500, 10), Some(1500));
    assert_eq!(next(&hourly, 1510).0, 3600);
    assert_eq!(run(&mut hourly, 3600, 10), Some(3600));
    assert_eq!((hourly.status.phase, next(&hourly, 3610).0), (None, 7200));
    // After a failure, slots are counted from its end.
    hourly.status.last_run = Some(last_run(3600, Some((Outcome::Failed, 3700))));
    hourly.status.failure_count = 1;
    assert_eq!(run(&mut hourly, 3700 + 7200, 10), Some(3700 + 7200));
    assert_eq!((hourly.status.phase, next(&hourly, 11_000).0), (None, 3700 + 7200 + 3600));
}

#[test]
fn a_hint_of_an_interval_catches_up_with_one_run() {
    let advised = || {
        with(|it| {
            it.plan = Ok(every(3600));
            it.hint = Some(hint(Wish::Interval(Duration::from_mins(5)), 86_400).into());
            plan(it).min_interval = Duration::from_mins(1);
        })
    };
    let mut late = advised();
    assert_eq!(next(&late, 3 * 3600 + 10), (3 * 3600, PlannedBy::CatchUp));
    assert_eq!(run(&mut late, 3 * 3600 + 10, 1), Some(3 * 3600));
    assert_eq!(late.status.last_missed, Some(Missed { slot: at(3 * 3600 - 300), count: 35 }));
    assert_eq!(settle(&mut late, 3 * 3600 + 20), [0; 0], "one run");
    // The schedule does not fall behind if a run takes longer than the interval.
    let mut long = advised();
    let mut now = 300;
    for _ in 0..20 {
        let slot = run(&mut long, now, 700).unwrap();
        assert!(now - slot < 300, "at {now} it runs the slot of {slot}");
        now += 700;
    }
    // If it is too late for one slot, the run is in time for the next.
    let mut strict = advised();
    plan(&mut strict).deadline = Some(Duration::from_secs(20));
    assert_eq!(next(&strict, 610), (600, PlannedBy::CatchUp));
    assert_eq!(next(&strict, 630), (900, PlannedBy::Hint));
}

#[test]
fn a_night_that_lost_a_race_runs_again_once() {
    for lost in [Outcome::Skipped, Outcome::TooLate] {
        let mut schedule = nightly();
        schedule.status.last_run = Some(last_run(0, None));
        schedule.children = vec![ended_child(0, lost, 1)];
        let status = said(&schedule, 1);
        assert_eq!(status.next, Some(Planned { at: at(1), why: PlannedBy::Again }), "{lost:?}");
        schedule.status = status;
        assert_eq!(decided(&schedule, 5).actions, [made(1, 5 + 3600)]);
        schedule.children.push(ended_child(1, lost, 10));
        settle(&mut schedule, 10);
        assert!(schedule.status.last_run.as_ref().unwrap().again);
        assert_eq!(next(&schedule, 10), (86_400, PlannedBy::Cron), "once");
        schedule.children.push(ended_child(86_400, lost, 86_401));
        settle(&mut schedule, 86_401);
        assert_eq!(next(&schedule, 86_401), (86_401, PlannedBy::Again), "of another night, once more");
    }
    let cancelled = with(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Cancelled, 1)))));
    assert_eq!(next(&cancelled, 5).1, PlannedBy::Interval, "a person wanted it so");
}

#[test]
fn what_makes_up_for_a_slot_comes_within_its_deadline_and_before_the_next() {
    let skipped = |change: fn(&mut Schedule)| {
        with(|it| {
            it.status.last_run = Some(last_run(0, Some((Outcome::Skipped, 5))));
            change(it);
        })
    };
    let free = skipped(|_| ());
    assert_eq!((next(&free, 59), next(&free, 60)), ((5, PlannedBy::Again), (60, PlannedBy::Interval)));
    let strict = skipped(|it| plan(it).deadline = Some(Duration::from_secs(20)));
    assert_eq!((next(&strict, 20), next(&strict, 21)), ((5, PlannedBy::Again), (60, PlannedBy::Interval)));
    assert_eq!(decided(&strict, 6).actions, [made(5, 20)], "it is to begin within the deadline of the slot");
    let hinted = skipped(|it| it.hint = Some(hint(Wish::At(at(90)), 500).into()));
    assert_eq!(next(&hinted, 20), (90, PlannedBy::Hint), "somebody has said when");
    // The second try does not move later slots.
    let mut again = skipped(|_| ());
    assert_eq!(run(&mut again, 30, 5), Some(5));
    assert_eq!(next(&again, 35), (60, PlannedBy::Interval));
}

#[test]
fn a_restore_keeps_what_a_triage_has_done_and_an_edit_ends_it() {
    use crate::triage::{Adjust, Analyst, State, Triage};
    let paused = |revision| {
        with(|it| {
            it.revision = revision;
            it.status.adjust = Some(Box::new(Adjust { timeout: Some(Duration::from_hours(2)), ..Adjust::default() }));
            it.status.triage = Some(Box::new(Triage {
                of: "wfs-s-1799999000".into(),
                at: at(-500),
                analyst: Analyst::BuiltIn,
                run: None,
                fingerprint: None,
                evidence: None,
                verdict: None,
                why: None,
                fix: None,
                refused: vec![],
                state: State::Paused,
            }));
        })
    };
    for (revision, keeps) in [(RESTORED, true), (EDITED_TEMPLATE, false), (EDITED_PLAN, false)] {
        let status = said(&paused(revision), 50);
        let kept = (status.paused_by().is_some(), status.adjust.is_some(), status.held.by().is_some());
        assert_eq!(kept, (keeps, keeps, keeps), "{revision:?}");
    }
}

#[test]
fn a_child_of_a_clock_that_was_ahead_is_kept_for_its_own_time_only() {
    let far = crate::schedule::Child { created: at(0), ..ended_child(100_000, Outcome::Completed, 20) };
    let ahead = with(|it| it.children = vec![far]);
    assert_eq!(ahead.keeps().into_values().collect::<Vec<_>>(), [crate::schedule::Retention::Own]);
}
