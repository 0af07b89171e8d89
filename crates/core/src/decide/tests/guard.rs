//! Clearances and cancellations count while their policies are in force (section 17, ADR 13).

use super::*;
use crate::guard::{Directive, Guard};

fn guarded(guard: Guard, executions: Vec<Execution>, runs: Vec<Run>) -> Target {
    Target { guard, ..target(executions, runs) }
}

/// An execution that failed half way, blocks according to its status, and was cleared. `said` is what the status
/// reports about the policy.
fn set(said: Option<bool>) -> Execution {
    let blocks = Execution { blocked_shown: Some("PreviousExecutionFailed".into()), ..broke("b", "w", 1, 0) };
    cleared_unguarded(blocks, said)
}

fn cancelled(said: Option<bool>, execution: Execution) -> Execution {
    Execution { cancellation: Some(Box::new(cancellation(said))), ..execution }
}

fn says(uid: &str, kind: Directive, counts: bool) -> Action {
    written(uid, vec![], Says::Unguarded { kind, counts })
}

#[test]
fn a_clearance_counts_while_its_policies_are_in_force() {
    let clears = |said| {
        let clearance = *set(said).clearance.unwrap();
        vec![written("b", vec![], Says::Cleared { clearance, effective: true })]
    };
    let unguarded = || vec![says("b", Directive::Clearance, false)];
    // Each row: what the status reports, what is known about the policies, and the actions.
    let table = [
        (None, Guard::InForce, clears(None)),
        (None, Guard::Recorded, clears(None)),
        (None, Guard::Unknown, vec![]),
        (None, Guard::Missing, unguarded()),
        (Some(false), Guard::Missing, vec![]),
        (Some(false), Guard::Unknown, vec![]),
        (Some(false), Guard::Recorded, vec![]),
        (Some(false), Guard::InForce, clears(Some(false))),
        (Some(true), Guard::Missing, clears(Some(true))),
    ];
    for (said, guard, expected) in table {
        assert_eq!(actions(&guarded(guard, vec![set(said)], vec![])), expected, "{said:?}, {guard:?}");
    }
    let recorded = cleared(broke("b", "w", 1, 0), crate::execution::Recorded::Effective);
    assert_eq!(actions(&guarded(Guard::Missing, vec![recorded], vec![])), [], "what is recorded stays so");
}

#[test]
fn an_execution_waits_while_it_is_not_known_whether_a_clearance_counts() {
    let with = |guard, said, runs| guarded(guard, vec![set(said), asks("a", "w")], runs);
    let open = with(Guard::Unknown, None, vec![]);
    assert_eq!(actions(&open), []);
    assert_eq!(waiting(&open), vec![("a".to_owned(), Waiting::Guard)]);
    // An execution with a pending run also waits, and keeps the run.
    assert_eq!(actions(&with(Guard::Unknown, None, vec![run(2, "a", Progress::Pending)])), []);
    let counts = actions(&with(Guard::InForce, Some(false), vec![]));
    assert!(counts.contains(&create("a", 2)), "{counts:?}");
    for said in [None, Some(false)] {
        let missing = actions(&with(Guard::Missing, said, vec![]));
        assert!(missing.iter().any(|action| matches!(action, Action::Skip { .. })), "{said:?}: {missing:?}");
    }
}

#[test]
fn a_cancellation_counts_while_its_policies_are_in_force() {
    let runs = |said| cancelled(said, running("a", "r1"));
    let released = || vec![run(1, "a", Progress::Released)];
    let pending = || vec![run(1, "a", Progress::Pending)];
    let stops = || cancels("r1", CancelReason::Requested);
    let says = |counts| says("a", Directive::Cancellation, counts);
    let mut stopped = run(1, "a", Progress::Released);
    (stopped.cancelled, stopped.cancel_reason) = (true, Some(CancelReason::Requested));
    let table: Vec<(&str, Target, Vec<Action>)> = vec![
        ("they are in force", guarded(Guard::InForce, vec![runs(None)], released()), vec![stops()]),
        ("nobody knows", guarded(Guard::Unknown, vec![runs(None)], released()), vec![]),
        ("nothing begins meanwhile", guarded(Guard::Unknown, vec![runs(None)], pending()), vec![]),
        ("they are missing", guarded(Guard::Missing, vec![runs(None)], released()), vec![says(false)]),
        ("the status says so", guarded(Guard::Missing, vec![runs(Some(false))], released()), vec![]),
        ("and so it begins", guarded(Guard::Missing, vec![runs(Some(false))], pending()), vec![releases("r1")]),
        ("they are back", guarded(Guard::InForce, vec![runs(Some(false))], released()), vec![stops(), says(true)]),
        ("it has counted", guarded(Guard::Missing, vec![runs(Some(true))], released()), vec![stops()]),
        ("it has acted, and they go", guarded(Guard::Missing, vec![runs(None)], vec![stopped]), vec![]),
    ];
    for (name, target, expected) in table {
        assert_eq!(actions(&target), expected, "{name}");
    }
}

#[test]
fn a_cancellation_before_the_start_is_answered_before_anything_begins() {
    let with = |guard, said| guarded(guard, vec![cancelled(said, undecided("a"))], vec![]);
    for (guard, said) in [(Guard::InForce, None), (Guard::InForce, Some(false)), (Guard::Missing, Some(true))] {
        let found = actions(&with(guard, said));
        let failure = only_failure(&found);
        assert!(failure.cancelled, "{guard:?}, {said:?}: {found:?}");
        // No policy has checked the name of the author, and the failure message says so.
        assert_eq!(failure.message.contains("no admission policy has checked"), said.is_some(), "{}", failure.message);
    }
    assert_eq!(actions(&with(Guard::Unknown, None)), []);
    assert_eq!(actions(&with(Guard::Missing, None)), [says("a", Directive::Cancellation, false)]);
    let ignored = actions(&with(Guard::Missing, Some(false)));
    assert_eq!(ignored, [create("a", 1)], "what does not count stops nothing");
}
