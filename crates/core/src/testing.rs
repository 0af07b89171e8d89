//! Builders of views for tests. Names are short, times are whole seconds after a fixed time, and everything is in one
//! namespace.

mod circuits;
pub(crate) mod generate;
pub(crate) mod limits;

use std::sync::Arc;
use std::time::Duration;

use crate::Time;
use crate::backoff::Thousandths;
use crate::bundle::Bundle;
use crate::evidence::{Absence, Doubt, Proof, Ran, Started};
use crate::execution::{Cancellation, Clearance, Execution, ExecutionState, FailedState, Recorded};
use crate::findings::Findings;
use crate::fingerprint::Origin;
use crate::guard::Unguarded;
use crate::name::{ExecutionId, RunId, ScheduleId, Uid, Version};
use crate::reason::FailureReason;
use crate::residue::{Residue, ResidueId, ResidueKind};
use crate::retry::{Attempt, AttemptEnd, Retry, RetryPolicy};
use crate::run::{Look, Order, Outcome, Owner, Presence, Progress, Run, RunMemory, Seen, Stays, StopRequest};
use crate::schedule::{
    Child, ChildOf, ChildState, Every, Held, HistoryLimits, LastRun, Plan, Planned, PlannedBy, Ready, Retention,
    Revision, Schedule, ScheduleMemory, ScheduleStatus,
};
use crate::schedule::{Hint, Wish};
use crate::target::{Target, TargetMemory};
use crate::tries::{Trouble, TroubleKind};
use crate::trouble::OwnCause;
use crate::waiting::Pause;

pub(crate) use circuits::{circuits, closed_circuit, open_circuit};

pub(crate) fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

pub(crate) fn id(uid: &str) -> ExecutionId {
    ExecutionId { namespace: "ops".into(), name: format!("wfe-{uid}").into(), uid: Uid::new(uid) }
}

/// A pause of the namespace.
pub(crate) fn pause(why: &str) -> Arc<Pause> {
    Arc::new(Pause { namespace: "ops".into(), why: why.into() })
}

pub(crate) fn run_id(uid: &str) -> RunId {
    RunId { name: format!("run-{uid}").into(), uid: Uid::new(uid) }
}

/// The origin of a workflow, with its own bundle.
pub(crate) fn origin(workflow: &str) -> Arc<Origin> {
    Arc::new(Origin::new(workflow, "1", &format!("registry.example/{workflow}:1")))
}

pub(crate) fn execution(uid: &str, state: ExecutionState) -> Execution {
    Execution { state, ..undecided(uid) }
}

pub(crate) fn undecided(uid: &str) -> Execution {
    let nothing_special = Execution::undecided(id(uid), Version::new("v"), at(0));
    Execution { workflow_id: "wf".into(), origin: origin("wf"), ..nothing_special }
}

pub(crate) fn unusable(why: &str) -> ExecutionState {
    ExecutionState::Undecided { unusable: Some(why.into()), start_before: None }
}

pub(crate) fn running(uid: &str, run: &str) -> Execution {
    execution(uid, ExecutionState::Running { run: Some(run_id(run)), started_at: Some(at(0)) })
}

/// Returns a policy with three attempts and a first wait of one second. It repeats an attempt even if something ran.
pub(crate) fn retry_policy() -> RetryPolicy {
    RetryPolicy { retry_execution_failures: true, ..RetryPolicy::default() }
}

/// An attempt that ended at second 20.
pub(crate) fn ended_attempt(started: Ran) -> Attempt {
    let (reason, message) = (Some(FailureReason::ImagePullBackOff), "no image".into());
    let end = Some(AttemptEnd { completed_at: at(20), started, reason, message });
    Attempt { run: Some("run-r1".into()), started_at: Some(at(0)), end, ..Attempt::default() }
}

/// An attempt that may begin at a second.
pub(crate) fn next_attempt(second: i64) -> Attempt {
    Attempt { delay: Some(Duration::from_secs(1)), not_before: Some(at(second)), ..Attempt::default() }
}

