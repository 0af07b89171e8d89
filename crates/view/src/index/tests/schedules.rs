//! Tests schedules and their children in the index: which child belongs to which schedule, which children are kept, and
//! what applies while schedules cannot be seen.

use proptest::prelude::*;
use serde_json::Value;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::reason::FailureReason;
use wfe_core::schedule::{Child, ChildState, Outcome, RefusedChild, Retention, SaidOfChild, Schedule, child_name};
use wfe_core::triage::{Analyst, Began, Begun, State, Triage};

use super::*;
use crate::read::read;

const ELSEWHERE: &str = "node/worker-2";
/// When the plan of the schedule began: before all slots of these tests. Its status has recorded all of them.
const RECORDED: i64 = 1000;

fn slot(second: i64) -> Time {
    now() + TimeDelta::seconds(second)
}

fn text(time: Time) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn key_of(target: &str) -> Key {
    Key::Chain(TargetName::parse(target).unwrap().chain())
}

/// Returns a schedule with this uid on a target. It keeps one child of each outcome, and its last run was for the slot
/// `last`.
fn schedule(uid: &str, version: u32, target: &str, last: i64) -> Delivery {
    let workflow = json!({"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"});
    let object = json!({
        "metadata": {
            "name": "nightly", "namespace": "ops", "uid": uid, "resourceVersion": version.to_string(), "generation": 1,
        },
        "spec": {
            "interval": "60s", "history": {"successful": 1, "failed": 1},
            "template": {"spec": {"targetResource": target, "workflowRef": workflow}},
        },
        "status": {
            "plannedFrom": text(slot(-1)),
            "lastRun": {"slot": text(slot(last)), "outcome": "Completed"},
        },
    });
    read(Kind::Schedule, &serde_json::from_value(object).unwrap(), "runs").unwrap()
}

/// Returns the child of a schedule for a slot, on a target and with this status.
fn child(schedule: &str, second: i64, version: u32, target: &str, status: &Value) -> Delivery {
    let name = child_name("nightly", slot(second));
    let object = json!({
        "metadata": {
            "name": name, "namespace": "ops", "uid": uid_of(schedule, second), "resourceVersion": version.to_string(),
            "creationTimestamp": text(slot(second)),
        },
        "spec": {
            "remediationRequestRef": {
                "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "name": "nightly", "uid": schedule,
            },
            "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"},
            "targetResource": target,
        },
        "status": status,
    });
    read(Kind::Execution, &serde_json::from_value(object).unwrap(), "runs").unwrap()
}

fn uid_of(schedule: &str, second: i64) -> String {
    format!("{schedule}-{second}")
}

fn ended(phase: &str) -> Value {
    let details = json!({"reason": "Forbidden", "wasExecutionFailure": false});
    json!({"phase": phase, "completionTime": text(slot(500)), "failureDetails": details})
}

fn find<'a>(index: &'a Index, uid: &str) -> Option<(&'a Key, &'a Schedule)> {
    let uid = Uid::new(uid);
    index.targets.iter().find_map(|(key, entry)| Some((key, entry.target.schedules.get(&uid)?)))
}

/// Returns the slots of the children that the index knows for a schedule, in seconds.
fn children(index: &Index, uid: &str) -> Vec<i64> {
    let (_, schedule) = find(index, uid).unwrap();
    schedule.children.iter().map(|child| (child.slot - now()).num_seconds()).collect()
}

/// Returns whether the index keeps this child, and why.
fn keep(index: &Index, schedule: &str, second: i64) -> Retention {
    let uid = Uid::new(&uid_of(schedule, second));
    let execution = index.targets.values().find_map(|entry| entry.target.executions.get(&uid)).unwrap();
    execution.child.as_ref().unwrap().keep
}

fn apply(index: &mut Index, deliveries: impl IntoIterator<Item = Delivery>) {
    deliveries.into_iter().for_each(|delivery| index.apply(delivery, now()));
}

