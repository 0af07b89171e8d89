//! Generators of views. The views are small, so that all combinations occur, including odd statuses.

mod schedules;
mod triages;

use proptest::prelude::*;

use self::schedules::{any_schedules, with_schedules};
use super::limits::place_of;
use super::*;
use crate::backoff::Backoff;
use crate::execution::{ExecutionMemory, RunShown};
use crate::fingerprint::Fingerprint;
use crate::guard::Guard;
use crate::limit::Limit;
use crate::policy::{Policy, Scope};
use crate::reason::Refusal;
use crate::retry::{Answers, NextAttempt};
use crate::run::CancelReason;
use crate::target::{Elsewhere, OwnerRead};

/// The second at which generated views are decided.
pub(crate) const NOW: i64 = 50;

/// Generates a time of the history: now and its neighbours, the limits of the generated policies, and times far away.
fn second() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -400..NOW,
        2 => prop::sample::select(vec![NOW - 1, NOW, NOW + 1, NOW - 60, NOW - 61, NOW - 59, NOW - 100]),
        1 => prop::sample::select(vec![-1_000_000_000, NOW + 3600, 9_000_000_000]),
    ]
}

fn maybe_at() -> impl Strategy<Value = Option<Time>> {
    prop_oneof![9 => second().prop_map(|second| Some(at(second))), 1 => Just(None)]
}

fn reason() -> impl Strategy<Value = FailureReason> {
    prop::sample::select(vec![FailureReason::Unknown, FailureReason::DeadlineExceeded, FailureReason::ImagePullBackOff])
}

fn any_fingerprint() -> impl Strategy<Value = Fingerprint> {
    let texts = ["ImagePullBackOff/registry/registry.example", "Unknown/cluster", "ConfigurationError/workflow/w1@1"];
    prop::sample::select(texts.to_vec()).prop_map(|text| Fingerprint::parse(text).unwrap())
}

fn failed_state() -> impl Strategy<Value = FailedState> {
    let next = prop_oneof![2 => maybe_at(), 1 => Just(None)];
    let shared = (prop::option::weighted(0.7, any_fingerprint()), prop::bool::weighted(0.3));
    (reason(), any::<bool>(), prop::bool::weighted(0.1), maybe_at(), maybe_at(), next, shared).prop_map(
        |(reason, was_execution_failure, cancelled, failed_at, completed_at, next_allowed_execution, shared)| {
            FailedState {
                reason,
                was_execution_failure,
                cancelled,
                failed_at,
                completed_at,
                next_allowed_execution,
                fingerprint: shared.0,
                shared_outage: shared.1,
            }
        },
    )
}

fn undecided_state() -> impl Strategy<Value = ExecutionState> {
    let seldom = |weight| prop::bool::weighted(weight);
    (seldom(0.1), prop::option::weighted(0.2, 0..100_i64)).prop_map(|(unusable, start_before)| {
        ExecutionState::Undecided { unusable: unusable.then(|| "bad".into()), start_before: start_before.map(at) }
    })
}

/// Generates the memory of an undecided execution.
fn memory() -> impl Strategy<Value = ExecutionMemory> {
    let answer = || prop::option::weighted(0.8, prop_oneof![Just(Ok(true)), Just(Ok(false)), Just(Err("e".into()))]);
    let answers = (answer(), answer()).prop_map(|(stop_when, retry_when)| Answers { stop_when, retry_when });
    let answers = prop::option::of(answers);
    let refused = prop::option::weighted(0.1, 1..9_u64);
    (refused, prop::option::weighted(0.1, -400..NOW), answers).prop_map(|(refused, first_try, answers)| {
        ExecutionMemory {
            answers: answers.map(Box::new),
            refusal: refused.map(|number| Refusal { reason: FailureReason::Forbidden, message: "no".into(), number }),
            first_try: first_try.map(at),
            // The value that the index sets after the first decision, so that the wait is reported at a fixed time.
            waits_since: Some(at(NOW - 5)),
            ..ExecutionMemory::default()
        }
    })
}

