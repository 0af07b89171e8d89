//! Tests circuits in the index: which events they receive, when they are derived anew, and which decisions their
//! changes affect.

use wfe_core::circuit::{Asks, Closing};
use wfe_core::execution::FailedState;
use wfe_core::fingerprint::{Fingerprint, Origin};
use wfe_core::policy::{CircuitPolicy, Policy};
use wfe_core::reason::FailureReason;
use wfe_core::schedule::{ChildOf, LastRun, Outcome, Retention};

use super::*;
use crate::index::CircuitNews;
use crate::read::read;

const PULL: &str = "ImagePullBackOff/registry/r.example";

fn at(second: i64) -> Time {
    now() + TimeDelta::seconds(second)
}

fn node(n: u32) -> TargetName {
    TargetName::parse(&format!("node/n{n}")).unwrap()
}

/// Returns an execution on the n-th target. It reached this state at this second, and was created ten seconds before.
fn on(n: u32, uid: &str, second: i64, state: ExecutionState) -> Delivery {
    let execution = Execution {
        state,
        origin: Arc::new(Origin::new("w", "1", "r.example/w:1")),
        run_sequence: Some(1),
        ..Execution::undecided(id(uid), Version::new("1"), at(second - 10))
    };
    Delivery::Execution(Box::new(ExecutionRecord {
        execution,
        target: Some(node(n)),
        generation: 1,
        request: None,
        redaction: None,
        end: None,
    }))
}

fn pulls(n: u32, second: i64) -> Delivery {
    let ended = Some(at(second));
    let failed = FailedState {
        reason: FailureReason::ImagePullBackOff,
        was_execution_failure: false,
        cancelled: false,
        failed_at: ended,
        completed_at: ended,
        next_allowed_execution: None,
        fingerprint: Fingerprint::parse(PULL),
        shared_outage: false,
    };
    on(n, &format!("e{n}"), second, ExecutionState::Failed(failed))
}

fn completes(n: u32, uid: &str, second: i64) -> Delivery {
    on(n, uid, second, ExecutionState::Completed { started_at: None, completed_at: Some(at(second)) })
}

fn schedule(uid: &str, n: u32) -> Delivery {
    let workflow = json!({"workflowId": uid, "version": "1", "containerImage": "r.example/w:1"});
    let object = json!({
        "metadata": {"name": uid, "namespace": "ops", "uid": uid, "resourceVersion": "1", "generation": 1},
        "spec": {"interval": "60s",
                 "template": {"spec": {"targetResource": format!("node/n{n}"), "workflowRef": workflow}}},
    });
    read(Kind::Schedule, &serde_json::from_value(object).unwrap(), "runs").unwrap()
}

/// Returns a schedule whose last run failed like the executions of [`outage`].
fn failed(uid: &str, n: u32) -> Delivery {
    let mut delivery = schedule(uid, n);
    let Delivery::Schedule(record) = &mut delivery else { panic!("no schedule") };
    let last = LastRun {
        slot: at(0),
        again: false,
        started_at: Some(at(0)),
        ended_at: Some(at(1)),
        outcome: Some(Outcome::Failed),
        reason: Some("ImagePullBackOff".into()),
        fingerprint: Fingerprint::parse(PULL),
        message: None,
    };
    (record.schedule.status.failure_count, record.schedule.status.last_run) = (1, Some(last));
    delivery
}

/// Makes the execution a child of a schedule.
fn child_of(schedule: &str, delivery: Delivery) -> Delivery {
    let Delivery::Execution(mut record) = delivery else { panic!("no execution") };
    let child = ChildOf { schedule: Uid::new(schedule), slot: now(), analyses: false, keep: Retention::Needed };
    record.execution.child = Some(Box::new(child));
    Delivery::Execution(record)
}

fn outage() -> Vec<Delivery> {
    (1..=5).map(|n| pulls(n, i64::from(n))).collect()
}

/// Updates the circuits, and returns the changes as text.
fn news(index: &mut Index, second: i64) -> Vec<String> {
    let news = index.update_circuits(at(second));
    let word = |news| match news {
        CircuitNews::Opened(circuit) => format!("opened {}", circuit.fingerprint),
        CircuitNews::Closed(circuit) => format!("closed {} {:?}", circuit.fingerprint, circuit.why),
        CircuitNews::Probed { completed, .. } => format!("probed {completed}"),
    };
    news.into_iter().map(word).collect()
}

