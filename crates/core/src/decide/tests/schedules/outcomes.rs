//! Rows 2 and 5: the outcome of a child, and a running child.

use super::*;
use crate::fingerprint::Fingerprint;
use crate::schedule::{Child, SaidOfChild};

/// A schedule whose status shows its last child as running after some failures. `children` are those that exist.
fn open(failures: u32, children: Vec<Child>) -> Schedule {
    let mut schedule = Schedule { children, ..at_work(60) };
    schedule.status.failure_count = failures;
    schedule
}

#[test]
fn outcome_count_and_next_are_one_write() {
    let failed = open(1, vec![ended_child(60, Outcome::Failed, 70)]);
    let status = said(&failed, 75);
    let run = LastRun {
        slot: at(60),
        again: false,
        started_at: Some(at(60)),
        ended_at: Some(at(70)),
        outcome: Some(Outcome::Failed),
        reason: Some("Unknown".into()),
        fingerprint: None,
        message: Some("WorkflowExecution ops/wfs-s-1800000060: Unknown".into()),
    };
    let expected = ScheduleStatus {
        failure_count: 2,
        last_run: Some(run),
        next: Some(Planned { at: at(70 + 240), why: PlannedBy::Backoff }),
        ..failed.status.clone()
    };
    assert_eq!(status, expected);
    // The message contains the words of the child's status, if they are known.
    let mut told = failed.clone();
    let words = |slot: i64, words: &str| Some(Box::new(SaidOfChild { slot: at(slot), words: words.into() }));
    let message = |it: &Schedule| said(it, 75).last_run.unwrap().message.unwrap();
    told.memory.child_message = words(60, "task clean failed: exit code 1");
    assert_eq!(*message(&told), *"WorkflowExecution ops/wfs-s-1800000060: Unknown: task clean failed: exit code 1");
    told.memory.child_message = words(60, &"é".repeat(2000));
    assert_eq!(message(&told).chars().count(), 1024, "as much as the CRD takes");
    told.memory.child_message = words(0, "of another run");
    assert_eq!(said(&told, 75), status);
    assert_eq!(only_record(&decided(&failed, 75)).gone, None);
    assert_eq!(decided(&Schedule { status, ..failed }, 75).actions, []);
}

#[test]
fn each_outcome_counts_as_section_12_6_says() {
    let most = crate::schedule::MOST_FAILURES;
    let table = [
        (Outcome::Completed, [0, 0, 0]),
        (Outcome::Failed, [1, 6, most]),
        (Outcome::Skipped, [0, 5, most]),
        (Outcome::Cancelled, [0, 5, most]),
        (Outcome::TooLate, [0, 5, most]),
        (Outcome::Deleted, [0, 5, most]),
        (Outcome::Refused, [1, 6, most]),
    ];
    assert_eq!(table.map(|(outcome, _)| outcome), Outcome::ALL);
    for (outcome, expected) in table {
        for (before, after) in [0, 5, most].into_iter().zip(expected) {
            let ended = open(before, vec![ended_child(60, outcome, 70)]);
            let status = said(&ended, 75);
            assert_eq!(status.failure_count, after, "{outcome:?} after {before}");
            assert_eq!(status.last_run.unwrap().outcome, Some(outcome));
            let success = if outcome == Outcome::Completed { 70 } else { 10 };
            assert_eq!(status.last_success, Some(at(success)), "{outcome:?}");
        }
    }
}

#[test]
fn a_child_that_no_status_named_before_is_recorded_too() {
    let quick = with(|it| {
        it.children = vec![Child { created: at(63), ..ended_child(60, Outcome::Completed, 70) }];
        it.status.held = held(HeldBy::ResourceBusy);
    });
    let status = said(&quick, 75);
    let run = status.last_run.clone().unwrap();
    assert_eq!((run.slot, run.started_at, run.outcome), (at(60), Some(at(63)), Some(Outcome::Completed)));
    assert_eq!(status.next, Some(Planned { at: at(120), why: PlannedBy::Interval }));
    assert_eq!(status.held, Held::Released, "nothing is next and held");
    assert_eq!(decided(&Schedule { status, ..quick }, 75).actions, [], "in one write");
}