#[test]
fn a_schedule_knows_its_children_in_whatever_order_they_come_and_wherever_they_are() {
    let at_work = json!({});
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let all = || {
            [
                schedule("s", 1, TARGET, 0),
                child("s", 60, 2, TARGET, &at_work),
                child("s", 120, 3, ELSEWHERE, &ended("Completed")),
            ]
        };
        let mut index = synced(vec![]);
        for at in order {
            let delivery = all().into_iter().nth(at).unwrap();
            index.apply(delivery, now());
        }
        assert_eq!(children(&index, "s"), [60, 120], "{order:?}");
        let listed = synced(order.map(|at| all().into_iter().nth(at).unwrap()).into());
        assert_eq!(children(&listed, "s"), [60, 120], "{order:?}");
        assert_eq!([keep(&index, "s", 60), keep(&index, "s", 120)], [Retention::Needed, Retention::Needed]);
        apply(&mut index, [Delivery::ExecutionDeleted(Uid::new("s-60"))]);
        assert_eq!(children(&index, "s"), [120], "{order:?}");
    }
}

#[test]
fn the_end_of_a_child_is_told_in_the_words_of_the_schedule() {
    let failed = |reason: &str, ran: bool, number: Option<u64>, cancelled: bool| {
        let condition = json!({"type": "Succeeded", "status": "False", "message": "", "lastTransitionTime": text(now()),
                               "reason": if cancelled { "Cancelled" } else { reason }});
        json!({
            "phase": "Failed", "completionTime": text(slot(9)), "runSequence": number, "conditions": [condition],
            "failureDetails": {"reason": reason, "wasExecutionFailure": ran, "failedAt": text(slot(8)),
                               "fingerprint": "Unknown/cluster", "sharedOutage": !ran},
        })
    };
    let late = FailureReason::DeadlineExceeded.as_str();
    let (at_end, at_failure) = (Some(slot(9)), Some(slot(8)));
    for (status, outcome, at, reason) in [
        (json!({"phase": "Completed", "completionTime": text(slot(9))}), Outcome::Completed, at_end, None),
        (json!({"phase": "Completed"}), Outcome::Completed, None, None),
        (json!({"phase": "Skipped", "completionTime": text(slot(9))}), Outcome::Skipped, at_end, None),
        (failed("Forbidden", false, Some(1), false), Outcome::Failed, at_failure, Some("Forbidden")),
        (failed("TaskFailed", true, Some(1), false), Outcome::Failed, at_failure, Some("Unknown")),
        (failed("TaskFailed", true, Some(1), true), Outcome::Cancelled, at_failure, Some("Cancelled")),
        (failed(late, false, None, false), Outcome::TooLate, at_failure, Some(late)),
        (failed(late, false, Some(1), false), Outcome::Failed, at_failure, Some(late)),
        (failed(late, true, None, false), Outcome::Failed, at_failure, Some(late)),
    ] {
        let index = synced(vec![schedule("s", 1, TARGET, 0), child("s", 60, 2, TARGET, &status)]);
        let details = &status["failureDetails"];
        let fingerprint = details["fingerprint"].as_str().and_then(Fingerprint::parse);
        let expected = Child {
            uid: Uid::new("s-60"),
            slot: slot(60),
            created: slot(60),
            state: ChildState::Ended { outcome, at, reason, fingerprint },
        };
        assert_eq!(find(&index, "s").unwrap().1.children, [expected], "{status}");
    }
    for phase in ["", "Pending", "Running"] {
        let index = synced(vec![schedule("s", 1, TARGET, 0), child("s", 60, 2, TARGET, &json!({"phase": phase}))]);
        assert_eq!(find(&index, "s").unwrap().1.children[0].state, ChildState::AtWork, "{phase}");
    }
}

#[test]
fn a_child_is_told_whether_its_schedule_needs_it() {
    let completed = ended("Completed");
    let mut index = synced(vec![schedule("s", 1, TARGET, 60)]);
    let made = |second| child("s", second, 9, if second == 60 { ELSEWHERE } else { TARGET }, &completed);
    apply(&mut index, [made(60), made(120), made(180)]);
    let keeps = |index: &Index| [60, 120, 180].map(|second| keep(index, "s", second));
    assert_eq!(keeps(&index), [Retention::Own, Retention::Needed, Retention::Needed], "two are not recorded yet");
    index.take_dirty();
    apply(&mut index, [schedule("s", 2, TARGET, 60)]);
    assert_eq!(index.take_dirty(), [key()], "nothing has changed for the other target");
    apply(&mut index, [schedule("s", 3, TARGET, 180)]);
    assert_eq!(keeps(&index), [Retention::Expendable, Retention::Expendable, Retention::Own]);
    let mut both = vec![key(), key_of(ELSEWHERE)];
    both.sort_unstable();
    assert_eq!(index.take_dirty(), both);
    apply(&mut index, [Delivery::ScheduleDeleted(Uid::new("s"))]);
    assert_eq!(keeps(&index), [Retention::Own; 3]);
    assert_eq!(index.take_dirty(), both);
    apply(&mut index, [schedule("s", 4, TARGET, 180)]);
    assert_eq!(
        keeps(&index),
        [Retention::Expendable, Retention::Expendable, Retention::Own],
        "its children were kept apart"
    );
    apply(&mut index, [Delivery::ExecutionDeleted(Uid::new("s-180"))]);
    assert_eq!([60, 120].map(|second| keep(&index, "s", second)), [Retention::Expendable, Retention::Own]);
}

