//! Correct decisions on schedules, made wrong.

use super::*;
use crate::action::{Probe, Record};
use crate::circuit::{Asks, Closing, OpenCircuit};
use crate::fingerprint::Fingerprint;
use crate::name::Uid;
use crate::schedule::{
    Child, Held, HeldBy, LastRun, Missed, Outcome, Planned, PlannedBy, Retention, Revision, Schedule, ScheduleStatus,
};
use std::time::Duration;

/// The failure of the schedules that a circuit holds.
const PULL: &str = "ImagePullBackOff/registry/registry.example";

fn fingerprint() -> Fingerprint {
    Fingerprint::parse(PULL).unwrap()
}

fn said(decision: &mut Decision, change: fn(&mut ScheduleStatus)) {
    for action in &mut decision.actions {
        if let Action::Record(record) = action {
            change(&mut record.status);
        }
    }
}

fn makes(slot: i64) -> Action {
    let (schedule, generation, not_made) = (schedule_id("s"), 1, None);
    Action::CreateChild { schedule, generation, slot: at(slot), start_before: at(NOW + 3600), not_made }
}

fn makes_instead(decision: &mut Decision) {
    decision.actions = vec![makes(NOW)];
}

fn change_child(decision: &mut Decision, change: fn(&mut i64, &mut Time, &mut Time, &mut Option<Time>)) {
    for action in &mut decision.actions {
        if let Action::CreateChild { generation, slot, start_before, not_made, .. } = action {
            change(generation, slot, start_before, not_made);
        }
    }
}

/// Mistakes in making children. The schedule is due at second 50.
fn blunders_of_making() -> Vec<(&'static str, Target, Mistake)> {
    let with = |change: fn(&mut Schedule)| {
        let mut due = schedule("s");
        due.status.last_run = Some(last_run(-10, Some((Outcome::Completed, -5))));
        change(&mut due);
        scheduled(target(vec![], vec![]), vec![due])
    };
    let due = || with(|_| {});
    // A schedule whose last run failed with the circuit's fingerprint.
    let failed = || {
        with(|it| {
            let fingerprint = Some(fingerprint());
            it.status.last_run = Some(LastRun { fingerprint, ..last_run(-10, Some((Outcome::Failed, -5))) });
        })
    };
    let open = |turn| {
        let circuit = OpenCircuit { next_probe_at: at(NOW), ..open_circuit(PULL, 0, NOW + 600, turn) };
        Target { circuits: circuits(vec![circuit], vec![]), ..failed() }
    };
    let beside = |executions| Target { executions: target(executions, vec![]).executions, ..due() };
    let ahead = || with(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Completed, 5)))));
    vec![
        ("makes it twice", due(), |it| it.actions.extend(it.actions.clone())),
        ("makes it of another generation", due(), |it| change_child(it, |generation, _, _, _| *generation += 1)),
        ("makes an earlier slot", due(), |it| change_child(it, |_, slot, _, _| *slot -= Duration::from_secs(1))),
        ("makes a later slot", due(), |it| change_child(it, |_, slot, _, _| *slot += Duration::from_secs(1))),
        ("lets it start later", due(), |it| change_child(it, |_, _, before, _| *before += Duration::from_secs(1))),
        ("does not judge it", due(), |it| it.schedules.clear()),
        ("makes one of a spec that cannot be used", with(|it| it.plan = Err("odd".into())), makes_instead),
        ("makes one of what is on its way out", with(|it| it.leaving = true), makes_instead),
        ("makes one of a suspended schedule", with(|it| it.suspended = true), makes_instead),
        ("makes one of an edited schedule", with(|it| it.revision = Revision(8)), makes_instead),
        ("makes one beside another", with(|it| it.children = vec![child(-60)]), makes_instead),
        ("makes one while the last is open", with(|it| it.status.last_run = Some(last_run(-10, None))), makes_instead),
        (
            "makes one before it records another",
            with(|it| it.children = vec![ended_child(20, Outcome::Failed, 30)]),
            makes_instead,
        ),
        ("makes one while a backoff lasts", with(|it| it.status.failure_count = 1), makes_instead),
        ("makes one before its slot", ahead(), makes_instead),
        ("sleeps over its slot", ahead(), |it| it.wake = Some(at(61))),
        ("makes one that is paused", with(|it| it.paused = Some(pause("x"))), makes_instead),
        ("makes one on a blocked target", beside(vec![broke("p", "x", 1, 0)]), makes_instead),
        ("makes one beside one that asks", beside(vec![asks("a", "w")]), |it| it.actions.push(makes(NOW))),
        ("makes one in a cooldown", beside(vec![completed("p", "wf", 1, 0)]), makes_instead),
        (
            "makes one after its deadline",
            with(|it| {
                it.plan.as_mut().unwrap().deadline = Some(Duration::from_secs(10));
                it.status.last_run = Some(last_run(-25, Some((Outcome::Completed, -20))));
            }),
            |it| it.actions = vec![makes(35)],
        ),
        ("makes one while a circuit is open", open(None), makes_instead),
        ("makes one with the turn of another", open(Some("t")), makes_instead),
        ("waits for a turn that it cannot use", with(|it| it.paused = Some(pause("x"))), |it| {
            it.schedules[0].1.probe = Probe::Awaits(Asks { circuit: fingerprint(), failures: 0 });
        }),
        (
            "makes all at once after a closing",
            Target { circuits: circuits(vec![], vec![closed_circuit(PULL, NOW, Closing::Probe)]), ..failed() },
            makes_instead,
        ),
        ("makes one blindly", Target { blind_to_schedules: true, ..due() }, makes_instead),
        (
            "forgets a create in doubt",
            with(|it| {
                it.memory.create_tried = Some(at(45));
            }),
            |it| change_child(it, |_, _, _, not_made| *not_made = None),
        ),
    ]
}

