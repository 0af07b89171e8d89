mod attempts;
mod circuits;
mod places;
mod schedules;
mod stopping;

use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use std::time::Duration;
use wfe_core::evidence::{Absence, Doubt, Started};
use wfe_core::residue::ResidueKind;
use wfe_tekton::{Descendant, Object, Remains, Sighting, examine, observe_descendant};

use super::follow::MAX_STRANGERS;
use super::*;
use wfe_core::action::{Action, Change, Decision, RunChange, Unneeded};
use wfe_core::execution::{Execution, ExecutionState, Lost};
use wfe_core::findings::Findings;
use wfe_core::name::{RunId, Version};
use wfe_core::reason::Refusal;
use wfe_core::run::{Order, Owner, Presence, Progress, Run, RunMemory, Seen};
use wfe_core::target::TargetName;
use wfe_core::tries::{Trouble, TroubleKind};
use wfe_core::trouble::OwnCause;
use wfe_core::waiting::Waiting;

const TARGET: &str = "node/worker-1";

fn now() -> Time {
    Time::from_timestamp(1_800_000_000, 0).unwrap()
}

fn target() -> TargetName {
    TargetName::parse(TARGET).unwrap()
}

fn key() -> Key {
    Key::Chain(target().chain())
}

fn id(uid: &str) -> ExecutionId {
    ExecutionId { namespace: "ops".into(), name: uid.into(), uid: Uid::new(uid) }
}

fn execution(uid: &str, version: &str) -> Delivery {
    let execution = Execution::undecided(id(uid), Version::new(version), now());
    Delivery::Execution(Box::new(ExecutionRecord {
        execution,
        target: Some(target()),
        generation: 1,
        request: None,
        redaction: None,
        end: None,
    }))
}

fn run(uid: &str, owner: &str, version: &str) -> Delivery {
    let run = Run {
        id: RunId { name: "wfe-x-1".into(), uid: Uid::new(uid) },
        number: 1,
        version: Version::new(version),
        created: now(),
        order: Order(0),
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        progress: Progress::Pending,
        cancelled: false,
        cancel_reason: None,
        stopped: false,
        doing: "Running".into(),
        total_tasks: None,
        skipped_tasks: 0,
        undeclared: Box::default(),
        timeout: None,
        released_at: None,
        deleting: false,
        stays: wfe_core::run::Stays::default(),
        stop: None,
        memory: RunMemory::default(),
    };
    Delivery::Run(target().chain(), Box::new(run))
}

fn namespace(name: &str, paused: Option<&str>, leaving: bool) -> Delivery {
    Delivery::Namespace { uid: Uid::new(name), name: name.into(), paused: paused.map(Into::into), leaving }
}

/// Returns an index that has received all lists; `listed` was part of them.
fn synced(listed: Vec<Delivery>) -> Index {
    let mut index = Index::new(Some("ops".to_owned()));
    let begun = Kind::ALL.map(Delivery::ListBegins);
    let ended = Kind::ALL.map(Delivery::ListEnds);
    for delivery in begun.into_iter().chain(listed).chain(ended) {
        index.apply(delivery, now());
    }
    index
}

fn order(index: &Index, uid: &str) -> Order {
    index.entry(&key()).unwrap().target.runs[&Uid::new(uid)].order
}

fn presence(index: &Index, uid: &str) -> Presence {
    match &index.entry(&key()).unwrap().target.runs[&Uid::new(uid)].owner {
        Owner::Execution { presence, .. } => *presence,
        Owner::Nobody => panic!("nobody's"),
    }
}

fn object(kind: Kind, uid: &str) -> Written {
    Written { kind, namespace: "ops".into(), name: uid.into(), uid: Uid::new(uid) }
}

fn written(uid: &str, version: &str) -> Expected {
    Expected::Version { object: object(Kind::Execution, uid), version: Version::new(version) }
}

fn made(uid: &str, version: &str) -> Expected {
    Expected::Version { object: object(Kind::Run, uid), version: Version::new(version) }
}

#[test]
fn nothing_is_ready_before_all_lists_are_complete() {
    let mut index = Index::new(None);
    index.apply(execution("a", "1"), now());
    for kind in Kind::NEEDED {
        assert!(index.ready(&key()).is_none(), "{kind:?}");
        index.apply(Delivery::ListBegins(kind), now());
        if kind == Kind::Execution {
            index.apply(execution("a", "1"), now());
        }
        index.apply(Delivery::ListEnds(kind), now());
    }
    assert!(index.ready(&key()).is_some());
    assert!(index.take_dirty().contains(&key()));
}

#[test]
fn nothing_is_ready_in_the_middle_of_a_list() {
    let mut index = synced(vec![execution("a", "1")]);
    index.take_dirty();
    index.apply(Delivery::ListBegins(Kind::Run), now());
    index.apply(run("r2", "a", "9"), now());
    assert!(index.ready(&key()).is_none(), "an earlier run may be still to come");
    index.apply(run("r1", "b", "8"), now());
    index.apply(Delivery::ListEnds(Kind::Run), now());
    assert!(index.ready(&key()).is_some());
    assert!(index.take_dirty().contains(&key()));
}