/// An execution with a retry policy and the attempts of its status.
pub(crate) fn with_retry(policy: RetryPolicy, attempts: Vec<Attempt>, execution: Execution) -> Execution {
    Execution { retry: Some(Box::new(Retry { policy, attempts })), ..execution }
}

/// An execution whose first attempt, with run 1, has failed. Its second attempt may begin at a second.
pub(crate) fn waits_until(uid: &str, second: i64) -> Execution {
    let attempts = vec![ended_attempt(Ran::No), next_attempt(second)];
    Execution { run_sequence: Some(1), ..with_retry(retry_policy(), attempts, running(uid, "r1")) }
}

/// An execution that failed before anything ran, so long ago that it blocks nothing.
pub(crate) fn failed(uid: &str) -> Execution {
    execution(uid, ExecutionState::Failed(failure(false, -9000, Some(-8000))))
}

/// The status of a failure at a second, with its `nextAllowedExecution`.
pub(crate) fn failure(was_execution_failure: bool, at_second: i64, next: Option<i64>) -> FailedState {
    FailedState {
        reason: FailureReason::Unknown,
        was_execution_failure,
        cancelled: false,
        failed_at: Some(at(at_second)),
        completed_at: Some(at(at_second)),
        next_allowed_execution: next.map(at),
        fingerprint: None,
        shared_outage: false,
    }
}

/// The bundle of a workflow. Each workflow has its own.
pub(crate) fn bundle_of(workflow: &str) -> Bundle {
    Bundle::new(&format!("registry.example/{workflow}:1"), None)
}

/// A finished execution of a workflow. `number` is the number of its run.
pub(crate) fn past(uid: &str, workflow: &str, number: u64, state: ExecutionState) -> Execution {
    let (workflow_id, bundle, run_sequence) = (workflow.into(), bundle_of(workflow), Some(number));
    Execution {
        workflow_id,
        origin: origin(workflow),
        bundle,
        run_sequence,
        created: at(-10_000),
        ..execution(uid, state)
    }
}

/// An execution that completed at a second.
pub(crate) fn completed(uid: &str, workflow: &str, number: u64, at_second: i64) -> Execution {
    past(uid, workflow, number, ExecutionState::Completed { started_at: None, completed_at: Some(at(at_second)) })
}

/// An execution that is the recovery of another one.
pub(crate) fn recovers(failed: &str, execution: Execution) -> Execution {
    Execution { recovery_of: Some(id(failed).name.as_ref().into()), ..execution }
}

/// An execution that failed half way at a second.
pub(crate) fn broke(uid: &str, workflow: &str, number: u64, at_second: i64) -> Execution {
    past(uid, workflow, number, ExecutionState::Failed(failure(true, at_second, None)))
}

/// An execution that failed at a second before anything ran. `next` is the second of its `nextAllowedExecution`.
pub(crate) fn stalled(uid: &str, workflow: &str, number: u64, at_second: i64, next: i64) -> Execution {
    past(uid, workflow, number, ExecutionState::Failed(failure(false, at_second, Some(next))))
}

/// An execution that a person has cleared.
pub(crate) fn cleared(execution: Execution, recorded: Recorded) -> Execution {
    let clearance = Clearance { reason: "looked".into(), cleared_by: "jo".into(), recorded, unguarded: None };
    Execution { clearance: Some(Box::new(clearance)), ..execution }
}

/// Returns the condition `Unguarded` since second 1, which records whether the directive counts.
pub(crate) fn unguarded(counts: bool) -> Unguarded {
    Unguarded { since: at(1), counts }
}

/// An execution that a person has cleared. Its status records no effect; `said` is what the status reports about the
/// policy.
pub(crate) fn cleared_unguarded(execution: Execution, said: Option<bool>) -> Execution {
    let mut execution = cleared(execution, Recorded::Not);
    if let Some(clearance) = &mut execution.clearance {
        clearance.unguarded = said.map(unguarded);
    }
    execution
}

/// A person's cancellation. `said` is what the status reports if no policy guarded it.
pub(crate) fn cancellation(said: Option<bool>) -> Cancellation {
    Cancellation { reason: "enough".into(), requested_by: "jo".into(), unguarded: said.map(unguarded) }
}