/// Mistakes in what a status reports.
fn blunders_of_saying() -> Vec<(&'static str, Target, Mistake)> {
    let with = |change: fn(&mut Schedule)| {
        let mut schedule = schedule("s");
        change(&mut schedule);
        scheduled(target(vec![], vec![]), vec![schedule])
    };
    let ended = || {
        with(|it| {
            it.status.last_run = Some(last_run(0, None));
            it.status.failure_count = 2;
            it.children = vec![ended_child(0, Outcome::Failed, 20)];
        })
    };
    let vanished = || with(|it| it.status.last_run = Some(last_run(0, None)));
    let edited = || with(|it| it.revision = Revision(8));
    let two =
        || with(|it| it.children = vec![ended_child(20, Outcome::Failed, 30), ended_child(40, Outcome::Completed, 45)]);
    let odd = || with(|it| it.plan = Err("odd".into()));
    vec![
        ("says nothing new", with(|_| {}), |it| it.actions.push(same())),
        ("counts twice", ended(), |it| said(it, |status| status.failure_count += 1)),
        ("does not count", ended(), |it| said(it, |status| status.failure_count = 2)),
        ("says another outcome", ended(), |it| said(it, |status| last(status).outcome = Some(Outcome::Completed))),
        ("ends it later than now", ended(), |it| said(it, |status| last(status).ended_at = Some(at(NOW + 1)))),
        ("forgets when it began", ended(), |it| said(it, |status| status.planned_from = None)),
        ("calls it a success", ended(), |it| said(it, |status| status.last_success = Some(at(20)))),
        ("forgets the last run", ended(), |it| said(it, |status| status.last_run = None)),
        ("says an earlier slot is next", ended(), |it| {
            said(it, |status| {
                status.next = status.next.map(|next| Planned { at: at(0), ..next });
            });
        }),
        ("missed what is used", ended(), |it| {
            said(it, |status| {
                status.last_missed = Some(Missed { slot: at(0), count: 1 });
            });
        }),
        ("does not read that it vanished", vanished(), |it| {
            if let Some(Action::Record(record)) = it.actions.first_mut() {
                record.gone = None;
            }
        }),
        ("counts what vanished", vanished(), |it| said(it, |status| status.failure_count += 1)),
        ("begins anew and counts on", edited(), |it| said(it, |status| status.failure_count = 1)),
        ("begins anew from an earlier time", edited(), |it| said(it, |status| status.planned_from = Some(at(NOW - 1)))),
        ("begins anew for nothing", ended(), |it| {
            said(it, |status| {
                (status.planned_from, status.failure_count) = (Some(at(NOW)), 0);
            });
        }),
        ("records the later first", two(), |it| said(it, |status| last(status).slot = at(40))),
        ("says what is next of an odd spec", odd(), |it| {
            said(it, |status| {
                status.next = Some(Planned { at: at(61), why: PlannedBy::Interval });
            });
        }),
        ("counts of an odd spec", odd(), |it| said(it, |status| status.failure_count = 1)),
        ("is held without a reason", ended(), |it| {
            said(it, |status| {
                status.held = Held::By { reason: HeldBy::Paused, message: "no".into() };
            });
        }),
        ("is suspended by nobody", ended(), |it| {
            said(it, |status| {
                status.held = Held::By { reason: HeldBy::Suspended, message: "no".into() };
            });
        }),
        ("does not say which generation it saw", ended(), |it| said(it, |status| status.observed_generation = None)),
        ("writes blindly", Target { blind_to_schedules: true, ..ended() }, |it| it.actions.push(same())),
        ("removes a child that is not recorded", needed(), |it| {
            it.actions = vec![Action::Remove { execution: id("p"), version: Version::new("v") }];
        }),
        ("removes a child blindly", Target { blind_to_schedules: true, ..expendable() }, |it| {
            it.actions = vec![Action::Remove { execution: id("p"), version: Version::new("v") }];
        }),
    ]
}