fn open(index: &Index) -> Vec<(String, Time)> {
    index.circuits().open().map(|circuit| (circuit.fingerprint.to_string(), circuit.opened_at)).collect()
}

fn apply(index: &mut Index, deliveries: impl IntoIterator<Item = Delivery>) {
    deliveries.into_iter().for_each(|delivery| index.apply(delivery, now()));
}

#[test]
fn a_restart_knows_the_circuits_that_were_open() {
    let mut index = synced(vec![]);
    apply(&mut index, outage());
    assert_eq!(news(&mut index, 10), [format!("opened {PULL}")]);
    assert_eq!(news(&mut index, 10), [""; 0]);
    let mut listed = synced(outage());
    listed.update_circuits(at(10));
    assert_eq!(open(&listed), [(PULL.to_owned(), at(5))]);
    assert_eq!(listed.circuits(), index.circuits());
    index.show_circuits(&Key::Chain(node(1).chain()));
    let entry = index.entry(&Key::Chain(node(1).chain())).unwrap();
    assert_eq!(&entry.target.circuits, index.circuits());
}

#[test]
fn nothing_is_folded_while_something_is_listed_and_nothing_twice() {
    let mut index = synced(vec![]);
    apply(&mut index, [Delivery::ListBegins(Kind::Execution)]);
    apply(&mut index, outage());
    assert_eq!(news(&mut index, 10), [""; 0]);
    apply(&mut index, [Delivery::ListEnds(Kind::Execution)]);
    assert_eq!(news(&mut index, 10), [format!("opened {PULL}")]);
    // Another list delivers the same failures again.
    apply(&mut index, [Delivery::ListBegins(Kind::Execution)]);
    apply(&mut index, outage());
    apply(&mut index, [Delivery::ListEnds(Kind::Execution)]);
    assert_eq!(news(&mut index, 11), [""; 0]);
}

#[test]
fn what_came_late_is_folded_in_its_place_and_what_is_removed_stays_folded() {
    let mut index = synced(vec![]);
    let mut late = outage();
    let first = late.remove(0);
    apply(&mut index, late);
    apply(&mut index, [completes(9, "well", 7)]);
    assert_eq!(news(&mut index, 10), [""; 0]);
    // The success began before the failures that opened the circuit, so the circuit stays open.
    apply(&mut index, [first]);
    assert_eq!(news(&mut index, 11), [format!("opened {PULL}")]);
    apply(&mut index, (1..=5).map(|n| Delivery::ExecutionDeleted(Uid::new(&format!("e{n}")))));
    assert_eq!(news(&mut index, 12), [""; 0]);
    assert_eq!(open(&index).len(), 1);
}

#[test]
fn a_failure_that_comes_late_moves_an_opening_and_closes_nothing() {
    let mut index = synced(vec![]);
    apply(&mut index, (1..=5).map(|n| pulls(n, i64::from(n) + 4)));
    assert_eq!(news(&mut index, 10), [format!("opened {PULL}")]);
    assert_eq!(open(&index), [(PULL.to_owned(), at(9))]);
    apply(&mut index, [pulls(6, 8)]);
    assert_eq!(news(&mut index, 11), [""; 0], "people are told of nothing");
    assert_eq!(open(&index), [(PULL.to_owned(), at(8))]);
}

#[test]
fn what_ended_in_the_future_says_nothing() {
    let mut index = synced(vec![]);
    apply(&mut index, (1..=5).map(|n| pulls(n, 1_000_000)));
    assert_eq!(news(&mut index, 10), [""; 0]);
    let mut listed = synced((1..=5).map(|n| pulls(n, 1_000_000)).collect());
    assert_eq!(news(&mut listed, 10), [""; 0]);
}

