//! Decides on the schedules of a target: which one creates a child now, and what their statuses contain (section 12.6).

mod child;
mod circuit;
mod limit;
mod rows;
mod status;
mod triage;

use std::borrow::Cow;
use std::time::Duration;

use super::View;
use crate::Time;
use crate::action::{Action, Announce, Decision, Probe, Record, ScheduleJudgement};
use crate::execution::Execution;
use crate::moment::{MAX_AHEAD, after};
use crate::name::ScheduleId;
use crate::schedule::plan::{NextRun, ignored};
use crate::schedule::{ChildState, HeldBy, PlannedBy, Schedule, ScheduleStatus};

pub use rows::ROWS;
use status::hold;

/// How long after its creation a child may start, if its schedule sets no deadline. A child that a backup restores
/// later, without its status, does not run.
const START_WITHIN: Duration = Duration::from_hours(1);

/// A schedule to decide on.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The schedule.
    schedule: &'a Schedule,
    /// The view on which the decision is made.
    view: View<'a>,
    /// The executions that are Running on the target.
    running: &'a [&'a Execution],
    /// The next run of the schedule, if there is one.
    next: Option<NextRun>,
}

/// What a row finds for a schedule.
pub enum Row {
    /// The row does not match, and the next row is applied. Contains what was compared.
    Passes(Cow<'static, str>),
    /// The row decides.
    Decides(Step),
}

/// What is done for a schedule.
pub struct Step {
    /// The step and its reason, for people.
    because: Cow<'static, str>,
    /// The wanted status.
    wanted: Box<ScheduleStatus>,
    /// The name of an execution of the schedule. The write requires a live read which shows that this execution is
    /// gone.
    gone: Option<Box<str>>,
    /// What holds the schedule, if anything does.
    held: Option<HeldBy>,
    /// The role of the schedule for the open circuit that holds it.
    probe: Probe,
    /// When time alone changes the decision.
    wake: Option<Time>,
}

/// The name of the last row, for a schedule on which no other row decides.
pub const OTHERWISE: &str = "10 otherwise";

/// Decides on the schedules of a target. At most one of them creates a child: the one with the earliest slot, then with
/// the smaller uid.
pub(super) fn decide_schedules(view: View<'_>, decision: &mut Decision) {
    if view.target.blind_to_schedules || view.target.schedules.is_empty() {
        return; // most targets have no schedule
    }
    let running = view.target.running();
    let mut due = Vec::new();
    for schedule in view.target.schedules.values() {
        let case = Case { schedule, view, running: &running, next: schedule.next_run(view.now) };
        let (mut asked, step) = judge(case);
        let is_past_triage = asked.iter().rev().skip(usize::from(step.is_some())).any(|(row, _)| *row == rows::TRIAGE);
        if is_past_triage {
            triage::ask(case, decision);
        }
        let limited = if step.is_none() { limit::hold_back(case, decision) } else { None };
        asked.extend(limited.as_ref().map(|step| (limit::NAME, step.because.clone())));
        match step.or(limited) {
            Some(step) => case.take(asked, step, decision),
            None => due.push((case, asked)),
        }
    }
    due.sort_by_key(|(case, _)| (case.slot(), case.schedule.id.uid.clone()));
    let mut first: Option<&ScheduleId> = None;
    for (case, mut asked) in due {
        let Some(other) = first else {
            first = Some(&case.schedule.id);
            case.create(asked, decision);
            continue;
        };
        let message = format!("WorkflowSchedule {other} of the same target goes first");
        let step = hold(case, HeldBy::ResourceBusy, message, None);
        asked.push((OTHERWISE, step.because.clone()));
        case.take(asked, step, decision);
    }
}

/// Applies the rows in order. `None` if a child is due and nothing holds the schedule.
fn judge(case: Case<'_>) -> (Asked, Option<Step>) {
    let mut asked = Vec::with_capacity(ROWS.len());
    for (name, row) in ROWS {
        match row(case) {
            Row::Passes(because) => asked.push((*name, because)),
            Row::Decides(step) => {
                asked.push((*name, step.because.clone()));
                return (asked, Some(step));
            }
        }
    }
    (asked, None)
}

type Asked = Vec<(&'static str, Cow<'static, str>)>;

impl Case<'_> {
    /// Returns the slot on which the decision is made; the current time if there is none.
    fn slot(self) -> Time {
        self.next.map_or(self.view.now, |next| next.planned.at)
    }