/// An execution of a workflow that asks for its turn.
pub(crate) fn asks(uid: &str, workflow: &str) -> Execution {
    let (workflow_id, bundle) = (workflow.into(), bundle_of(workflow));
    Execution { workflow_id, origin: origin(workflow), bundle, ..undecided(uid) }
}

/// The API server does not answer.
pub(crate) fn no_answer() -> Trouble {
    Trouble { kind: TroubleKind::ApiErrors, words: "cannot create: no answer".into() }
}

/// The operator's own account lacks a permission.
pub(crate) fn forbidden() -> Trouble {
    Trouble { kind: TroubleKind::Operator(OwnCause::LacksRight), words: "cannot create: forbidden".into() }
}

/// The cluster does not serve Tekton's kinds.
pub(crate) fn without_tekton() -> Trouble {
    Trouble { kind: TroubleKind::TektonUnavailable, words: "404 page not found".into() }
}

/// A run `r<number>` of the chain, delivered in the order of its number.
pub(crate) fn run(number: u64, owner: &str, progress: Progress) -> Run {
    Run {
        id: run_id(&format!("r{number}")),
        number,
        version: Version::new("rv"),
        created: at(1),
        order: Order(number),
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        progress,
        cancelled: false,
        cancel_reason: None,
        stopped: false,
        doing: "Running".into(),
        total_tasks: None,
        skipped_tasks: 0,
        undeclared: Box::default(),
        timeout: None,
        released_at: Some(at(0)),
        deleting: false,
        stays: Stays::default(),
        stop: None,
        // The run was seen to be done long ago, so nothing else is awaited.
        memory: RunMemory { done_seen: Some(at(0)), ..RunMemory::default() },
    }
}

/// A proof that a step ran.
pub(crate) fn proof() -> Proof {
    Proof::running("task-run", "run", "2027-01-15T08:00:00Z", Some(at(0)))
}

/// A proof that nothing ran: every step only waited.
pub(crate) fn waited() -> Started {
    Started::NotStarted(Absence::OnlyWaited)
}

/// A run that was examined at a second.
pub(crate) fn looked_at(mut run: Run, second: i64, started: Started) -> Run {
    let findings = Findings { started, ..Findings::unread("what Tekton said".into()) };
    run.memory.diagnosed = Some(Box::new(Look { at: at(second), since: at(second), findings }));
    run
}

/// A run that was examined repeatedly since one second, and last at another.
pub(crate) fn looked_since(run: Run, since: i64, second: i64, started: Started) -> Run {
    let mut run = looked_at(run, second, started);
    run.memory.diagnosed = run.memory.diagnosed.map(|look| Box::new(Look { since: at(since), ..*look }));
    run
}

/// A run with a request to stop since a second.
pub(crate) fn to_stop(run: Run, second: i64) -> Run {
    let stop = StopRequest { since: Some(at(second)), asked: 1, ..StopRequest::default() };
    Run { cancelled: true, stop: Some(Box::new(stop)), ..run }
}

/// A run that was examined. The operator cannot tell whether anything ran.
pub(crate) fn looked(run: Run) -> Run {
    looked_at(run, 0, Started::Unknown(Doubt::TooMany))
}

/// An unfinished pod of an execution.
pub(crate) fn pod(owner: &str) -> Residue {
    Residue {
        id: ResidueId { kind: ResidueKind::Pod, name: "pod".into(), uid: Uid::new("pod") },
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        created: at(5),
    }
}

pub(crate) fn left(mut target: Target, residue: Residue) -> Target {
    target.residue.insert(residue.id.uid.clone(), residue);
    target
}

pub(crate) fn done(succeeded: bool) -> Progress {
    Progress::Done(Outcome { succeeded, reason: "R".into(), message: "m".into(), completed_at: Some(at(40)) })
}

pub(crate) fn target(executions: Vec<Execution>, runs: Vec<Run>) -> Target {
    Target {
        executions: executions.into_iter().map(|execution| (execution.id.uid.clone(), execution)).collect(),
        runs: runs.into_iter().map(|run| (run.id.uid.clone(), run)).collect(),
        ..Target::default()
    }
}

