//! The wanted status of a schedule.

use std::borrow::Cow;

use super::super::waiting::SHOW_AFTER;
use super::child::block_at;
use super::triage::pause_message;
use super::{Case, Step};
use crate::Time;
use crate::action::Probe;
use crate::moment::{MAX_AHEAD, after, round_up};
use crate::schedule::plan::{phase_after, phase_kept, plan_next_run};
use crate::schedule::{
    Child, ChildState, Every, Held, HeldBy, LastRun, Missed, Outcome, Planned, PlannedBy, Ready, Revision,
    ScheduleStatus, child_name,
};
use crate::text::cut;
use crate::triage::{State, Triage};

/// The fields of a status that depend on the slot that the status names.
struct Named {
    /// Whether the child makes up for the slot before, whose child lost a race for the target.
    again: bool,
    /// The time from which slots are counted.
    phase: Option<Time>,
    /// The slots that were missed when the child was created, or before.
    last_missed: Option<Missed>,
}

impl Step {
    /// Creates a step that writes this status.
    pub(super) fn says(status: ScheduleStatus, because: impl Into<Cow<'static, str>>) -> Self {
        Self {
            because: because.into(),
            wanted: Box::new(status),
            gone: None,
            held: None,
            probe: Probe::None,
            wake: None,
        }
    }

    /// Adds a time at which the operator decides on the schedule again.
    pub(super) fn wake(self, wake: Option<Time>) -> Self {
        Self { wake, ..self }
    }
}

/// The most characters of the message about the last run, as in the CRD.
const MOST_SAID: usize = 1024;

impl<'a> Case<'a> {
    /// Returns the current status, with the fields that every usable schedule has.
    pub(super) fn status(self) -> ScheduleStatus {
        let shown = &self.schedule.status;
        let ready = match &shown.ready {
            // The refusal is shown until a child is created or the template changes.
            Ready::ChildRefused(why) => Ready::ChildRefused(why.clone()),
            Ready::Unsaid | Ready::Yes | Ready::InvalidSpec(_) | Ready::Deleting => Ready::Yes,
        };
        ScheduleStatus { observed_generation: Some(self.schedule.generation), ready, ..shown.clone() }
    }

