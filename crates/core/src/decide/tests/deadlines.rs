//! The operator's own deadlines, and retention.

use std::time::Duration;

use super::*;
use crate::run::{Run, Stays};
use crate::tries::Trouble;
use crate::trouble::{OwnCause, OwnTrouble};

/// The second of a release long after the commit, which was at second 0.
const RELEASED: i64 = 10_000;

/// A run that was released long after the commit, because the operator was away in between.
fn released() -> Run {
    Run { released_at: Some(at(RELEASED)), ..run(1, "a", Progress::Released) }
}

#[test]
fn a_released_run_of_which_nothing_starts_is_cancelled_at_the_start_deadline_from_its_release() {
    let mut released = released();
    let cancel = |why| cancels("r1", why);
    let deadline = at(RELEASED) + Policy::default().start_deadline;
    let early =
        decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), at(RELEASED + 50));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancel(CancelReason::NotStarted)]);

    released.memory.seen.has_started_anything = true;
    let deadline = at(RELEASED) + Policy::default().default_timeout + Duration::from_mins(1);
    let early =
        decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), at(RELEASED + 400));
    assert_eq!((early.actions, early.wake), (vec![], Some(deadline)));
    let late = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancel(CancelReason::TimedOut)]);

    released.cancelled = true;
    let asked = decide(&target(vec![running("a", "r1")], vec![released]), &Policy::default(), deadline);
    assert_eq!((asked.actions, asked.wake), (vec![], None), "asked once");
}

#[test]
fn where_both_deadlines_are_one_moment_the_time_out_is_told() {
    let mut execution = running("a", "r1");
    execution.timeout = Some(Policy::default().start_deadline.saturating_sub(Duration::from_mins(1)));
    let deadline = at(RELEASED) + Policy::default().start_deadline;
    let late = decide(&target(vec![execution], vec![released()]), &Policy::default(), deadline);
    assert_eq!(late.actions, [cancels("r1", CancelReason::TimedOut)]);
}

#[test]
fn a_run_that_waited_long_for_its_release_is_released_and_not_cancelled() {
    let pending = Run { released_at: None, ..run(1, "a", Progress::Pending) };
    let decided = decide(&target(vec![running("a", "r1")], vec![pending]), &Policy::default(), at(RELEASED));
    assert_eq!(decided.actions, [releases("r1")]);
}

/// A committed execution. The operator has tried to release its run since a second.
fn refused(first_try: Option<i64>, trouble: Option<Trouble>) -> Target {
    let mut pending = Run { released_at: None, ..run(1, "a", Progress::Pending) };
    pending.memory.release_tried = first_try.map(at);
    troubled(target(vec![running("a", "r1"), undecided("b")], vec![pending]), trouble)
}

#[test]
fn a_release_that_is_refused_until_the_start_deadline_is_given_up_in_the_version_in_which_it_is_pending() {
    let decided = |target: &Target, now| {
        let decision = decide(target, &Policy::default(), now);
        assert_eq!(crate::check::violations(target, &Policy::default(), now, &decision), []);
        let acts = |action: &Action| {
            matches!(action, Action::Change(Change { to: RunChange::Released | RunChange::Deleted { .. }, .. }))
        };
        (decision.actions.into_iter().filter(acts).collect::<Vec<_>>(), decision.wake)
    };
    let release = vec![releases("r1")];
    let deadline = at(RELEASED) + Policy::default().start_deadline;
    let tried = refused(Some(RELEASED), Some(no_answer()));
    assert_eq!(decided(&tried, at(RELEASED + 299)), (release.clone(), Some(deadline)));
    assert_eq!(decided(&tried, deadline).0, [deleted("r1", Unneeded::Unreleased, None)]);
    for (why, target) in [
        ("nobody has tried", refused(None, Some(no_answer()))),
        ("nobody has refused", refused(Some(RELEASED), None)),
        ("it is the operator that lacks a right", refused(Some(RELEASED), Some(forbidden()))),
    ] {
        assert_eq!(decided(&target, deadline).0, release, "{why}");
    }
    // An operator without retries wrote no number into the status.
    for run_sequence in [Some(1), None] {
        let mut again = refused(Some(RELEASED), Some(no_answer()));
        let tried_again = Execution { run_sequence, ..with_retry(retry_policy(), vec![], running("a", "r1")) };
        again.executions.insert(tried_again.id.uid.clone(), tried_again);
        assert_eq!(decided(&again, deadline).0, [deleted("r1", Unneeded::Unreleased, None)], "{run_sequence:?}");
    }
}

