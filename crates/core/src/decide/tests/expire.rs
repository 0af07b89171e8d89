//! Finished executions are removed after their time to live, unless the target still needs them.

use super::*;
use crate::execution::Recorded;
use crate::testing::generate::{NOW, any_history, any_policy};

/// An execution with a time to live of 30 seconds.
fn expiring(execution: Execution) -> Execution {
    Execution { ttl: Some(Duration::from_secs(30)), ..execution }
}

fn success(uid: &str, number: u64, at_second: i64) -> Execution {
    expiring(completed(uid, "w", number, at_second))
}

/// An execution that a person cancelled before anything ran.
fn uncounted(uid: &str, number: Option<u64>, at_second: i64) -> Execution {
    let mut execution = expiring(stalled(uid, "w", 0, at_second, at_second));
    execution.run_sequence = number;
    if let ExecutionState::Failed(failed) = &mut execution.state {
        failed.cancelled = true;
    }
    execution
}

fn skipped(uid: &str, at_second: i64) -> Execution {
    expiring(execution(uid, ExecutionState::Skipped { completed_at: Some(at(at_second)) }))
}

/// Returns the executions that are removed at a second, and the next wake-up.
fn removed_at(second: i64, executions: Vec<Execution>) -> (Vec<String>, Option<Time>) {
    removed(&target(executions, vec![]), &Policy::default(), at(second))
}

fn removed(target: &Target, policy: &Policy, now: Time) -> (Vec<String>, Option<Time>) {
    let decision = decide(target, policy, now);
    let uids = decision.actions.iter().filter_map(|action| match action {
        Action::Remove { execution, .. } => Some(execution.uid.to_string()),
        _ => None,
    });
    (uids.collect(), decision.wake)
}

#[test]
fn an_execution_is_removed_when_its_time_has_come_and_its_cooldown_is_over() {
    let after_cooldown = Policy::default().cooldown_period.as_secs().cast_signed();
    let both = || vec![success("old", 1, 0), success("new", 2, 10)];
    assert_eq!(removed_at(40, both()).0, ["old"], "the newer one of its workflow cools down for both");
    let other = || vec![success("old", 1, 0), Execution { workflow_id: "other".into(), ..success("new", 2, 10) }];
    assert_eq!(removed_at(40, other()), (vec![], Some(at(after_cooldown))));
    assert_eq!(removed_at(after_cooldown, other()).0, ["old"]);
    let no_cooldown = Policy { cooldown_period: Duration::ZERO, ..Policy::default() };
    let at_second = |second| removed(&target(both(), vec![]), &no_cooldown, at(second));
    assert_eq!(at_second(29), (vec![], Some(at(30))));
    assert_eq!(at_second(30), (vec!["old".to_owned()], None));
}

#[test]
fn a_clearance_of_a_success_keeps_nobody() {
    let after_cooldown = Policy::default().cooldown_period.as_secs().cast_signed();
    let said = |recorded| vec![cleared(success("old", 1, 0), recorded), success("new", 2, 10)];
    for recorded in [Recorded::Not, Recorded::Effective] {
        assert_eq!(removed_at(after_cooldown, said(recorded)).0, ["old"], "{recorded:?}");
    }
}

#[test]
fn what_says_nothing_is_kept_unless_the_configuration_says_something() {
    let both = vec![completed("old", "w", 1, 0), completed("new", "w", 2, 10)];
    assert_eq!(removed_at(100_000, both.clone()), (vec![], None));
    let policy = Policy { ttl: Some(Duration::from_hours(1)), ..Policy::default() };
    assert_eq!(removed(&target(both, vec![]), &policy, at(3600)).0, ["old"]);
}