/// Returns a pod of run `r1` in this phase.
fn pod(uid: &str, phase: &str) -> Descendant {
    let labels = json!({"tekton.dev/pipelineRunUID": "r1", "tekton.dev/taskRun": "t", "tekton.dev/taskRunUID": "t"});
    let annotations = json!({
        "kubernaut.ai/target-resource": TARGET,
        "kubernaut.ai/workflow-execution": "ops/a",
        "kubernaut.ai/workflow-execution-uid": "a",
    });
    let meta = json!({"name": "t-pod", "uid": uid, "labels": labels, "annotations": annotations});
    let data = json!({"status": {"phase": phase}});
    observe_descendant(ResidueKind::Pod, &serde_json::from_value(meta).unwrap(), &data).unwrap()
}

fn seen_pod(uid: &str, phase: &str) -> Delivery {
    Delivery::Descendant(Kind::Pod, Box::new(pod(uid, phase)))
}

fn deleted_pod(uid: &str, phase: &str) -> Delivery {
    Delivery::DescendantDeleted(Kind::Pod, Uid::new(uid), Some(Box::new(pod(uid, phase))))
}

fn released(mut delivery: Delivery) -> Delivery {
    if let Delivery::Run(_, run) = &mut delivery {
        run.progress = Progress::Released;
    }
    delivery
}

fn run_of(index: &Index) -> &Run {
    &index.entry(&key()).unwrap().target.runs[&Uid::new("r1")]
}

#[test]
fn that_something_of_a_run_started_is_known_in_whatever_order_the_lists_come() {
    let mut index = Index::new(None);
    let begun = Kind::ALL.map(Delivery::ListBegins);
    let ended = Kind::ALL.map(Delivery::ListEnds);
    let listed = [seen_pod("pod", "Succeeded"), run("r1", "a", "1"), execution("a", "1")];
    for delivery in begun.into_iter().chain(listed).chain(ended) {
        index.apply(delivery, now());
    }
    assert!(run_of(&index).memory.seen.has_started_anything);
    assert!(index.entry(&key()).unwrap().target.residue.is_empty(), "it is finished");
}

/// Returns the conclusion from the index if a live read found that an image pull failed and the pod is gone.
fn verdict(index: &Index) -> Started {
    let condition = json!([{"type": "Succeeded", "status": "False", "reason": "TaskRunImagePullFailed"}]);
    let meta: ObjectMeta = serde_json::from_value(json!({"name": "t", "uid": "t"})).unwrap();
    let data = json!({"status": {"podName": "t-pod", "conditions": condition, "steps": [{"name": "run"}]}});
    let task_run = Object { meta: &meta, data: &data };
    let remains = Remains { run: Some(task_run), task_runs: &[task_run], others: &[], pods: &[] };
    examine(&index.entry(&key()).unwrap().evidence(&Uid::new("r1")), remains).started
}

#[test]
fn a_pod_that_only_waited_proves_that_nothing_ran_where_no_list_came_in_between() {
    let waited = |after: Vec<Delivery>| {
        let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
        let seen = [released(run("r1", "a", "2")), seen_pod("pod", "Pending")];
        for delivery in seen.into_iter().chain(after).chain([deleted_pod("pod", "Pending")]) {
            index.apply(delivery, now());
        }
        verdict(&index)
    };
    assert_eq!(waited(vec![]), Started::NotStarted(Absence::OnlyWaited));
    for kind in [Kind::TaskRun, Kind::Pod] {
        let list = vec![Delivery::ListBegins(kind), seen_pod("pod", "Pending"), Delivery::ListEnds(kind)];
        assert_eq!(waited(list), Started::Unknown(Doubt::Unfollowed("t".into())), "{kind:?}");
    }
    let list = vec![Delivery::ListBegins(Kind::Namespace), Delivery::ListEnds(Kind::Namespace)];
    assert_eq!(waited(list), Started::NotStarted(Absence::OnlyWaited));
}

#[test]
fn a_run_that_a_list_shows_released_was_not_followed_from_the_start() {
    let first_seen = |listed: Delivery, later: Vec<Delivery>| {
        let mut index = synced(vec![execution("a", "1"), listed]);
        let seen = [seen_pod("pod", "Pending"), deleted_pod("pod", "Pending")];
        later.into_iter().chain(seen).for_each(|delivery| index.apply(delivery, now()));
        verdict(&index)
    };
    let (pending, released) = (|| run("r1", "a", "1"), || released(run("r1", "a", "2")));
    assert_eq!(first_seen(pending(), vec![released()]), Started::NotStarted(Absence::OnlyWaited));
    assert_eq!(first_seen(released(), vec![]), Started::Unknown(Doubt::Unfollowed("t".into())));
    let unseen = vec![Delivery::ListBegins(Kind::Run), released(), Delivery::ListEnds(Kind::Run)];
    assert_eq!(first_seen(pending(), unseen), Started::Unknown(Doubt::Unfollowed("t".into())));
}