fn last(status: &mut ScheduleStatus) -> &mut LastRun {
    status.last_run.as_mut().unwrap()
}

fn same() -> Action {
    let schedule = schedule("s");
    Action::Record(Record {
        suppressed: None,
        schedule: schedule.id,
        version: schedule.version,
        gone: None,
        status: Box::new(schedule.status),
    })
}

/// Two successes of schedule `s`. `keep` is whether the schedule still needs the first one.
fn kept(keep: Retention) -> Target {
    let old = completed("p", "x", 1, -9000);
    let old = Execution { ttl: Some(Duration::ZERO), ..made_by("s", 20, keep, old) };
    target(vec![old, completed("q", "x", 2, -8000)], vec![])
}

fn expendable() -> Target {
    kept(Retention::Expendable)
}

fn needed() -> Target {
    scheduled(
        kept(Retention::Own),
        vec![{
            let mut schedule = schedule("s");
            schedule.children = vec![Child { uid: Uid::new("p"), ..ended_child(20, Outcome::Completed, 30) }];
            schedule
        }],
    )
}

#[test]
fn a_child_of_a_clock_that_was_ahead_may_be_removed_and_no_other_that_is_not_recorded() {
    for (slot, is_right) in [(61, true), (60, false)] {
        let old = Execution { ttl: Some(Duration::ZERO), created: at(0), ..completed("p", "x", 1, 10) };
        let executions = vec![made_by("s", slot, Retention::Own, old), completed("q", "x", 2, 20)];
        let target = scheduled(target(executions, vec![]), vec![schedule("s")]);
        let removes = Action::Remove { execution: id("p"), version: Version::new("v") };
        let decision = Decision { actions: vec![removes], ..decide(&target, &Policy::default(), at(NOW)) };
        let found = violations(&target, &Policy::default(), at(NOW), &decision);
        assert_eq!(!found.iter().any(|it| it.section == "3.1"), is_right, "slot {slot}: {found:?}");
    }
}

#[test]
fn a_decision_on_a_schedule_that_is_wrong_is_found() {
    for (blunder, target, make) in blunders_of_making().into_iter().chain(blunders_of_saying()) {
        let mut decision = decide(&target, &Policy::default(), at(NOW));
        assert_eq!(violations(&target, &Policy::default(), at(NOW), &decision), [], "{blunder}");
        let right = decision.clone();
        make(&mut decision);
        assert_ne!(right, decision, "{blunder} changes nothing");
        assert_ne!(violations(&target, &Policy::default(), at(NOW), &decision), [], "{blunder}: {decision:?}");
    }
}