#[test]
fn what_blocks_counts_or_is_the_newest_stays_and_so_does_what_mends_it() {
    let clear = |execution| cleared(execution, Recorded::Effective);
    for (why, executions, gone) in [
        ("the newest stays", vec![success("a", 1, 0)], &[][..]),
        (
            "the newest that ran stays",
            vec![success("a", 1, 0), success("b", 2, 1), skipped("s", 9), skipped("t", 8)],
            &["a", "t"],
        ),
        ("who broke it stays", vec![success("a", 1, 0), expiring(broke("b", "w", 2, 5)), skipped("s", 9)], &["a"]),
        (
            "who counts stays",
            vec![success("a", 1, 0), expiring(stalled("b", "w", 2, 5, 65)), expiring(stalled("c", "w", 3, 6, 126))],
            &[],
        ),
        (
            "what a success has mended goes",
            vec![
                expiring(broke("a", "w", 1, 0)),
                expiring(stalled("b", "w", 2, 1, 60)),
                success("c", 3, 5),
                success("d", 4, 6),
            ],
            &["a", "b", "c"],
        ),
        (
            "what its recovery has mended stays while that is the newest that ran",
            vec![expiring(broke("a", "w", 1, 0)), recovers("a", success("b", 2, 5)), skipped("s", 9)],
            &[],
        ),
        (
            "and goes after another success",
            vec![expiring(broke("a", "w", 1, 0)), recovers("a", success("b", 2, 5)), success("c", 3, 6)],
            &["a", "b"],
        ),
        (
            "a success stays while what it has mended stays",
            vec![broke("a", "w", 1, 0), success("b", 2, 5), success("c", 3, 6), success("d", 4, 7)],
            &[],
        ),
        (
            "a clearance stays while what it covers stays",
            vec![broke("a", "w", 1, 0), clear(expiring(broke("b", "w", 2, 5))), success("c", 3, 6), success("d", 4, 7)],
            &[],
        ),
        (
            "a success that is kept holds nothing up",
            vec![completed("a", "w", 1, 0), success("b", 2, 5), success("c", 3, 6)],
            &["b"],
        ),
        (
            "an earlier one that broke stays too: it says which workflows are no recovery",
            vec![expiring(broke("a", "w", 1, 0)), expiring(broke("b", "x", 2, 5))],
            &[],
        ),
        (
            "a failure whose clearance is recorded goes",
            vec![clear(expiring(broke("a", "w", 1, 0))), success("b", 2, 5), success("c", 3, 6)],
            &["a", "b"],
        ),
        (
            "runs are ordered by their numbers, also where times contradict these",
            vec![success("a", 1, 50), success("b", 2, 10), success("c", 3, 60)],
            &["a", "b"],
        ),
        (
            "the clock of Tekton was two seconds ahead once",
            vec![
                success("a", 1, 100),
                expiring(stalled("b", "w2", 2, 98, 158)),
                success("c", 3, 1_000),
                success("d", 4, 2_000),
                success("e", 5, 3_000),
            ],
            &["a", "b", "c", "d"],
        ),
        (
            "without b the failure x, which has no number, would stand before a, and count no more",
            vec![
                completed("a", "w", 1, 100),
                uncounted("b", Some(2), 98),
                Execution { run_sequence: None, ..stalled("x", "w", 0, 99, 159) },
                uncounted("c", Some(3), 1_000),
            ],
            &[],
        ),
        (
            "once times are in order again, no place rests on b",
            vec![
                completed("a", "w", 1, 97),
                uncounted("b", Some(2), 98),
                Execution { run_sequence: None, ..stalled("x", "w", 0, 99, 159) },
                uncounted("c", Some(3), 1_000),
            ],
            &["b"],
        ),
        ("nothing says when it ended", vec![expiring(completed_undated("a")), success("b", 2, 6)], &[]),
    ] {
        assert_eq!(removed_at(100_000, shown(executions)).0, gone, "{why}");
    }
}

fn completed_undated(uid: &str) -> Execution {
    past(uid, "w", 1, ExecutionState::Completed { started_at: None, completed_at: None })
}

/// Writes the blocks into the statuses, so that no other write is due.
fn shown(mut executions: Vec<Execution>) -> Vec<Execution> {
    let decided = decide(&target(executions.clone(), vec![]), &Policy::default(), at(100_000));
    for action in decided.actions {
        if let Action::Write(Write { execution, says: Says::Blocked(blocked), .. }) = action {
            for one in executions.iter_mut().filter(|it| it.id == execution) {
                one.blocked_shown = Some(blocked.reason().into());
            }
        }
    }
    executions
}

