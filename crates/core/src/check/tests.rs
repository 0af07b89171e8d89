mod schedules;

use std::time::Duration;

use super::*;
use crate::action::{Action, Change, Ending, RunChange, Says, Write};
use crate::blocks::Blocked;
use crate::decide::decide;
use crate::ending::Failure;
use crate::evidence::{Absence, Started};
use crate::execution::{Execution, ExecutionState, Recorded};
use crate::name::Version;
use crate::reason::BlockReason;
use crate::run::Progress;
use crate::testing::generate::{NOW, any_history, any_policy, any_scheduled, any_target};
use crate::testing::*;
use crate::verdict::Fact;
use crate::waiting::Waiting;
use proptest::prelude::*;

fn found(target: &Target, policy: &Policy) -> Vec<Violation> {
    violations(target, policy, at(NOW), &decide(target, policy, at(NOW)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_decision_on_any_view_does_what_none_may_do(target in any_target(), policy in any_policy()) {
        prop_assert_eq!(found(&target, &policy), []);
    }

    #[test]
    fn no_decision_on_any_schedule_does_what_none_may_do(
        target in any_scheduled(),
        policy in any_policy(),
        // Statuses hold whole seconds. A decision may be made between two seconds.
        early in prop::sample::select(vec![0, 1, 500, 999]),
    ) {
        let now = at(NOW) - Duration::from_millis(early);
        prop_assert_eq!(violations(&target, &policy, now, &decide(&target, &policy, now)), []);
    }

    #[test]
    fn no_decision_on_any_history_does_what_none_may_do(target in any_history(), policy in any_policy()) {
        prop_assert_eq!(found(&target, &policy), []);
    }
}

/// A possible error: it makes a correct decision wrong.
type Mistake = fn(&mut Decision);

fn replace(decision: &mut Decision, with: fn(Action) -> Action) {
    decision.actions = std::mem::take(&mut decision.actions).into_iter().map(with).collect();
}

fn charge(decision: &mut Decision, change: fn(&mut Failure)) {
    for action in &mut decision.actions {
        if let Action::Write(Write { says: Says::Ended { ending: Ending::Failed(failure), .. }, .. }) = action {
            change(failure);
        }
    }
}

fn read_nothing(decision: &mut Decision) {
    if let Some(Action::Write(write)) = decision.actions.first_mut() {
        write.facts.clear();
    }
}

fn past() -> Vec<Execution> {
    vec![stalled("p", "x", 1, 0, 40), asks("a", "w")]
}

fn free() -> Target {
    target(past(), vec![])
}

fn blocked() -> Target {
    target(vec![broke("p", "x", 1, 0), asks("a", "w")], vec![])
}

/// Mistakes about the lock, runs and live reads.
fn mistakes_of_the_lock() -> Vec<(&'static str, Target, Mistake)> {
    let looks = || target(past(), vec![run(2, "a", Progress::Pending)]);
    let ends = || target(vec![stalled("p", "x", 1, 0, 40), running("a", "r2")], vec![looked(run(2, "a", done(false)))]);
    let spoilt = || target(vec![stalled("p", "x", 1, 0, 40), execution("a", unusable("bad"))], vec![]);
    let both_spoilt = || target(vec![execution("a", unusable("bad")), execution("b", unusable("bad"))], vec![]);
    let one_spoilt = || target(vec![asks("a", "w"), execution("b", unusable("bad"))], vec![]);
    let late = || {
        let mut late = asks("a", "w");
        if let ExecutionState::Undecided { start_before, .. } = &mut late.state {
            *start_before = Some(at(NOW - 1));
        }
        target(vec![late], vec![])
    };
    let expired = || {
        let mut ended_long_ago = run(1, "a", done(true));
        if let Progress::Done(outcome) = &mut ended_long_ago.progress {
            outcome.completed_at = Some(at(NOW) - Policy::default().retention);
        }
        target(vec![failed("a")], vec![ended_long_ago])
    };
    // The status has no number: an operator without retries wrote it.
    let overdue = || {
        let first = with_retry(retry_policy(), vec![], running("a", "r1"));
        let mut committed = run(1, "a", Progress::Pending);
        committed.memory.release_tried = Some(at(NOW - 400));
        troubled(target(vec![first], vec![committed, run(2, "a", Progress::Pending)]), Some(no_answer()))
    };
    let between = || target(vec![waits_until("a", NOW + 60), asks("b", "w")], vec![run(1, "a", done(false))]);
    vec![
        ("forgets one", free(), |it| it.actions.clear()),
        ("creates twice", free(), |it| it.actions.extend(it.actions.clone())),
        ("takes a number again", free(), |it| {
            replace(it, |action| match action {
                Action::Create { execution, .. } => Action::Create { execution, number: 1, at_most: None },
                other => other,
            });
        }),
        ("wakes in the past", free(), |it| it.wake = Some(at(NOW))),
        ("shows another counter", looks(), |it| {
            if let Some(Action::Write(Write { says: Says::Running { consecutive_failures, .. }, .. })) =
                it.actions.first_mut()
            {
                *consecutive_failures += 1;
            }
        }),
        ("commits to a stranger's run", looks(), |it| {
            if let Some(Action::Write(Write { says: Says::Running { run, .. }, .. })) = it.actions.first_mut() {
                *run = run_id("r9");
            }
        }),
        ("does not read what is left", looks(), read_nothing),
        ("does not read that the run is gone", target(vec![running("a", "r1")], vec![]), read_nothing),
        ("does not read what is left of an expired run", expired(), |it| {
            if let Some(Action::Change(change)) = it.actions.first_mut() {
                change.facts.clear();
            }
        }),
        ("does not read that it has made no run", late(), read_nothing),
        ("deletes what it commits to", ends(), |it| {
            it.actions = vec![Action::Change(Change { run: run_id("r2"), facts: Vec::new(), to: RunChange::Released })];
        }),
        ("deletes the run of a next attempt", overdue(), |it| {
            replace(it, |action| match action {
                Action::Change(mut change) => {
                    change.run = run_id("r2");
                    Action::Change(change)
                }
                other => other,
            });
        }),
        ("makes a rival wait for the attempt before", between(), |it| {
            it.actions.retain(|action| !matches!(action, Action::Skip { .. }));
            it.waiting.push((id("b"), Waiting::OwnerLate));
        }),
        ("calls harmless what ran", ends(), |it| {
            charge(it, |failure| failure.started = Started::NotStarted(Absence::OnlyWaited));
        }),
        ("counts what ran", ends(), |it| charge(it, |failure| failure.charge.next_allowed_execution = Some(at(100)))),
        ("ends two at once that count", both_spoilt(), |it| {
            it.waiting.clear();
            let mut other = it.actions.clone();
            if let Some(Action::Write(Write { execution, says: Says::Ended { .. }, .. })) = other.first_mut() {
                *execution = id("b");
            }
            it.actions.append(&mut other);
        }),
        ("gives a turn beside a failure that counts", one_spoilt(), |it| {
            it.waiting.clear();
            it.actions.push(Action::Create { execution: id("a"), number: 1, at_most: None });
        }),
        ("miscounts", spoilt(), |it| charge(it, |failure| failure.charge.consecutive_failures += 1)),
        ("lets the next one run a second early", spoilt(), |it| {
            charge(it, |failure| {
                failure.charge.next_allowed_execution = Some(at(NOW + 119));
            });
        }),
    ]
}

/// Mistakes about the history, removals and reported blocks.
fn mistakes_of_the_history() -> Vec<(&'static str, Target, Mistake)> {
    let expiring = || {
        let counts = Execution { ttl: Some(std::time::Duration::ZERO), ..stalled("p", "x", 1, 0, 40) };
        target(vec![counts], vec![])
    };
    let clears = || target(vec![cleared(broke("p", "x", 1, 0), Recorded::Not)], vec![]);
    vec![
        ("runs what is blocked", blocked(), |it| {
            it.actions = vec![Action::Create { execution: id("a"), number: 2, at_most: None }];
        }),
        ("skips on a fact that is none", blocked(), |it| {
            if let Some(Action::Skip { fact, .. }) = it.actions.first_mut() {
                *fact = Fact::Stands(id("a"));
            }
        }),
        ("skips what it may run", free(), |it| {
            let (skipped, fact) = (vec![(id("a"), Version::new("v"))], Fact::Stands(id("p")));
            let other =
                decide(&target(vec![broke("p", "x", 1, 0), asks("a", "w")], vec![]), &Policy::default(), at(NOW));
            let skip = other.actions.iter().find_map(|action| match action {
                Action::Skip { skip, .. } => Some(skip.clone()),
                _ => None,
            });
            it.actions = vec![Action::Skip { skipped, skip: skip.unwrap(), fact }];
        }),
        ("calls blocked what is not", free(), |it| {
            let (execution, version) = (id("p"), Version::new("v"));
            let blocked = Blocked::Yes(BlockReason::ExhaustedRetries);
            it.actions.push(Action::Write(Write {
                execution,
                version,
                facts: Vec::new(),
                says: Says::Blocked(blocked),
            }));
        }),
        ("removes who counts", expiring(), |it| {
            it.actions = vec![Action::Remove { execution: id("p"), version: Version::new("v") }];
        }),
        ("removes one before its time", target(vec![completed("p", "x", 1, 0)], vec![]), |it| {
            it.actions = vec![Action::Remove { execution: id("p"), version: Version::new("v") }];
        }),
        ("does not tell who blocks", blocked(), |it| it.blocks.blocks.clear()),
        ("tells another counter", blocked(), |it| it.blocks.consecutive_failures += 1),
        ("records that a clearance did nothing", clears(), |it| {
            if let Some(Action::Write(Write { says: Says::Cleared { effective, .. }, .. })) = it.actions.first_mut() {
                *effective = false;
            }
        }),
    ]
}

#[test]
fn a_decision_that_is_wrong_is_found() {
    for (mistake, target, make) in mistakes_of_the_lock().into_iter().chain(mistakes_of_the_history()) {
        let mut decision = decide(&target, &Policy::default(), at(NOW));
        assert_eq!(violations(&target, &Policy::default(), at(NOW), &decision), [], "{mistake}");
        make(&mut decision);
        assert_ne!(violations(&target, &Policy::default(), at(NOW), &decision), [], "{mistake}: {decision:?}");
    }
}