#[test]
fn a_schedule_that_gets_another_target_takes_its_children_and_what_is_known_of_it_along() {
    let mut index = synced(vec![schedule("s", 1, TARGET, 0), child("s", 60, 2, TARGET, &ended("Completed"))]);
    index.schedule_tried(&key(), &Uid::new("s"), slot(120));
    index.expect(&key(), schedule_written("s", 9), now());
    index.take_dirty();
    apply(&mut index, [schedule("s", 3, ELSEWHERE, 0)]);
    let (at, moved) = find(&index, "s").unwrap();
    assert_eq!((at, moved.memory.create_tried), (&key_of(ELSEWHERE), Some(slot(120))));
    assert_eq!(children(&index, "s"), [60]);
    assert!(index.ready(&key()).is_some_and(|entry| entry.target.schedules.is_empty()), "nothing more comes there");
    assert!(index.take_dirty().contains(&key()));
    index.expect(&key(), schedule_written("s", 9), now());
    assert!(index.ready(&key()).is_some(), "the answer came after the move");
    apply(&mut index, [child("s", 60, 4, TARGET, &ended("Completed"))]);
    assert!(index.take_dirty().contains(&key_of(ELSEWHERE)), "a child on the former target is its child all the same");
}

#[test]
fn a_schedule_whose_target_cannot_be_read_stands_alone() {
    let mut index = synced(vec![schedule("s", 1, TARGET, 0), child("s", 60, 2, TARGET, &json!({}))]);
    apply(&mut index, [schedule("s", 2, "nonsense", 0)]);
    let alone = Key::Unreadable(Uid::new("s"));
    assert!(index.ready(&alone).is_some_and(|entry| entry.target.is_unreadable));
    assert_eq!((find(&index, "s").unwrap().0, children(&index, "s")), (&alone, vec![60]));
    apply(&mut index, [Delivery::ScheduleDeleted(Uid::new("s"))]);
    assert!(index.entry(&alone).is_none());
}

#[test]
fn one_that_is_made_again_under_its_name_is_another() {
    let completed = ended("Completed");
    let mut index = synced(vec![schedule("s", 1, TARGET, 60), child("s", 60, 2, TARGET, &completed)]);
    index.schedule_tried(&key(), &Uid::new("s"), slot(120));
    apply(&mut index, [Delivery::ScheduleDeleted(Uid::new("s")), schedule("t", 3, TARGET, 60)]);
    let (_, again) = find(&index, "t").unwrap();
    assert_eq!((again.children.len(), again.memory.create_tried), (0, None));
    assert_eq!(keep(&index, "s", 60), Retention::Own);
    apply(&mut index, [child("t", 120, 4, TARGET, &completed)]);
    assert_eq!(children(&index, "t"), [120]);
}

#[test]
fn a_list_without_a_schedule_deletes_it_and_one_without_a_child_deletes_that() {
    let mut index = synced(vec![schedule("s", 1, TARGET, 0), child("s", 60, 2, TARGET, &json!({}))]);
    apply(
        &mut index,
        [Delivery::ListBegins(Kind::Execution), execution("a", "1"), Delivery::ListEnds(Kind::Execution)],
    );
    assert!(children(&index, "s").is_empty());
    apply(&mut index, [child("s", 120, 3, TARGET, &ended("Completed"))]);
    apply(&mut index, [Delivery::ListBegins(Kind::Schedule), Delivery::ListEnds(Kind::Schedule)]);
    assert!(find(&index, "s").is_none());
    assert_eq!(keep(&index, "s", 120), Retention::Own);
}

