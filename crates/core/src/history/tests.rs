use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::decide::decide;
use crate::ending::Skip;
use crate::execution::Recorded;
use crate::guard::Guard;
use crate::testing::generate::{NOW, any_history, any_policy};
use crate::testing::*;
use crate::verdict::Verdict;

fn names(past: &[Past<'_>]) -> Vec<String> {
    past.iter().map(|past| past.execution.id.uid.to_string()).collect()
}

fn without_number(mut execution: Execution) -> Execution {
    execution.run_sequence = None;
    execution
}

#[test]
fn executions_are_in_the_order_of_their_numbers_then_of_their_ends_then_of_their_uids() {
    let executions = vec![
        broke("d", "w", 2, 5),
        stalled("c", "w", 2, 9, 10),
        completed("b", "w", 1, 99),
        completed("a", "w", 2, 5),
        without_number(stalled("X", "w", 0, 5, 6)),
        without_number(stalled("y", "w", 0, 4, 5)),
        without_number(past("odd", "w", 0, ExecutionState::Completed { started_at: None, completed_at: None })),
        without_number(past(
            "late",
            "w",
            0,
            ExecutionState::Failed(FailedState { failed_at: None, completed_at: None, ..failure(true, 0, None) }),
        )),
        execution("skipped", ExecutionState::Skipped { completed_at: None }),
        running("runs", "r9"),
    ];
    let target = target(executions, vec![]);
    let history = History::of(&target, &Policy::default(), at(100));
    assert_eq!(names(history.all()), ["odd", "y", "b", "a", "d", "X", "c", "late"]);
}

#[test]
fn the_counter_is_computed_and_no_status_is_added_to() {
    let policy = Policy::default();
    let past = vec![stalled("a", "w", 1, 0, 60), broke("b", "w", 2, 1), stalled("c", "x", 3, 2, 90)];
    let target = target(past, vec![]);
    let history = History::of(&target, &policy, at(5));
    assert_eq!(history.consecutive_failures(&policy, at(5)), 2, "an execution failure neither counts nor resets");
    let charge = |counts| history.charge(&policy, "node/n", at(5), counts);
    let says = |consecutive_failures, next: Option<i64>| Charge {
        consecutive_failures,
        next_allowed_execution: next.map(at),
        exhausts: false,
    };
    assert_eq!(charge(Weight::None), says(2, None));
    assert_eq!(charge(Weight::Counts), says(3, Some(5 + 240)));
    assert_eq!(charge(Weight::Waits), says(2, Some(5 + 240)), "one that is shared is waited for, and does not count");
    let strict = Policy { max_consecutive_failures: 3, ..policy.clone() };
    assert!(history.charge(&strict, "node/n", at(5), Weight::Counts).exhausts, "the third is one too many");
    assert!(!history.charge(&strict, "node/n", at(5), Weight::None).exhausts);
    let endless = Policy { max_consecutive_failures: 0, ..policy.clone() };
    assert!(
        !history.charge(&endless, "node/n", at(5), Weight::Counts).exhausts,
        "with a limit of 0, no number is too many"
    );
}

#[test]
fn a_shared_failure_does_not_count_and_lengthens_the_row_that_is_waited_for() {
    let policy = Policy::default();
    let shared = |uid: &str, number, second| {
        let state = FailedState { shared_outage: true, ..failure(false, second, None) };
        past(uid, "w", number, ExecutionState::Failed(state))
    };
    let all = [stalled("a", "w", 1, 0, 60), shared("b", 2, 60), shared("c", 3, 180), stalled("d", "w", 4, 420, 900)];
    let at_once = |target: &Target| {
        let history = History::of(target, &policy, at(420));
        let charge = history.charge(&policy, "node/n", at(420), Weight::Waits);
        let waits = charge.next_allowed_execution.unwrap() - at(420);
        (
            history.consecutive_failures(&policy, at(420)),
            history.failures_to_wait_for(&policy, at(420)),
            waits.num_minutes(),
        )
    };
    let found: Vec<_> = (0..=4).map(|length| at_once(&target(all[..length].to_vec(), vec![]))).collect();
    assert_eq!(found, [(0, 0, 1), (1, 1, 2), (1, 2, 4), (1, 3, 8), (2, 4, 10)]);
}

#[test]
fn the_next_time_is_in_whole_seconds_and_never_early() {
    let policy = Policy::default();
    let none = Target::default();
    let history = History::of(&none, &policy, at(0));
    let charge = history.charge(&policy, "node/n", at(0) + Duration::from_nanos(1), Weight::Counts);
    assert_eq!(charge.next_allowed_execution, Some(at(61)));
}

#[test]
fn a_clearance_that_is_not_recorded_says_whether_it_lifts_a_block() {
    let exhausted = || (1..=5).map(|n| stalled(&format!("f{n}"), "w", n, 0, 600)).collect::<Vec<_>>();
    let five_and = |at: usize| {
        let mut past = exhausted();
        past[at] = cleared(past[at].clone(), Recorded::Not);
        past
    };
    let since_healed = vec![cleared(broke("b", "w", 1, 0), Recorded::Not), completed("s", "w", 2, 1)];
    let both = vec![cleared(broke("b", "w", 1, 0), Recorded::Not), cleared(broke("c", "x", 2, 1), Recorded::Not)];
    let behind =
        vec![cleared(broke("b", "w", 1, 0), Recorded::Not), cleared(broke("c", "x", 2, 1), Recorded::Effective)];
    for (past, effective) in [
        (vec![cleared(broke("b", "w", 1, 0), Recorded::Not)], vec![true]),
        (vec![cleared(broke("b", "w", 1, 0), Recorded::Effective)], vec![]),
        (vec![cleared(stalled("f", "w", 1, 0, 60), Recorded::Not)], vec![false]),
        (vec![cleared(completed("s", "w", 1, 0), Recorded::Not)], vec![]),
        (five_and(4), vec![true]),
        (five_and(0), vec![true]),
        (since_healed, vec![false]),
        (both, vec![true, true]),
        (behind, vec![false]),
    ] {
        let target = target(past, vec![]);
        let history = History::of(&target, &Policy::default(), at(2));
        let found: Vec<bool> = history.unrecorded().map(|it| it.effective).collect();
        assert_eq!(found, effective, "{:?}", names(history.all()));
    }
}

#[test]
fn what_a_person_has_to_clear_is_there_whatever_hides_it_from_the_rules() {
    let exhausted = |from: u64| (from..from + 5).map(|n| stalled(&format!("f{n}"), "w", n, 0, 600)).collect::<Vec<_>>();
    let policy = Policy::default();
    for (past, expected) in [
        (vec![], vec![]),
        (vec![completed("s", "w", 1, 0)], vec![]),
        (vec![stalled("f", "w", 1, 0, 600)], vec![]),
        (vec![broke("b", "w", 1, 0)], vec!["PreviousExecutionFailed b"]),
        (vec![broke("b", "w", 1, 0), completed("s", "x", 2, 1)], vec![]),
        (vec![cleared(broke("b", "w", 1, 0), Recorded::Effective)], vec![]),
        (vec![cleared(broke("b", "w", 1, 0), Recorded::Not)], vec![]),
        (vec![broke("b", "w", 1, 0), broke("c", "w", 2, 1)], vec!["PreviousExecutionFailed c"]),
        (vec![broke("b", "w", 1, 0), stalled("f", "w", 2, 1, 600)], vec!["PreviousExecutionFailed b"]),
        (exhausted(1), vec!["ExhaustedRetries f5"]),
        (
            [vec![broke("b", "w", 1, 0)], exhausted(2)].concat(),
            vec!["ExhaustedRetries f6", "PreviousExecutionFailed b"],
        ),
        (
            [exhausted(1), vec![broke("b", "w", 6, 0)]].concat(),
            vec!["PreviousExecutionFailed b", "ExhaustedRetries f5"],
        ),
    ] {
        // An execution is Running and the newcomer is paused, so earlier rules decide. The blocks are the same.
        let mut asks = asks("new", "w");
        asks.paused = Some(pause("ask"));
        let target = target([past, vec![asks, running("holder", "r9")]].concat(), vec![]);
        assert_eq!(blocks(&target, &policy), expected);
    }
}

fn blocks(target: &Target, policy: &Policy) -> Vec<String> {
    let blocks = History::of(target, policy, at(NOW)).blocks(policy, at(NOW));
    let named = |skip: &Skip| format!("{} {}", skip.reason(), skip.remediation().unwrap().execution.uid);
    blocks.iter().map(named).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_order_does_not_depend_on_the_order_that_executions_come_in(
        target in any_history(),
        policy in any_policy(),
        seed in any::<prop::sample::Index>(),
    ) {
        let history = History::of(&target, &policy, at(NOW));
        let mut shuffled = history.past.clone();
        shuffled.reverse();
        let middle = if shuffled.is_empty() { 0 } else { seed.index(shuffled.len()) };
        shuffled.rotate_left(middle);
        order::sort(&mut shuffled);
        prop_assert_eq!(names(&shuffled), names(history.all()));
    }

    #[test]
    fn one_more_failure_counts_one_more_and_makes_the_next_wait(target in any_history(), policy in any_policy()) {
        let history = History::of(&target, &policy, at(NOW));
        let inherited = history.consecutive_failures(&policy, at(NOW));
        let charge = history.charge(&policy, "k", at(NOW), Weight::Counts);
        prop_assert_eq!(charge.consecutive_failures, inherited + 1);
        prop_assert!(charge.next_allowed_execution.unwrap() > at(NOW));
        let shared = history.charge(&policy, "k", at(NOW), Weight::Waits);
        let waits = Charge { consecutive_failures: inherited, exhausts: false, ..charge };
        prop_assert_eq!(shared, waits, "one that is shared is waited for likewise");
        let unchanged = Charge { consecutive_failures: inherited, ..Charge::default() };
        prop_assert_eq!(history.charge(&policy, "k", at(NOW), Weight::None), unchanged);
    }

    #[test]
    fn to_clear_the_newest_block_lifts_all_and_without_a_block_nothing_does(
        mut target in any_history(),
        policy in any_policy(),
    ) {
        let now = at(NOW);
        target.guard = Guard::InForce;
        // If two clearances were set at once, either could have lifted the block.
        for execution in target.executions.values_mut() {
            execution.clearance.take_if(|it| it.recorded == Recorded::Not);
        }
        let blocks = History::of(&target, &policy, now).blocks(&policy, now);
        let newest = blocks.first().and_then(Skip::remediation).map(|past| past.execution.uid.clone());
        let failed = target.executions.values().filter(|it| matches!(it.state, ExecutionState::Failed(_)));
        for execution in failed.filter(|it| it.clearance.is_none()) {
            let uid = &execution.id.uid;
            let mut later = target.clone();
            later.executions.insert(uid.clone(), cleared(execution.clone(), Recorded::Not));
            let history = History::of(&later, &policy, now);
            let lifts = history.unrecorded().any(|it| it.execution.id.uid == *uid && it.effective);
            prop_assert!(!blocks.is_empty() || !lifts, "{uid:?} lifts what is no block");
            if newest.as_ref() == Some(uid) {
                prop_assert!(lifts, "{uid:?} is the newest block and lifts nothing");
                prop_assert_eq!(history.blocks(&policy, now), vec![]);
            }
        }
    }

    #[test]
    fn rules_2_and_3_name_a_block_that_a_person_can_clear(target in any_history(), policy in any_policy()) {
        let now = at(NOW);
        let blocks = History::of(&target, &policy, now).blocks(&policy, now);
        for (_, judgement) in decide(&target, &policy, now).judged {
            let Verdict::Skip { skip, .. } = &judgement.verdict else { continue };
            if matches!(skip, Skip::PreviousExecutionFailed { .. } | Skip::ExhaustedRetries { .. }) {
                // In scope Workflow, another workflow's failure may be newer.
                let is_same = |block: &Skip| block.remediation() == skip.remediation();
                let by_workflow = policy.previous_execution_failed_scope == Scope::Workflow;
                prop_assert!(!blocks.is_empty() && (by_workflow || blocks.iter().any(is_same)), "{skip:?}: {blocks:?}");
            }
        }
    }
}
