//! Schedules: the table of section 12.6 row by row, the write of each row, and which outcomes count.

mod anew;
mod circuits;
mod counts;
mod fold;
mod holds;
mod outcomes;
mod phases;
mod triage;

use super::*;
use crate::action::Record;
use crate::schedule::{
    ChildState, Held, HeldBy, Hint, LastRun, Missed, Outcome, Plan, Planned, PlannedBy, Ready, RefusedChild, Revision,
    Schedule, ScheduleStatus, Wish, child_name,
};

/// Decides on a schedule whose target has nothing else.
fn decided(schedule: &Schedule, second: i64) -> Decision {
    decide(&scheduled(Target::default(), vec![schedule.clone()]), &Policy::default(), at(second))
}

/// Returns the row that decided on the first schedule.
fn row(decision: &Decision) -> &'static str {
    decision.schedules.first().and_then(|(_, judgement)| judgement.asked.last()).map_or("none", |(row, _)| *row)
}

/// Returns the one write of a decision, and fails if there is another action.
fn only_record(decision: &Decision) -> &Record {
    match &decision.actions[..] {
        [Action::Record(record)] => record,
        other => panic!("{other:?}"),
    }
}

/// Returns the status that a decision writes to a schedule.
fn said(schedule: &Schedule, second: i64) -> ScheduleStatus {
    (*only_record(&decided(schedule, second)).status).clone()
}

/// Returns the action that creates a child.
fn made(slot: i64, start_before: i64) -> Action {
    Action::CreateChild {
        schedule: schedule_id("s"),
        generation: 1,
        slot: at(slot),
        start_before: at(start_before),
        not_made: None,
    }
}

/// Returns a changed copy of a schedule at rest.
fn with(change: impl FnOnce(&mut Schedule)) -> Schedule {
    let mut schedule = schedule("s");
    change(&mut schedule);
    schedule
}

fn plan(schedule: &mut Schedule) -> &mut Plan {
    schedule.plan.as_mut().unwrap()
}

/// Returns a schedule whose last child is running, as its status shows.
fn at_work(slot: i64) -> Schedule {
    with(|it| {
        it.status.last_run = Some(last_run(slot, None));
        it.status.next = None;
        it.children = vec![child(slot)];
    })
}

fn held(reason: HeldBy) -> Held {
    Held::By { reason, message: "because".into() }
}

#[test]
fn the_first_row_that_matches_decides() {
    let blocks = || vec![broke("p", "other", 1, 0)];
    let table: Vec<(&str, Schedule, Vec<Execution>, i64, &str)> = vec![
        ("it is on its way out", with(|it| it.leaving = true), vec![], 60, "0 spec"),
        ("its spec is odd", with(|it| it.plan = Err("odd".into())), vec![], 60, "0 spec"),
        ("odd and changed", with(|it| (it.plan, it.revision) = (Err("odd".into()), Revision(8))), vec![], 60, "0 spec"),
        ("changed", with(|it| it.revision = Revision(8)), vec![], 60, "1 plan"),
        ("changed and suspended", with(|it| (it.revision, it.suspended) = (Revision(8), true)), vec![], 60, "1 plan"),
        (
            "changed, and a child ended",
            Schedule { revision: Revision(8), children: vec![ended_child(0, Outcome::Failed, 9)], ..at_work(0) },
            vec![],
            60,
            "1 plan",
        ),
        ("resumed", with(|it| it.status.held = held(HeldBy::Suspended)), vec![], 60, "1 plan"),
        (
            "a child ended",
            Schedule { children: vec![ended_child(0, Outcome::Failed, 9)], ..at_work(0) },
            vec![],
            60,
            "2 outcome",
        ),
        ("a child vanished", Schedule { children: vec![], ..at_work(0) }, vec![], 60, "2 outcome"),
        (
            "a child ended while it is suspended",
            Schedule { children: vec![ended_child(0, Outcome::Failed, 9)], suspended: true, ..at_work(0) },
            vec![],
            60,
            "2 outcome",
        ),
        ("suspended", with(|it| it.suspended = true), vec![], 60, "3 suspended"),
        ("suspended with a child at work", Schedule { suspended: true, ..at_work(0) }, vec![], 60, "3 suspended"),
        ("a child at work", at_work(0), vec![], 60, "5 child at work"),
        ("a child at work on a blocked target", at_work(0), blocks(), 60, "5 child at work"),
        ("its slot lies ahead", schedule("s"), vec![], 59, "6 slot ahead"),
        ("its slot lies ahead on a blocked target", schedule("s"), blocks(), 59, "6 slot ahead"),
        ("the target is blocked", schedule("s"), blocks(), 60, "7 target"),
        (
            "late on a blocked target",
            with(|it| plan(it).deadline = Some(Duration::from_secs(20))),
            blocks(),
            90,
            "7 target",
        ),
        ("late", with(|it| plan(it).deadline = Some(Duration::from_secs(20))), vec![], 90, "9 late"),
        ("due", schedule("s"), vec![], 60, "10 otherwise"),
    ];
    for (what, schedule, past, second, expected) in table {
        let view = scheduled(target(past, vec![]), vec![schedule]);
        let decision = decide(&view, &Policy::default(), at(second));
        assert_eq!(row(&decision), expected, "{what}");
        let found = crate::check::violations(&view, &Policy::default(), at(second), &decision);
        assert_eq!(found, [], "{what}");
    }
}