#[test]
fn what_was_seen_and_found_of_a_run_stays_until_its_execution_has_ended() {
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
    index.apply(seen_pod("pod", "Running"), now());
    index.looked(&key(), &Uid::new("r1"), Findings::unread("m".into()), false, now());
    index.replay_told(&key(), &Uid::new("r1"));
    index.apply(released(run("r1", "a", "2")), now());
    let kept = &run_of(&index).memory;
    assert!(kept.seen.has_started_anything && kept.seen.replay_told && kept.diagnosed.is_some(), "{kept:?}");

    let mut ended = execution("a", "3");
    if let Delivery::Execution(record) = &mut ended {
        record.execution.state = ExecutionState::Skipped { completed_at: None };
    }
    index.apply(ended, now());
    let kept = &run_of(&index).memory;
    assert_eq!((&kept.seen, &kept.diagnosed), (&Seen::default(), &None));
    index.apply(seen_pod("pod", "Failed"), now());
    assert!(index.entry(&key()).unwrap().evidence.is_empty());
}

#[test]
fn what_becomes_of_a_pod_that_has_ended_changes_nothing() {
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1"), seen_pod("pod", "Running")]);
    index.take_dirty();
    index.apply(seen_pod("pod", "Succeeded"), now());
    assert_eq!(index.take_dirty(), [key()], "its target has drained");
    index.apply(seen_pod("pod", "Succeeded"), now());
    index.apply(Delivery::DescendantDeleted(Kind::Pod, Uid::new("pod"), None), now());
    assert_eq!(index.take_dirty(), []);
}

#[test]
fn tasks_of_runs_that_cannot_come_are_not_followed() {
    let followed = |index: &Index| !index.entry(&key()).unwrap().evidence.is_empty();
    // The execution has ended, so its run counts as gone.
    let mut ended = execution("a", "1");
    if let Delivery::Execution(record) = &mut ended {
        record.execution.state = ExecutionState::Skipped { completed_at: None };
    }
    let mut index = synced(vec![ended]);
    index.apply(seen_pod("pod", "Running"), now());
    assert!(!followed(&index));
    // During a list the run may still be delivered, whatever is known about executions.
    index.apply(Delivery::ListBegins(Kind::Pod), now());
    index.apply(seen_pod("pod", "Running"), now());
    assert!(followed(&index));
    index.apply(Delivery::ListEnds(Kind::Pod), now());
    assert!(!followed(&index));
}

/// Returns the delivery of a pod of this run, in this phase.
fn pod_of(run: &str, uid: &str, phase: &str) -> Delivery {
    let labels = json!({"tekton.dev/pipelineRunUID": run, "tekton.dev/taskRun": "t", "tekton.dev/taskRunUID": "t"});
    let meta: ObjectMeta = serde_json::from_value(json!({"name": "t-pod", "uid": uid, "labels": labels})).unwrap();
    let data = json!({"status": {"phase": phase}});
    let sighting = Sighting::of(ResidueKind::Pod, Object { meta: &meta, data: &data });
    Delivery::Descendant(Kind::Pod, Box::new(Descendant { sighting, ..pod(uid, phase) }))
}

#[test]
fn what_a_pod_shows_before_the_watch_of_runs_has_delivered_its_run_is_kept() {
    let with = |early: Vec<Delivery>| {
        let mut index = synced(vec![execution("a", "1")]);
        let run = [run("r1", "a", "1"), released(run("r1", "a", "2")), seen_pod("second", "Pending")];
        for delivery in early.into_iter().chain(run).chain([deleted_pod("second", "Pending")]) {
            index.apply(delivery, now());
        }
        verdict(&index)
    };
    assert_eq!(with(vec![]), Started::NotStarted(Absence::OnlyWaited));
    // The first pod ran, and was replaced by a pod that only waits.
    assert_ne!(with(vec![seen_pod("first", "Running")]), Started::NotStarted(Absence::OnlyWaited));
    // The result is the same if there were too many pods to remember.
    let many = (0..=MAX_STRANGERS).map(|number| pod_of(&format!("x{number}"), "pod", "Running"));
    let many = many.chain([seen_pod("first", "Running")]).collect();
    assert_ne!(with(many), Started::NotStarted(Absence::OnlyWaited));
}

fn running(version: &str) -> Delivery {
    let mut delivery = execution("a", version);
    if let Delivery::Execution(record) = &mut delivery {
        let run = Some(RunId { name: "wfe-x-1".into(), uid: Uid::new("r1") });
        record.execution.state = ExecutionState::Running { run, started_at: None };
    }
    delivery
}

