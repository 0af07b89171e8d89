use super::*;
use wfe_core::name::{RunId, Version};
use wfe_core::run::Progress;

const TARGET: &str = "node/worker-1";

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
    let execution = Execution {
        id: id(uid),
        version: Version::new(version),
        created: wfe_core::Time::default(),
        deleting: false,
        workflow_id: "wf".into(),
        run_sequence: None,
        state: ExecutionState::Undecided { unusable: None, refusal: None },
    };
    Delivery::Execution(Box::new(ExecutionRecord { execution, target: Some(target()), generation: 1, request: None }))
}

fn run(uid: &str, owner: &str, version: &str) -> Delivery {
    let run = Run {
        id: RunId { name: "wfe-x-1".into(), uid: Uid::new(uid) },
        number: 1,
        version: Version::new(version),
        created: wfe_core::Time::default(),
        order: Order(0),
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        progress: Progress::Pending,
        cancelled: false,
    };
    Delivery::Run(target().chain(), Box::new(run))
}

/// An index with both lists done; `listed` was in them.
fn synced(listed: Vec<Delivery>) -> Index {
    let mut index = Index::new(Some("ops".to_owned()));
    let begun = Kind::ALL.map(Delivery::ListBegins);
    let ended = Kind::ALL.map(Delivery::ListEnds);
    for delivery in begun.into_iter().chain(listed).chain(ended) {
        index.apply(delivery);
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

fn written(uid: &str, version: &str) -> Expected {
    Expected::Version { kind: Kind::Execution, uid: Uid::new(uid), version: Version::new(version) }
}

#[test]
fn nothing_is_ready_before_both_lists_are_complete() {
    let mut index = Index::new(None);
    index.apply(Delivery::ListBegins(Kind::Execution));
    index.apply(execution("a", "1"));
    index.apply(Delivery::ListEnds(Kind::Execution));
    assert!(index.ready(&key()).is_none());
    index.apply(Delivery::ListBegins(Kind::Run));
    index.apply(Delivery::ListEnds(Kind::Run));
    assert!(index.ready(&key()).is_some());
    assert!(index.take_dirty().contains(&key()));
}

#[test]
fn a_target_is_held_back_until_its_own_write_is_delivered() {
    let mut index = synced(vec![execution("a", "5")]);
    index.expect(&key(), written("a", "9"));
    assert!(index.ready(&key()).is_none());
    index.apply(execution("a", "8"));
    assert!(index.ready(&key()).is_none());
    index.apply(execution("a", "10"));
    assert!(index.ready(&key()).is_some());
}

#[test]
fn an_answer_that_comes_after_its_delivery_holds_nothing_back() {
    let mut index = synced(vec![execution("a", "9")]);
    index.expect(&key(), written("a", "9"));
    index.expect(&key(), Expected::Absence { uid: Uid::new("r") });
    assert!(index.ready(&key()).is_some());
}

#[test]
fn a_deletion_ends_the_wait_for_its_object() {
    let mut index = synced(vec![execution("a", "5"), execution("b", "5")]);
    index.expect(&key(), written("a", "9"));
    index.apply(Delivery::ExecutionDeleted(Uid::new("a")));
    assert!(index.ready(&key()).is_some());
}

#[test]
fn a_list_that_began_after_a_write_ends_the_wait_for_an_object_that_it_does_not_hold() {
    let mut index = synced(vec![execution("b", "5"), run("r", "b", "6")]);
    let created = |uid: &str| Expected::Version { kind: Kind::Run, uid: Uid::new(uid), version: Version::new("7") };
    // While this list is under way the write may be newer than it: the wait goes on.
    index.apply(Delivery::ListBegins(Kind::Run));
    index.expect(&key(), created("lost"));
    index.apply(run("r", "b", "6"));
    index.apply(Delivery::ListEnds(Kind::Run));
    assert!(index.ready(&key()).is_none());
    index.apply(Delivery::ListBegins(Kind::Run));
    index.apply(run("r", "b", "6"));
    index.apply(Delivery::ListEnds(Kind::Run));
    assert!(index.ready(&key()).is_some());
}

#[test]
fn runs_of_one_list_share_a_place_and_later_ones_follow() {
    let mut index = synced(vec![run("r1", "a", "1"), run("r2", "b", "2")]);
    assert_eq!(order(&index, "r1"), order(&index, "r2"));
    index.apply(run("r3", "c", "3"));
    index.apply(run("r4", "d", "4"));
    assert!(order(&index, "r2") < order(&index, "r3") && order(&index, "r3") < order(&index, "r4"));
    index.apply(run("r1", "a", "9"));
    assert!(order(&index, "r1") < order(&index, "r3"), "a change moves no run");
}

#[test]
fn runs_of_one_list_share_a_place_also_when_the_other_list_begins_in_between() {
    let mut index = Index::new(None);
    index.apply(Delivery::ListBegins(Kind::Run));
    index.apply(run("r1", "a", "1"));
    index.apply(Delivery::ListBegins(Kind::Execution));
    index.apply(run("r2", "b", "2"));
    assert_eq!(order(&index, "r1"), order(&index, "r2"));
}

#[test]
fn what_a_new_list_does_not_hold_is_gone() {
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
    index.apply(Delivery::ListBegins(Kind::Execution));
    index.apply(Delivery::ListEnds(Kind::Execution));
    assert!(index.entry(&key()).unwrap().target.executions.is_empty());
    assert_eq!(presence(&index, "r1"), Presence::Gone);
    index.apply(Delivery::RunDeleted(Uid::new("r1")));
    assert!(index.is_empty());
}

#[test]
fn an_owner_in_a_namespace_that_is_not_watched_is_elsewhere() {
    let index = synced(vec![run("r1", "a", "1")]);
    assert_eq!(presence(&index, "r1"), Presence::Watched);
    let mut index = Index::new(Some("other".to_owned()));
    index.apply(run("r1", "a", "1"));
    assert_eq!(presence(&index, "r1"), Presence::Elsewhere);
}

#[test]
fn a_refusal_stays_until_the_execution_is_decided() {
    let mut index = synced(vec![execution("a", "1")]);
    let refusal = Refusal { reason: wfe_core::ending::FailureReason::Forbidden, message: "no".into(), number: 1 };
    index.refuse(&key(), &Uid::new("a"), refusal.clone());
    index.apply(execution("a", "2"));
    let state = &index.entry(&key()).unwrap().target.executions[&Uid::new("a")].state;
    assert_eq!(*state, ExecutionState::Undecided { unusable: None, refusal: Some(refusal) });
}
