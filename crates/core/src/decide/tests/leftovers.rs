//! Leftovers, and runs whose owner is gone.

use super::*;
use crate::run::Run;

#[test]
fn a_pending_run_that_nobody_can_commit_to_is_deleted() {
    let leftover = |owner: Execution| actions(&target(vec![owner], vec![run(9, "a", Progress::Pending)]));
    let mut leaving = undecided("a");
    leaving.deleting = true;
    for owner in [failed("a"), execution("a", ExecutionState::Skipped { completed_at: None }), leaving] {
        assert_eq!(leftover(owner.clone()), [deleted("r9", Unneeded::Leftover, None)], "{owner:?}");
    }
}

#[test]
fn an_execution_keeps_the_first_of_two_runs_that_it_made() {
    let runs = vec![run(1, "a", Progress::Pending), run(2, "a", Progress::Pending)];
    // The second run is not deleted yet: an operator that does not know the first may be committing to the second.
    assert_eq!(actions(&target(vec![undecided("a")], runs.clone())), [committed("a", "r1", 1, &[])]);
    let expected = [releases("r1"), deleted("r2", Unneeded::Leftover, None)];
    assert_eq!(actions(&target(vec![running("a", "r1")], runs)), expected);
}

#[test]
fn of_two_runs_that_it_made_an_execution_commits_to_the_one_that_was_released() {
    let runs = vec![run(1, "a", Progress::Pending), run(2, "a", Progress::Released)];
    assert_eq!(actions(&target(vec![undecided("a")], runs)), [committed("a", "r2", 2, &[])]);
}

#[test]
fn runs_of_a_deleted_execution_are_deleted_or_cancelled_and_hold_the_target_until_they_end() {
    let pending = target(vec![], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&pending), [deleted("r1", Unneeded::Leftover, Some("a"))]);

    let mut released = target(vec![undecided("b")], vec![run(1, "a", Progress::Released)]);
    let facts = vec![Fact::OwnerGone(id("a"))];
    let cancel =
        Action::Change(Change { run: run_id("r1"), facts, to: RunChange::Cancelled(CancelReason::OwnerDeleted) });
    let decided = actions(&released);
    assert!(decided.contains(&cancel), "{decided:?}");
    assert!(decided.iter().any(|action| matches!(action, Action::Skip { .. })), "{decided:?}");

    released.runs.get_mut(&Uid::new("r1")).unwrap().cancelled = true;
    assert!(!actions(&released).contains(&cancel), "cancelled once");
}

#[test]
fn a_rival_of_a_deleted_execution_is_told_that_its_run_is_being_cancelled() {
    let mut holding = run(1, "a", Progress::Released);
    (holding.cancelled, holding.cancel_reason) = (true, Some(CancelReason::OwnerDeleted));
    let gone = Owner::Execution { id: id("a"), workflow_id: "wf".into(), presence: Presence::Gone };
    for holding in [holding.clone(), Run { owner: gone, cancel_reason: None, ..holding }] {
        let decided = actions(&target(vec![undecided("b")], vec![holding]));
        let [Action::Skip { skip, .. }] = &decided[..] else { panic!("{decided:?}") };
        let words = "was deleted while it ran on node/n; its run is being cancelled, and when that has stopped, a new \
                     WorkflowExecution can run";
        assert!(skip.message("node/n").ends_with(words), "{}", skip.message("node/n"));
    }
}

#[test]
fn runs_of_nobody_and_of_executions_elsewhere_are_never_touched() {
    for owner in
        [Owner::Nobody, Owner::Execution { id: id("x"), workflow_id: "wf".into(), presence: Presence::Unwatched }]
    {
        for progress in [Progress::Pending, Progress::Released, done(true)] {
            let mut stranger = run(1, "x", progress);
            stranger.owner = owner.clone();
            assert_eq!(actions(&target(vec![], vec![stranger])), []);
        }
    }
}

/// A run whose deletion has begun, and that a finalizer holds.
fn held(run: Run) -> Run {
    Run { deleting: true, ..run }
}

#[test]
fn a_run_that_is_being_deleted_is_deleted_once_and_holds_nobody() {
    let old = Policy::default().retention.as_secs().cast_signed();
    let finished = target(vec![failed("a"), undecided("b")], vec![held(run(1, "a", done(true)))]);
    let decided = decide(&finished, &Policy::default(), at(50 + old));
    assert_eq!(decided.actions, [create("b", 2)]);
    // After a withdrawal, neither the execution nor a rival waits until the run is gone.
    let gave_up = Execution { run_sequence: Some(1), ..undecided("a") };
    let withdrawn = target(vec![gave_up.clone()], vec![held(run(1, "a", Progress::Pending))]);
    assert_eq!((actions(&withdrawn), waiting(&withdrawn)), (vec![create("a", 2)], vec![]));
    let rival = target(vec![undecided("b")], vec![held(run(1, "a", Progress::Pending))]);
    assert_eq!(actions(&rival), [create("b", 2)]);
    // A released run may still run. It holds the target until it is done or gone, or nothing of it is left.
    let released = || target(vec![running("a", "r1"), undecided("b")], vec![held(run(1, "a", Progress::Released))]);
    let is_skipped = |view: &Target| actions(view).iter().any(|action| matches!(action, Action::Skip { .. }));
    assert!(is_skipped(&left(released(), pod("a"))));
    assert!(!is_skipped(&released()), "that is certain in a moment");
    assert_eq!(waiting(&released()), [("b".into(), Waiting::Leaving(run_id("r1")))]);
}

#[test]
fn an_execution_gives_up_only_its_own_runs_and_only_those_that_may_start() {
    let nobodys = Run { owner: Owner::Nobody, ..run(1, "a", Progress::Pending) };
    assert_eq!(actions(&target(vec![undecided("a")], vec![nobodys])), [create("a", 2)]);
    let anothers = target(vec![undecided("a")], vec![held(run(1, "b", Progress::Pending))]);
    assert_eq!(actions(&anothers), [create("a", 2)]);
    let own = target(vec![undecided("a")], vec![held(run(1, "a", Progress::Pending))]);
    assert_eq!(actions(&own), [create("a", 2)], "a run that is being deleted never starts");
}