#[test]
fn a_due_slot_makes_a_child_whose_time_is_limited() {
    assert_eq!(decided(&schedule("s"), 60).actions, [made(60, 60 + 3600)]);
    assert_eq!(decided(&schedule("s"), 190).actions, [made(180, 190 + 3600)], "the latest of several");
    let strict = with(|it| plan(it).deadline = Some(Duration::from_secs(20)));
    assert_eq!(decided(&strict, 60).actions, [made(60, 80)]);
    assert_eq!(decided(&strict, 80).actions, [made(60, 80)], "at the deadline");
    let nanosecond = Duration::from_nanos(1);
    let view = scheduled(Target::default(), vec![schedule("s")]);
    let rounded = decide(&view, &Policy::default(), at(60) + nanosecond).actions;
    assert_eq!(rounded, [made(60, 61 + 3600)], "a status holds whole seconds");
}

#[test]
fn what_lies_ahead_is_waited_for() {
    let decision = decided(&schedule("s"), 50);
    assert_eq!((decision.actions, decision.wake), (vec![], Some(at(60))));
    let moved = with(|it| it.status.next = None);
    let status = said(&moved, 50);
    assert_eq!(status, schedule("s").status, "the status says when");
    let hinted = with(|it| it.hint = Some(hint(Wish::Interval(Duration::from_mins(10)), 100).into()));
    let decision = decided(&hinted, 50);
    assert_eq!(only_record(&decision).status.next, Some(Planned { at: at(600), why: PlannedBy::Hint }));
    assert_eq!(decision.wake, Some(at(100)), "the hint expires before its slot");
    assert_eq!(decided(&hinted, 100).actions, [made(60, 100 + 3600)]);
}

#[test]
fn of_several_schedules_the_earliest_slot_goes_first_then_the_smaller_uid() {
    let named = |uid: &str, slot: i64| Schedule {
        status: ScheduleStatus {
            last_run: Some(last_run(slot, Some((Outcome::Completed, slot)))),
            ..schedule(uid).status
        },
        ..schedule(uid)
    };
    let makes = |schedules: Vec<Schedule>, second| {
        let decision = decide(&scheduled(Target::default(), schedules), &Policy::default(), at(second));
        let made = decision.actions.iter().filter_map(|action| match action {
            Action::CreateChild { schedule, .. } => Some(schedule.uid.to_string()),
            _ => None,
        });
        let held = decision.schedules.iter().filter(|(_, it)| it.held == Some(HeldBy::ResourceBusy));
        (made.collect::<Vec<_>>(), held.map(|(id, _)| id.uid.to_string()).collect::<Vec<_>>())
    };
    let several = |uids: &[&str]| uids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(makes(vec![named("a", 1), named("b", 0)], 70), (several(&["b"]), several(&["a"])));
    assert_eq!(makes(vec![named("b", 0), named("a", 0), named("c", 0)], 70), (several(&["a"]), several(&["b", "c"])));
    assert_eq!(makes(vec![named("a", 20), named("b", 0)], 70), (several(&["b"]), vec![]), "the other lies ahead");
    let both = scheduled(Target::default(), vec![named("a", 0), named("b", 0)]);
    let decision = decide(&both, &Policy::default(), at(75));
    let said = decision.schedules[1].1.asked.last().unwrap();
    assert_eq!((said.0, said.1.contains("ops/wfs-a")), ("10 otherwise", true), "{}", said.1);
}