fn state(weight_of_past: u32) -> impl Strategy<Value = ExecutionState> {
    let runs = prop::sample::select(vec!["r1", "r2", "r3", "r4"]);
    prop_oneof![
        4 => undecided_state(),
        1 => (runs, prop::bool::weighted(0.9)).prop_map(|(run, named)| ExecutionState::Running {
            run: named.then(|| run_id(run)),
            started_at: Some(at(0)),
        }),
        weight_of_past => maybe_at().prop_map(|completed_at| ExecutionState::Completed { started_at: None, completed_at }),
        2 * weight_of_past => failed_state().prop_map(ExecutionState::Failed),
        1 => maybe_at().prop_map(|completed_at| ExecutionState::Skipped { completed_at }),
    ]
}

/// Generates a retry policy with attempts of a status, including attempts that no operator writes.
fn any_retry() -> impl Strategy<Value = Retry> {
    let text = |text: &'static str| prop::option::weighted(0.3, Just(Box::from(text)));
    let policy = (
        (1..5_u32, 0..20_u64, 0..40_u64, any::<bool>(), any::<bool>()),
        (text("a"), text("b"), prop::sample::select(vec![30, 60, 3600])),
    )
        .prop_map(|((max_attempts, initial, more, jitter, again), (retry_when, stop_when, max_duration))| {
            RetryPolicy {
                max_attempts,
                initial_delay: Duration::from_secs(initial),
                multiplier: Thousandths::TWO,
                max_delay: Duration::from_secs(initial.max(1) + more),
                jitter,
                retry_when,
                stop_when,
                retry_execution_failures: again,
                max_duration: Duration::from_secs(max_duration),
            }
        });
    (policy, prop::collection::vec(any_attempt(), 0..4), 0..4_u8).prop_map(|(policy, mut attempts, last)| {
        let count = attempts.len();
        if let Some(entry) = attempts.last_mut() {
            match last {
                0 if count > 1 => (entry.run, entry.started_at, entry.end) = (None, None, None),
                0 | 1 => entry.end = None,
                _ => {}
            }
        }
        Retry { policy, attempts }
    })
}

fn any_attempt() -> impl Strategy<Value = Attempt> {
    let started = prop::sample::select(Ran::ALL.to_vec());
    let end = (started, prop::option::of(reason()), 0..NOW).prop_map(|(started, reason, second)| AttemptEnd {
        completed_at: at(second),
        started,
        reason,
        message: "m".into(),
    });
    let times = (prop::option::weighted(0.9, 0..NOW + 10), prop::option::weighted(0.9, 0..NOW));
    (times, prop::option::weighted(0.9, end)).prop_map(|((not_before, started_at), end)| Attempt {
        delay: not_before.map(|_| Duration::from_secs(1)),
        not_before: not_before.map(at),
        run: started_at.map(|_| "run-r1".into()),
        started_at: started_at.map(at),
        end,
    })
}

fn any_execution(weight_of_past: u32) -> impl Strategy<Value = Execution> {
    let uids = prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]);
    let workflows = prop::sample::select(vec!["w1", "w2", "w3"]);
    let recorded = prop::sample::select(vec![Recorded::Not, Recorded::Not, Recorded::Effective, Recorded::Ineffective]);
    let beside = (
        prop::option::weighted(0.3, prop::sample::select(vec!["wfe-a", "wfe-b", "wfe-c", "wfe-d"])),
        prop::option::weighted(0.2, recorded),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
        prop::option::weighted(
            0.2,
            prop::sample::select(vec!["PreviousExecutionFailed", "ExhaustedRetries", "Recovered", "Odd"]),
        ),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.5, 0..300_u64),
        prop::sample::select(vec!["b1", "b2", "b3", "b4"]),
        (memory(), prop::option::weighted(0.4, any_retry()), prop::option::weighted(0.3, any::<bool>())),
    );
    (uids, workflows, state(weight_of_past), prop::option::weighted(0.8, 0..6_u64), 0..3_i64, beside).prop_map(
        |(
            uid,
            workflow,
            state,
            number,
            created,
            (
                recovery_of,
                recorded,
                cancelled,
                paused,
                deleting,
                blocked,
                proof_shown,
                ttl,
                bundle,
                (memory, retry, said),
            ),
        )| {
            let retry = retry.map(|retry| match state {
                ExecutionState::Undecided { .. } => Retry { attempts: Vec::new(), ..retry },
                _ => retry,
            });
            let retry =
                retry.filter(|_| !matches!(state, ExecutionState::Completed { .. } | ExecutionState::Failed(_)));
            let remembers = matches!(state, ExecutionState::Undecided { .. }) || retry.is_some();
            let memory = if remembers { memory } else { ExecutionMemory::default() };
            let execution = Execution {
                workflow_id: workflow.into(),
                origin: origin(workflow),
                bundle: bundle_of(bundle),
                run_sequence: number,
                created: at(created),
                deleting,
                recovery_of: recovery_of.map(Into::into),
                cancellation: cancelled.then(|| Box::new(cancellation(said))),
                paused: paused.then(|| pause("ask")),
                blocked_shown: blocked.map(Into::into),
                ttl: ttl.map(Duration::from_secs),
                run_shown: RunShown { proof: proof_shown.then(|| Box::new(proof())), tasks: None, awaits: None },
                memory: Some(Box::new(memory)),
                retry: retry.map(Box::new),
                ..execution(uid, state)
            };
            match recorded {
                Some(Recorded::Not) => cleared_unguarded(execution, said),
                Some(recorded) => cleared(execution, recorded),
                None => execution,
            }
        },
    )
}

