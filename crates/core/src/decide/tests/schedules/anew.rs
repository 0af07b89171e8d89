//! Row 1: the plan begins anew, and no earlier slot runs.

use super::*;

fn fails(count: u32) -> Schedule {
    with(|it| {
        it.status.failure_count = count;
        it.status.last_run = Some(last_run(0, Some((Outcome::Failed, 10))));
        it.status.next = Some(Planned { at: at(130), why: PlannedBy::Backoff });
    })
}

/// The revision of a schedule whose interval was edited. A revision that differs in another part is an edit of the
/// template.
const EDITED_PLAN: Revision = Revision(7 | 1 << 20);

#[test]
fn an_edit_ends_a_backoff_and_runs_nothing_of_the_past() {
    let edited = Schedule { revision: EDITED_PLAN, ..fails(3) };
    for second in [50, 60, 100_000] {
        let status = said(&edited, second);
        let expected = ScheduleStatus {
            revision: Some(EDITED_PLAN),
            planned_from: Some(at(second)),
            failure_count: 0,
            next: Some(Planned { at: at(second + 60), why: PlannedBy::Interval }),
            ..edited.status.clone()
        };
        assert_eq!(status, expected);
        let seen = Schedule { status, ..edited.clone() };
        assert_eq!(decided(&seen, second).actions, [], "in one write");
        assert_eq!(decided(&seen, second + 60).actions, [made(second + 60, second + 3660)]);
    }
}

#[test]
fn it_begins_in_whole_seconds_and_never_early() {
    let view = scheduled(Target::default(), vec![with(|it| it.revision = Revision(8))]);
    let decision = decide(&view, &Policy::default(), at(50) + Duration::from_nanos(1));
    assert_eq!(only_record(&decision).status.planned_from, Some(at(51)));
}

#[test]
fn what_is_new_restored_or_lost_its_status_begins_now() {
    let blank = with(|it| it.status = ScheduleStatus::default());
    let status = said(&blank, 50);
    let expected = ScheduleStatus {
        observed_generation: Some(1),
        revision: Some(Revision(7)),
        planned_from: Some(at(50)),
        next: Some(Planned { at: at(110), why: PlannedBy::Interval }),
        ready: Ready::Yes,
        ..ScheduleStatus::default()
    };
    assert_eq!(status, expected);
    let partly = with(|it| it.status.planned_from = None);
    assert_eq!(said(&partly, 50).planned_from, Some(at(50)));
    // Children of an earlier plan are not counted again.
    let with_children = Schedule { children: vec![ended_child(0, Outcome::Failed, 10)], ..blank };
    let status = said(&with_children, 50);
    assert_eq!((status.failure_count, status.last_run.clone()), (0, None));
    assert_eq!(decided(&Schedule { status, ..with_children }, 50).actions, []);
}

#[test]
fn slots_of_a_suspension_are_lost_when_it_is_resumed() {
    let resumed = Schedule {
        status: ScheduleStatus { held: held(HeldBy::Suspended), next: None, ..fails(3).status },
        ..fails(3)
    };
    let status = said(&resumed, 1000);
    assert_eq!((status.planned_from, status.failure_count, status.held.clone()), (Some(at(1000)), 0, Held::Released));
    assert_eq!(status.next, Some(Planned { at: at(1060), why: PlannedBy::Interval }));
    assert_eq!(decided(&Schedule { status, ..resumed }, 1000).actions, []);
    for other in HeldBy::ALL.into_iter().filter(|by| *by != HeldBy::Suspended) {
        let held = with(|it| it.status.held = held(other));
        assert_ne!(row(&decided(&held, 50)), "1 plan", "{other:?}");
    }
}

#[test]
fn a_suspended_schedule_that_is_edited_stays_suspended() {
    let edited = with(|it| {
        (it.revision, it.suspended) = (Revision(8), true);
        it.status.held = held(HeldBy::Suspended);
        it.status.next = None;
    });
    let status = said(&edited, 50);
    assert_eq!((status.held.by(), status.next), (Some(HeldBy::Suspended), None));
    let seen = Schedule { status, ..edited };
    assert_eq!(row(&decided(&seen, 50)), "3 suspended");
}

#[test]
fn what_lies_more_than_a_minute_ahead_was_said_by_a_wrong_clock() {
    type Change = fn(&mut Schedule, i64);
    let table: [(&str, Change); 3] = [
        ("plannedFrom", |it, second| {
            it.status.planned_from = Some(at(second));
            it.status.last_run = None;
        }),
        ("lastRun.slot", |it, second| it.status.last_run = Some(last_run(second, Some((Outcome::Failed, 20))))),
        ("lastRun.endedAt", |it, second| it.status.last_run = Some(last_run(0, Some((Outcome::Failed, second))))),
    ];
    for (what, change) in table {
        let ahead = |second| with(|it| change(it, second));
        assert_ne!(row(&decided(&ahead(50 + 60), 50)), "1 plan", "{what}");
        for far in [50 + 61, 250_000_000_000] {
            let status = said(&ahead(far), 50);
            assert_eq!((status.planned_from, status.failure_count), (Some(at(50)), 0), "{what}");
            let last = status.last_run.clone();
            assert!(last.is_none_or(|last| last.slot <= at(50) && last.ended_at <= Some(at(50))), "{what}");
            assert_ne!(row(&decided(&Schedule { status, ..ahead(far) }, 50)), "1 plan", "{what}: once");
        }
    }
}

