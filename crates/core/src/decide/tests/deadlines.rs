//! Deadlines of our own, retention.

use super::*;

#[test]
fn a_released_run_of_which_nothing_starts_is_cancelled_at_the_start_deadline() {
    let mut released = run(1, "a", Progress::Released);
    let cancel = |why| Action::Cancel { run: run_id("r1"), why, gone: None };
    let deadline = at(0) + Policy::default().start_deadline;
    let early = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), at(50));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancel(CancelReason::NotStarted)]);

    released.seen.has_stirred = true;
    let deadline = at(0) + Policy::default().default_timeout + Duration::from_mins(1);
    let early = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), at(400));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancel(CancelReason::TimedOut)]);

    released.cancelled = true;
    let asked = decide(&target(vec![running("a", "r1")], vec![released]), &Policy::default(), deadline);
    assert_eq!((asked.actions, asked.wake), (vec![], None), "asked once");
}

#[test]
fn a_default_time_out_that_changes_does_not_reach_what_runs() {
    let mut released = run(1, "a", Progress::Released);
    released.seen.has_stirred = true;
    released.timeout = Some(Duration::from_hours(2));
    let deadline = at(0) + Duration::from_hours(2) + Duration::from_mins(1);
    let policy = Policy { default_timeout: Duration::from_secs(1), ..Policy::default() };
    let decided = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &policy, at(400));
    assert_eq!((decided.actions, decided.wake), (vec![], Some(deadline)));
    let mut own = running("a", "r1");
    own.timeout = Some(Duration::from_mins(10));
    let decided = decide(&target(vec![own], vec![released]), &policy, at(400));
    assert_eq!(
        decided.wake,
        Some(at(0) + Duration::from_mins(11)),
        "that of its own spec is what the run was made with"
    );
}

#[test]
fn the_message_of_a_run_that_we_cancelled_says_why() {
    for (why, reason, words) in [
        (CancelReason::NotStarted, FailureReason::Unknown, "within 5m0s"),
        (CancelReason::TimedOut, FailureReason::DeadlineExceeded, "time-out of 30m0s"),
        (CancelReason::Requested, FailureReason::Unknown, "cancelled by jo: enough"),
    ] {
        let mut stopped = run(1, "a", done(false));
        stopped.cancel_reason = Some(why);
        stopped.cancelled = true;
        let mut owner = running("a", "r1");
        owner.cancellation = Some(Box::new(Cancellation { reason: "enough".into(), requested_by: "jo".into() }));
        let decided = actions(&target(vec![owner], vec![stopped]));
        let [Action::Finish { ending: Ending::Failed(failure), .. }] = &decided[..] else { panic!("{decided:?}") };
        assert_eq!(failure.reason, reason);
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

#[test]
fn a_create_that_does_not_get_through_fails_at_the_start_deadline_and_says_what_stood_in_the_way() {
    let tried = |first_try| {
        let mut trying = undecided("a");
        if let ExecutionState::Undecided { first_try: slot, .. } = &mut trying.state {
            *slot = Some(first_try);
        }
        let trouble = Some("cannot create: no answer".into());
        Target { trouble, ..target(vec![trying], vec![]) }
    };
    let deadline = at(0) + Policy::default().start_deadline;
    let early = decide(&tried(at(0)), &Policy::default(), at(5));
    assert_eq!(early.actions, [create("a", 1)]);
    assert_eq!(early.waiting, [(id("a"), Waiting::ApiErrors("cannot create: no answer".into()))]);
    let late = decide(&tried(at(0)), &Policy::default(), deadline).actions;
    let [Action::Finish { ending: Ending::Failed(failure), .. }] = &late[..] else { panic!("{late:?}") };
    assert_eq!((failure.reason, failure.was_execution_failure()), (FailureReason::Unknown, false));
    assert!(failure.message.contains("cannot create: no answer"), "{}", failure.message);
}

#[test]
fn a_finished_run_is_deleted_when_it_has_expired_and_nothing_needs_it() {
    let expired = at(40) + Policy::default().retention;
    let delete = deleted("r1", Unneeded::Expired, None);
    let kept = target(vec![failed("a")], vec![run(1, "a", done(false))]);
    assert_eq!(decide(&kept, &Policy::default(), at(50)).wake, Some(expired));
    assert_eq!(decide(&kept, &Policy::default(), expired).actions, std::slice::from_ref(&delete));
    let orphan = target(vec![], vec![run(1, "a", done(false))]);
    assert_eq!(decide(&orphan, &Policy::default(), expired).actions, [deleted("r1", Unneeded::Expired, Some("a"))]);

    let drains = left(kept.clone(), pod("a"));
    assert!(!decide(&drains, &Policy::default(), expired).actions.contains(&delete));
    let owner_runs = target(vec![running("a", "r1")], vec![run(1, "a", done(false))]);
    assert!(!decide(&owner_runs, &Policy::default(), expired).actions.contains(&delete));
    let newer =
        target(vec![failed("a"), running("b", "r2")], vec![run(1, "a", done(false)), run(2, "b", Progress::Released)]);
    assert!(!decide(&newer, &Policy::default(), expired).actions.contains(&delete));
}
