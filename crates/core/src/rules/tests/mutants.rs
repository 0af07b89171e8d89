//! Mutants of the rules: a rule is dropped, swaps places with its neighbour, or reads the clock a second early or late.
//! In other mutants the rules do not see one of their inputs. Each mutant must make a row of the tables fail.

use super::*;
use crate::policy::Scope;

/// Names the rows that notice a mutant.
fn noticed_by(holds: impl Fn(&Row) -> bool) -> Vec<&'static str> {
    all_rows().iter().filter(|row| !holds(row)).map(|row| row.name).collect()
}

#[test]
fn a_rule_that_is_dropped_is_missed() {
    for (at, (name, _)) in RULES.iter().enumerate() {
        let mut rules = RULES.to_vec();
        rules.remove(at);
        let noticed = noticed_by(|row| row.judged_by(&rules, |_| row.now) == row.rule);
        assert!(!noticed.is_empty(), "{name} can be dropped");
    }
}

#[test]
fn two_neighbours_that_change_places_are_noticed() {
    for at in 1..RULES.len() {
        let mut rules = RULES.to_vec();
        rules.swap(at - 1, at);
        let noticed = noticed_by(|row| row.judged_by(&rules, |_| row.now) == row.rule);
        assert!(!noticed.is_empty(), "{} and {} can change places", RULES[at - 1].0, RULES[at].0);
    }
}

#[test]
fn a_rule_that_is_a_second_early_or_late_is_noticed() {
    let second = Duration::from_secs(1);
    for timed in ["startBefore", EXHAUSTED, BACKOFF, COOLDOWN] {
        let shifted = |row: &Row, to: Time| row.judged_by(RULES, |rule| if rule == timed { to } else { row.now });
        let fast = noticed_by(|row| shifted(row, row.now + second) == row.rule);
        assert!(!fast.is_empty(), "{timed} can be a second early");
        let slow = noticed_by(|row| shifted(row, row.now - second) == row.rule);
        assert!(!slow.is_empty(), "{timed} can be a second late");
    }
}

/// Hides one input of the rules in a row.
type Blindness = fn(&mut Row);

const BLINDNESSES: &[(&str, Blindness)] = &[
    ("clearances", |row| each(row, |it| it.clearance = None)),
    ("what became of clearances", |row| {
        each(row, |it| it.clearance.iter_mut().for_each(|it| it.recorded = crate::execution::Recorded::Not));
    }),
    ("recoveryOf", |row| row.asks.recovery_of = None),
    ("the pause of a namespace", |row| row.asks.paused = None),
    ("the pause of all", |row| row.policy.paused_by = None),
    ("namespaces", |row| row.asks.id.namespace = "ops".into()),
    ("workflows", |row| {
        row.asks.workflow_id = "w".into();
        each(row, |it| it.workflow_id = "w".into());
    }),
    ("bundles", |row| row.asks.bundle = crate::testing::bundle_of("of nobody")),
    ("who cancelled", |row| each_failure(row, |it| it.cancelled = false)),
    ("the numbers of runs", |row| each(row, |it| it.run_sequence = None)),
    ("whether it ran", |row| each_failure(row, |it| it.was_execution_failure = false)),
    ("that nothing ran", |row| each_failure(row, |it| it.was_execution_failure = true)),
    ("nextAllowedExecution", |row| each_failure(row, |it| it.next_allowed_execution = None)),
    ("failedAt", |row| each_failure(row, |it| it.failed_at = None)),
    ("completionTime", |row| each_failure(row, |it| it.completed_at = None)),
    ("too late", |row| each_failure(row, |it| it.reason = crate::reason::FailureReason::Unknown)),
    ("scope Workflow", |row| row.policy.previous_execution_failed_scope = Scope::Target),
    ("scope Target", |row| row.policy.previous_execution_failed_scope = Scope::Workflow),
    ("a limit one higher", |row| row.policy.max_consecutive_failures += 1),
    ("a limit one lower", |row| {
        row.policy.max_consecutive_failures = row.policy.max_consecutive_failures.saturating_sub(1);
    }),
    ("the quiet period", |row| row.policy.failure_quiet_period = None),
    ("a longer cooldown", |row| row.policy.cooldown_period += Duration::from_secs(1)),
    ("a shorter cooldown", |row| {
        row.policy.cooldown_period = row.policy.cooldown_period.saturating_sub(Duration::from_secs(1));
    }),
];

fn each(row: &mut Row, change: fn(&mut Execution)) {
    row.target.executions.values_mut().for_each(change);
}

fn each_failure(row: &mut Row, change: fn(&mut crate::execution::FailedState)) {
    for execution in row.target.executions.values_mut() {
        if let ExecutionState::Failed(failed) = &mut execution.state {
            change(failed);
        }
    }
}

#[test]
fn rules_that_are_blind_to_something_are_noticed() {
    for (what, blind) in BLINDNESSES {
        let noticed = noticed_by(|row| {
            let mut blinded = row.clone();
            blind(&mut blinded);
            blinded.holds()
        });
        assert!(!noticed.is_empty(), "nothing notices rules that do not see {what}");
    }
}
