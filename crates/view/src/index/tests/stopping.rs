//! Tests what the index remembers about a run that is to stop.

use super::*;
use wfe_core::run::{Outcome, StopRequest};

/// Returns a run in progress that is to stop. `since` is the time in the request.
fn stops(version: &str, since: Option<Time>) -> Delivery {
    changed(released(run("r1", "a", version)), |run| {
        (run.cancelled, run.stop) = (true, Some(Box::new(StopRequest { since, asked: 1, ..StopRequest::default() })));
    })
}

/// Returns a run in progress whose deletion began at `now()`.
fn leaves(version: &str) -> Delivery {
    changed(released(run("r1", "a", version)), |run| {
        let stop = StopRequest { since: Some(now()), deleted_at: Some(now()), ..StopRequest::default() };
        (run.deleting, run.stop) = (true, Some(Box::new(stop)));
    })
}

fn changed(mut delivery: Delivery, change: impl FnOnce(&mut Run)) -> Delivery {
    if let Delivery::Run(_, run) = &mut delivery {
        change(run);
    }
    delivery
}

fn stop(index: &Index) -> StopRequest {
    run_of(index).stop.as_deref().unwrap().clone()
}

fn minutes(count: u64) -> Time {
    now() + Duration::from_secs(60 * count)
}

#[test]
fn a_request_without_a_time_counts_from_when_it_was_first_seen() {
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
    index.apply(stops("2", None), minutes(1));
    index.apply(stops("3", None), minutes(5));
    assert_eq!(stop(&index).since, Some(minutes(1)));
    index.apply(stops("4", Some(minutes(2))), minutes(6));
    assert_eq!(stop(&index).since, Some(minutes(2)), "then the operator asked, and wrote down when");
    index.apply(stops("5", Some(minutes(60))), minutes(7));
    index.apply(stops("6", Some(minutes(60))), minutes(8));
    assert_eq!(stop(&index).since, Some(minutes(2)), "that is by another clock");
}

#[test]
fn that_it_was_asked_for_and_told_is_known_until_the_term_ends() {
    let mut index = synced(vec![execution("a", "1"), stops("1", Some(now()))]);
    let uid = Uid::new("r1");
    index.cancel_asked(&key(), &uid, minutes(1));
    index.cancel_told(&key(), &uid);
    index.apply(stops("2", Some(now())), minutes(2));
    assert_eq!((stop(&index).asked_at, stop(&index).told), (Some(minutes(1)), true));
    index.forget_tries();
    assert_eq!((stop(&index).asked_at, stop(&index).told), (None, true), "this term begins with a request");
}

/// The run was seen to be done, but the API server did not answer any examination for two minutes.
#[test]
fn patience_with_a_look_counts_from_the_first_answer() {
    let done = Progress::Done(Outcome {
        succeeded: false,
        reason: "Failed".into(),
        message: "".into(),
        completed_at: Some(minutes(0)),
    });
    let ended = changed(released(run("r1", "a", "2")), |run| run.progress = done);
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
    index.apply(ended, minutes(0));
    assert_eq!(run_of(&index).memory.done_seen, Some(minutes(0)));
    index.looked(&key(), &Uid::new("r1"), Findings::unread("why".into()), false, minutes(2));
    assert_eq!(run_of(&index).memory.diagnosed.as_ref().map(|look| look.since), Some(minutes(2)));
}

#[test]
fn a_new_term_has_examined_nothing() {
    let mut index = synced(vec![execution("a", "1"), run("r1", "a", "1")]);
    let looked = |index: &mut Index, at| {
        index.looked(&key(), &Uid::new("r1"), Findings::unread("why".into()), false, at);
        run_of(index).memory.diagnosed.as_ref().map(|look| look.since)
    };
    assert_eq!(looked(&mut index, minutes(0)), Some(minutes(0)));
    assert_eq!(looked(&mut index, minutes(1)), Some(minutes(0)), "patience counts from the first answer");
    index.forget_tries();
    assert_eq!(looked(&mut index, minutes(2)), Some(minutes(2)));
}

#[test]
fn since_when_nothing_of_a_run_is_seen_begins_anew_when_something_is() {
    let mut index = synced(vec![execution("a", "1"), leaves("1")]);
    let decided = |index: &mut Index, at| {
        index.waits(&key(), &Decision::default(), at);
        stop(index).bare_since
    };
    assert_eq!(decided(&mut index, minutes(1)), Some(minutes(1)));
    assert_eq!(decided(&mut index, minutes(2)), Some(minutes(1)));
    index.apply(seen_pod("pod", "Running"), minutes(3));
    assert_eq!(decided(&mut index, minutes(3)), None);
    index.apply(seen_pod("pod", "Succeeded"), minutes(4));
    assert_eq!(decided(&mut index, minutes(4)), Some(minutes(4)));
}

#[test]
fn a_run_is_over_when_it_is_being_deleted_and_a_look_finds_nothing_of_it() {
    let over = |delivery: Delivery, is_bare| {
        let mut index = synced(vec![execution("a", "1"), delivery]);
        index.looked(&key(), &Uid::new("r1"), Findings::unread("why".into()), is_bare, now());
        index.apply(leaves("2"), now());
        !run_of(&index).is_unfinished()
    };
    assert!(over(leaves("1"), true), "and stays so");
    assert!(!over(leaves("1"), false), "something is left");
    assert!(!over(stops("1", None), true), "Tekton can still make tasks of it");
}