#[test]
fn without_schedules_targets_are_decided_on_all_the_same() {
    let mut index = Index::new(None);
    let blind = |index: &Index, target: &str| index.entry(&key_of(target)).unwrap().target.blind_to_schedules;
    apply(&mut index, Kind::NEEDED.map(Delivery::ListBegins));
    apply(&mut index, [child("s", 60, 2, TARGET, &ended("Completed"))]);
    apply(&mut index, Kind::NEEDED.map(Delivery::ListEnds));
    assert!(index.is_synced() && index.unsynced().is_empty() && index.ready(&key()).is_some());
    assert!(!index.sees_schedules() && blind(&index, TARGET));
    assert_eq!(keep(&index, "s", 60), Retention::Needed, "its schedule may be there");
    // The CRD of schedules is not installed, so the list begins again and again.
    for _ in 0..3 {
        apply(&mut index, [Delivery::ListBegins(Kind::Schedule)]);
        assert!(!index.is_listing() && index.ready(&key()).is_some() && blind(&index, TARGET));
    }
    let other = TargetName::parse("node/worker-3").unwrap();
    let plain = Execution::undecided(id("plain"), Version::new("1"), now());
    let record = ExecutionRecord {
        execution: plain,
        target: Some(other),
        generation: 1,
        request: None,
        redaction: None,
        end: None,
    };
    apply(&mut index, [Delivery::Execution(Box::new(record))]);
    assert!(blind(&index, "node/worker-3"), "new targets too");
    index.take_dirty();
    apply(&mut index, [Delivery::ListEnds(Kind::Schedule)]);
    assert!(index.sees_schedules() && !blind(&index, TARGET) && !blind(&index, "node/worker-3"));
    assert_eq!(keep(&index, "s", 60), Retention::Own, "its schedule is not there");
    assert_eq!(index.take_dirty(), [key()], "the other target has nothing of schedules");
}

#[test]
fn a_watch_of_schedules_that_fails_blinds_their_schedules_until_it_is_heard_again() {
    let completed = ended("Completed");
    let mut index = synced(vec![schedule("s", 1, TARGET, 60), child("s", 60, 2, TARGET, &completed)]);
    index.take_dirty();
    index.hear_schedules(true);
    assert_eq!(index.take_dirty(), [], "nothing has changed");
    index.hear_schedules(false);
    let blind = |index: &Index| index.ready(&key()).unwrap().target.blind_to_schedules;
    assert!(blind(&index) && index.take_dirty().is_empty());
    apply(&mut index, [child("s", 120, 3, TARGET, &completed)]);
    assert_eq!(keep(&index, "s", 120), Retention::Needed, "nobody can see");
    index.take_dirty();
    index.hear_schedules(true);
    assert!(!blind(&index));
    assert_eq!(index.take_dirty(), [key()]);
    // While a list of schedules is in progress, only schedules cannot be decided on.
    apply(&mut index, [Delivery::ListBegins(Kind::Schedule)]);
    assert!(blind(&index));
    apply(&mut index, [schedule("s", 4, TARGET, RECORDED), Delivery::ListEnds(Kind::Schedule)]);
    assert!(!blind(&index));
    assert_eq!([60, 120].map(|second| keep(&index, "s", second)), [Retention::Expendable, Retention::Own]);
    // A silent watch counts as silent even after a complete list.
    index.hear_schedules(false);
    apply(&mut index, [Delivery::ListBegins(Kind::Schedule), schedule("s", 4, TARGET, RECORDED)]);
    apply(&mut index, [Delivery::ListEnds(Kind::Schedule)]);
    assert!(blind(&index));
}

/// Returns the expectation of a write to the status of a schedule.
fn schedule_written(uid: &str, version: u32) -> Expected {
    Expected::Version { object: object(Kind::Schedule, uid), version: Version::new(&version.to_string()) }
}