/// Generates what is known about the admission policies.
fn any_guard() -> impl Strategy<Value = Guard> {
    prop::sample::select(vec![Guard::Recorded, Guard::Unknown, Guard::InForce, Guard::InForce, Guard::Missing])
}

fn any_run() -> impl Strategy<Value = Run> {
    let uids = prop::sample::select(vec!["a", "b", "c", "d", "x"]);
    let progress =
        prop_oneof![3 => Just(Progress::Pending), 2 => Just(Progress::Released), 2 => any::<bool>().prop_map(done)];
    let presence = prop::sample::select(vec![Presence::Watched, Presence::Gone, Presence::Unwatched]);
    let started = prop::sample::select(vec![
        waited(),
        Started::Unknown(Doubt::TooMany),
        Started::Unknown(Doubt::Unseen("t".into())),
    ]);
    let look = prop::option::weighted(0.8, (started, NOW - 5..NOW));
    let seen =
        (any::<bool>(), prop::option::weighted(0.3, Just(proof())), prop::option::weighted(0.1, Just("t".into())))
            .prop_map(|(has_stirred, proof, replayed)| Seen {
                has_started_anything: has_stirred,
                proof,
                replayed,
                ..Seen::default()
            });
    let times = (
        prop::sample::select(vec![NOW - 1, NOW - 3, NOW - 100]),
        prop::option::weighted(0.5, -400..NOW),
        prop::option::weighted(0.3, -400..NOW),
    );
    let goes = prop::bool::weighted(0.1);
    (1..5_u64, uids, progress, presence, 0..4_u64, look, seen, prop::bool::weighted(0.2), times, goes).prop_map(
        |(number, uid, progress, presence, order, look, seen, cancelled, times, deleting)| {
            let (done_seen, released_at, release_tried) = times;
            let run = Run {
                deleting,
                order: Order(order),
                owner: Owner::Execution { id: id(uid), workflow_id: "w1".into(), presence },
                cancelled,
                stopped: !cancelled && number % 4 == 3,
                cancel_reason: cancelled.then_some(CancelReason::Requested),
                released_at: released_at.map(at),
                memory: RunMemory {
                    seen,
                    diagnosed: None,
                    done_seen: Some(at(done_seen)),
                    release_tried: release_tried.map(at),
                },
                ..run(number, uid, progress)
            };
            match look {
                Some((started, second)) => looked_at(run, second, started),
                None => run,
            }
        },
    )
}

fn any_owner_read() -> impl Strategy<Value = Elsewhere> {
    let next = NextAttempt { attempt: 2, of: 3, not_before: at(NOW + 5), ends_by: at(NOW + 500) };
    let waits = OwnerRead::Waits { started_at: at(0), next };
    let found = prop::sample::select(vec![OwnerRead::Over, OwnerRead::Late, waits]);
    (found, prop::sample::select(vec![NOW, NOW - 9, NOW - 10]))
        .prop_map(|(found, second)| Elsewhere { at: at(second), found })
}

