//! The condition `Blocked`, and the blocks of a target on which no execution asks for a turn.

use super::*;
use crate::blocks::{Blocked, RECOVERED};
use crate::execution::Recorded;
use crate::reason::BlockReason;
use crate::schedule::Retention;

fn shows(reason: &str, execution: Execution) -> Execution {
    Execution { blocked_shown: Some(reason.into()), ..execution }
}

fn told(target: &Target, policy: &Policy) -> Vec<(String, Blocked)> {
    let told = |action: Action| match action {
        Action::Write(Write { execution, says: Says::Blocked(blocked), .. }) => {
            Some((execution.uid.to_string(), blocked))
        }
        _ => None,
    };
    decide(target, policy, at(50)).actions.into_iter().filter_map(told).collect()
}

fn exhausted() -> Vec<Execution> {
    (1..=5).map(|n| stalled(&format!("f{n}"), "w", n, 0, 10)).collect()
}

/// The name of the row, the past executions, the policy, and the reported blocks.
type Row<'a> = (&'a str, Vec<Execution>, &'a Policy, Vec<(&'a str, Blocked)>);

fn all_tell(table: Vec<Row<'_>>) {
    for (name, past, policy, expected) in table {
        let mut seen = told(&target(past, vec![]), policy);
        seen.sort_by(|a, b| a.0.cmp(&b.0));
        let expected: Vec<(String, Blocked)> = expected.into_iter().map(|(uid, it)| (uid.to_owned(), it)).collect();
        assert_eq!(seen, expected, "{name}");
    }
}

#[test]
fn who_blocks_says_so_and_who_no_longer_does_says_why() {
    use BlockReason::{ExhaustedRetries as TooMany, PreviousExecutionFailed as Broke};
    let (broke_shown, many_shown) = (Broke.as_str(), TooMany.as_str());
    let with = |mut past: Vec<Execution>, more: Execution| {
        past.push(more);
        past
    };
    let by_workflow = Policy { previous_execution_failed_scope: crate::policy::Scope::Workflow, ..Policy::default() };
    let target_scope = Policy::default();
    let table: Vec<Row<'_>> = vec![
        ("a failure half way", vec![broke("b", "w", 1, 0)], &target_scope, vec![("b", Blocked::Yes(Broke))]),
        ("it says so", vec![shows(broke_shown, broke("b", "w", 1, 0))], &target_scope, vec![]),
        (
            "another reason",
            vec![shows(many_shown, broke("b", "w", 1, 0))],
            &target_scope,
            vec![("b", Blocked::Yes(Broke))],
        ),
        ("too many", exhausted(), &target_scope, vec![("f5", Blocked::Yes(TooMany))]),
        ("not too many", exhausted().split_off(1), &target_scope, vec![]),
        (
            "a later success",
            vec![shows(broke_shown, broke("b", "w", 1, 0)), completed("c", "x", 2, 5)],
            &target_scope,
            vec![("b", Blocked::Lifted)],
        ),
        (
            "the success of another workflow, in scope Workflow",
            vec![shows(broke_shown, broke("b", "w", 1, 0)), completed("c", "x", 2, 5)],
            &by_workflow,
            vec![],
        ),
        (
            "two workflows, in scope Workflow",
            vec![broke("b", "w", 1, 0), broke("c", "x", 2, 5)],
            &by_workflow,
            vec![("b", Blocked::Yes(Broke)), ("c", Blocked::Yes(Broke))],
        ),
        (
            "a later failure",
            vec![shows(broke_shown, broke("b", "w", 1, 0)), shows(broke_shown, broke("c", "x", 2, 5))],
            &target_scope,
            vec![("b", Blocked::Superseded)],
        ),
        (
            "a clearance of a later one",
            vec![shows(broke_shown, broke("b", "w", 1, 0)), cleared(stalled("c", "x", 2, 5, 10), Recorded::Effective)],
            &target_scope,
            vec![("b", Blocked::Cleared)],
        ),
        (
            "its own clearance, and no other",
            vec![shows(broke_shown, cleared(broke("b", "w", 1, 0), Recorded::Effective))],
            &target_scope,
            vec![("b", Blocked::Cleared)],
        ),
        (
            "a clearance of an earlier one, and then a success",
            vec![
                cleared(stalled("a", "x", 1, 0, 10), Recorded::Effective),
                shows(broke_shown, broke("b", "w", 2, 1)),
                completed("c", "x", 3, 5),
            ],
            &target_scope,
            vec![("b", Blocked::Lifted)],
        ),
        (
            "its own clearance says it too",
            vec![shows(broke_shown, cleared(broke("b", "w", 1, 0), Recorded::Not))],
            &target_scope,
            vec![],
        ),
        (
            "a sixth that fails before its turn",
            with(exhausted(), shows(many_shown, stalled("g", "w", 6, 20, 30))),
            &target_scope,
            vec![],
        ),
    ];
    all_tell(table);
}