#[test]
fn a_status_that_lost_the_name_of_its_run_has_the_run_that_carries_its_uid() {
    let mut damaged = running("1");
    if let Delivery::Execution(record) = &mut damaged {
        record.execution.state = ExecutionState::Running { run: None, started_at: None };
    }
    let named = |index: &mut Index| {
        index.settle(&key());
        match &index.entry(&key()).unwrap().target.executions[&Uid::new("a")].state {
            ExecutionState::Running { run, .. } => run.as_ref().map(|run| run.uid.clone()),
            state => panic!("{state:?}"),
        }
    };
    let mut index = synced(vec![damaged, run("r2", "b", "1")]);
    assert_eq!(named(&mut index), None, "another's run is not its run");
    index.apply(run("r1", "a", "2"), now());
    assert_eq!(named(&mut index), Some(Uid::new("r1")));
    let known = &index.entry(&key()).unwrap().target.executions[&Uid::new("a")];
    assert!(known.recall().found_run.is_some(), "the next status names it again");
    assert!(matches!(known.state, ExecutionState::Running { started_at: Some(_), .. }), "{:?}", known.state);
}

#[test]
fn the_proof_that_a_run_ran_outlives_it() {
    let mut index = synced(vec![running("1"), released(run("r1", "a", "1"))]);
    let mut ran = pod("pod", "Running");
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let data = json!({"status": {"containerStatuses": [{"name": "step-run", "state": state}]}});
    let labels = [("tekton.dev/pipelineRunUID", "r1"), ("tekton.dev/taskRun", "t")];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let meta = ObjectMeta { labels: Some(labels), ..ObjectMeta::default() };
    ran.sighting = Sighting::of(ResidueKind::Pod, Object { meta: &meta, data: &data });
    index.apply(Delivery::Descendant(Kind::Pod, Box::new(ran)), now());
    index.apply(Delivery::RunDeleted(Uid::new("r1"), None), now());
    index.apply(running("2"), now());
    let execution = &index.entry(&key()).unwrap().target.executions[&Uid::new("a")];
    assert!(execution.recall().lost_proof.is_some(), "{execution:?}");
}

#[test]
fn when_progress_was_shown_stays_known_while_it_runs() {
    let mut index = synced(vec![running("1")]);
    index.showed_progress(&key(), &Uid::new("a"), None, now());
    index.apply(running("2"), now());
    let shown_at = index.entry(&key()).unwrap().target.executions[&Uid::new("a")].recall().progress_shown_at;
    assert_eq!(shown_at, Some(now()));
}

#[test]
fn a_target_is_known_as_long_as_something_of_it_is_left() {
    let mut index = synced(vec![]);
    index.apply(seen_pod("pod", "Running"), now());
    assert_eq!(index.entry(&key()).unwrap().target.residue.len(), 1);
    index.apply(seen_pod("pod", "Failed"), now());
    assert!(index.is_empty());
    index.apply(seen_pod("pod", "Running"), now());
    index.apply(Delivery::DescendantDeleted(Kind::Pod, Uid::new("pod"), None), now());
    assert!(index.is_empty());
}

/// Returns the delivery of a finished or unfinished descendant of this kind on a target.
fn left_on(kind: Kind, residue: ResidueKind, on: &TargetName, unfinished: bool) -> Delivery {
    let mut left = Descendant { chain: on.chain(), unfinished, ..pod("left", "Running") };
    left.residue.id.kind = residue;
    Delivery::Descendant(kind, Box::new(left))
}

#[test]
fn what_is_left_of_a_run_drains_on_the_target_that_it_names_last() {
    for (kind, residue) in [
        (Kind::Run, ResidueKind::PipelineRun),
        (Kind::TaskRun, ResidueKind::TaskRun),
        (Kind::CustomRun, ResidueKind::CustomRun),
        (Kind::Pod, ResidueKind::Pod),
    ] {
        let other = TargetName::parse("node/worker-2").unwrap();
        let left = |index: &Index, on: &TargetName| {
            index.entry(&Key::Chain(on.chain())).map_or(0, |entry| entry.target.residue.len())
        };
        let mut index = synced(vec![execution("a", "1"), left_on(kind, residue, &target(), true)]);
        assert_eq!((left(&index, &target()), left(&index, &other)), (1, 0), "{kind:?}");
        index.take_dirty();
        index.apply(left_on(kind, residue, &other, true), now());
        assert_eq!((left(&index, &target()), left(&index, &other)), (0, 1), "{kind:?}");
        assert!(index.take_dirty().contains(&key()), "{kind:?}: the first target has drained");
        index.apply(left_on(kind, residue, &target(), false), now());
        assert_eq!((left(&index, &target()), left(&index, &other)), (0, 0), "{kind:?}: it has ended");
    }
}