/// Generates any view. About half of the views concern mostly running executions, and half mostly finished ones.
pub(crate) fn any_target() -> impl Strategy<Value = Target> {
    let residue = prop::option::weighted(0.2, prop::sample::select(vec!["a", "b", "x"]));
    let trouble = prop::option::weighted(0.3, prop::sample::select(vec![no_answer(), forbidden(), without_tekton()]));
    let elsewhere = prop::option::of((any_owner_read(), prop::sample::select(vec!["a", "b", "x"])));
    let place = prop::option::of(prop::sample::select(vec!["a", "b", "c", "s"]));
    let beside = (residue, elsewhere, any_schedules(), any_guard(), place);
    (prop::collection::vec(any_execution(2), 0..6), prop::collection::vec(any_run(), 0..4), beside, trouble).prop_map(
        |(executions, runs, (residue, elsewhere, schedules, guard, place), trouble)| {
            let mut target = with_schedules(troubled(target(executions, runs), trouble), schedules);
            target.guard = guard;
            target.places = place.map(place_of).unwrap_or_default();
            if let Some((read, owner)) = elsewhere {
                target.memory.unwatched_owners.insert(Uid::new(owner), read);
            }
            match residue {
                Some(owner) => left(target, pod(owner)),
                None => target,
            }
        },
    )
}

/// Generates a view in which nothing runs: long histories, and some executions that ask for a turn.
pub(crate) fn any_history() -> impl Strategy<Value = Target> {
    let executions = prop::collection::vec(any_execution(6), 1..9);
    let place = prop::option::of(prop::sample::select(vec!["a", "b", "c", "s"]));
    (executions, any_schedules(), any_guard(), place).prop_map(|(executions, schedules, guard, place)| {
        let places = place.map(place_of).unwrap_or_default();
        let ended = executions.into_iter().filter(|it| !matches!(it.state, ExecutionState::Running { .. }));
        Target { places, guard, ..with_schedules(target(ended.collect(), vec![]), schedules) }
    })
}

/// Generates schedules on a target with little else. Most of them may make a child.
pub(crate) fn any_scheduled() -> impl Strategy<Value = Target> {
    (prop::collection::vec(any_execution(6), 0..3), any_schedules()).prop_map(|(executions, schedules)| {
        let is_past =
            |it: &Execution| matches!(it.state, ExecutionState::Completed { .. } | ExecutionState::Skipped { .. });
        with_schedules(target(executions.into_iter().filter(is_past).collect(), vec![]), schedules)
    })
}

/// Generates any valid policy. Its values are close to the generated times.
pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    let scope = prop::sample::select(vec![Scope::Target, Scope::Workflow]);
    let backoff =
        (1..90_u64, 0..200_u64, 0..6_u32, 0..=1000_u32).prop_map(|(base, more, max_exponent, jitter)| Backoff {
            jitter: Thousandths(jitter),
            ..Backoff::doubling(Duration::from_secs(base), Duration::from_secs(base + more), max_exponent)
        });
    let quiet = prop::option::of(0..300_u64);
    let cooldown = prop::sample::select(vec![0, 1_000, 59_500, 60_000, 100_000, 3_600_000]);
    let paused = prop::bool::weighted(0.05);
    let workflow = prop::sample::select(vec![None, Some("w1"), Some("w2")]);
    let limits = prop::option::weighted(0.3, prop::collection::vec(workflow, 1..3));
    let rest = (cooldown, paused, limits);
    (scope, 0..4_u32, backoff, quiet, rest).prop_map(|(scope, limit, backoff, quiet, (cooldown, paused, limits))| {
        let of_workflow =
            |workflow: Option<&str>| Limit { workflow_id: workflow.map(Into::into), ..super::limits::limit("l") };
        Policy {
            limits: limits.unwrap_or_default().into_iter().map(of_workflow).collect(),
            previous_execution_failed_scope: scope,
            max_consecutive_failures: limit,
            backoff,
            // The quiet period must be at least the longest wait with its jitter.
            failure_quiet_period: quiet.map(|more| backoff.max * 2 + Duration::from_secs(more)),
            cooldown_period: Duration::from_millis(cooldown),
            paused_by: paused.then(|| "a test".into()),
            ..Policy::default()
        }
    })
}