/// A slot that was cut to now does not match a child's name. An open run would then look like one whose child was
/// deleted.
#[test]
fn an_open_run_whose_slot_lies_ahead_is_forgotten_and_its_child_is_found_again() {
    // The plan begins anew after an edit, a few seconds after a clock was a little ahead, or because a clock was far
    // ahead.
    for (slot, revision) in [(51, Revision(8)), (55, Revision(8)), (50 + 61, Revision(7)), (50 + 61, Revision(8))] {
        let ahead = Schedule { revision, ..at_work(slot) };
        let status = said(&ahead, 50);
        assert_eq!((status.planned_from, &status.last_run), (Some(at(50)), &None), "slot {slot}");
        let seen = Schedule { status, ..ahead.clone() };
        let now = slot.max(50 + 61) - 60;
        let status = said(&seen, now);
        assert_eq!(status.last_run, Some(last_run(slot, None)), "slot {slot}: named by its own slot");
        let ended = Schedule { status, children: vec![ended_child(slot, Outcome::Failed, now)], ..seen.clone() };
        let status = said(&ended, now + 1);
        assert_eq!((status.failure_count, status.last_run.as_ref().map(|it| it.slot)), (1, Some(at(slot))));
        // A deleted child is not recorded as deleted either.
        let deleted = Schedule { children: vec![], ..seen };
        assert_ne!(row(&decided(&deleted, now)), "2 outcome", "slot {slot}");
    }
    let not_ahead = Schedule { revision: Revision(8), ..at_work(50) };
    assert_eq!(said(&not_ahead, 50).last_run, not_ahead.status.last_run);
}

#[test]
fn a_child_whose_slot_lies_far_ahead_is_only_waited_for() {
    let far = 1000;
    let ahead = with(|it| {
        it.status.next = None;
        it.children = vec![child(far)];
    });
    let decision = decided(&ahead, 500);
    assert_eq!((row(&decision), decision.actions, decision.wake), ("5 child at work", vec![], Some(at(far - 60))));
    assert_eq!(said(&ahead, far - 60).last_run.clone().map(|run| run.slot), Some(at(far)), "when its slot comes");
    let over = Schedule { children: vec![ended_child(far, Outcome::Failed, 20)], ..ahead };
    let decision = decided(&over, 500);
    assert_eq!(decision.actions, [made(480, 500 + 3600)], "it is not recorded");
    assert_eq!(row(&decided(&over, far - 60)), "2 outcome", "when its slot comes, it is");
}

#[test]
fn a_child_at_work_is_waited_for_when_the_plan_begins_anew_and_does_not_count() {
    let edited = Schedule { revision: EDITED_PLAN, ..at_work(0) };
    let status = said(&edited, 50);
    assert_eq!((status.planned_from, status.next), (Some(at(50)), None), "nothing is planned while it is at work");
    assert_eq!(status.last_run, edited.status.last_run);
    let seen = Schedule { status, ..edited };
    let decision = decided(&seen, 50);
    assert_eq!((row(&decision), decision.actions), ("5 child at work", vec![]));
    let ended = Schedule { children: vec![ended_child(0, Outcome::Failed, 60)], ..seen };
    let status = said(&ended, 61);
    assert_eq!((status.failure_count, status.last_run.clone().unwrap().outcome), (0, Some(Outcome::Failed)));
    assert_eq!(status.next, Some(Planned { at: at(110), why: PlannedBy::Interval }));
    assert_eq!(decided(&Schedule { status, ..ended }, 61).actions, []);
}

#[test]
fn a_child_of_an_earlier_plan_that_no_status_names_is_waited_for_and_then_forgotten() {
    let anew = |state: Vec<crate::schedule::Child>| {
        with(|it| {
            it.status.planned_from = Some(at(45));
            it.status.next = None;
            it.children = state;
        })
    };
    let decision = decided(&anew(vec![child(30)]), 50);
    assert_eq!((row(&decision), decision.actions), ("5 child at work", vec![]));
    let status = said(&anew(vec![ended_child(30, Outcome::Failed, 49)]), 50);
    assert_eq!((status.failure_count, status.last_run), (0, schedule("s").status.last_run));
    assert_eq!(status.next, Some(Planned { at: at(105), why: PlannedBy::Interval }));
}

#[test]
fn a_hold_of_a_slot_ends_when_the_plan_begins_anew() {
    let edited = with(|it| {
        it.revision = EDITED_PLAN;
        it.status.held = held(HeldBy::ExhaustedRetries);
        it.status.next = None;
    });
    let status = said(&edited, 100);
    assert_eq!((status.held.clone(), status.next.map(|next| next.at)), (Held::Released, Some(at(160))));
    assert_eq!(decided(&Schedule { status, ..edited }, 100).actions, [], "in one write");
}

#[test]
fn a_hint_suspension_history_and_clamps_begin_nothing_anew() {
    let changes: [fn(&mut Schedule); 4] = [
        |it| it.hint = Some(hint(Wish::At(at(60)), 500).into()),
        |it| it.history.failed = 9,
        |it| plan(it).min_interval = Duration::from_secs(1),
        |it| it.suspended = true,
    ];
    for change in changes {
        let other = with(|it| {
            it.generation = 2;
            change(it);
        });
        assert_ne!(row(&decided(&other, 50)), "1 plan");
    }
}