#[test]
fn a_pause_reaches_what_is_there_and_what_comes() {
    let paused = |index: &Index, uid: &str| {
        let pause = index.entry(&key()).unwrap().target.executions[&Uid::new(uid)].paused.clone();
        pause.map(|pause| pause.why.to_string())
    };
    let mut index = synced(vec![execution("a", "1")]);
    let namespace = |why: Option<&str>| namespace("ops", why, false);
    index.apply(namespace(Some("freeze")), now());
    index.apply(execution("b", "2"), now());
    assert_eq!((paused(&index, "a"), paused(&index, "b")), (Some("freeze".into()), Some("freeze".into())));
    index.take_dirty();
    index.apply(namespace(None), now());
    assert_eq!((paused(&index, "a"), paused(&index, "b")), (None, None));
    assert!(index.take_dirty().contains(&key()));
}

#[test]
fn a_pause_holds_for_the_executions_whose_target_is_in_the_namespace() {
    let target = TargetName::parse("payment/deployment/api").unwrap();
    let key = Key::Chain(target.chain());
    let execution = |uid: &str| {
        let execution = Execution::undecided(id(uid), Version::new("1"), now());
        let target = Some(target.clone());
        Delivery::Execution(Box::new(ExecutionRecord {
            execution,
            target,
            generation: 1,
            request: None,
            redaction: None,
            end: None,
        }))
    };
    let namespace = |name: &str, why: Option<&str>| namespace(name, why, false);
    let paused_by = |index: &Index, uid: &str| {
        let pause = index.entry(&key).unwrap().target.executions[&Uid::new(uid)].paused.clone();
        pause.map(|pause| pause.namespace.to_string())
    };
    let mut index = synced(vec![execution("a")]);
    index.take_dirty();
    index.apply(namespace("payment", Some("freeze")), now());
    assert!(index.take_dirty().contains(&key));
    index.apply(execution("b"), now());
    assert_eq!([paused_by(&index, "a"), paused_by(&index, "b")], [Some("payment".into()), Some("payment".into())]);
    // The pause of the execution's own namespace comes first. When it ends, the other pause still applies.
    index.apply(namespace("ops", Some("upgrade")), now());
    assert_eq!(paused_by(&index, "a"), Some("ops".into()));
    index.apply(namespace("ops", None), now());
    assert_eq!(paused_by(&index, "a"), Some("payment".into()));
    index.apply(Delivery::NamespaceDeleted(Uid::new("payment")), now());
    assert_eq!([paused_by(&index, "a"), paused_by(&index, "b")], [None, None]);
}

#[test]
fn a_target_is_held_back_until_its_own_write_is_delivered() {
    let mut index = synced(vec![execution("a", "5")]);
    index.expect(&key(), written("a", "9"), now());
    assert!(index.ready(&key()).is_none());
    index.apply(execution("a", "8"), now());
    assert!(index.ready(&key()).is_none());
    index.apply(execution("a", "10"), now());
    assert!(index.ready(&key()).is_some());
}

#[test]
fn an_answer_that_comes_after_its_delivery_holds_nothing_back() {
    let mut index = synced(vec![execution("a", "9")]);
    index.expect(&key(), written("a", "9"), now());
    index.expect(&key(), Expected::Absence { object: object(Kind::Run, "r") }, now());
    assert!(index.ready(&key()).is_some());
}

#[test]
fn an_answer_that_comes_after_the_deletion_of_what_was_written_holds_nothing_back() {
    let mut index = synced(vec![execution("a", "5"), execution("b", "5"), run("r", "a", "6")]);
    index.settle(&key());
    index.apply(Delivery::ExecutionDeleted(Uid::new("a")), now());
    index.apply(Delivery::RunDeleted(Uid::new("r"), None), now());
    index.expect(&key(), written("a", "9"), now());
    index.expect(&key(), made("r", "9"), now());
    assert!(index.ready(&key()).is_some());
    for new in [made("new", "9"), written("new", "9")] {
        index.expect(&key(), new.clone(), now());
        assert!(index.ready(&key()).is_none(), "what is not delivered yet is waited for");
        index.read_live(&key(), &new, Live::Gone);
        assert!(index.ready(&key()).is_some());
    }
}

#[test]
fn a_deletion_ends_the_wait_for_its_object() {
    let mut index = synced(vec![execution("a", "5"), execution("b", "5")]);
    index.expect(&key(), written("a", "9"), now());
    index.apply(Delivery::ExecutionDeleted(Uid::new("a")), now());
    assert!(index.ready(&key()).is_some());
}

#[test]
fn a_list_that_began_after_a_write_ends_the_wait_for_an_object_that_it_does_not_hold() {
    let mut index = synced(vec![execution("b", "5"), run("r", "b", "6")]);
    let created = |uid: &str| made(uid, "7");
    // The list began before the write, so it may not contain the write: the target keeps waiting.
    index.apply(Delivery::ListBegins(Kind::Run), now());
    index.expect(&key(), created("lost"), now());
    index.apply(run("r", "b", "6"), now());
    index.apply(Delivery::ListEnds(Kind::Run), now());
    assert!(index.ready(&key()).is_none());
    index.apply(Delivery::ListBegins(Kind::Run), now());
    index.apply(run("r", "b", "6"), now());
    index.apply(Delivery::ListEnds(Kind::Run), now());
    assert!(index.ready(&key()).is_some());
}