    /// Adds a step to the decision.
    fn take(self, asked: Asked, step: Step, decision: &mut Decision) {
        let Self { schedule, next, .. } = self;
        for wake in step.wake.into_iter().chain(self.counts_later(&asked)) {
            decision.wake_at(wake);
        }
        decision
            .schedules
            .push((schedule.id.clone(), ScheduleJudgement { asked, held: step.held, next, probe: step.probe }));
        let status = step.wanted;
        self.tell_of_hint(&status, decision);
        if *status != schedule.status {
            let fails = status.failure_count > schedule.status.failure_count;
            let suppressed = if fails { triage::suppressed(self, &status) } else { None };
            decision.actions.push(Action::Record(Record {
                schedule: schedule.id.clone(),
                version: schedule.version.clone(),
                gone: step.gone,
                suppressed,
                status,
            }));
        }
    }

    /// Returns when a child or a refusal counts whose slot a wrong clock has put too far in the future. Does not return
    /// it if an earlier row or an earlier child decides then, too.
    fn counts_later(self, asked: &Asked) -> Option<Time> {
        let schedule = self.schedule;
        let is_open = schedule.status.last_run.as_ref().is_some_and(|last| last.outcome.is_none());
        if is_open || self.open_child().is_some() {
            return None;
        }
        let is_asked = |row: &str| asked.iter().any(|(name, _)| *name == row);
        let ends_by_outcome = asked.last().is_some_and(|(name, _)| *name == rows::OUTCOME);
        let child = schedule.unrecorded().find(|child| self.is_ahead(child.slot)).map(|child| match child.state {
            // While a child is at work, no refusal is recorded.
            ChildState::AtWork => (child.slot, ends_by_outcome || is_asked(rows::AT_WORK)),
            ChildState::Ended { .. } => (child.slot, is_asked(rows::OUTCOME)),
        });
        let refused = schedule.memory.create_refused.as_ref().map(|refused| (refused.slot, is_asked(rows::OUTCOME)));
        let refused = refused.filter(|(slot, _)| self.is_ahead(*slot) && Some(*slot) > schedule.used_up_to());
        let (slot, counts) = child.into_iter().chain(refused).min_by_key(|(slot, _)| *slot)?;
        counts.then(|| slot - MAX_AHEAD)
    }

    /// Requests the child for the slot that is due.
    fn create(self, mut asked: Asked, decision: &mut Decision) {
        let Self { schedule, view, next, .. } = self;
        let slot = self.slot();
        asked.push((OTHERWISE, "a child is made for the slot".into()));
        let probe = self.probes();
        decision.schedules.push((schedule.id.clone(), ScheduleJudgement { asked, held: None, next, probe }));
        decision.uses_place |= view.target.places.are_given_to(&schedule.id.uid);
        let deadline = schedule.plan.as_ref().ok().and_then(|plan| plan.deadline);
        // A run that makes up for a lost slot must start within the deadline of that slot.
        let again = next.filter(|next| next.planned.why == PlannedBy::Again);
        let counts_from = again.and(schedule.status.last_run.as_ref()).map_or(slot, |last| last.slot);
        let start_before = deadline.map_or(after(view.now, START_WITHIN), |deadline| after(counts_from, deadline));
        let in_doubt = |tried: &Time| *tried != slot && Some(*tried) > schedule.used_up_to();
        decision.actions.push(Action::CreateChild {
            schedule: schedule.id.clone(),
            generation: schedule.generation,
            slot,
            start_before: crate::moment::round_up(start_before),
            not_made: schedule.memory.create_tried.filter(in_doubt),
        });
    }

    /// Announces an ignored hint when the generation with the hint is first written to the status.
    fn tell_of_hint(self, wanted: &ScheduleStatus, decision: &mut Decision) {
        let Self { schedule, view, .. } = self;
        if wanted.observed_generation == schedule.status.observed_generation {
            return;
        }
        let Some(hint) = schedule.hint.as_deref() else { return };
        if let Some(why) = ignored(hint, schedule.past(view.now), view.now) {
            let (schedule, generation) = (schedule.id.clone(), schedule.generation);
            decision.actions.push(Action::Tell(Announce::HintIgnored { schedule, generation, why }));
        }
    }
}