    /// Returns the child whose outcome is recorded next, if it exists. A wrong clock may have created a child with a
    /// slot far in the future; the schedule only waits for such a child.
    pub(super) fn open_child(self) -> Option<&'a Child> {
        self.schedule.unrecorded().find(|child| !self.is_ahead(child.slot))
    }

    /// Returns whether a time lies so far in the future that a clock was wrong.
    pub(super) fn is_ahead(self, time: Time) -> bool {
        time > after(self.view.now, MAX_AHEAD)
    }

    /// Returns the status after the plan begins anew.
    pub(super) fn restarted(self) -> ScheduleStatus {
        let now = round_up(self.view.now);
        let status = self.status();
        let cut =
            |last: LastRun| LastRun { slot: last.slot.min(now), ended_at: last.ended_at.map(|at| at.min(now)), ..last };
        // The slot of an open run names its child. With any other slot the status would name a child that never
        // existed, so the run is forgotten. Its child is found again by its own slot, which is later than the new start
        // of the plan.
        let is_kept = |last: &LastRun| last.outcome.is_some() || last.slot <= now;
        // An edit by an author, or a resume, ends the effects of a triage. A user who may only suspend cannot end a
        // pause in this way, nor can a wrong clock.
        let parts = status.revision.map(Revision::parts);
        let (uid, plan, template) = self.schedule.revision.parts();
        let is_same_plan = parts.is_some_and(|(_, was, _)| was == plan);
        let is_same_object = parts.is_some_and(|(was, ..)| was == uid) && status.planned_from.is_some();
        let is_edited = !is_same_plan || parts.is_some_and(|(.., was)| was != template);
        let is_lifted = self.schedule.is_resumed() || is_edited;
        let triage = status.triage.clone().map(|triage| {
            let state = if is_lifted { State::Over } else { triage.state };
            Box::new(Triage { state, at: triage.at.min(now), ..*triage })
        });
        let adjust = status.adjust.clone().filter(|_| !is_lifted);
        let anew = ScheduleStatus {
            revision: Some(self.schedule.revision),
            planned_from: Some(now),
            phase: self.phase_anew(is_same_plan && is_same_object, is_edited),
            failure_count: 0,
            last_run: status.last_run.clone().filter(is_kept).map(cut),
            triage,
            adjust,
            ready: Ready::Yes,
            ..status
        };
        self.with_next(anew)
    }

    /// Returns the time from which slots are counted when the plan begins anew. An edit of only the template keeps
    /// the phase. A new cron expression runs no slot that has already run (section 12.2).
    fn phase_anew(self, goes_on: bool, is_edited: bool) -> Option<Time> {
        let Self { schedule, view, .. } = self;
        let (status, now) = (&schedule.status, round_up(view.now));
        let plan = schedule.plan_by(status)?;
        match &plan.every {
            Every::Interval(interval) => {
                (goes_on && is_edited).then(|| phase_kept(*interval, schedule.past(view.now), now))
            }
            Every::Cron(_) if goes_on => status.phase.map(|phase| phase.min(now)),
            Every::Cron(_) => status.last_run.as_ref().map(|last| last.slot.min(now)),
        }
    }

    /// Returns the status when a slot has an outcome: the outcome, the failure count and the next run in one write.
    pub(super) fn recorded(self, run: LastRun, outcome: Outcome) -> ScheduleStatus {
        let status = self.status();
        // A child from before the current plan does not change the failure count.
        let counts = Some(run.slot) > status.planned_from;
        let ready = match &run.message {
            Some(message) if outcome == Outcome::Refused => Ready::ChildRefused(message.clone()),
            _ => Ready::Yes,
        };
        let failure_count = if counts { outcome.count(status.failure_count) } else { status.failure_count };
        let last_success = run.ended_at.filter(|_| outcome == Outcome::Completed).max(status.last_success);
        let Named { again, phase, last_missed } = self.named(run.slot);
        let last_run = Some(LastRun { again, ..run });
        self.with_next(ScheduleStatus { phase, failure_count, last_run, last_success, last_missed, ready, ..status })
    }

    /// Returns the status while a child is running.
    pub(super) fn at_work(self, child: &Child) -> ScheduleStatus {
        let status = self.status();
        let Named { again, phase, last_missed } = self.named(child.slot);
        let run = LastRun {
            slot: child.slot,
            again,
            started_at: Some(child.created),
            ended_at: None,
            outcome: None,
            reason: None,
            fingerprint: None,
            message: None,
        };
        let held = status.held.released();
        ScheduleStatus { phase, last_run: Some(run), last_missed, next: None, ready: Ready::Yes, held, ..status }
    }

    /// Returns the fields of the status that depend on a slot. If the status already names the slot, they stay
    /// unchanged.
    fn named(self, slot: Time) -> Named {
        let (schedule, status) = (self.schedule, &self.schedule.status);
        if let Some(last) = status.last_run.as_ref().filter(|last| last.slot >= slot) {
            let again = last.again && last.slot == slot;
            return Named { again, phase: status.phase, last_missed: status.last_missed };
        }
        // The phase at the time when the child was created.
        let planned = schedule.next_run(slot).filter(|next| next.planned.at == slot);
        let phase = schedule.plan_by(status).and_then(|plan| phase_after(&plan, schedule.past(slot), slot));
        Named {
            again: planned.is_some_and(|next| next.planned.why == PlannedBy::Again),
            phase,
            last_missed: planned.and_then(|next| next.missed).or(status.last_missed),
        }
    }

    /// Adds the next run to a status that is not written yet. If an earlier slot was held, that does not affect the
    /// next run.
    fn with_next(self, status: ScheduleStatus) -> ScheduleStatus {
        let Self { schedule, view, .. } = self;
        if schedule.suspended {
            return ScheduleStatus { next: None, ..status };
        }
        if let Some(triage) = status.paused_by() {
            let held = Held::By { reason: HeldBy::TriagePaused, message: pause_message(triage).into() };
            return ScheduleStatus { next: None, held, ..status };
        }
        let past = schedule.past_by(&status, view.now);
        let planned = || {
            let plan = schedule.plan_by(&status)?;
            plan_next_run(&plan, schedule.hint.as_deref(), past, view.now)
        };
        let is_at_work = schedule.children.iter().any(|child| child.state == ChildState::AtWork);
        let next = if is_at_work { None } else { planned() };
        let next = next.map(|next| next.planned);
        ScheduleStatus { next, held: self.held_ahead(&status.held, next), ..status }
    }

    /// Returns the status while nothing holds the schedule and its slot lies in the future.
    pub(super) fn ahead(self, planned: Option<Planned>) -> ScheduleStatus {
        let status = self.status();
        ScheduleStatus { next: planned, held: self.held_ahead(&status.held, planned), ..status }
    }

    /// Returns what would hold a future slot, if only a person or a recovery can end the hold. The person on call then
    /// sees it in advance, and not when the slot is due at night. A hold that time ends may be over by then, so it is
    /// not shown. A slot that is due already is judged as of now.
    fn held_ahead(self, shown: &Held, next: Option<Planned>) -> Held {
        let Some(skip) = next.and_then(|next| block_at(self, next.at.max(self.view.now))) else {
            return shown.released();
        };
        let message = format!("{}: {}", skip.reason(), skip.message(self.view.target.label()));
        Held::Ahead(cut(&message, MOST_SAID).into())
    }

    /// Returns the name of the execution for a slot.
    pub(super) fn name(self, slot: Time) -> String {
        let id = &self.schedule.id;
        format!("WorkflowExecution {}/{}", id.namespace, child_name(&id.name, slot))
    }

    /// Returns the outcome of a child that has ended.
    pub(super) fn outcome_of(self, child: &Child) -> Option<(LastRun, Outcome)> {
        let ChildState::Ended { outcome, at, reason, fingerprint } = &child.state else { return None };
        let now = round_up(self.view.now);
        let words = self.schedule.memory.child_message.as_deref().filter(|said| said.slot == child.slot);
        let known: Vec<&str> = reason.iter().copied().chain(words.map(|said| &*said.words)).collect();
        let message = format!("{}: {}", self.name(child.slot), known.join(": "));
        let message = (!known.is_empty()).then(|| cut(&message, MOST_SAID).into());
        let run = LastRun {
            slot: child.slot,
            again: false,
            started_at: Some(child.created),
            ended_at: Some(at.map_or(now, |at| at.min(now))),
            outcome: Some(*outcome),
            reason: reason.map(Into::into),
            fingerprint: fingerprint.clone(),
            message,
        };
        Some((run, *outcome))
    }
}

/// Holds a schedule whose slot is due.
pub(super) fn hold(case: Case<'_>, by: HeldBy, message: String, until: Option<Time>) -> Step {
    // The time counts from the first slot that was due, because the latest one moves with time.
    let shown_at = after(case.next.map_or(case.view.now, |next| next.due), SHOW_AFTER);
    let (now, status) = (case.view.now, case.status());
    let because = format!("held, {}: {message}", by.as_str());
    // The text of an unchanged hold may change every second, so it is not rewritten.
    let is_shown = status.held.by() == Some(by) && status.next.is_none();
    let status = if is_shown || now < shown_at {
        status
    } else {
        ScheduleStatus { next: None, held: Held::By { reason: by, message: message.into() }, ..status }
    };
    let shows = Some(shown_at).filter(|at| *at > now && !is_shown);
    let hinted = case.next.and_then(|next| next.until);
    let wake = shows.into_iter().chain(until).chain(hinted).min();
    Step { held: Some(by), ..Step::says(status, because).wake(wake) }
}