#[test]
fn nothing_is_removed_while_something_of_it_is_left_or_somebody_asks_for_something() {
    let (old, new) = (|| success("old", 1, 0), || success("new", 2, 10));
    let with = |residue| left(target(vec![old(), new()], vec![]), residue);
    assert_eq!(removed(&with(pod("old")), &Policy::default(), at(100_000)).0, [""; 0]);
    let draining = Execution { draining_shown: true, ..old() };
    assert_eq!(removed_at(100_000, vec![draining, new()]).0, [""; 0]);
    let deleting = Execution { deleting: true, ..old() };
    assert_eq!(removed_at(100_000, vec![deleting, new()]).0, [""; 0]);
    assert_eq!(removed_at(100_000, vec![old(), new(), undecided("asks")]).0, [""; 0], "it has its turn first");
    let wants_clearance = cleared(expiring(broke("old", "w", 1, 0)), Recorded::Not);
    assert_eq!(removed_at(100_000, vec![wants_clearance, new()]).0, [""; 0]);
}

#[test]
fn an_execution_with_an_unfinished_run_or_pod_is_not_removed() {
    let both = || vec![success("old", 1, 0), success("new", 2, 10)];
    let released = target(both(), vec![run(1, "old", Progress::Released)]);
    let mut drains = left(target(both(), vec![]), pod("old"));
    // The warning is an action, too, and nothing is removed together with another action.
    drains.drain_warned = true;
    for (what, view) in [("run", released), ("pod", drains)] {
        let decision = decide(&view, &Policy::default(), at(100_000));
        assert_eq!((decision.actions, decision.wake), (vec![], None), "{what}");
    }
}

#[test]
fn failures_that_a_quiet_time_has_ended_are_removed_but_for_the_newest() {
    let past = || vec![expiring(stalled("a", "w", 1, 0, 60)), expiring(stalled("b", "w", 2, 70, 190))];
    let policy = Policy { failure_quiet_period: Some(Duration::from_mins(20)), ..Policy::default() };
    let removed_at = |second| removed(&target(past(), vec![]), &policy, at(second)).0;
    assert_eq!(removed_at(70 + 20 * 60 - 1), [""; 0], "both count");
    assert_eq!(removed_at(70 + 20 * 60), ["a"], "the newest stays");
}

#[test]
fn no_more_than_some_are_removed_at_once() {
    let many = (0..200).map(|n| skipped(&format!("s{n}"), n)).collect();
    assert_eq!(removed_at(100_000, many).0.len(), 64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn without_what_is_removed_nobody_is_judged_otherwise(
        target in any_history(),
        policy in any_policy(),
        later in prop::sample::select(vec![0, 1, 30, 100, 1_000, 100_000]),
    ) {
        let mut target = target;
        target.executions.retain(|_, it| it.is_terminal() && !it.deleting);
        for it in target.executions.values_mut() {
            it.ttl = it.ttl.or(Some(Duration::ZERO));
            if let Some(clearance) = it.clearance.as_mut().filter(|it| it.recorded == Recorded::Not) {
                clearance.recorded = Recorded::Effective;
            }
        }
        let show = decide(&target, &policy, at(NOW)).actions;
        for action in show {
            if let Action::Write(Write { execution, says: Says::Blocked(blocked), .. }) = action {
                use crate::blocks::Blocked::{Recovered, Yes};
                let is_shown = matches!(blocked, Yes(_) | Recovered);
                let shown = is_shown.then(|| blocked.reason().into());
                target.executions.get_mut(&execution.uid).unwrap().blocked_shown = shown;
            }
        }
        let mut rest = target.clone();
        for action in decide(&target, &policy, at(NOW)).actions {
            if let Action::Remove { execution, .. } = action {
                rest.executions.remove(&execution.uid);
            }
        }
        for workflow in ["w1", "w2", "w3"] {
            for recovery_of in target.executions.values().map(|it| Some(it.id.name.as_ref().into())).chain([None]) {
                let judged = |target: &Target| {
                    let mut target = target.clone();
                    let contender = Execution { workflow_id: workflow.into(), recovery_of: recovery_of.clone(), ..undecided("new") };
                    target.executions.insert(contender.id.uid.clone(), contender);
                    let decision = decide(&target, &policy, at(NOW + later));
                    let blocks = decision.blocks;
                    (decision.judged.into_iter().map(|(_, it)| it.rule()).collect::<Vec<_>>(), blocks)
                };
                prop_assert_eq!(judged(&target), judged(&rest));
            }
        }
    }
}