#[test]
fn runs_of_one_list_share_a_place_and_later_ones_follow() {
    let mut index = synced(vec![run("r1", "a", "1"), run("r2", "b", "2")]);
    assert_eq!(order(&index, "r1"), order(&index, "r2"));
    index.apply(run("r3", "c", "3"), now());
    index.apply(run("r4", "d", "4"), now());
    assert!(order(&index, "r2") < order(&index, "r3") && order(&index, "r3") < order(&index, "r4"));
    index.apply(run("r1", "a", "9"), now());
    assert!(order(&index, "r1") < order(&index, "r3"), "a change moves no run");
}

#[test]
fn runs_of_one_list_share_a_place_also_when_the_other_list_begins_in_between() {
    let mut index = Index::new(None);
    index.apply(Delivery::ListBegins(Kind::Run), now());
    index.apply(run("r1", "a", "1"), now());
    index.apply(Delivery::ListBegins(Kind::Execution), now());
    index.apply(run("r2", "b", "2"), now());
    assert_eq!(order(&index, "r1"), order(&index, "r2"));
}

#[test]
fn what_a_new_list_does_not_hold_is_gone() {
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
    index.apply(Delivery::ListBegins(Kind::Execution), now());
    index.apply(Delivery::ListEnds(Kind::Execution), now());
    assert!(index.entry(&key()).unwrap().target.executions.is_empty());
    assert_eq!(presence(&index, "r1"), Presence::Gone);
    index.apply(Delivery::RunDeleted(Uid::new("r1"), None), now());
    assert!(index.is_empty());
}

#[test]
fn an_owner_in_a_namespace_that_is_not_watched_is_elsewhere() {
    let index = synced(vec![run("r1", "a", "1")]);
    assert_eq!(presence(&index, "r1"), Presence::Watched);
    let mut index = Index::new(Some("other".to_owned()));
    index.apply(run("r1", "a", "1"), now());
    assert_eq!(presence(&index, "r1"), Presence::Unwatched);
}

#[test]
fn a_refusal_stays_until_the_execution_is_decided() {
    let mut index = synced(vec![execution("a", "1")]);
    let refusal = Refusal { reason: wfe_core::reason::FailureReason::Forbidden, message: "no".into(), number: 1 };
    index.refuse(&key(), &Uid::new("a"), None, refusal.clone());
    index.apply(execution("a", "2"), now());
    let kept = &index.entry(&key()).unwrap().target.executions[&Uid::new("a")].recall().refusal;
    assert_eq!(kept, &Some(refusal));
}

#[test]
fn the_time_for_a_create_begins_anew_when_a_run_was_withdrawn() {
    let mut index = synced(vec![execution("a", "1")]);
    index.tried(&key(), &Uid::new("a"), now());
    index.apply(execution("a", "2"), now());
    assert_eq!(first_try(&index), Some(now()), "a new version changes nothing");
    assert!(!index.entry(&key()).unwrap().beside(&Uid::new("a")).had_run);
    index.apply(run("r", "a", "3"), now());
    index.apply(Delivery::RunDeleted(Uid::new("r"), None), now());
    index.apply(execution("a", "4"), now());
    assert_eq!(first_try(&index), None);
    assert!(index.entry(&key()).unwrap().beside(&Uid::new("a")).had_run);
}

#[test]
fn a_new_term_knows_nothing_of_earlier_tries_and_still_waits_for_its_own_writes() {
    let mut index = synced(vec![execution("a", "1")]);
    let refusal = Refusal { reason: wfe_core::reason::FailureReason::Forbidden, message: "no".into(), number: 1 };
    index.tried(&key(), &Uid::new("a"), now());
    index.refuse(&key(), &Uid::new("a"), None, refusal);
    let trouble = Trouble { kind: TroubleKind::ApiErrors, words: "the API server is away".into() };
    index.trouble(&key(), Some(trouble));
    index.expect(&key(), written("a", "2"), now());
    index.forget_tries();
    let target = &index.entry(&key()).unwrap().target;
    let kept = target.executions[&Uid::new("a")].recall();
    assert_eq!((&kept.refusal, kept.first_try), (&None, None));
    assert_eq!(target.memory.trouble, None);
    assert!(index.ready(&key()).is_none(), "its own write is not seen");
    index.apply(execution("a", "2"), now());
    assert!(index.ready(&key()).is_some());
}

fn first_try(index: &Index) -> Option<Time> {
    let execution = &index.entry(&key()).unwrap().target.executions[&Uid::new("a")];
    assert!(execution.is_undecided(), "{execution:?}");
    execution.recall().first_try
}

/// Returns a decision to create the run of `a`.
fn creates() -> Decision {
    let actions = vec![Action::Create { execution: id("a"), number: 1, at_most: None }];
    Decision { actions, ..Decision::default() }
}

