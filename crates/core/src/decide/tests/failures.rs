//! Failures without a run.

use super::*;
use crate::schedule::Retention;

#[test]
fn an_unusable_spec_fails_before_rivals_are_compared() {
    let target = target(
        vec![running("a", "r1"), execution("b", unusable("spec.x: bad"))],
        vec![run(1, "a", Progress::Released)],
    );
    let decided = actions(&target);
    let [Action::Write(Write { execution, says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] =
        &decided[..]
    else {
        panic!("{decided:?}")
    };
    assert_eq!(*execution, id("b"));
    assert_eq!((failure.reason, failure.was_execution_failure()), (FailureReason::ConfigurationError, false));
}

#[test]
fn a_refused_create_fails_its_execution_and_the_others_wait_for_that() {
    let refusal = Refusal { reason: FailureReason::ResourceExhausted, message: "quota".into(), number: 3 };
    let mut refused = undecided("a");
    refused.remember().refusal = Some(refusal);
    let mut target = target(vec![refused, undecided("b")], vec![]);
    let decided = actions(&target);
    let failure = only_failure(&decided);
    assert_eq!((failure.number, failure.was_execution_failure()), (Some(3), false));
    assert_eq!(waiting(&target), [("b".into(), behind("a"))]);

    let own = run(3, "a", Progress::Pending);
    target.runs.insert(own.id.uid.clone(), own);
    let decided = actions(&target);
    assert_eq!(decided, [committed("a", "r3", 3, &[])], "a run that is there after all counts");
}

#[test]
fn a_failure_without_a_run_is_shown_as_cancelled_only_where_a_cancellation_caused_it() {
    let cancelled = |execution| {
        let cancellation = cancellation(None);
        Execution { cancellation: Some(Box::new(cancellation)), ..execution }
    };
    let too_late = ExecutionState::Undecided { unusable: None, start_before: Some(at(0)) };
    for (cause, failing, is_cancelled) in [
        ("a cancellation", cancelled(undecided("a")), true),
        ("startBefore", execution("a", too_late), false),
        ("an unusable spec, before the cancellation", cancelled(execution("a", unusable("bad"))), false),
    ] {
        let decided = actions(&target(vec![failing], vec![]));
        let [Action::Write(Write { says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] = &decided[..]
        else {
            panic!("{decided:?}")
        };
        assert_eq!(failure.cancelled, is_cancelled, "{cause}");
    }
}

/// A failure of a schedule's child is never shared: it always counts for the schedule and never for the target.
#[test]
fn a_failure_while_a_circuit_of_its_kind_is_open_says_that_it_is_shared() {
    let late = || execution("a", ExecutionState::Undecided { unusable: None, start_before: Some(at(0)) });
    let bad = || execution("a", unusable("bad"));
    let made = |analyses: bool| {
        let mut made = made_by("s", 0, Retention::Needed, bad());
        made.child.iter_mut().for_each(|child| child.analyses = analyses);
        made
    };
    let decided = actions(&target(vec![bad()], vec![]));
    let mine = only_failure(&decided).fingerprint.clone().unwrap();
    let open = |opened: i64, quiet: i64| open_circuit(mine.as_str(), opened, quiet, None);
    for (name, failing, open, shared) in [
        ("no circuit", bad(), vec![], false),
        ("an open circuit", bad(), vec![open(20, 1220)], true),
        ("one that opened later", bad(), vec![open(51, 1220)], false),
        ("one of which nothing was heard for long", bad(), vec![open(20, 50)], false),
        ("another one", bad(), vec![open_circuit("Unknown/cluster", 20, 1220, None)], false),
        ("a child of a schedule", made(false), vec![open(20, 1220)], false),
        ("an analyst", made(true), vec![open(20, 1220)], false),
        ("one that came too late", late(), vec![open(20, 1220)], false),
    ] {
        let view = Target { circuits: circuits(open, vec![]), ..target(vec![failing], vec![]) };
        let decided = actions(&view);
        assert_eq!(only_failure(&decided).shared_outage, shared, "{name}");
    }
}
