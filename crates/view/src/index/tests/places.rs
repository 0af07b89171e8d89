//! Tests places in the index: which places targets hold, which single target a free place wakes, and what stays after a
//! change of limits.

use wfe_core::decide::decide;
use wfe_core::limit::{Limit, Limits};
use wfe_core::policy::Policy;

use super::*;

fn at(second: i64) -> Time {
    now() + TimeDelta::seconds(second)
}

fn limits(max_running: u32) -> Limits {
    let limit = Limit { name: "all".into(), kind: None, workflow_id: None, namespace: None, max_running };
    [limit].into_iter().collect()
}

fn node(n: u32) -> TargetName {
    TargetName::parse(&format!("node/n{n}")).unwrap()
}

fn key_of(n: u32) -> Key {
    Key::Chain(node(n).chain())
}

/// Returns the execution of the n-th target in this state, created at second `n`.
fn on(n: u32, state: ExecutionState) -> Delivery {
    let execution =
        Execution { state, ..Execution::undecided(id(&format!("e{n}")), Version::new("1"), at(i64::from(n))) };
    Delivery::Execution(Box::new(ExecutionRecord {
        execution,
        target: Some(node(n)),
        generation: 1,
        request: None,
        redaction: None,
        end: None,
    }))
}

fn asks(n: u32) -> Delivery {
    on(n, ExecutionState::Undecided { unusable: None, start_before: None })
}

fn runs(n: u32) -> Delivery {
    on(n, ExecutionState::Running { run: None, started_at: Some(at(0)) })
}

fn ended(n: u32) -> Delivery {
    on(n, ExecutionState::Completed { started_at: Some(at(0)), completed_at: Some(at(9)) })
}

/// Decides on targets as the engine does. Returns the numbers of those whose execution creates its run.
fn decide_on(index: &mut Index, limits: &Limits, numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let policy = Policy { limits: limits.clone(), cooldown_period: Duration::ZERO, ..Policy::default() };
    let mut created = Vec::new();
    for n in numbers {
        let key = key_of(n);
        index.show_places(&key, limits, at(20));
        let Some(entry) = index.ready(&key) else { continue };
        let decision = decide(&entry.target, &policy, at(20));
        index.ask_for_places(&key, &decision, at(20));
        created.extend(decision.actions.iter().any(|it| matches!(it, Action::Create { .. })).then_some(n));
    }
    created
}

/// Gives places, and returns the targets that this wakes.
fn woken(index: &mut Index, second: i64) -> Vec<u32> {
    index.take_dirty();
    index.give_places(at(second));
    let dirty = index.take_dirty();
    (0..100).filter(|n| dirty.contains(&key_of(*n))).collect()
}

fn counts(index: &Index) -> Vec<(u32, usize, u64)> {
    index.limit_counts().into_iter().map(|it| (it.count.running, it.count.waiting, it.given)).collect()
}

#[test]
fn a_free_place_wakes_the_oldest_and_a_used_one_counts_until_its_target_is_free() {
    let limits = limits(2);
    let mut index = synced((1..=5).map(asks).collect());
    assert_eq!(decide_on(&mut index, &limits, 1..=5), [0; 0]);
    assert_eq!(woken(&mut index, 20), [1, 2]);
    assert_eq!(decide_on(&mut index, &limits, [2, 1, 3]), [2, 1]);
    assert_eq!((woken(&mut index, 20), counts(&index)), (vec![], vec![(2, 3, 2)]));
    // Given places count until the view shows the runs; then the runs count.
    for n in [1, 2] {
        index.apply(runs(n), at(21));
    }
    index.give_places(at(21));
    decide_on(&mut index, &limits, [1, 2]);
    assert_eq!(counts(&index), [(2, 3, 2)]);
    index.apply(ended(2), at(22));
    index.give_places(at(22));
    assert_eq!(decide_on(&mut index, &limits, [2, 3, 4]), [3]);
    index.apply(Delivery::ExecutionDeleted(Uid::new("e3")), at(23));
    index.give_places(at(23));
    assert_eq!(counts(&index), [(2, 1, 4)], "a waiter that is gone gives its place to the next");
}

#[test]
fn a_new_term_counts_what_is_there_and_gives_nothing_before_each_target_was_decided_on() {
    let limits = limits(2);
    let mut index = synced(vec![runs(1), asks(2), asks(3)]);
    decide_on(&mut index, &limits, [3]);
    assert_eq!(woken(&mut index, 20), [0; 0]);
    decide_on(&mut index, &limits, [1, 2]);
    assert_eq!(woken(&mut index, 20), [2]);
    index.forget_places();
    assert_eq!(counts(&index), []);
    decide_on(&mut index, &limits, [1, 2, 3]);
    assert_eq!((woken(&mut index, 20), counts(&index)), (vec![2], vec![(2, 1, 2)]));
}

#[test]
fn other_limits_keep_the_places_that_were_given() {
    let mut index = synced((1..=3).map(asks).collect());
    decide_on(&mut index, &limits(1), 1..=3);
    assert_eq!(woken(&mut index, 20), [1]);
    assert_eq!(decide_on(&mut index, &limits(2), [1, 2, 3]), [1]);
    assert_eq!((woken(&mut index, 20), counts(&index)), (vec![2], vec![(2, 1, 2)]));
    assert_eq!(decide_on(&mut index, &Limits::default(), [3]), [3]);
    assert_eq!((woken(&mut index, 20), counts(&index)), (vec![], vec![]));
}

#[test]
fn during_a_list_nothing_is_given() {
    let limits = limits(1);
    let mut index = synced(vec![asks(1)]);
    decide_on(&mut index, &limits, [1]);
    index.apply(Delivery::ListBegins(Kind::Run), at(20));
    assert_eq!(woken(&mut index, 20), [0; 0]);
    index.apply(Delivery::ListEnds(Kind::Run), at(21));
    index.take_dirty();
    assert_eq!(woken(&mut index, 21), [1]);
}