/// A target on which the operator cannot carry out its decision because of some trouble.
pub(crate) fn troubled(target: Target, trouble: Option<Trouble>) -> Target {
    Target { memory: TargetMemory { trouble: trouble.map(Box::new), ..target.memory }, ..target }
}

/// Slots every `seconds` seconds, with the limits that the API sets.
pub(crate) fn every(seconds: u64) -> Plan {
    let interval = Duration::from_secs(seconds);
    Plan {
        every: Every::Interval(interval),
        min_interval: interval.min(Duration::from_mins(1)),
        max_interval: interval.max(Duration::from_hours(24)),
        spread: Duration::ZERO,
        deadline: None,
    }
}

pub(crate) fn schedule_id(uid: &str) -> ScheduleId {
    ScheduleId { namespace: "ops".into(), name: format!("wfs-{uid}").into(), uid: Uid::new(uid) }
}

/// A schedule at rest, with slots every 60 seconds. Its last child, at second 0, completed at second 10, and its status
/// is up to date.
pub(crate) fn schedule(uid: &str) -> Schedule {
    Schedule {
        id: schedule_id(uid),
        version: Version::new("sv"),
        generation: 1,
        leaving: false,
        plan: Ok(every(60)),
        suspended: false,
        hint: None,
        history: HistoryLimits::default(),
        triage: Arc::default(),
        resume: None,
        revision: Revision(7),
        workflow_id: "wf".into(),
        origin: origin("wf"),
        paused: None,
        status: ScheduleStatus {
            observed_generation: Some(1),
            revision: Some(Revision(7)),
            planned_from: Some(at(-1000)),
            phase: None,
            failure_count: 0,
            last_run: Some(last_run(0, Some((crate::schedule::Outcome::Completed, 10)))),
            last_success: Some(at(10)),
            last_missed: None,
            next: Some(Planned { at: at(60), why: PlannedBy::Interval }),
            triage: None,
            adjust: None,
            ready: Ready::Yes,
            held: Held::Never,
            ready_since: Some(at(-1000)),
            held_since: None,
        },
        children: vec![],
        analyst: None,
        memory: ScheduleMemory::default(),
    }
}

/// The last run of a status, for a slot. `end` is its outcome and the second of its end, if it has ended.
pub(crate) fn last_run(slot: i64, end: Option<(crate::schedule::Outcome, i64)>) -> LastRun {
    LastRun {
        slot: at(slot),
        again: false,
        started_at: Some(at(slot)),
        ended_at: end.map(|(_, second)| at(second)),
        outcome: end.map(|(outcome, _)| outcome),
        reason: None,
        fingerprint: None,
        message: None,
    }
}

/// Returns the running child of a slot.
pub(crate) fn child(slot: i64) -> Child {
    let (uid, slot) = (Uid::new(&format!("c{slot}")), at(slot));
    Child { uid, slot, created: slot, state: ChildState::AtWork }
}

/// The child of a slot that ended at a second.
pub(crate) fn ended_child(slot: i64, outcome: crate::schedule::Outcome, second: i64) -> Child {
    let reason = (outcome != crate::schedule::Outcome::Completed).then_some("Unknown");
    let state = ChildState::Ended { outcome, at: Some(at(second)), reason, fingerprint: None };
    Child { state, ..child(slot) }
}

/// Returns an execution that a schedule created.
pub(crate) fn made_by(schedule: &str, slot: i64, keep: Retention, execution: Execution) -> Execution {
    let child = ChildOf { schedule: Uid::new(schedule), slot: at(slot), analyses: false, keep };
    Execution { child: Some(Box::new(child)), ..execution }
}

/// A hint that expires at a second.
pub(crate) fn hint(wish: Wish, expires: i64) -> Hint {
    Hint { wish, expires_at: at(expires) }
}

pub(crate) fn scheduled(mut target: Target, schedules: Vec<Schedule>) -> Target {
    for schedule in schedules {
        target.schedules.insert(schedule.id.uid.clone(), schedule);
    }
    target
}
