//! The four steps. Each is resumed from the objects that exist.

use super::*;

#[test]
fn an_execution_on_a_free_target_creates_a_pending_run() {
    assert_eq!(actions(&target(vec![undecided("a")], vec![])), [create("a", 1)]);
}

#[test]
fn the_number_is_one_above_all_that_is_known() {
    let mut skipped = execution("s", ExecutionState::Skipped { completed_at: None });
    skipped.run_sequence = Some(6);
    let mut known = target(vec![undecided("a"), failed("b"), skipped], vec![run(4, "b", done(true))]);
    assert_eq!(actions(&known), [create("a", 7)]);
    known.memory.highest_taken = 9;
    assert_eq!(actions(&known), [create("a", 10)]);
}

#[test]
fn at_the_look_an_execution_commits_to_its_own_run() {
    let target = target(vec![undecided("a")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&target), [committed("a", "r1", 1, &[])]);
}

#[test]
fn a_committed_run_is_released_and_a_released_one_is_left_to_tekton() {
    let pending = target(vec![running("a", "r1")], vec![run(1, "a", Progress::Pending)]);
    assert_eq!(actions(&pending), [releases("r1")]);
    let released = target(vec![running("a", "r1")], vec![run(1, "a", Progress::Released)]);
    assert_eq!(actions(&released), []);
}

#[test]
fn a_finished_run_ends_its_execution_with_the_times_of_the_run() {
    let finished = |succeeded| actions(&target(vec![running("a", "r1")], vec![looked(run(1, "a", done(succeeded)))]));
    let [Action::Write(Write { facts, says: Says::Ended { ending: Ending::Completed(success), .. }, .. })] =
        &finished(true)[..]
    else {
        panic!("{:?}", finished(true))
    };
    assert_eq!((success.completed_at, success.ran_for, &facts[..]), (at(40), Duration::from_secs(40), &[][..]));
    let [Action::Write(Write { facts, says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] =
        &finished(false)[..]
    else {
        panic!("{:?}", finished(false))
    };
    assert_eq!((failure.reason, failure.was_execution_failure()), (FailureReason::Unknown, true));
    assert_eq!((&*failure.message, failure.failed_at), ("what Tekton said", at(40)));
    assert_eq!(facts, &[], "its run is there");
}

#[test]
fn a_completion_far_in_the_future_is_cut() {
    let late = Progress::Done(Outcome {
        succeeded: true,
        reason: "R".into(),
        message: "m".into(),
        completed_at: Some(at(100_000)),
    });
    let decided = actions(&target(vec![running("a", "r1")], vec![run(1, "a", late)]));
    let [Action::Write(Write { says: Says::Ended { ending: Ending::Completed(success), .. }, .. })] = &decided[..]
    else {
        panic!("{decided:?}")
    };
    assert_eq!(success.completed_at, at(50) + MAX_SKEW);
}

#[test]
fn an_end_without_a_time_is_that_of_the_decision_rounded_up() {
    for succeeded in [true, false] {
        let undated = Outcome { succeeded, reason: "R".into(), message: "m".into(), completed_at: None };
        let view = target(vec![running("a", "r1")], vec![looked(run(1, "a", Progress::Done(undated)))]);
        let decided = decide(&view, &Policy::default(), at(50) + Duration::from_millis(1)).actions;
        let [Action::Write(Write { says: Says::Ended { ending, .. }, .. })] = &decided[..] else {
            panic!("{decided:?}")
        };
        let ended_at = match ending {
            Ending::Completed(success) => success.completed_at,
            Ending::Failed(failure) => failure.failed_at,
        };
        assert_eq!(ended_at, at(51), "cut, a cooldown would end early");
    }
}

#[test]
fn a_run_that_is_gone_fails_its_execution_once_that_is_read_live() {
    let decided = actions(&target(vec![running("a", "r1")], vec![]));
    let [Action::Write(Write { facts, says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] = &decided[..]
    else {
        panic!("{decided:?}")
    };
    assert_eq!((&facts[..], failure.was_execution_failure()), (&[Fact::RunGone(id("a"), run_id("r1"))][..], true));
}

#[test]
fn a_running_execution_that_names_no_run_fails_once_it_is_read_live_that_it_has_none() {
    let odd = execution("a", ExecutionState::Running { run: None, started_at: None });
    let decided = actions(&target(vec![odd], vec![]));
    let failure = only_failure(&decided);
    assert!(failure.message.contains("without a pipelineRunRef"), "{}", failure.message);
    let reads =
        |action: &Action| matches!(action, Action::Write(Write { facts, .. }) if facts[..] == [Fact::NoRunOf(id("a"))]);
    assert!(decided.iter().any(reads), "{decided:?}");
}

#[test]
fn an_execution_whose_status_names_another_ones_run_fails_and_releases_nothing() {
    let decided = actions(&target(vec![running("a", "r1"), undecided("b")], vec![run(1, "b", Progress::Pending)]));
    let finished: Vec<_> = decided
        .iter()
        .filter(|action| matches!(action, Action::Write(Write { says: Says::Ended { .. }, .. })))
        .collect();
    let [Action::Write(Write { execution, says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] =
        &finished[..]
    else {
        panic!("{decided:?}")
    };
    assert_eq!(*execution, id("a"));
    assert!(failure.message.contains("another WorkflowExecution"), "{}", failure.message);
    assert!(
        !decided.iter().any(|action| matches!(
            action,
            Action::Change(Change { to: RunChange::Released | RunChange::Deleted { .. }, .. })
        )),
        "{decided:?}"
    );
}

#[test]
fn an_execution_whose_run_lives_in_another_namespace_is_left_alone_and_holds_the_target() {
    let mut stranger = running("a", "r1");
    stranger.elsewhere = true;
    let target = target(vec![stranger, undecided("b")], vec![]);
    assert_eq!((actions(&target), waiting(&target)), (vec![], vec![("b".into(), Waiting::OwnerLate)]));
}

#[test]
fn an_action_has_the_mark_of_what_does_the_same_to_the_same_object() {
    let commit = |version: &str, failures| {
        let says = Says::Running { run: run_id("r1"), number: 1, consecutive_failures: failures };
        Action::Write(Write { execution: id("a"), version: Version::new(version), facts: vec![], says }).mark()
    };
    assert_eq!(commit("1", 0), commit("2", 5), "on a newer view");
    assert_ne!(commit("1", 0), create("a", 1).mark(), "another write");
    assert_ne!(commit("1", 0), gives_up("a", 1).mark(), "another status");
    assert_eq!(releases("r1").mark(), releases("r1").mark());
    assert_ne!(releases("r1").mark(), releases("r2").mark(), "another run");
    assert_ne!(releases("r1").mark(), deleted("r1", Unneeded::Leftover, None).mark(), "another change");
}