#[test]
fn what_was_missed_is_said_with_the_next_write() {
    let missed = Some(Missed { slot: at(120), count: 2 });
    let named = |child: Child| said(&with(|it| it.children = vec![child]), 200);
    assert_eq!(decided(&schedule("s"), 190).actions, [made(180, 190 + 3600)]);
    assert_eq!(named(child(180)).last_missed, missed);
    assert_eq!(named(ended_child(180, Outcome::Completed, 195)).last_missed, missed, "it ended before it was named");
    let refused = with(|it| it.memory.create_refused = Some(refusal(180).into()));
    assert_eq!(said(&refused, 200).last_missed, missed);
    let old = Some(Missed { slot: at(-500), count: 3 });
    let ended = |slot| {
        let mut it = Schedule { children: vec![ended_child(slot, Outcome::Completed, 195)], ..at_work(slot) };
        it.status.last_missed = old;
        said(&it, 200).last_missed
    };
    assert_eq!(ended(180), old, "it was said when the child was named");
    assert_eq!(named(child(60)).last_missed, None, "nothing was missed");
}

#[test]
fn a_failure_counts_and_is_named_also_while_others_fail_alike() {
    let fingerprint = Fingerprint::parse("ImagePullBackOff/registry/registry.example");
    for (outcome, failures, expected) in
        [(Outcome::Failed, 0, 1), (Outcome::Failed, 3, 4), (Outcome::Completed, 3, 0), (Outcome::Skipped, 3, 3)]
    {
        let reason = (outcome != Outcome::Completed).then_some("ImagePullBackOff");
        let fingerprint = fingerprint.clone().filter(|_| outcome == Outcome::Failed);
        let state = ChildState::Ended { outcome, at: Some(at(70)), reason, fingerprint: fingerprint.clone() };
        let schedule = open(failures, vec![Child { state, ..child(60) }]);
        let open = open_circuit("ImagePullBackOff/registry/registry.example", 20, 1220, None);
        let target = Target { circuits: circuits(vec![open], vec![]), ..scheduled(Target::default(), vec![schedule]) };
        let status = only_record(&decide(&target, &Policy::default(), at(75))).status.clone();
        assert_eq!(status.failure_count, expected, "{outcome:?} after {failures}");
        assert_eq!(status.last_run.unwrap().fingerprint, fingerprint);
    }
}

#[test]
fn an_end_that_nothing_dates_or_that_lies_ahead_is_seen_now() {
    let ended = |at_second: Option<i64>| {
        let mut state = ended_child(60, Outcome::Failed, 0).state;
        let ChildState::Ended { at: ended_at, .. } = &mut state else { panic!() };
        *ended_at = at_second.map(at);
        said(&open(0, vec![Child { state, ..child(60) }]), 75).last_run.unwrap().ended_at
    };
    assert_eq!(ended(Some(70)), Some(at(70)));
    assert_eq!(ended(None), Some(at(75)));
    assert_eq!(ended(Some(76)), Some(at(75)));
}

#[test]
fn a_child_that_vanished_is_recorded_when_a_live_read_says_so() {
    let vanished = open(3, vec![]);
    let decision = decided(&vanished, 75);
    let record = only_record(&decision);
    assert_eq!((record.gone.clone(), record.version.clone()), (Some("wfs-s-1800000060".into()), Version::new("sv")));
    let run = record.status.last_run.clone().unwrap();
    assert_eq!((run.slot, run.ended_at, run.outcome), (at(60), Some(at(75)), Some(Outcome::Deleted)));
    assert!(run.message.unwrap().contains("ops/wfs-s-1800000060"), "{record:?}");
    assert_eq!(record.status.failure_count, 3);
    // A later child shows nothing about the one that vanished.
    let beside = open(3, vec![child(120)]);
    assert_eq!(only_record(&decided(&beside, 130)).gone.as_deref(), Some("wfs-s-1800000060"));
}

#[test]
fn children_are_recorded_in_the_order_of_their_slots() {
    let two = open(1, vec![ended_child(60, Outcome::Failed, 130), ended_child(120, Outcome::Completed, 125)]);
    let first = said(&two, 140);
    assert_eq!((first.failure_count, first.last_run.as_ref().unwrap().slot), (2, at(60)));
    let seen = Schedule { status: first, ..two };
    let second = said(&seen, 140);
    assert_eq!((second.failure_count, second.last_run.as_ref().unwrap().slot), (0, at(120)));
    let waits = open(1, vec![child(60), ended_child(120, Outcome::Completed, 125)]);
    let decision = decided(&waits, 140);
    assert_eq!((row(&decision), decision.actions), ("5 child at work", vec![]), "the later one waits its turn");
}

#[test]
fn of_two_children_at_work_the_earlier_is_named_and_the_other_follows() {
    let two = open(0, vec![ended_child(60, Outcome::Failed, 130), child(120)]);
    let status = said(&two, 140);
    assert_eq!((status.failure_count, status.next), (1, None), "nothing is planned while one is at work");
    let seen = Schedule { status, ..two };
    let status = said(&seen, 140);
    assert_eq!(status.last_run, Some(last_run(120, None)));
    assert_eq!(decided(&Schedule { status, ..seen }, 140).actions, []);
}