#[test]
fn another_policy_folds_all_anew_and_what_it_closes_is_spread() {
    let mut index = synced(outage());
    assert_eq!(news(&mut index, 10).len(), 1);
    let off = CircuitPolicy { outage_targets: 0, ..CircuitPolicy::default() };
    index.set_circuit_policy(&Policy { circuits: off, ..Policy::default() });
    assert_eq!(news(&mut index, 11), [format!("closed {PULL} Forgotten")]);
    let closed: Vec<_> = index.circuits().closed().map(|it| (it.closed_at, it.why)).collect();
    assert_eq!(closed, [(at(11), Closing::Forgotten)]);
    index.update_circuits(at(71));
    assert_eq!(index.circuits().closed().count(), 0, "after a base cooldown it says nothing");
    index.set_circuit_policy(&Policy::default());
    assert_eq!(news(&mut index, 72), [format!("opened {PULL}")]);
}

#[test]
fn an_opening_and_a_closing_mark_the_schedules_that_failed_with_it() {
    let mut index = synced(vec![failed("failed", 20), schedule("healthy", 21)]);
    index.update_circuits(now());
    apply(&mut index, outage());
    index.take_dirty();
    let failed = [Key::Chain(node(20).chain())];
    assert_eq!(news(&mut index, 10), [format!("opened {PULL}")]);
    assert_eq!(index.take_dirty(), failed);
    assert_eq!(news(&mut index, 11).len(), 0);
    assert!(index.take_dirty().is_empty());
    apply(&mut index, [completes(9, "later", 100)]);
    index.take_dirty();
    assert_eq!(news(&mut index, 101), [format!("closed {PULL} Success")]);
    assert_eq!(index.take_dirty(), failed);
}

#[test]
fn a_share_of_failures_that_grows_large_or_small_marks_the_schedules_that_fail() {
    let degraded = |index: &mut Index, second: i64| {
        index.take_dirty();
        index.update_circuits(at(second));
        let marked = index.take_dirty();
        assert!(marked.iter().all(|key| *key == Key::Chain(node(20).chain())), "{marked:?}");
        (index.circuits().degraded().is_some(), !marked.is_empty())
    };
    let mut index = synced(vec![failed("failing", 20), schedule("healthy", 30)]);
    let off = CircuitPolicy { outage_targets: 0, breaker_minimum: 4, ..CircuitPolicy::default() };
    index.set_circuit_policy(&Policy { circuits: off, ..Policy::default() });
    index.update_circuits(now());
    apply(&mut index, outage());
    assert_eq!(degraded(&mut index, 10), (true, true));
    assert_eq!(degraded(&mut index, 11), (true, false));
    assert_eq!(degraded(&mut index, 1000), (false, true));
}

#[test]
fn only_children_of_what_is_held_are_told_as_probes() {
    let mut index = synced(vec![]);
    apply(&mut index, outage().into_iter().enumerate().map(|(n, it)| child_of(&format!("s{}", n + 1), it)));
    assert_eq!(news(&mut index, 10), [format!("opened {PULL}")]);
    let mut told = |of: &str, n: u32, uid: &str, ended: i64| {
        let undecided = ExecutionState::Undecided { unusable: None, start_before: None };
        let Delivery::Execution(failed) = pulls(n, ended) else { panic!("no execution") };
        for state in [undecided, failed.execution.state] {
            apply(&mut index, [child_of(of, on(n, uid, ended, state))]);
        }
        news(&mut index, ended)
    };
    assert_eq!(told("new", 20, "first", 80), [""; 0], "it had not failed");
    assert_eq!(told("s1", 1, "under-way", 70), [""; 0], "it was made before the first probe was due");
    assert_eq!(told("s1", 1, "second", 95), ["probed false"]);
}