#[test]
fn nobody_is_decided_on_by_a_blind_operator_and_no_child_is_removed() {
    let old = made_by("s", -500, crate::schedule::Retention::Expendable, completed("p", "wf", 1, -400));
    let new = made_by("s", -300, crate::schedule::Retention::Own, completed("q", "wf", 2, -200));
    let mut view = scheduled(target(vec![old, new], vec![]), vec![schedule("s")]);
    view.schedules.get_mut(&Uid::new("s")).unwrap().status.next = None;
    let seen = decide(&view, &Policy { cooldown_period: Duration::ZERO, ..Policy::default() }, at(50));
    assert_eq!(seen.actions.len(), 1, "{:?}", seen.actions);
    view.blind_to_schedules = true;
    for second in [50, 60, 100_000] {
        let decision = decide(&view, &Policy::default(), at(second));
        assert_eq!((decision.actions, decision.schedules, decision.wake), (vec![], vec![], None));
    }
}

#[test]
fn a_create_whose_answer_was_lost_is_read_live_before_another_slot_is_made() {
    let not_made =
        |tried: i64, second| match &decided(&with(|it| it.memory.create_tried = Some(at(tried))), second).actions[..] {
            [Action::CreateChild { slot, not_made, .. }] => (*slot, *not_made),
            other => panic!("{other:?}"),
        };
    assert_eq!(not_made(60, 60), (at(60), None), "the same name again");
    assert_eq!(not_made(60, 130), (at(120), Some(at(60))));
    assert_eq!(not_made(0, 130), (at(120), None), "its status says what came of it");
    assert_eq!(not_made(-2000, 130), (at(120), None), "of a plan before");
}

#[test]
fn a_spec_that_cannot_be_used_is_said_once() {
    let odd = with(|it| {
        it.plan = Err("odd".into());
        it.status.held = held(HeldBy::Paused);
    });
    let status = said(&odd, 60);
    assert_eq!(status.ready, Ready::InvalidSpec("odd".into()));
    assert_eq!((status.next, status.held.clone(), status.revision), (None, Held::Released, None));
    assert_eq!(status.last_run, odd.status.last_run);
    let told = Schedule { status, ..odd };
    assert_eq!(decided(&told, 70), decided(&told, 60));
    assert_eq!(decided(&told, 70).actions, []);
    let other = Schedule { plan: Err("still odd".into()), ..told.clone() };
    assert_eq!(said(&other, 70).ready, Ready::InvalidSpec("still odd".into()));
    let mended = Schedule { plan: Ok(every(60)), ..told };
    assert_eq!(row(&decided(&mended, 1000)), "1 plan");
    assert_eq!(said(&mended, 1000).next, Some(Planned { at: at(1060), why: PlannedBy::Interval }));
}

#[test]
fn what_is_on_its_way_out_says_so_once() {
    let changed = |it: &mut Schedule| (it.leaving, it.revision, it.generation) = (true, Revision(8), 2);
    for leaving in
        [with(|it| it.leaving = true), with(changed), Schedule { leaving: true, children: vec![], ..at_work(0) }]
    {
        let status = said(&leaving, 60);
        let expected = ScheduleStatus {
            observed_generation: Some(leaving.generation),
            ready: Ready::Deleting,
            next: None,
            ..leaving.status.clone()
        };
        assert_eq!(status, expected);
        assert_eq!(decided(&Schedule { status, ..leaving }, 1000).actions, []);
    }
}

#[test]
fn a_generation_is_seen_and_a_hint_that_does_not_count_is_told_once_a_generation() {
    let told = |hint: Option<Box<Hint>>, observed| {
        let decision = decided(
            &with(|it| {
                it.hint = hint;
                it.generation = 2;
                it.status.observed_generation = observed;
            }),
            50,
        );
        let told = decision.actions.iter().find_map(|action| match action {
            Action::Tell(Announce::HintIgnored { schedule, generation: 2, why }) if schedule.uid == Uid::new("s") => {
                Some(*why)
            }
            _ => None,
        });
        let seen = decision
            .actions
            .iter()
            .any(|action| matches!(action, Action::Record(record) if record.status.observed_generation == Some(2)));
        (told.map(|why| why.contains("expire")), seen)
    };
    let expired = || Some(hint(Wish::Interval(Duration::from_secs(30)), 50).into());
    let spent = || Some(hint(Wish::At(at(0)), 500).into());
    let live = || Some(hint(Wish::At(at(60)), 500).into());
    assert_eq!(told(expired(), Some(1)), (Some(true), true));
    assert_eq!(told(expired(), Some(2)), (None, false));
    assert_eq!(told(spent(), Some(1)), (Some(false), true));
    assert_eq!(told(live(), Some(1)), (None, true));
    assert_eq!(told(None, Some(1)), (None, true));
}

#[test]
fn the_name_of_a_child_says_its_schedule_and_its_slot() {
    assert_eq!(child_name("nightly", at(0)), "nightly-1800000000");
}