#[test]
fn a_target_waits_for_the_writes_to_its_schedules_and_for_the_children_that_were_made() {
    let fresh = || synced(vec![schedule("s", 5, TARGET, 0), execution("a", "1")]);
    let mut index = fresh();
    index.expect(&key(), schedule_written("s", 5), now());
    assert!(index.ready(&key()).is_some(), "it was seen before the answer came");
    index.expect(&key(), schedule_written("s", 9), now());
    assert!(index.ready(&key()).is_none());
    apply(&mut index, [schedule("s", 8, TARGET, 0)]);
    assert!(index.ready(&key()).is_none());
    apply(&mut index, [schedule("s", 9, TARGET, 0)]);
    assert!(index.ready(&key()).is_some());

    index.expect(&key(), schedule_written("s", 12), now());
    index.hear_schedules(false);
    assert!(index.ready(&key()).is_some(), "nothing is decided about it");
    index.hear_schedules(true);
    assert!(index.ready(&key()).is_none());
    apply(&mut index, [Delivery::ListBegins(Kind::Schedule), schedule("s", 12, TARGET, 0)]);
    apply(&mut index, [Delivery::ListEnds(Kind::Schedule)]);
    assert!(index.ready(&key()).is_some());

    index.expect(&key(), schedule_written("s", 15), now());
    assert_eq!(index.take_overdue(&key(), now() + READ_AFTER), [schedule_written("s", 15)]);
    index.read_live(&key(), &schedule_written("s", 15), Live::Gone);
    assert!(index.ready(&key()).is_some_and(|entry| entry.target.schedules.is_empty()), "what is gone is gone");

    let mut index = fresh();
    index.expect(&key(), schedule_written("s", 9), now());
    apply(&mut index, [Delivery::ScheduleDeleted(Uid::new("s"))]);
    assert!(index.ready(&key()).is_some());

    let mut index = fresh();
    let made = written("s-60", "7");
    index.expect(&key(), made.clone(), now());
    assert!(index.ready(&key()).is_none(), "the watch has yet to show it");
    assert_eq!(index.take_overdue(&key(), now() + READ_AFTER), std::slice::from_ref(&made));
    index.read_live(&key(), &made, Live::There);
    assert!(index.ready(&key()).is_none());
    apply(&mut index, [child("s", 60, 7, ELSEWHERE, &json!({}))]);
    assert!(index.ready(&key()).is_some(), "it has another target, as something has changed it on its way");
    index.expect(&key(), made.clone(), now());
    assert!(index.ready(&key()).is_some());

    let mut index = fresh();
    index.settle(&key());
    apply(&mut index, [child("s", 60, 7, TARGET, &json!({})), Delivery::ExecutionDeleted(Uid::new("s-60"))]);
    index.expect(&key(), made, now());
    assert!(index.ready(&key()).is_some(), "it has come and gone before the answer came");
}

#[test]
fn what_this_process_has_tried_for_a_schedule_is_forgotten_when_it_says_nothing_any_more() {
    let memory = |index: &Index| find(index, "s").unwrap().1.memory.clone();
    let refused = || RefusedChild { slot: slot(60), message: "no".into() };
    let s = Uid::new("s");
    let mut index = synced(vec![schedule("s", 1, TARGET, 0)]);
    index.schedule_tried(&key(), &s, slot(60));
    apply(&mut index, [schedule("s", 2, TARGET, 0)]);
    assert_eq!(memory(&index).create_tried, Some(slot(60)), "a new version changes nothing");
    index.forget_tries();
    assert_eq!(memory(&index).create_tried, Some(slot(60)), "it may have got through all the same");
    apply(&mut index, [child("s", 60, 3, TARGET, &json!({}))]);
    assert_eq!(memory(&index).create_tried, None, "it has got through");

    index.schedule_tried(&key(), &s, slot(120));
    apply(&mut index, [schedule("s", 4, TARGET, 120)]);
    assert_eq!(memory(&index).create_tried, None, "the slot is used");

    let mut index = synced(vec![schedule("s", 1, TARGET, 0)]);
    index.schedule_tried(&key(), &s, slot(60));
    index.child_refused(&key(), &s, refused());
    assert_eq!((memory(&index).create_refused.as_deref(), memory(&index).create_tried), (Some(&refused()), None));
    apply(&mut index, [schedule("s", 2, TARGET, 0)]);
    assert_eq!(memory(&index).create_refused.as_deref(), Some(&refused()));
    let mut edited = schedule("s", 3, TARGET, 0);
    if let Delivery::Schedule(record) = &mut edited {
        record.schedule.generation = 2;
    }
    apply(&mut index, [edited]);
    assert_eq!(memory(&index).create_refused, None, "the template may be another");
    index.child_refused(&key(), &s, refused());
    index.forget_tries();
    assert_eq!(memory(&index).create_refused, None);
    index.child_refused(&key(), &s, refused());
    apply(&mut index, [schedule("s", 5, TARGET, 60)]);
    assert_eq!(memory(&index).create_refused, None, "the status says so");
    index.child_refused(&key(), &s, refused());
    index.child_refused(&key_of(ELSEWHERE), &s, refused());
    assert_eq!(memory(&index).create_refused, None, "the slot is used");
}

