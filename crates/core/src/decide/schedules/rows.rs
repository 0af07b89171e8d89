//! The rows of section 12.6, in order: the first one that matches decides. The order of the list is the specification.

use super::child::child_of;
use super::circuit::circuit;
use super::status::hold;
use super::{Case, Row, Step, triage};
use crate::ending::Skip;
use crate::execution::Execution;
use crate::fingerprint::Fingerprint;
use crate::moment::{round_up, shown};
use crate::rules::{self, Contender};
use crate::schedule::{ChildState, Held, HeldBy, LastRun, Outcome, Ready, RefusedChild, ScheduleStatus, child_name};
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// A row: a function from a schedule to a finding.
type Ask = fn(Case<'_>) -> Row;

/// The rows, with their numbers in the specification. Row 10 ("otherwise: create") applies if none matches.
pub const ROWS: &[(&str, Ask)] = &[
    ("0 spec", unusable),
    ("1 plan", restarts_plan),
    (OUTCOME, outcome),
    ("3 suspended", suspended),
    ("4 paused by a triage", triage::paused),
    (TRIAGE, triage::speaks),
    (AT_WORK, at_work),
    ("6 slot ahead", ahead),
    ("7 target", target),
    ("8 circuit", circuit),
    ("9 late", late),
];

/// The row that records the outcome of a child.
pub(super) const OUTCOME: &str = "2 outcome";

/// The row that waits for a child, and names it.
pub(super) const AT_WORK: &str = "5 child at work";

/// The row after which a triage may read its evidence. Reading delays no later row.
pub(super) const TRIAGE: &str = "4 triage";

fn passes(because: &'static str) -> Row {
    Row::Passes(because.into())
}

/// Row 0: a schedule with an unusable spec creates no child, and neither does one that is being deleted.
fn unusable(case: Case<'_>) -> Row {
    if case.schedule.leaving {
        let status = ScheduleStatus { ready: Ready::Deleting, next: None, ..case.status() };
        return Row::Decides(Step::says(status, "its deletion has begun, or that of its namespace"));
    }
    let Err(why) = &case.schedule.plan else { return passes("its spec can be used") };
    let status = case.status();
    let status = ScheduleStatus {
        next: None,
        ready: Ready::InvalidSpec(why.clone()),
        held: status.held.released(),
        // When the spec can be used again, the plan begins anew.
        revision: None,
        ..status
    };
    Row::Decides(Step::says(status, format!("its spec cannot be used: {why}")))
}

/// Row 1: the plan begins anew after a change of the schedule, or if a time in the status lies in the future.
fn restarts_plan(case: Case<'_>) -> Row {
    let (schedule, status) = (case.schedule, &case.schedule.status);
    let last = status.last_run.as_ref();
    let triage = status.triage.as_ref().map(|triage| triage.at);
    let times =
        [status.planned_from, status.phase, last.map(|last| last.slot), last.and_then(|last| last.ended_at), triage];
    let because = if status.revision != Some(schedule.revision) || status.planned_from.is_none() {
        "it is new, or was changed"
    } else if status.held.by() == Some(HeldBy::Suspended) && !schedule.suspended {
        "it was resumed"
    } else if schedule.is_resumed() {
        "a person has lifted what a triage had done"
    } else if times.into_iter().flatten().any(|time| case.is_ahead(time)) {
        "its status says a time that lies ahead: a clock was wrong"
    } else {
        return passes("its plan stands");
    };
    Row::Decides(Step::says(case.restarted(), format!("the plan begins anew: {because}")))
}

/// Row 2: a child has ended or vanished, and the status does not record it. The earliest child is recorded first.
fn outcome(case: Case<'_>) -> Row {
    let schedule = case.schedule;
    let now = round_up(case.view.now);
    let open = schedule.status.last_run.as_ref().filter(|last| last.outcome.is_none());
    if let Some(last) = open.filter(|last| schedule.child_at(last.slot).is_none()) {
        let what = format!("{} was deleted before its end was recorded", case.name(last.slot));
        let run = LastRun {
            ended_at: Some(now),
            outcome: Some(Outcome::Deleted),
            message: Some(what.clone().into()),
            ..last.clone()
        };
        let gone = Some(child_name(&schedule.id.name, last.slot).into());
        return Row::Decides(Step { gone, ..Step::says(case.recorded(run, Outcome::Deleted), what) });
    }
    if let Some(child) = case.open_child() {
        let Some((run, outcome)) = case.outcome_of(child) else { return passes("no child has ended") };
        let because = format!("{} ended: {}", case.name(run.slot), outcome.as_str());
        return Row::Decides(Step::says(case.recorded(run, outcome), because));
    }
    let refused = schedule.memory.create_refused.as_deref();
    // A refusal with a slot far in the future would make the plan begin anew, and would then be recorded again.
    let counts = |refused: &&RefusedChild| Some(refused.slot) > schedule.used_up_to() && !case.is_ahead(refused.slot);
    let refused = refused.filter(counts);
    let Some(refused) = refused else { return passes("every child has its outcome in the status") };
    let run = LastRun {
        slot: refused.slot,
        again: false,
        started_at: None,
        ended_at: Some(now),
        outcome: Some(Outcome::Refused),
        reason: Some(Outcome::Refused.as_str().into()),
        fingerprint: Some(Fingerprint::refused(&schedule.origin)),
        message: Some(refused.message.clone()),
    };
    let because = format!("its child was refused: {}", refused.message);
    Row::Decides(Step::says(case.recorded(run, Outcome::Refused), because))
}

/// Row 3: a person has suspended the schedule. It loses its slots until a person resumes it.
fn suspended(case: Case<'_>) -> Row {
    if !case.schedule.suspended {
        return passes("nobody has suspended it");
    }
    let message: Box<str> = "spec.suspend is true; slots are lost until it is false again".into();
    let held = Held::By { reason: HeldBy::Suspended, message: message.clone() };
    let status = ScheduleStatus { next: None, held, ..case.status() };
    let step = Step::says(status, format!("held, Suspended: {message}"));
    Row::Decides(Step { held: Some(HeldBy::Suspended), ..step })
}

/// Row 5: a child is running, and the schedule waits for it.
fn at_work(case: Case<'_>) -> Row {
    let mut at_work = case.schedule.children.iter().filter(|child| child.state == ChildState::AtWork);
    let Some(first) = at_work.next() else { return passes("no child is at work") };
    let named = case.schedule.status.last_run.as_ref().map(|last| last.slot);
    let status = case.status();
    let status = match case.open_child() {
        Some(child) if Some(child.slot) != named => case.at_work(child),
        _ => ScheduleStatus { next: None, held: status.held.released(), ..status },
    };
    Row::Decides(Step::says(status, format!("{} is at work", case.name(first.slot))))
}

/// Row 6: the slot lies in the future.
fn ahead(case: Case<'_>) -> Row {
    let Some(next) = case.next else {
        return Row::Decides(Step::says(case.ahead(None), "it has no slot any more"));
    };
    let (at, why) = (next.planned.at, next.planned.why.as_str());
    if at <= case.view.now {
        return Row::Passes(format!("the slot of {} is due ({why})", shown(at)).into());
    }
    let step = Step::says(case.ahead(Some(next.planned)), format!("the next slot is at {} ({why})", shown(at)));
    // A hint may expire before its slot. The slot without the hint is then due.
    Row::Decides(step.wake(next.until.map_or(Some(at), |until| Some(until.min(at)))))
}

/// Row 7: a child would now wait or be skipped, or executions already ask for a turn.
fn target(case: Case<'_>) -> Row {
    let (schedule, view) = (case.schedule, case.view);
    let child = child_of(case);
    let contender = Contender {
        target: view.target,
        running: case.running,
        history: view.history,
        execution: &child,
        run: None,
        policy: view.policy,
        now: view.now,
    };
    let judgement = rules::judge(&contender);
    let (by, message) = match &judgement.verdict {
        Verdict::Run | Verdict::Fail { .. } => {
            let asks = |it: &&Execution| it.is_undecided() && it.paused.is_none();
            let Some(other) = view.target.executions.values().find(asks) else {
                return passes("a child that is made now would run");
            };
            (HeldBy::ResourceBusy, format!("WorkflowExecution {} asks for its turn on the same target", other.id))
        }
        Verdict::Skip { skip, .. } => (held_by(skip), skip.message(view.target.label())),
        Verdict::Wait(waiting @ (Waiting::Paused(_) | Waiting::PausedEverywhere(_))) => {
            (HeldBy::Paused, waiting.message())
        }
        Verdict::Wait(waiting) => (HeldBy::ResourceBusy, waiting.message()),
    };
    debug_assert!(schedule.plan.is_ok(), "row 0 has passed");
    Row::Decides(hold(case, by, message, judgement.until()))
}

/// Row 9: the slot passed too long ago.
fn late(case: Case<'_>) -> Row {
    let Some((next, following)) = case.next.and_then(|next| Some((next, next.late?))) else {
        return passes("it is not too late for the slot");
    };
    let status = case.ahead(following);
    let status = ScheduleStatus { last_missed: next.missed, ..status };
    let because = format!("the slot of {} passed longer ago than startingDeadlineSeconds", shown(next.planned.at));
    Row::Decides(Step::says(status, because).wake(following.map(|next| next.at)))
}

fn held_by(skip: &Skip) -> HeldBy {
    match skip {
        Skip::ResourceBusy(_) => HeldBy::ResourceBusy,
        Skip::PreviousExecutionFailed { .. } => HeldBy::PreviousExecutionFailed,
        Skip::ExhaustedRetries { .. } => HeldBy::ExhaustedRetries,
        Skip::Backoff { .. } | Skip::Cooldown { .. } => HeldBy::RecentlyRemediated,
    }
}