/// Returns a decision that `a` waits for this reason.
fn waits_for(waiting: Waiting) -> Decision {
    Decision { waiting: vec![(id("a"), waiting)], ..Decision::default() }
}

fn trouble(kind: TroubleKind) -> Trouble {
    Trouble { kind, words: "no".into() }
}

#[test]
fn only_time_in_which_a_run_is_tried_counts() {
    let (start, minutes) = (now(), TimeDelta::minutes);
    let mut index = synced(vec![execution("a", "1")]);
    let trying = |index: &mut Index, after: TimeDelta| {
        index.waits(&key(), &creates(), start + after);
        index.tried(&key(), &Uid::new("a"), start + after);
        first_try(index).map(|first| first - start)
    };
    assert_eq!(trying(&mut index, minutes(0)), Some(minutes(0)));
    assert_eq!(trying(&mut index, minutes(4)), Some(minutes(0)), "it has gone on without a break");
    for waiting in [
        Waiting::PausedEverywhere("p".into()),
        Waiting::Turn(Box::new(id("b"))),
        Waiting::Blind("b".into()),
        Waiting::OwnerLate,
    ] {
        index.waits(&key(), &waits_for(waiting.clone()), start + minutes(5));
        assert_eq!(trying(&mut index, minutes(35)), Some(minutes(35)), "{waiting:?} ends it");
    }
    index.waits(&key(), &waits_for(Waiting::TektonUnavailable("t".into())), start + minutes(36));
    assert_eq!(trying(&mut index, minutes(37)), Some(minutes(35)), "the watches have tried");
    index.waits_on(&key(), &waits_for(Waiting::Unseen("w".into())), start + minutes(38));
    assert_eq!(trying(&mut index, minutes(39)), Some(minutes(35)), "it waits for its own write");
    index.trouble(&key(), Some(trouble(TroubleKind::Operator(OwnCause::LacksRight))));
    assert_eq!(trying(&mut index, minutes(60)), Some(minutes(60)), "a right that we lack ends it");
    index.trouble(&key(), Some(trouble(TroubleKind::ApiErrors)));
    index.forget_tries();
    assert_eq!(first_try(&index), None, "another one has led");
}

#[test]
fn a_process_counts_on_from_what_the_status_says_was_tried() {
    let start = now();
    let mut index = synced(vec![execution("a", "1")]);
    let told = Execution {
        waiting_shown: Some(Box::new(wfe_core::execution::WaitingShown {
            reason: "ApiErrors".into(),
            tried: Duration::from_secs(90),
        })),
        ..Execution::undecided(id("a"), Version::new("2"), now())
    };
    let record = ExecutionRecord {
        execution: told,
        target: Some(target()),
        generation: 1,
        request: None,
        redaction: None,
        end: None,
    };
    index.apply(Delivery::Execution(Box::new(record)), start);
    index.tried(&key(), &Uid::new("a"), start);
    assert_eq!(first_try(&index), Some(start - TimeDelta::seconds(90)), "an hour in between counts for nothing");
}

#[test]
fn a_run_was_released_when_its_object_says_or_else_when_that_was_seen() {
    let (start, at) = (now(), |seconds| now() + TimeDelta::seconds(seconds));
    let released = |index: &mut Index, version: &str, said: Option<Time>, seen: Time| {
        let Delivery::Run(chain, mut run) = run("r", "a", version) else { unreachable!() };
        (run.progress, run.released_at) = (Progress::Released, said);
        index.apply(Delivery::Run(chain, run), seen);
        index.entry(&key()).unwrap().target.runs[&Uid::new("r")].released_at
    };
    let mut index = synced(vec![execution("a", "1"), run("r", "a", "2")]);
    assert_eq!(index.entry(&key()).unwrap().target.runs[&Uid::new("r")].released_at, None, "it is pending");
    assert_eq!(released(&mut index, "3", Some(at(99)), at(10)), Some(at(10)), "nobody releases in the future");
    assert_eq!(released(&mut index, "4", None, at(20)), Some(at(10)), "when it was seen first");
    assert_eq!(released(&mut index, "5", Some(start), at(30)), Some(start));
    assert_eq!(released(&mut index, "6", None, at(40)), Some(start), "somebody has taken it off");
}