#[test]
fn the_words_of_a_child_are_known_until_the_status_says_how_it_ended() {
    let said = |index: &Index| find(index, "s").unwrap().1.memory.child_message.clone();
    let ends = |second, phase: &str, version| {
        let condition = json!({"type": "Succeeded", "status": "False", "message": "no such secret", "reason": "R",
                               "lastTransitionTime": text(now())});
        let mut status = ended(phase);
        status["conditions"] = json!([condition]);
        child("s", second, version, TARGET, &status)
    };
    let mut index = synced(vec![schedule("s", 1, TARGET, 0)]);
    apply(&mut index, [ends(60, "Failed", 2)]);
    assert_eq!(said(&index), Some(Box::new(SaidOfChild { slot: slot(60), words: "no such secret".into() })));
    apply(&mut index, [schedule("s", 3, TARGET, 0)]);
    assert!(said(&index).is_some(), "a new version changes nothing");
    apply(&mut index, [schedule("s", 4, TARGET, 60)]);
    assert_eq!(said(&index), None, "the status says so");
    apply(&mut index, [ends(60, "Failed", 5)]);
    assert_eq!(said(&index), None, "and is not told again");
    apply(&mut index, [ends(120, "Completed", 6)]);
    assert_eq!(said(&index), None, "there is nothing to say of a success");
}

#[test]
fn a_schedule_is_told_of_the_triages_of_others_and_which_are_of_its_namespace() {
    let of = |uid: &str, namespace: &str, target: &str, triaged: i64| {
        let Delivery::Schedule(mut record) = schedule(uid, 1, target, 0) else { unreachable!() };
        let it = &mut record.schedule;
        it.id.namespace = namespace.into();
        Arc::make_mut(&mut it.triage).analyst = Analyst::Pipeline;
        it.status.triage = Some(Box::new(Triage {
            of: "nightly-1".into(),
            at: slot(triaged),
            analyst: Analyst::Pipeline,
            run: None,
            fingerprint: None,
            evidence: None,
            verdict: None,
            why: None,
            fix: None,
            refused: Vec::new(),
            state: State::Failed,
        }));
        Delivery::Schedule(record)
    };
    let mut index = synced(vec![
        of("s", "ops", TARGET, -10),
        of("beside", "ops", ELSEWHERE, -20),
        of("other", "dev", ELSEWHERE, -30),
        of("old", "dev", ELSEWHERE, -3600),
    ]);
    let began = |second, beside| Began { at: slot(second), beside };
    index.tell_of_triages(&key(), now());
    let told = |index: &Index| find(index, "s").unwrap().1.memory.others_begun.clone();
    assert_eq!(told(&index), Begun::within_the_hour([began(-30, false), began(-20, true)], now()));
    index.begin_triage(&key_of(ELSEWHERE), &Uid::new("old"), now());
    index.tell_of_triages(&key(), now());
    assert_eq!(told(&index), Begun::within_the_hour([began(-30, false), began(-20, true), began(0, false)], now()));
}

#[test]
fn a_namespace_pauses_its_schedules_and_ends_them() {
    let of = |index: &Index| {
        let (_, schedule) = find(index, "s").unwrap();
        (schedule.paused.clone().map(|pause| pause.why.to_string()), schedule.leaving)
    };
    let mut index = synced(vec![schedule("s", 1, "payment/deployment/api", 0)]);
    for (place, version) in [("ops", 2), ("payment", 3)] {
        index.take_dirty();
        apply(&mut index, [namespace(place, Some("freeze"), false)]);
        assert_eq!(of(&index), (Some("freeze".to_owned()), false), "{place}");
        assert_eq!(index.take_dirty(), [key_of("payment/deployment/api")]);
        apply(&mut index, [schedule("s", version, "payment/deployment/api", 0)]);
        assert_eq!(of(&index).0.as_deref(), Some("freeze"), "{place}");
        apply(&mut index, [namespace(place, None, false)]);
        assert_eq!(of(&index), (None, false), "{place}");
    }
    apply(&mut index, [namespace("payment", None, true)]);
    assert!(!of(&index).1, "it is not in it");
    index.take_dirty();
    apply(&mut index, [namespace("ops", None, true)]);
    assert!(of(&index).1);
    assert_eq!(index.take_dirty(), [key_of("payment/deployment/api")]);
    apply(&mut index, [schedule("s", 4, TARGET, 0), schedule("t", 5, TARGET, 0)]);
    assert!(of(&index).1 && find(&index, "t").unwrap().1.leaving);
    apply(&mut index, [Delivery::NamespaceDeleted(Uid::new("ops")), schedule("u", 6, TARGET, 0)]);
    assert!(!find(&index, "u").unwrap().1.leaving, "one with this name may be made again");
}