#[test]
fn what_is_recorded_once_is_not_recorded_again() {
    let done = with(|it| it.children = vec![ended_child(0, Outcome::Failed, 10)]);
    assert_eq!(decided(&done, 50).actions, [], "its outcome is there, whatever the child says now");
    let gone = with(|it| it.children = vec![]);
    assert_eq!(decided(&gone, 50).actions, [], "a child whose end is recorded may go");
    let late =
        with(|it| it.children = vec![ended_child(-60, Outcome::Failed, 40), ended_child(0, Outcome::Failed, 10)]);
    assert_eq!(decided(&late, 50).actions, [], "behind the checkpoint nothing counts");
}

#[test]
fn a_child_at_work_is_named_once() {
    let unnamed = with(|it| {
        it.children = vec![child(60)];
        it.status.held = held(HeldBy::ResourceBusy);
    });
    let status = said(&unnamed, 65);
    let expected =
        ScheduleStatus { last_run: Some(last_run(60, None)), next: None, held: Held::Released, ..schedule("s").status };
    assert_eq!(status, expected);
    let decision = decided(&Schedule { status, ..unnamed }, 100_000);
    assert_eq!((row(&decision), decision.actions, decision.wake), ("5 child at work", vec![], None));
}

fn refusal(slot: i64) -> RefusedChild {
    RefusedChild { slot: at(slot), message: "a policy says no".into() }
}

#[test]
fn a_refused_child_is_a_failure_of_its_slot() {
    let refused = with(|it| it.memory.create_refused = Some(refusal(60).into()));
    let status = said(&refused, 61);
    let run = LastRun {
        slot: at(60),
        again: false,
        started_at: None,
        ended_at: Some(at(61)),
        outcome: Some(Outcome::Refused),
        reason: Some("Refused".into()),
        fingerprint: Some(Fingerprint::parse("Refused/workflow/wf@1").unwrap()),
        message: Some("a policy says no".into()),
    };
    assert_eq!((status.failure_count, status.last_run.clone()), (1, Some(run)));
    assert_eq!(status.ready, Ready::ChildRefused("a policy says no".into()));
    assert_eq!(status.next, Some(Planned { at: at(61 + 120), why: PlannedBy::Backoff }));
    let seen = Schedule { status, ..refused };
    assert_eq!(decided(&seen, 61).actions, [], "once, though it is remembered");
    assert_eq!(decided(&seen, 181).actions, [made(181, 181 + 3600)]);
    let made_one = Schedule { children: vec![child(181)], ..seen };
    assert_eq!(said(&made_one, 190).ready, Ready::Yes);
}

#[test]
fn a_refusal_by_a_clock_that_was_ahead_begins_no_plan_anew() {
    let ahead = |slot| with(|it| it.memory.create_refused = Some(refusal(slot).into()));
    assert_eq!(said(&ahead(50 + 60), 50).last_run.unwrap().slot, at(110));
    assert_eq!(decided(&ahead(50 + 61), 50).actions, [], "it would be recorded again and again");
}

#[test]
fn a_refusal_of_an_earlier_plan_says_nothing() {
    let edited = with(|it| {
        it.memory.create_refused = Some(refusal(60).into());
        it.revision = Revision(8);
    });
    let status = said(&edited, 61);
    assert_eq!((status.failure_count, status.ready.clone()), (0, Ready::Yes));
    assert_eq!(decided(&Schedule { status, ..edited }, 61).actions, []);
    let refused = with(|it| it.status.ready = Ready::ChildRefused("no".into()));
    assert_eq!(decided(&refused, 50).actions, [], "it stays refused until a child is made");
    let edited = Schedule { revision: Revision(8), ..refused };
    assert_eq!(said(&edited, 50).ready, Ready::Yes, "or the template changes");
}

#[test]
fn suspended_means_held_at_once_also_with_a_child_at_work() {
    let suspended = Schedule { suspended: true, ..at_work(0) };
    let status = said(&suspended, 50);
    assert_eq!(
        (status.held.by(), status.next, status.last_run),
        (Some(HeldBy::Suspended), None, Some(last_run(0, None)))
    );
    let told = Schedule { status: ScheduleStatus { held: status.held, ..suspended.status.clone() }, ..suspended };
    assert_eq!(decided(&told, 100_000).actions, []);
    assert_eq!(decided(&told, 50).wake, None);
    let ended = Schedule { children: vec![ended_child(0, Outcome::Failed, 60)], ..told };
    let status = said(&ended, 61);
    assert_eq!((status.failure_count, status.held.by(), status.next), (1, Some(HeldBy::Suspended), None));
    assert_eq!(decided(&Schedule { status, ..ended }, 61).actions, []);
}