#[test]
fn a_run_that_could_not_be_released_is_remembered_with_the_words_until_its_execution_has_ended() {
    let running = |version: &str| {
        let state = ExecutionState::Running {
            run: Some(RunId { name: "wfe-x-1".into(), uid: Uid::new("r") }),
            started_at: Some(now()),
        };
        let execution = Execution { state, ..Execution::undecided(id("a"), Version::new(version), now()) };
        let record = ExecutionRecord {
            execution,
            target: Some(target()),
            generation: 1,
            request: None,
            redaction: None,
            end: None,
        };
        Delivery::Execution(Box::new(record))
    };
    let mut index = synced(vec![running("1"), run("r", "a", "2")]);
    let tried = |index: &Index| index.entry(&key()).unwrap().target.runs[&Uid::new("r")].memory.release_tried;
    let release = Action::Change(Change {
        run: RunId { name: "wfe-x-1".into(), uid: Uid::new("r") },
        facts: Vec::new(),
        to: RunChange::Released,
    });
    let releases = Decision { actions: vec![release], ..Decision::default() };
    index.release_tried(&key(), &Uid::new("r"), now());
    index.waits(&key(), &releases, now());
    index.apply(run("r", "a", "3"), now());
    assert_eq!(tried(&index), Some(now()), "a new version changes nothing");
    let run = RunId { name: "wfe-x-1".into(), uid: Uid::new("r") };
    let deletes = Action::Change(Change {
        run,
        facts: vec![],
        to: RunChange::Deleted { version: Version::new("3"), why: Unneeded::Unreleased },
    });
    index.waits(&key(), &Decision { actions: vec![deletes], ..Decision::default() }, now());
    assert_eq!(tried(&index), Some(now()), "the deletion may fail");
    index.waits(&key(), &Decision::default(), now());
    assert_eq!(tried(&index), None, "it is not tried any more");
    index.trouble(&key(), Some(trouble(TroubleKind::ApiErrors)));
    index.unreleased(&key(), &Uid::new("r"));
    index.apply(Delivery::RunDeleted(Uid::new("r"), None), now());
    index.apply(running("4"), now());
    let kept = &index.entry(&key()).unwrap().target.executions[&Uid::new("a")].recall().lost_proof;
    assert_eq!(kept, &Some(Lost::Unreleased(trouble(TroubleKind::ApiErrors))));
}

#[test]
fn a_write_that_no_watch_delivers_is_read_live_after_half_a_minute() {
    let later = |seconds| now() + chrono::TimeDelta::seconds(seconds);
    let awaiting = |expected: &Expected| {
        let mut index = synced(vec![execution("a", "5"), run("r", "a", "6")]);
        index.expect(&key(), expected.clone(), now());
        assert_eq!(index.awaits(&key()), Some((expected, later(30))));
        assert_eq!(index.take_overdue(&key(), later(29)), []);
        assert_eq!(index.take_overdue(&key(), later(30)), std::slice::from_ref(expected));
        assert_eq!(index.awaits(&key()), Some((expected, later(60))), "it is read again");
        index
    };
    let absence = Expected::Absence { object: object(Kind::Run, "r") };
    for (expected, live, is_over) in [
        (made("lost", "9"), Live::Gone, true),
        (made("lost", "9"), Live::There, false),
        (written("a", "9"), Live::Gone, true),
        (written("a", "9"), Live::There, false),
        (absence.clone(), Live::Gone, true),
        (absence.clone(), Live::There, true),
    ] {
        let mut index = awaiting(&expected);
        index.read_live(&key(), &expected, live);
        assert_eq!(index.ready(&key()).is_some(), is_over, "{expected:?} {live:?}");
    }
    let mut index = awaiting(&absence);
    index.read_live(&key(), &absence, Live::Gone);
    assert!(index.entry(&key()).unwrap().target.runs.is_empty(), "what is gone is gone");
}

#[test]
fn a_run_that_was_pending_when_it_was_deleted_never_started() {
    let lost = |seen: Delivery, last: Option<Delivery>| {
        let mut index = synced(vec![running("1"), seen]);
        let last = last.and_then(|last| if let Delivery::Run(_, run) = last { Some(run) } else { None });
        index.apply(Delivery::RunDeleted(Uid::new("r1"), last), now());
        index.entry(&key()).unwrap().target.executions[&Uid::new("a")].recall().lost_proof.clone()
    };
    let pending = || run("r1", "a", "2");
    let never = Some(Lost::Vanished(Started::NotStarted(Absence::NoRun)));
    assert_eq!(lost(pending(), Some(pending())), never);
    assert_eq!(lost(pending(), Some(released(pending()))), None);
    assert_eq!(lost(released(pending()), Some(pending())), None);
    assert_eq!(lost(pending(), None), None, "a list does not say what it was at the end");
}

#[test]
fn the_reason_of_a_pause_is_cut_and_shared() {
    let huge =
        json!({"metadata": {"name": "ops", "uid": "ns", "annotations": {"kubernaut.ai/paused": "x".repeat(200_000)}}});
    let mut index = synced(vec![execution("a", "1"), execution("b", "1")]);
    let delivery = crate::read::read(Kind::Namespace, &serde_json::from_value(huge).unwrap(), "runs").unwrap();
    index.apply(delivery, now());
    let executions = &index.entry(&key()).unwrap().target.executions;
    let why = |uid: &str| executions[&Uid::new(uid)].paused.clone().unwrap();
    assert!(why("a").why.chars().count() <= 1024, "{}", why("a").why.len());
    assert!(Arc::ptr_eq(&why("a"), &why("b")));
}