/// The events that can happen to two schedules on two targets with some children each.
#[derive(Clone, Copy, Debug)]
enum Event {
    Schedule { which: usize, target: usize, last: i64 },
    ScheduleDeleted { which: usize },
    Child { of: usize, second: i64, ends: bool },
    ChildDeleted { of: usize, second: i64 },
    Heard(bool),
}

fn event() -> impl Strategy<Value = Event> {
    let second = || (1..5_i64).prop_map(|minute| 60 * minute);
    prop_oneof![
        2 => (0..2_usize, 0..2_usize, 0..5_i64)
            .prop_map(|(which, target, last)| Event::Schedule { which, target, last: 60 * last }),
        1 => (0..2_usize).prop_map(|which| Event::ScheduleDeleted { which }),
        4 => (0..2_usize, second(), any::<bool>()).prop_map(|(of, second, ends)| Event::Child { of, second, ends }),
        1 => (0..2_usize, second()).prop_map(|(of, second)| Event::ChildDeleted { of, second }),
        1 => any::<bool>().prop_map(Event::Heard),
    ]
}

const NAMES: [&str; 2] = ["s", "t"];
const TARGETS: [&str; 2] = [TARGET, ELSEWHERE];

fn put_schedule(which: usize, target: usize, last: i64) -> Delivery {
    schedule(NAMES[which], 1, TARGETS[target], last)
}

fn put_child(of: usize, second: i64, ends: bool) -> Delivery {
    let target = usize::from(second > 120);
    let status = if ends { ended(if second % 120 == 0 { "Failed" } else { "Completed" }) } else { json!({}) };
    child(NAMES[of], second, 1, TARGETS[target], &status)
}

/// Returns everything that an index stores about schedules, as text.
fn families(index: &Index) -> Vec<String> {
    let mut all = Vec::new();
    for (key, entry) in &index.targets {
        let target = &entry.target;
        all.extend(target.schedules.values().map(|it| format!("{key:?} {} {:?}", it.id.uid, it.children)));
        all.extend(target.executions.values().map(|it| format!("{key:?} {} {:?}", it.id.uid, it.child)));
        all.push(format!("{key:?} {}", target.blind_to_schedules));
    }
    all.sort();
    all
}

proptest! {
    #[test]
    fn what_the_changes_come_to_is_what_a_list_shows(events in prop::collection::vec(event(), 0..40)) {
        let mut index = synced(vec![]);
        let mut schedules = std::collections::BTreeMap::new();
        let mut children = std::collections::BTreeMap::new();
        for event in events {
            match event {
                Event::Schedule { which, target, last } => {
                    schedules.insert(which, (target, last));
                    index.apply(put_schedule(which, target, last), now());
                }
                Event::ScheduleDeleted { which } => {
                    schedules.remove(&which);
                    index.apply(Delivery::ScheduleDeleted(Uid::new(NAMES[which])), now());
                }
                Event::Child { of, second, ends } => {
                    children.insert((of, second), ends);
                    index.apply(put_child(of, second, ends), now());
                }
                Event::ChildDeleted { of, second } => {
                    children.remove(&(of, second));
                    index.apply(Delivery::ExecutionDeleted(Uid::new(&uid_of(NAMES[of], second))), now());
                }
                Event::Heard(heard) => index.hear_schedules(heard),
            }
        }
        index.hear_schedules(true);
        let schedules = schedules.into_iter().map(|(which, (target, last))| put_schedule(which, target, last));
        let children = children.into_iter().map(|((of, second), ends)| put_child(of, second, ends));
        prop_assert_eq!(families(&index), families(&synced(children.chain(schedules).collect())));
    }
}