#[test]
fn a_failure_is_recovered_while_its_recovery_is_the_newest_that_ran() {
    use BlockReason::PreviousExecutionFailed as Broke;
    let broke_shown = Broke.as_str();
    let target_scope = Policy::default();
    all_tell(vec![
        (
            "its recovery",
            vec![shows(broke_shown, broke("b", "w", 1, 0)), recovers("b", completed("c", "x", 2, 5))],
            &target_scope,
            vec![("b", Blocked::Recovered)],
        ),
        (
            "its recovery, as its status says",
            vec![shows(RECOVERED, broke("b", "w", 1, 0)), recovers("b", completed("c", "x", 2, 5))],
            &target_scope,
            vec![],
        ),
        (
            "its recovery, and then a failure before anything ran",
            vec![
                shows(RECOVERED, broke("b", "w", 1, 0)),
                recovers("b", completed("c", "x", 2, 5)),
                stalled("d", "y", 3, 10, 20),
            ],
            &target_scope,
            vec![],
        ),
        (
            "its recovery, and then a success",
            vec![
                shows(RECOVERED, broke("b", "w", 1, 0)),
                recovers("b", completed("c", "x", 2, 5)),
                completed("d", "y", 3, 10),
            ],
            &target_scope,
            vec![("b", Blocked::Lifted)],
        ),
        (
            "its recovery, and then a failure half way",
            vec![
                shows(RECOVERED, broke("b", "w", 1, 0)),
                recovers("b", completed("c", "x", 2, 5)),
                shows(broke_shown, broke("d", "y", 3, 10)),
            ],
            &target_scope,
            vec![("b", Blocked::Lifted)],
        ),
        (
            "its recovery is gone",
            vec![shows(RECOVERED, broke("b", "w", 1, 0))],
            &target_scope,
            vec![("b", Blocked::Yes(Broke))],
        ),
        (
            "the recovery of a recovery that broke",
            vec![
                shows(broke_shown, broke("b", "w", 1, 0)),
                shows(broke_shown, recovers("b", broke("c", "x", 2, 5))),
                recovers("c", completed("d", "y", 3, 10)),
            ],
            &target_scope,
            vec![("b", Blocked::Lifted), ("c", Blocked::Recovered)],
        ),
        (
            "the recovery of a namesake in another namespace",
            vec![
                shows(broke_shown, broke("b", "w", 1, 0)),
                Execution {
                    id: crate::name::ExecutionId { namespace: "elsewhere".into(), ..id("c") },
                    ..recovers("b", completed("c", "x", 2, 5))
                },
            ],
            &target_scope,
            vec![("b", Blocked::Lifted)],
        ),
    ]);
}

#[test]
fn the_condition_says_what_the_block_means_and_what_ends_it() {
    use BlockReason::{ExhaustedRetries, PreviousExecutionFailed};
    for (blocked, expected) in [
        (
            Blocked::Yes(PreviousExecutionFailed),
            "something of it ran, or may have run, so what would run next on node/n is skipped; see what it left \
             behind, then clear it: kubectl wfe clear node/n --reason '...'",
        ),
        (
            Blocked::Yes(ExhaustedRetries),
            "it is the latest of too many failures in a row, so what would run next on node/n is skipped; end their \
             cause, then clear it: kubectl wfe clear node/n --reason '...'",
        ),
        (Blocked::Cleared, "a clearance has lifted its block of node/n"),
        (Blocked::Superseded, "a later execution blocks node/n in its place"),
        (
            Blocked::Recovered,
            "the recovery of this execution has succeeded and ended its block of node/n; until a later execution has run \
             there, deleting this one requires permission to clear it",
        ),
        (Blocked::Lifted, "its block of node/n has ended, by a later success or by time"),
    ] {
        assert_eq!(blocked.message("node/n"), expected, "{}", blocked.reason());
    }
}