#[test]
fn the_turn_is_given_marked_and_kept_until_the_child_is_seen() {
    use wfe_core::action::{Probe, ScheduleJudgement};
    let mut index = synced(vec![schedule("a", 20), schedule("b", 21)]);
    apply(&mut index, outage());
    apply(&mut index, [child_of("a", pulls(20, 5)), child_of("b", pulls(21, 5))]);
    index.update_circuits(at(10));
    index.take_dirty();
    let judged = |uid: &str, n: u32, index: &Index, probe: Probe| {
        let entry = index.entry(&Key::Chain(node(n).chain())).unwrap();
        let id = entry.target.schedules.get(&Uid::new(uid)).unwrap().id.clone();
        let judgement = ScheduleJudgement { asked: vec![], held: None, next: None, probe };
        Decision { schedules: vec![(id, judgement)], ..Decision::default() }
    };
    let turn = |index: &mut Index, second: i64| {
        index.update_circuits(at(second));
        let turn = index.circuits().open().next().and_then(|circuit| circuit.turn.clone());
        turn.map(|uid| uid.to_string())
    };
    let asks = || Asks { circuit: Fingerprint::parse(PULL).unwrap(), failures: 1 };
    assert_eq!(turn(&mut index, 11), None);
    let waits = judged("a", 20, &index, Probe::Awaits(asks()));
    index.queue_probes(&waits, at(11));
    assert_eq!(turn(&mut index, 11).as_deref(), Some("a"));
    assert_eq!(index.take_dirty(), [Key::Chain(node(20).chain())]);
    let makes = judged("a", 20, &index, Probe::Makes(asks()));
    index.queue_probes(&makes, at(65));
    let waits = judged("b", 21, &index, Probe::Awaits(asks()));
    index.queue_probes(&waits, at(66));
    assert_eq!(turn(&mut index, 70).as_deref(), Some("a"));
    // The child was seen, so the next probe is due one wait later.
    let child = |state: ExecutionState| {
        let Delivery::Execution(mut record) = on(20, "probe", 75, state) else { panic!("no execution") };
        let child = ChildOf { schedule: Uid::new("a"), slot: at(60), analyses: false, keep: Retention::Needed };
        record.execution.child = Some(Box::new(child));
        Delivery::Execution(record)
    };
    apply(&mut index, [child(ExecutionState::Undecided { unusable: None, start_before: None })]);
    index.update_circuits(at(75));
    let next = |index: &Index| index.circuits().open().next().map(|circuit| circuit.next_probe_at);
    assert_eq!(next(&index), Some(at(125)));
    let gone = judged("a", 20, &index, Probe::None);
    index.queue_probes(&gone, at(76));
    assert_eq!(turn(&mut index, 76).as_deref(), Some("b"));
    // A probe that is deleted before its end is forgotten. If the end of a probe is seen, it is announced.
    let mut deleted = index;
    apply(&mut deleted, [Delivery::ExecutionDeleted(Uid::new("probe"))]);
    deleted.update_circuits(at(77));
    assert_eq!(next(&deleted), Some(at(65)));
    apply(&mut deleted, [child(ExecutionState::Undecided { unusable: None, start_before: None })]);
    deleted.update_circuits(at(78));
    apply(&mut deleted, [child(ExecutionState::Completed { started_at: None, completed_at: Some(at(80)) })]);
    assert_eq!(news(&mut deleted, 81), ["probed true".to_owned(), format!("closed {PULL} Probe")]);
}

/// The image of a step comes from a registry that the bundle does not name. Only the last failure of the schedule shows
/// that the circuit affects it.
#[test]
fn a_probe_that_succeeds_is_told_though_its_bundle_is_elsewhere() {
    const STEP: &str = "ImagePullBackOff/registry/steps.example";
    let mut index = synced(vec![]);
    let child = |delivery: Delivery, schedule: &str| {
        let Delivery::Execution(mut record) = delivery else { panic!("no execution") };
        if let ExecutionState::Failed(failed) = &mut record.execution.state {
            failed.fingerprint = Fingerprint::parse(STEP);
        }
        let child = ChildOf { schedule: Uid::new(schedule), slot: now(), analyses: false, keep: Retention::Needed };
        record.execution.child = Some(Box::new(child));
        Delivery::Execution(record)
    };
    apply(&mut index, (1..=5).map(|n| child(pulls(n, i64::from(n)), &format!("s{n}"))));
    assert_eq!(news(&mut index, 10), [format!("opened {STEP}")]);
    let undecided = || ExecutionState::Undecided { unusable: None, start_before: None };
    for (uid, schedule, told) in [("other", "s9", None), ("probe", "s1", Some(()))] {
        apply(&mut index, [child(on(1, uid, 80, undecided()), schedule)]);
        index.update_circuits(at(80));
        apply(&mut index, [child(completes(1, uid, 80), schedule)]);
        let all = ["probed true".to_owned(), format!("closed {STEP} Probe")];
        assert_eq!(news(&mut index, 81), told.map_or_else(Vec::new, |()| all.to_vec()), "{uid}");
    }
}
