//! Properties of any view whatsoever.

use super::*;

fn any_target() -> impl Strategy<Value = Target> {
    let uids = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let runs = || prop::sample::select(vec!["r1", "r2", "r3", "r4"]);
    let state = prop_oneof![
        4 => Just(undecided("x").state),
        1 => Just(unusable("bad")),
        2 => runs().prop_map(|run| ExecutionState::Running { run: Some(run_id(run)), started_at: Some(at(0)) }),
        1 => Just(ExecutionState::Completed),
        1 => Just(ExecutionState::Failed { reason: FailureReason::Unknown }),
        1 => Just(ExecutionState::Skipped),
    ];
    let executions = prop::collection::vec((uids(), state, 0..3_i64, any::<bool>()), 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(uid, state, created, deleting)| Execution {
                created: at(created),
                deleting,
                ..execution(uid, state)
            })
            .collect::<Vec<_>>()
    });
    let progress =
        prop_oneof![3 => Just(Progress::Pending), 2 => Just(Progress::Released), 2 => any::<bool>().prop_map(done)];
    let presence = prop::sample::select(vec![Presence::Watched, Presence::Gone, Presence::Elsewhere]);
    let runs = prop::collection::vec((1..5_u64, uids(), progress, presence, 0..4_u64), 0..4).prop_map(|all| {
        all.into_iter()
            .map(|(number, uid, progress, presence, order)| {
                let owner = Owner::Execution { id: id(uid), workflow_id: "wf".into(), presence };
                Run { order: Order(order), owner, ..run(number, uid, progress) }
            })
            .collect::<Vec<_>>()
    });
    (executions, runs).prop_map(|(executions, runs)| target(executions, runs))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_decision_does_what_none_may_do(target in any_target()) {
        let decided = actions(&target);
        let creates = decided.iter().filter(|action| matches!(action, Action::Create { .. })).count();
        prop_assert!(creates <= 1);
        for action in &decided {
            match action {
                Action::Create { number, .. } => {
                    prop_assert!(target.runs.values().all(|run| !run.is_unfinished()), "created beside an unfinished run");
                    prop_assert!(target.runs.values().all(|run| run.number < *number));
                }
                Action::Commit { execution, run, .. } => {
                    let own = &target.runs[&run.uid];
                    prop_assert!(own.is_owned_by(execution));
                    let earlier = target.runs.values().any(|other| {
                        !other.is_owned_by(execution) && other.is_unfinished() && other.order <= own.order
                    });
                    prop_assert!(!earlier, "committed after an unfinished run");
                }
                Action::Release { run } => {
                    let released = &target.runs[&run.uid];
                    prop_assert!(released.is_pending());
                    prop_assert!(target.owner_of(released).is_some_and(|owner| owner.is_running(run)));
                }
                Action::Skip { skipped, fact, .. } => {
                    match fact {
                        Fact::Unfinished(run) => prop_assert!(target.runs[&run.uid].is_unfinished()),
                        Fact::Draining(left) => prop_assert!(target.residue.contains_key(&left.uid)),
                    }
                    for (execution, _) in skipped {
                        prop_assert!(target.executions[&execution.uid].is_undecided());
                        prop_assert!(!target.runs.values().any(|run| run.is_owned_by(execution)), "a Skipped one has no run");
                    }
                }
                Action::Delete { run, .. } => {
                    let deleted = &target.runs[&run.uid];
                    prop_assert!(deleted.is_pending(), "deleted a run that may run");
                    prop_assert!(!target.owner_of(deleted).is_some_and(|owner| owner.is_running(run)));
                }
                Action::Cancel { run, .. } => {
                    let cancelled = &target.runs[&run.uid];
                    prop_assert!(target.owner_of(cancelled).is_none());
                }
                Action::Freed { .. } | Action::ShowWaiting { .. } | Action::DrainSlow { .. } => {}
                Action::Finish { execution, .. } => {
                    prop_assert!(!target.executions[&execution.uid].is_terminal());
                }
            }
        }
    }

    #[test]
    fn deciding_again_says_the_same(target in any_target()) {
        prop_assert_eq!(decide(&target, &Policy::default(), at(50)), decide(&target.clone(), &Policy::default(), at(50)));
    }
}