#[test]
fn what_stands_is_told_when_nobody_asks_for_a_turn() {
    let mut past = exhausted();
    past.push(broke("b", "w", 6, 20));
    let found = decide(&target(past, vec![]), &Policy::default(), at(50)).blocks;
    assert_eq!(found.consecutive_failures, 5);
    let named = |it: &Skip| (it.remediation().unwrap().execution.uid.to_string(), it.reason());
    let blocks: Vec<_> = found.blocks.iter().map(named).collect();
    assert_eq!(blocks, [("b".to_owned(), "PreviousExecutionFailed"), ("f5".to_owned(), "ExhaustedRetries")]);
    assert_eq!(found.reason(), Some(BlockReason::PreviousExecutionFailed), "this is what is met first");
}

#[test]
fn a_quiet_time_ends_a_block_at_its_very_second() {
    let policy = Policy { failure_quiet_period: Some(Duration::from_mins(20)), ..Policy::default() };
    let mut past = exhausted();
    past[4].blocked_shown = Some("ExhaustedRetries".into());
    let view = target(past, vec![]);
    let decision = decide(&view, &policy, at(1199));
    assert_eq!((decision.actions, decision.wake), (vec![], Some(at(1200))));
    let decision = decide(&view, &policy, at(1200));
    assert_eq!(decision.blocks, crate::blocks::TargetBlocks::default());
    assert!(
        matches!(&decision.actions[..], [Action::Write(Write { says: Says::Blocked(Blocked::Lifted), .. })]),
        "{decision:?}"
    );
    assert_eq!(decision.wake, None, "a quiet time that is over wakes nobody");
}

#[test]
fn a_failure_that_blocks_from_its_end_on_says_so_at_once() {
    let mut four = exhausted();
    four.truncate(4);
    four.push(Execution { state: unusable("bad"), ..undecided("a") });
    let decided = actions(&target(four, vec![]));
    let failure = only_failure(&decided);
    assert_eq!(failure.blocks(), Some(BlockReason::ExhaustedRetries));
}

/// This also applies if the analyst has the same target as the failures, which no operator arranges.
#[test]
fn an_analyst_that_fails_blocks_nobody_and_counts_for_nobody() {
    let by_analyst = |execution: Execution, analyses: bool| {
        let mut execution = made_by("s", 0, Retention::Needed, execution);
        execution.child.iter_mut().for_each(|child| child.analyses = analyses);
        execution
    };
    let mut four = exhausted();
    four.truncate(4);
    let policy = Policy::default();
    for (name, analyst) in [("broke", broke("a", "look", 5, 20)), ("stalled", stalled("a", "look", 5, 20, 90))] {
        let view = |analyses: bool| {
            let analyst = by_analyst(analyst.clone(), analyses);
            target(four.iter().cloned().chain([analyst]).collect(), vec![])
        };
        assert_eq!(told(&view(true), &policy), [], "{name}");
        let found = decide(&view(true), &policy, at(50)).blocks;
        assert_eq!((found.consecutive_failures, found.blocks), (4, vec![]), "{name}");
        let newcomer = undecided("n");
        let mut asked = view(true);
        asked.executions.insert(newcomer.id.uid.clone(), newcomer);
        let skips = |action: &Action| matches!(action, Action::Skip { .. });
        assert!(!decide(&asked, &policy, at(89)).actions.iter().any(skips), "{name}");
    }
    let child = by_analyst(broke("a", "look", 5, 20), false);
    let told = told(&target(vec![child], vec![]), &policy);
    assert_eq!(told, [("a".to_owned(), Blocked::Yes(BlockReason::PreviousExecutionFailed))], "what is no analyst does");
}
