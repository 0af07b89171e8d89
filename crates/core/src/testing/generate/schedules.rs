//! Generates schedules in all states, including odd statuses, with children on their own target and on others.

use super::triages::{any_adjust, any_analyst_run, any_gathered, any_heard, any_triage, any_triage_spec, with_triage};
use super::*;
use crate::circuit::{Circuits, Closing, OpenCircuit, Seen, Share};
use crate::fingerprint::Fingerprint;
use crate::schedule::cron::Cron;
use crate::schedule::{
    HeldBy, HistoryLimits, LastRun, MOST_FAILURES, Missed, Outcome, Plan, Planned, PlannedBy, RefusedChild,
    ScheduleStatus,
};

/// The schedules, the schedule and slot of each execution (by position), whether schedules cannot be seen, and the
/// circuits.
type Schedules = (Vec<Schedule>, Vec<Option<(&'static str, i64)>>, bool, Circuits);

/// Generates slots. There are few near slots, so a child often has the slot that the status of its schedule names. Some
/// slots are far away.
pub(super) fn slot() -> impl Strategy<Value = i64> {
    let near = prop::sample::select(vec![-300, -120, -61, -60, -59, -10, 0, 10, 20, 30, 40, 45, 49, 50, 60, 110, 170]);
    // The far future slot is later than any other change by time alone on a target, and earlier than the last year of
    // cron. A time from a wrong clock becomes right when that time comes.
    prop_oneof![12 => near, 1 => prop::sample::select(vec![-1_000_000_000, 10_000_000_000])]
}

fn seconds(from: u64, to: u64) -> impl Strategy<Value = Duration> {
    (from..to).prop_map(Duration::from_secs)
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let interval = prop::sample::select(vec![1, 10, 30, 60, 3600]).prop_map(Duration::from_secs);
    let cron = prop::option::weighted(0.2, prop::sample::select(vec!["* * * * *", "0 * * * *", "*/5 9 * * MON"]));
    let deadline = prop::option::weighted(0.4, prop::sample::select(vec![10, 20, 60, 600]));
    (interval, seconds(0, 60), seconds(0, 4000), 0..10_u64, deadline, cron).prop_map(
        |(interval, less, more, spread, deadline, cron)| Plan {
            every: cron.map_or(Every::Interval(interval), |it| Every::Cron(Cron::parse(it, "UTC").unwrap().into())),
            min_interval: interval.saturating_sub(less).max(Duration::from_secs(1)),
            max_interval: interval + more,
            spread: Duration::from_secs(spread.min(interval.as_secs().saturating_sub(1))),
            deadline: deadline.map(Duration::from_secs),
        },
    )
}

fn any_hint() -> impl Strategy<Value = Hint> {
    let wish = prop_oneof![slot().prop_map(|slot| Wish::At(at(slot))), seconds(1, 200).prop_map(Wish::Interval)];
    let expires = prop::sample::select(vec![0, NOW, NOW + 1, NOW + 30, NOW + 500]);
    (wish, expires).prop_map(|(wish, expires)| Hint { wish, expires_at: at(expires) })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(Outcome::ALL.to_vec())
}

fn any_last_run() -> impl Strategy<Value = LastRun> {
    let again = prop::bool::weighted(0.3);
    (slot(), prop::option::weighted(0.6, outcome()), prop::option::weighted(0.8, slot()), again).prop_map(
        |(slot, outcome, ended, again)| LastRun {
            slot: at(slot),
            again,
            started_at: Some(at(slot)),
            ended_at: ended.map(at).filter(|_| outcome.is_some()),
            outcome,
            reason: None,
            fingerprint: None,
            message: None,
        },
    )
}

fn any_status() -> impl Strategy<Value = ScheduleStatus> {
    let planned = (slot(), prop::sample::select(PlannedBy::ALL.to_vec()));
    let planned = planned.prop_map(|(slot, why)| Planned { at: at(slot), why });
    let ready = prop::sample::select(vec![
        Ready::Unsaid,
        Ready::Yes,
        Ready::Yes,
        Ready::InvalidSpec("odd".into()),
        Ready::ChildRefused("no".into()),
    ]);
    let by = prop::sample::select(HeldBy::ALL.to_vec());
    let by = by.prop_map(|reason| Held::By { reason, message: "because".into() });
    let held =
        prop_oneof![4 => Just(Held::Never), 2 => Just(Held::Released), 1 => Just(Held::Ahead("soon".into())), 2 => by];
    let failures = prop_oneof![6 => 0..8_u32, 1 => Just(MOST_FAILURES)];
    let missed = (slot(), 1..9_u32).prop_map(|(slot, count)| Missed { slot: at(slot), count });
    let said = (ready, held, prop::option::weighted(0.2, missed), prop::option::weighted(0.3, slot()));
    let begun = prop_oneof![8 => -400..-100_i64, 2 => slot()];
    (
        (
            prop::option::weighted(0.8, Just(1)),
            prop::option::weighted(0.95, Just(7)),
            prop::option::weighted(0.95, begun),
            prop::option::weighted(0.2, slot()),
        ),
        (failures, prop::option::weighted(0.8, any_last_run()), prop::option::weighted(0.7, planned)),
        said,
    )
        .prop_map(
            |(
                (generation, revision, begun, phase),
                (failure_count, last_run, next),
                (ready, held, missed, success),
            )| {
                ScheduleStatus {
                    observed_generation: generation,
                    revision: revision.map(Revision),
                    planned_from: begun.map(at),
                    phase: phase.map(at),
                    failure_count,
                    last_run,
                    last_success: success.map(at),
                    last_missed: missed,
                    next,
                    triage: None,
                    adjust: None,
                    ready,
                    held,
                    ready_since: None,
                    held_since: None,
                }
            },
        )
}

/// Generates a child on another target, or one whose execution this target does not have any more.
fn any_child() -> impl Strategy<Value = Child> {
    let ended = (outcome(), prop::option::weighted(0.9, slot()));
    (slot(), prop::option::weighted(0.7, ended)).prop_map(|(slot, end)| match end {
        None => child(slot),
        Some((outcome, ended)) => {
            let reason = (outcome != Outcome::Completed).then_some("Unknown");
            let fingerprint = (outcome == Outcome::Failed).then(|| Fingerprint::parse("Unknown/cluster")).flatten();
            Child { state: ChildState::Ended { outcome, at: ended.map(at), reason, fingerprint }, ..child(slot) }
        }
    })
}

fn any_schedule(uid: &'static str) -> impl Strategy<Value = Schedule> {
    let said = (
        prop::option::weighted(0.4, any_triage()),
        prop::option::weighted(0.1, any_adjust()),
        prop::option::weighted(0.3, any_analyst_run()),
    );
    let begun = prop::collection::vec(prop::sample::select(vec![-3600, -60, 0, NOW]), 0..12);
    let remembered = (prop::option::weighted(0.4, any_gathered()), prop::option::weighted(0.3, any_heard()), begun);
    let triage = (any_triage_spec(), said, remembered, prop::bool::weighted(0.1));
    (any_plain_schedule(uid), prop::option::weighted(0.5, triage)).prop_map(|(schedule, triage)| match triage {
        Some((spec, said, remembered, resumes)) => with_triage(schedule, spec, said, remembered, resumes),
        None => schedule,
    })
}

fn any_plain_schedule(uid: &'static str) -> impl Strategy<Value = Schedule> {
    let seldom = prop::bool::weighted;
    let memory = (prop::option::weighted(0.1, slot()), prop::option::weighted(0.2, slot()));
    let memory = memory.prop_map(|(refused, tried)| ScheduleMemory {
        create_refused: refused.map(|slot| Box::new(RefusedChild { slot: at(slot), message: "no".into() })),
        create_tried: tried.map(at),
        ..ScheduleMemory::default()
    });
    // An edit of the template, an edit of the plan, and a restore under another uid.
    let edited = prop::option::weighted(0.08, prop::sample::select(vec![8, 7 | 1 << 20, 7 | 1 << 40]));
    let limits = (0..3_u8, 0..3_u8).prop_map(|(successful, failed)| HistoryLimits { successful, failed });
    (
        (any_plan(), seldom(0.05), seldom(0.05), seldom(0.1), edited, seldom(0.05)),
        (
            prop::option::weighted(0.3, any_hint()),
            limits,
            any_status(),
            prop::collection::vec(any_child(), 0..3),
            memory,
        ),
    )
        .prop_map(
            move |((plan, odd, leaving, suspended, edited, paused), (hint, history, status, children, memory))| {
                Schedule {
                    generation: if edited.is_some() { 2 } else { 1 },
                    leaving,
                    plan: if odd { Err("odd".into()) } else { Ok(plan) },
                    suspended,
                    hint: hint.map(Box::new),
                    history,
                    revision: Revision(edited.unwrap_or(7)),
                    workflow_id: "w1".into(),
                    origin: origin("w1"),
                    paused: paused.then(|| pause("ask")),
                    status,
                    children,
                    memory,
                    ..schedule(uid)
                }
            },
        )
}

pub(super) fn any_schedules() -> BoxedStrategy<Schedules> {
    let both = (prop::option::weighted(0.7, any_schedule("s")), prop::option::weighted(0.3, any_schedule("t")));
    let both = both.prop_map(|(one, two)| one.into_iter().chain(two).collect::<Vec<_>>());
    let made = (prop::sample::select(vec!["s", "s", "t", "gone"]), slot());
    let made = prop::collection::vec(prop::option::weighted(0.4, made), 8);
    let none = Just((vec![], vec![], false, Circuits::default()));
    prop_oneof![1 => none, 2 => (both, made, prop::bool::weighted(0.05), any_circuits())].boxed()
}

/// Generates open and closed circuits. Some have the fingerprint of a schedule's last failure.
fn any_circuits() -> impl Strategy<Value = Circuits> {
    let said = || {
        prop::sample::select(vec![
            "Unknown/cluster",
            "Unknown/workflow/wf@1",
            "ConfigurationError/workflow/wf@1",
            "ImagePullBackOff/registry/registry.example",
        ])
    };
    let turn = prop::option::weighted(0.7, prop::sample::select(vec!["s", "s", "t", "else"]));
    let due = prop::sample::select(vec![-100, NOW - 1, NOW, NOW + 1, NOW + 40, NOW + 500]);
    let quiet = prop::sample::select(vec![NOW - 40, NOW, NOW + 1, NOW + 600, NOW + 1200]);
    let holds = prop::sample::select(vec![-200, -200, NOW - 1, NOW, NOW + 1]);
    let open =
        (said(), turn, due, quiet, holds, 0..4_u32).prop_map(|(said, turn, due, quiet, holds, failed_probes)| {
            let (holds_from, next_probe_at) = (at(holds), at(due));
            OpenCircuit { holds_from, failed_probes, next_probe_at, ..open_circuit(said, -200, quiet, turn) }
        });
    let closed = prop::sample::select(vec![-100, -60, 0, 20, 30, NOW - 1, NOW]);
    let why = prop::sample::select(vec![Closing::Probe, Closing::Success, Closing::Quiet]);
    let closed = (said(), closed, why).prop_map(|(said, second, why)| closed_circuit(said, second, why));
    let share = prop::option::weighted(0.2, Just(Share { failed: 12, of: 20 }));
    let some = (prop::collection::vec(open, 0..3), prop::collection::vec(closed, 0..2), share);
    let some = some.prop_map(|(mut open, closed, degraded)| {
        open.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
        open.dedup_by(|a, b| a.fingerprint == b.fingerprint);
        Circuits::from(Seen { open, closed, degraded })
    });
    prop_oneof![1 => Just(Circuits::default()), 1 => some]
}

/// Adds schedules to a target, and makes some of its executions their children.
pub(super) fn with_schedules(mut target: Target, (mut schedules, made, unseen, circuits): Schedules) -> Target {
    target.blind_to_schedules = unseen;
    target.circuits = circuits;
    for (execution, made) in target.executions.values_mut().zip(made) {
        let Some((schedule, slot)) = made else { continue };
        let keep = Retention::Own;
        let found = schedules.iter_mut().find(|it| *it.id.uid.to_string() == *schedule);
        if let Some(found) = found {
            found.children.retain(|child| child.slot != at(slot));
            let (uid, created) = (execution.id.uid.clone(), execution.created);
            found.children.push(Child { uid, created, state: state_of(execution), ..child(slot) });
        }
        execution.child =
            Some(Box::new(ChildOf { schedule: Uid::new(schedule), slot: at(slot), analyses: false, keep }));
    }
    for schedule in &mut schedules {
        schedule.children.sort_by_key(|child| child.slot);
        schedule.children.dedup_by_key(|child| child.slot);
        let keeps = schedule.keeps();
        for execution in target.executions.values_mut() {
            let of_this = execution.child.as_mut().filter(|child| child.schedule == schedule.id.uid);
            if let Some(child) = of_this {
                // Two executions with one slot would have the same name. The schedule has only one of them as its
                // child.
                child.keep = keeps.get(&execution.id.uid).copied().unwrap_or(Retention::Needed);
            }
        }
    }
    scheduled(target, schedules)
}

fn state_of(execution: &Execution) -> ChildState {
    let fingerprint = match &execution.state {
        ExecutionState::Failed(failed) => failed.fingerprint.clone(),
        _ => None,
    };
    let ended = |outcome, reason| ChildState::Ended { outcome, at: execution.ended_at(), reason, fingerprint };
    match &execution.state {
        ExecutionState::Undecided { .. } | ExecutionState::Running { .. } => ChildState::AtWork,
        ExecutionState::Completed { .. } => ended(Outcome::Completed, None),
        ExecutionState::Skipped { .. } => ended(Outcome::Skipped, Some("ResourceBusy")),
        ExecutionState::Failed(failed) if failed.cancelled => ended(Outcome::Cancelled, Some("Cancelled")),
        ExecutionState::Failed(_) => ended(Outcome::Failed, Some("Unknown")),
    }
}