#[test]
fn an_execution_whose_run_was_never_released_ends_as_one_that_never_started() {
    let mut over = running("a", "r1");
    over.remember().lost_proof = Some(Lost::Unreleased(no_answer()));
    let view = target(vec![over, undecided("b")], vec![]);
    let decision = decide(&view, &Policy::default(), at(RELEASED));
    assert_eq!(crate::check::violations(&view, &Policy::default(), at(RELEASED), &decision), []);
    let [Action::Write(Write { execution, facts, says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] =
        &decision.actions[..]
    else {
        panic!("{decision:?}")
    };
    let gone = [Fact::RunGone(id("a"), run_id("r1"))];
    assert_eq!((execution, &facts[..]), (&id("a"), &gone[..]), "it is read live that the run is gone");
    assert_eq!((failure.reason, failure.was_execution_failure()), (FailureReason::Unknown, false));
    assert_eq!(failure.charge.consecutive_failures, 1);
    assert!(failure.message.contains("within 5m0s") && failure.message.contains("no answer"), "{}", failure.message);
    assert_eq!(decision.waiting, [(id("b"), Waiting::OwnerLate)], "the target is not free before that is written");
}

#[test]
fn a_default_time_out_that_changes_does_not_reach_what_runs() {
    let mut released = released();
    released.memory.seen.has_started_anything = true;
    released.timeout = Some(Duration::from_hours(2));
    let deadline = at(RELEASED) + Duration::from_hours(2) + Duration::from_mins(1);
    let policy = Policy { default_timeout: Duration::from_secs(1), ..Policy::default() };
    let decided = decide(&target(vec![running("a", "r1")], vec![released.clone()]), &policy, at(RELEASED + 400));
    assert_eq!((decided.actions, decided.wake), (vec![], Some(deadline)));
    let mut own = running("a", "r1");
    own.timeout = Some(Duration::from_mins(10));
    let decided = decide(&target(vec![own], vec![released]), &policy, at(RELEASED + 400));
    assert_eq!(
        decided.wake,
        Some(at(RELEASED) + Duration::from_mins(11)),
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
        let mut stopped = looked(run(1, "a", done(false)));
        if let Some(look) = &mut stopped.memory.diagnosed {
            look.findings.was_cancelled = true;
        }
        stopped.cancel_reason = Some(why);
        stopped.cancelled = true;
        let mut owner = running("a", "r1");
        owner.cancellation = Some(Box::new(cancellation(None)));
        let decided = actions(&target(vec![owner], vec![stopped]));
        let failure = only_failure(&decided);
        assert_eq!(failure.reason, reason);
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

/// An execution whose run the operator has tried to create since a second, and a rival.
fn tried(first_try: i64, trouble: Trouble) -> Target {
    let mut trying = undecided("a");
    trying.remember().first_try = Some(at(first_try));
    troubled(target(vec![trying, undecided("b")], vec![]), Some(trouble))
}

#[test]
fn a_create_that_does_not_get_through_fails_at_the_start_deadline_and_says_what_stood_in_the_way() {
    let deadline = at(0) + Policy::default().start_deadline;
    let early = decide(&tried(0, no_answer()), &Policy::default(), at(5));
    assert_eq!(early.actions, [create("a", 1)]);
    assert_eq!(early.waiting[1], (id("a"), Waiting::ApiErrors("cannot create: no answer".into())));
    for (trouble, reason, words) in [
        (no_answer(), FailureReason::Unknown, "within 5m0s: cannot create: no answer"),
        (without_tekton(), FailureReason::ConfigurationError, "install Tekton: 404 page not found"),
    ] {
        let late = decide(&tried(0, trouble), &Policy::default(), deadline).actions;
        let failure = only_failure(&late);
        assert_eq!((failure.reason, failure.was_execution_failure()), (reason, false));
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

#[test]
fn a_right_that_the_operator_lacks_fails_nobody_however_long_it_takes() {
    let decision = decide(&tried(0, forbidden()), &Policy::default(), at(1_000_000));
    assert_eq!(decision.actions, [create("a", 1)]);
    let lacks_right = OwnTrouble { cause: OwnCause::LacksRight, words: "cannot create: forbidden".into() };
    assert_eq!(decision.waiting[1], (id("a"), Waiting::Operator(lacks_right)));
}

#[test]
fn who_was_tried_when_tektons_kinds_went_missing_waits_for_them_and_fails_at_the_start_deadline() {
    let policy = Policy::default();
    let blind = |second| {
        let mut view = tried(0, without_tekton());
        view.executions.values_mut().for_each(|it| it.remember().waits_since = Some(at(second)));
        decide_blind(&view, &policy, "cannot watch pipelineruns", |_| false, at(second))
    };
    let early = blind(299);
    assert_eq!((early.actions, early.wake), (vec![], Some(at(300))));
    let waits = Waiting::TektonUnavailable("404 page not found".into());
    let cannot_see = Waiting::Blind("cannot watch pipelineruns".into());
    assert_eq!(early.waiting, [(id("a"), waits), (id("b"), cannot_see.clone())]);
    let late = blind(300);
    let [Action::Write(Write { execution, says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] =
        &late.actions[..]
    else {
        panic!("{late:?}")
    };
    assert_eq!((execution, failure.reason), (&id("a"), FailureReason::ConfigurationError));
    assert_eq!(late.waiting, [(id("b"), cannot_see)], "it has not been tried");
}

#[test]
fn a_target_that_cannot_be_seen_fails_an_execution_only_for_missing_kinds_and_not_while_it_is_being_deleted() {
    let blind = |view: &Target| decide_blind(view, &Policy::default(), "cannot watch pods", |_| false, at(1000));
    for trouble in [no_answer(), forbidden()] {
        let decision = blind(&tried(0, trouble));
        let cannot_see = |uid| (id(uid), Waiting::Blind("cannot watch pods".into()));
        assert_eq!((decision.actions, decision.waiting), (vec![], vec![cannot_see("a"), cannot_see("b")]));
    }
    let mut leaving = tried(0, without_tekton());
    leaving.executions.values_mut().for_each(|it| it.deleting = true);
    assert_eq!(blind(&leaving).actions, []);
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

    // The run of a schedule's child is deleted with the child, a minute after its end at the earliest.
    let child_run = || Run { stays: Stays::WithItsExecution, ..run(1, "a", done(false)) };
    let history = target(vec![failed("a")], vec![child_run()]);
    assert_eq!(decide(&history, &Policy::default(), at(50)).wake, Some(expired), "the child is there");
    let left_by_it = target(vec![], vec![child_run()]);
    assert_eq!(decide(&left_by_it, &Policy::default(), at(50)).wake, Some(at(100)));
    let gone = deleted("r1", Unneeded::Expired, Some("a"));
    assert_eq!(decide(&left_by_it, &Policy::default(), at(100)).actions, [gone]);
    let sooner = Policy { retention: Duration::from_secs(10), ..Policy::default() };
    assert_eq!(decide(&left_by_it, &sooner, at(49)).wake, Some(at(50)));

    let drains = left(kept.clone(), pod("a"));
    assert!(!decide(&drains, &Policy::default(), expired).actions.contains(&delete));
    let owner_runs = target(vec![running("a", "r1")], vec![run(1, "a", done(false))]);
    assert!(!decide(&owner_runs, &Policy::default(), expired).actions.contains(&delete));
    let newer =
        target(vec![failed("a"), running("b", "r2")], vec![run(1, "a", done(false)), run(2, "b", Progress::Released)]);
    assert!(!decide(&newer, &Policy::default(), expired).actions.contains(&delete));
}
