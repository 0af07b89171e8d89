//! The history at the look, at the commit and at the end.

use super::*;
use crate::ending::Charge;
use crate::execution::Recorded;
use crate::run::Run;

/// A history for each of rules 2, 4 and 5. Each forbids workflow `wf` at second 50.
fn forbidding() -> [Execution; 3] {
    [broke("p", "other", 1, 49), stalled("p", "other", 1, 49, 109), completed("p", "wf", 1, 49)]
}

fn charge_of(action: &Action) -> (bool, u32, Option<Time>) {
    match action {
        Action::Write(Write { says: Says::Ended { ending: Ending::Failed(failure), .. }, .. }) => {
            let Charge { consecutive_failures, next_allowed_execution, .. } = failure.charge;
            (failure.was_execution_failure(), consecutive_failures, next_allowed_execution)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_history_forbids_is_skipped_on_the_execution_that_forbids_it() {
    for past in forbidding() {
        let decided = actions(&target(vec![past, undecided("a"), undecided("b")], vec![]));
        let [Action::Skip { skipped, skip, fact: Fact::Stands(stands) }] = &decided[..] else { panic!("{decided:?}") };
        assert_eq!((skipped.len(), stands), (2, &id("p")));
        assert_eq!(skip.remediation().map(|it| &it.execution), Some(stands));
    }
}

#[test]
fn a_skip_says_whether_the_execution_that_it_rests_on_completed() {
    let completed = forbidding().map(|past| {
        let decided = actions(&target(vec![past, undecided("a")], vec![]));
        let [Action::Skip { skip, .. }] = &decided[..] else { panic!("{decided:?}") };
        skip.remediation().map(|it| it.completed)
    });
    assert_eq!(completed, [Some(false), Some(false), Some(true)]);
}

#[test]
fn at_the_look_what_the_history_forbids_is_skipped() {
    for past in forbidding() {
        let looking = actions(&target(vec![past, undecided("a")], vec![run(2, "a", Progress::Pending)]));
        assert!(matches!(&looking[..], [Action::Skip { .. }]), "{looking:?}");
    }
}

#[test]
fn a_run_that_was_released_past_us_is_committed_to_whatever_forbids_it() {
    for past in forbidding() {
        for progress in [Progress::Released, done(true)] {
            let decided = actions(&target(vec![past.clone(), undecided("a")], vec![run(2, "a", progress)]));
            assert!(matches!(&decided[..], [Action::Write(Write { says: Says::Running { .. }, .. })]), "{decided:?}");
        }
    }
}

#[test]
fn rivals_that_are_forbidden_for_different_reasons_are_skipped_apart() {
    let mut recovers = undecided("c");
    recovers.recovery_of = Some("wfe-p".into());
    let decided = actions(&target(vec![broke("p", "wf", 1, 0), undecided("a"), undecided("b"), recovers], vec![]));
    let sizes: Vec<usize> = decided
        .iter()
        .map(|action| match action {
            Action::Skip { skipped, .. } => skipped.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sizes, [2, 1], "a recovery by the same workflow is told why it is none");
}

#[test]
fn an_execution_shows_the_counter_that_it_inherits_from_its_commit_on() {
    let past = vec![stalled("p", "x", 1, -100, -40), stalled("q", "y", 2, -50, 10), undecided("a")];
    let decided = actions(&target(past, vec![run(3, "a", Progress::Pending)]));
    assert!(
        matches!(&decided[..], [Action::Write(Write { says: Says::Running { consecutive_failures: 2, .. }, .. })]),
        "{decided:?}"
    );
}

#[test]
fn the_end_of_a_run_counts_only_where_nothing_of_it_ran() {
    let decided = |run: Run| {
        let past = vec![stalled("p", "x", 1, -100, -40), running("a", "r2")];
        actions(&target(past, vec![run])).remove(0)
    };
    let ended = |run: Run| charge_of(&decided(run));
    let failed = || run(2, "a", done(false));
    assert_eq!(ended(looked_at(failed(), 0, waited())), (false, 2, Some(at(40 + 120))), "counted from its end");
    assert_eq!(ended(looked(failed())), (true, 1, None));
    assert_eq!(decided(failed()), Action::Examine { run: run_id("r2") }, "nothing ends before somebody has looked");
    let mut seen = looked_at(failed(), 0, waited());
    seen.memory.seen.proof = Some(proof());
    assert_eq!(ended(seen), (true, 1, None), "a proof stands above whatever was found");
}

#[test]
fn failures_that_count_are_written_one_after_the_other() {
    let spoilt = |uid: &str| execution(uid, unusable("bad"));
    let past = || vec![stalled("p", "x", 1, -100, -40), spoilt("c"), spoilt("a"), spoilt("b"), undecided("d")];
    let view = target(past(), vec![]);
    let decided = actions(&view);
    assert!(
        matches!(&decided[..], [Action::Write(Write { execution, says: Says::Ended { .. }, .. })] if *execution == id("a")),
        "{decided:?}"
    );
    assert_eq!(charge_of(&decided[0]), (false, 2, Some(at(50 + 120))));
    let waits = |uid: &str| (uid.into(), behind("a"));
    assert_eq!(waiting(&view), [waits("d"), waits("b"), waits("c")], "d too is judged by them when they are written");

    let ends = vec![spoilt("b"), running("a", "r1")];
    let view = target(ends, vec![looked_at(run(1, "a", done(false)), 0, waited())]);
    let decided = actions(&view);
    assert!(
        matches!(&decided[..], [Action::Write(Write { execution, says: Says::Ended { .. }, .. })] if *execution == id("a")),
        "{decided:?}"
    );
    assert_eq!(waiting(&view), [waits("b")], "nor beside the end of a run");
}

#[test]
fn who_is_at_the_look_is_judged_by_a_failure_too() {
    let spoilt = execution("b", unusable("bad"));
    let view = target(vec![undecided("a"), spoilt], vec![run(1, "a", Progress::Pending)]);
    let decided = actions(&view);
    assert!(
        matches!(&decided[..], [Action::Write(Write { execution, says: Says::Ended { .. }, .. })] if *execution == id("b")),
        "{decided:?}"
    );
    assert_eq!(waiting(&view), [("a".into(), behind("b"))]);
    let view = target(vec![undecided("a"), stalled("b", "x", 0, 50, 110)], vec![run(1, "a", Progress::Pending)]);
    assert!(matches!(&actions(&view)[..], [Action::Skip { .. }]), "{view:?}");
}

#[test]
fn who_comes_too_late_neither_counts_nor_holds_up_the_others() {
    let mut late = undecided("a");
    if let ExecutionState::Undecided { start_before, .. } = &mut late.state {
        *start_before = Some(at(0));
    }
    let decided = actions(&target(vec![late, undecided("b")], vec![]));
    assert_eq!(decided[0], create("b", 1));
    assert_eq!(charge_of(&decided[1]), (false, 0, None));
}

#[test]
fn a_clearance_is_recorded_once_and_acts_in_the_same_decision() {
    let blocked = |recorded| actions(&target(vec![cleared(broke("p", "wf", 1, 0), recorded), undecided("a")], vec![]));
    let decided = blocked(Recorded::Not);
    assert!(
        matches!(
            &decided[..],
            [Action::Write(Write { says: Says::Cleared { effective: true, .. }, .. }), Action::Create { .. }]
        ),
        "{decided:?}"
    );
    assert_eq!(blocked(Recorded::Effective), [create("a", 2)]);
    let decided = blocked(Recorded::Ineffective);
    assert!(matches!(&decided[..], [Action::Skip { .. }]), "{decided:?}");
}

#[test]
fn a_wait_that_time_ends_is_looked_at_again_when_it_ends() {
    let view = target(vec![stalled("p", "x", 1, 0, 60), undecided("a")], vec![]);
    assert_eq!(decide(&view, &Policy::default(), at(50)).wake, Some(at(60)));
    assert_eq!(decide(&view, &Policy::default(), at(60)).actions, [create("a", 2)]);
}
