//! Checks what is written to the status of a schedule (sections 12.1, 12.6 and 16.12).

use super::super::Check;
use super::super::record::Record as Before;
use super::{interval, is_in_future, moved, secs, usual, whole};
use crate::Time;
use crate::action::Record;
use crate::execution::Execution;
use crate::name::{ExecutionId, Uid, Version};
use crate::schedule::plan::offset;
use crate::schedule::{
    ChildState, Every, Held, HeldBy, LastRun, Outcome, Ready, Revision, Schedule, ScheduleStatus, child_name,
};
use crate::triage::{State, Triage};

impl Check<'_> {
    /// Checks a write: it changes the status, and only by one row of the table.
    pub(super) fn check_record(&mut self, record: &Record) {
        let id = &record.schedule;
        let Some(it) = self.target.schedules.get(&id.uid) else {
            return self.require("12.6", false, || format!("writes to {id}, which is unknown"));
        };
        let (was, is) = (&it.status, &*record.status);
        self.require("12.7", record.version == it.version, || format!("writes to {id} on another version"));
        self.require("12.6", is != was, || format!("says of {id} what it says already"));
        self.require("12.1", is.observed_generation == Some(it.generation), || format!("{id} is of no generation"));
        let is_deleted = is.last_run.as_ref().filter(|run| run.outcome == Some(Outcome::Deleted));
        let vanished = is_deleted.filter(|run| {
            was.last_run.as_ref().is_some_and(|last| last.outcome.is_none()) && it.child_at(run.slot).is_none()
        });
        let vanished = vanished.map(|run| child_name(&id.name, run.slot));
        // A running analyst that one watch does not show is not recorded as gone.
        let analysed = was.triage.as_deref().is_some_and(|was| was.state == State::Analysing);
        let failed = is.triage.as_deref().filter(|now| analysed && now.state == State::Failed);
        let is_silent = |now: &&Triage| it.memory.analyst_answer.as_ref().is_none_or(|heard| heard.of != now.of);
        let is_seen =
            |now: &Triage| it.analyst.as_ref().is_some_and(|analyst| *child_name(&id.name, analyst.of) == *now.of);
        let unseen = failed.filter(is_silent).filter(|now| !is_seen(now)).and_then(|now| now.run.as_ref());
        let unseen = unseen.map(|(name, _)| &**name);
        let reads = vanished.as_deref().or(unseen) == record.gone.as_deref();
        self.require("12.6.2", reads, || format!("{id} is not read right: {:?}, {:?}", record.gone, is.last_run));
        self.check_next_run(it, is);
        if it.leaving {
            self.check_deleting(it, is);
        } else if it.plan.is_err() {
            self.check_unusable(it, is);
        } else if self.must_restart_plan(it) {
            self.check_restarted_plan(it, is);
        } else {
            let stands = is.planned_from == was.planned_from && is.revision == was.revision;
            self.require("12.6.1", stands, || format!("{id} begins anew for nothing: {is:?}"));
            self.check_outcome(it, is);
            self.check_missed(it, is);
            self.check_held(it, is);
            self.says_triage(it, is);
        }
    }

    fn check_deleting(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let was = &it.status;
        let fits = is.ready == Ready::Deleting && is.next.is_none();
        self.require("12.6.0", fits, || format!("{} is on its way out, and says {is:?}", it.id));
        let (observed_generation, next, ready) = (was.observed_generation, was.next, was.ready.clone());
        let same = ScheduleStatus { observed_generation, next, ready, ..is.clone() };
        self.require("12.6.0", same == *was, || format!("{} says more than that it goes: {is:?}", it.id));
    }

    fn check_unusable(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let was = &it.status;
        let is_said = matches!(&is.ready, Ready::InvalidSpec(why) if it.plan.as_ref().err() == Some(why));
        self.require("12.6.0", is_said, || format!("{} cannot be used, and says {:?}", it.id, is.ready));
        let is_held = is.held.by().is_some();
        self.require("12.6.0", !is_held, || format!("{} cannot be used, and is held", it.id));
        let same = ScheduleStatus {
            observed_generation: was.observed_generation,
            revision: was.revision,
            next: was.next,
            ready: was.ready.clone(),
            held: was.held.clone(),
            ..is.clone()
        };
        self.require("12.6.0", same == *was, || format!("{} says more than that it cannot be used: {is:?}", it.id));
    }

    /// Returns whether a person has ended the pause or the adjustments of a triage.
    fn is_lifted(it: &Schedule) -> bool {
        it.status.triage.as_ref().is_some_and(|triage| {
            let stands = matches!(triage.state, State::Paused | State::Adjusted) || it.status.adjust.is_some();
            stands && it.resume.as_ref() == Some(&triage.of)
        })
    }

    fn must_restart_plan(&self, it: &Schedule) -> bool {
        let was = &it.status;
        let last = was.last_run.as_ref();
        let is_far = |time: Option<crate::Time>| time.is_some_and(|time| is_in_future(time, self.now));
        let clock = is_far(was.planned_from)
            || is_far(was.phase)
            || is_far(last.map(|it| it.slot))
            || is_far(last.and_then(|it| it.ended_at));
        let clock = clock || is_far(was.triage.as_ref().map(|it| it.at));
        let resumed = was.held.by() == Some(HeldBy::Suspended) && !it.suspended || Self::is_lifted(it);
        was.revision != Some(it.revision) || was.planned_from.is_none() || resumed || clock
    }

    fn check_restarted_plan(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let (was, now) = (&it.status, secs(self.now));
        // An open run whose slot lies in the future is dropped. With its slot cut to now, the status would name a child
        // that never existed.
        let last = was.last_run.as_ref().filter(|run| run.outcome.is_some() || secs(run.slot) <= now);
        let begins =
            is.planned_from.map(secs) == Some(now) && is.revision == Some(it.revision) && is.failure_count == 0;
        self.require("12.6.1", begins, || format!("{} does not begin anew: {is:?}", it.id));
        let cut = |run: &LastRun| LastRun {
            slot: if secs(run.slot) > now { is.planned_from.unwrap_or(run.slot) } else { run.slot },
            ended_at: run.ended_at.map(|at| if secs(at) > now { is.planned_from.unwrap_or(at) } else { at }),
            ..run.clone()
        };
        let keeps =
            last.map(cut) == is.last_run && is.last_success == was.last_success && is.last_missed == was.last_missed;
        self.require("12.6.1", keeps, || format!("{} forgets what was: {is:?}", it.id));
        let anew_at = is.planned_from;
        // Only an edit, or a person who may resume, ends the effect of a triage. Permission to suspend is not enough.
        let edited = was.revision.map(Revision::parts).is_none_or(|(_, plan, template)| {
            let (_, new_plan, new_template) = it.revision.parts();
            plan != new_plan || template != new_template
        });
        self.check_phase(it, is, edited);
        let fits = if Self::is_lifted(it) || edited {
            let over = is.triage.as_ref().is_none_or(|triage| triage.state == State::Over) && is.adjust.is_none();
            over && is.triage.as_ref().map(|triage| &triage.of) == was.triage.as_ref().map(|triage| &triage.of)
        } else {
            let at = |it: &Triage| if secs(it.at) > now { anew_at.unwrap_or(it.at) } else { it.at };
            let cut = |it: &Triage| Triage { at: at(it), ..it.clone() };
            is.triage.as_deref().cloned() == was.triage.as_deref().map(cut) && is.adjust == was.adjust
        };
        self.require("13.4", fits, || format!("{} begins anew beside its triage: {is:?}", it.id));
        let by_triage = is.held.by() == Some(HeldBy::TriagePaused) && is.paused_by().is_some();
        let is_undone = it.suspended || is.held.by().is_none() || by_triage;
        self.require("12.6.1", is_undone, || format!("{} begins anew and is held", it.id));
    }

    /// Checks the phase when the plan begins anew. An interval keeps its phase only after an edit of the template. A
    /// new cron expression runs no slot a second time.
    fn check_phase(&mut self, it: &Schedule, is: &ScheduleStatus, edited: bool) {
        let (was, now) = (&it.status, secs(self.now));
        let Ok(plan) = &it.plan else { return };
        let (uid, written, _) = it.revision.parts();
        let goes_on = was.revision.map(Revision::parts).is_some_and(|(was, plan, _)| was == uid && plan == written);
        let goes_on = goes_on && was.planned_from.is_some();
        let phase = is.phase.map(secs);
        let fits = match &plan.every {
            Every::Interval(every) if goes_on && edited => {
                let every = whole(interval(it, *every)).max(1);
                let base = super::phase(it, plan).unwrap_or(now + whole(offset(&it.id.uid, plan.spread)));
                phase.is_some_and(|phase| (phase - base) % every == 0 && phase <= now && now < phase + every)
            }
            Every::Interval(_) => phase.is_none(),
            Every::Cron(_) if goes_on => phase == was.phase.map(|phase| secs(phase).min(now)),
            Every::Cron(_) => phase == was.last_run.as_ref().map(|last| secs(last.slot).min(now)),
        };
        self.require("12.2", fits, || format!("{} counts from {:?}: {was:?}", it.id, is.phase));
    }

    /// Checks that a run which the plan did not ask for moves no other slot.
    fn check_nothing_moved(&mut self, it: &Schedule, is: &ScheduleStatus, slot: i128) {
        let (was, Ok(plan)) = (&it.status, &it.plan) else { return };
        let phase = is.phase.map(secs);
        let is_named = was.last_run.as_ref().is_some_and(|last| secs(last.slot) >= slot);
        let fits = match &plan.every {
            _ if is_named => phase == was.phase.map(secs),
            Every::Interval(every) => {
                let every = whole(interval(it, *every)).max(1);
                let is_usual = usual(it, plan).is_some_and(|usual| slot >= usual && (slot - usual) % every == 0);
                let base = super::phase(it, plan).unwrap_or(slot);
                let is_of_grid = |phase: i128| (phase - base) % every == 0 && phase <= slot && slot < phase + every;
                if is_usual { phase.is_none() } else { phase.is_some_and(is_of_grid) }
            }
            Every::Cron(_) => {
                let share = whole(offset(&it.id.uid, plan.spread));
                phase == was.phase.map(secs).filter(|phase| slot - share <= *phase)
            }
        };
        self.require("12.2", fits, || format!("{} counts from {phase:?} after {slot}: {was:?}", it.id));
    }

    /// Checks that each outcome is recorded once, in the order of the slots, and that the count follows from the
    /// outcomes.
    fn check_outcome(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let (was, id) = (&it.status, &it.id);
        if is.last_run == was.last_run {
            let same = is.failure_count == was.failure_count && is.last_success == was.last_success;
            let same = same && is.phase == was.phase;
            return self.require("16.12", same, || format!("{id} counts nothing"));
        }
        let Some(run) = &is.last_run else {
            return self.require("16.12", false, || format!("{id} forgets its last run"));
        };
        self.check_nothing_moved(it, is, secs(run.slot));
        let last = was.last_run.as_ref();
        let open = last.filter(|last| last.outcome.is_none()).map(|last| last.slot);
        let used = last.map(|last| last.slot).max(was.planned_from);
        let is_new = Some(run.slot) == open || open.is_none() && Some(run.slot) > used;
        self.require("16.12", is_new, || format!("{id} records {} again, or out of order", run.slot));
        let earlier = it.children.iter().find(|child| {
            let is_far = is_in_future(child.slot, self.now);
            (Some(child.slot) == open || Some(child.slot) > used) && child.slot < run.slot && !is_far
        });
        self.require("16.12", earlier.is_none(), || format!("{id} records {} before {earlier:?}", run.slot));
        let state = it.children.iter().find(|child| child.slot == run.slot).map(|child| &child.state);
        let refused = it.memory.create_refused.as_ref().is_some_and(|refused| refused.slot == run.slot);
        let fits = match (run.outcome, state) {
            (None, Some(ChildState::AtWork)) => run.ended_at.is_none() && open.is_none(),
            (Some(said), Some(ChildState::Ended { outcome, .. })) => said == *outcome && run.ended_at.is_some(),
            (Some(Outcome::Deleted), None) => Some(run.slot) == open,
            (Some(Outcome::Refused), None) => refused && open.is_none() && run.started_at.is_none(),
            _ => false,
        };
        self.require("16.12", fits, || format!("{id} says {run:?} of {}: {state:?}", child_name(&id.name, run.slot)));
        let is_past = |time: Option<crate::Time>| time.is_none_or(|time| secs(time) <= secs(self.now));
        let dated = is_past(run.ended_at);
        self.require("12.6.2", dated, || format!("{id} ended at {:?}", run.ended_at));
        let counts = Some(run.slot) > was.planned_from;
        let blamed = match (run.outcome, state) {
            (Some(Outcome::Refused), None) => run.fingerprint.as_ref().is_some_and(|it| !it.may_be_shared()),
            (Some(Outcome::Deleted), _) => true,
            (_, Some(ChildState::Ended { fingerprint, .. })) => run.fingerprint == *fingerprint,
            _ => run.fingerprint.is_none(),
        };
        self.require("13.1", blamed, || format!("{id} blames {:?} for {state:?}", run.fingerprint));
        let expected = match run.outcome {
            Some(Outcome::Completed) if counts => 0,
            Some(Outcome::Failed | Outcome::Refused) if counts => {
                (i64::from(was.failure_count) + 1).min(i64::from(i32::MAX))
            }
            _ => i64::from(was.failure_count),
        };
        let count = is.failure_count;
        self.require("16.12", i64::from(count) == expected, || format!("{id} counts {count}, not {expected}: {run:?}"));
        let success = run.ended_at.filter(|_| run.outcome == Some(Outcome::Completed)).max(was.last_success);
        self.require("12.1", is.last_success == success, || format!("{id} succeeded last at {:?}", is.last_success));
    }

    fn check_missed(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let (was, id) = (&it.status, &it.id);
        if is.last_missed == was.last_missed {
            return;
        }
        let Some(missed) = is.last_missed else {
            return self.require("12.1", false, || format!("{id} forgets what it missed"));
        };
        let used = was.last_run.as_ref().map(|last| last.slot).max(was.planned_from);
        let new = is.last_run.as_ref().filter(|_| is.last_run != was.last_run);
        let passed = new.map_or(missed.slot <= self.now, |run| missed.slot < run.slot);
        let fits = passed && Some(missed.slot) > used && missed.count > 0;
        self.require("12.1", fits, || format!("{id} missed {missed:?}"));
    }

    /// Checks that the next slot lies after every used slot, and is written only if a run is planned.
    fn check_next_run(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let Some(next) = is.next else { return };
        let last = is.last_run.as_ref();
        let is_later = Some(next.at) > is.planned_from.max(last.map(|last| last.slot));
        let never = secs(next.at) >= secs(crate::Time::MAX_UTC);
        // A slot that is due stays in the status until its hold is shown.
        let is_new = it.status.next != is.next;
        self.require("12.2", is_later || never || !is_new, || format!("{} says that {next:?} is next", it.id));
        let at_work = it.children.iter().any(|child| child.state == ChildState::AtWork);
        let nothing = at_work || it.suspended || is.paused_by().is_some() || it.plan.is_err() || is.held.by().is_some();
        self.require("12.1", !nothing || !is_new, || format!("{} says {next:?}, and nothing is next", it.id));
    }

    /// Checks that a hold is shown once its slot has been due for ten seconds, and a suspension at once.
    fn check_held(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let (was, id) = (&it.status, &it.id);
        let records = is.last_run != was.last_run;
        let suspended = is.held.by() == Some(HeldBy::Suspended);
        let fits = records || suspended == it.suspended;
        self.require("12.6.3", fits, || format!("{id} is suspended: {}, and says {:?}", it.suspended, is.held));
        let new = is.next.filter(|_| is.next != was.next);
        let blocked = new.is_some_and(|next| self.would_hold(it, next.at).is_some());
        let is_told = !blocked || matches!(is.held, Held::Ahead(_));
        self.require("12.6", is_told, || format!("{id} plans {:?}, and does not say what would hold it", is.next));
        if is.held == was.held {
            return;
        }
        let fits = match &is.held {
            Held::Never => false,
            Held::Released => was.held != Held::Never,
            Held::Ahead(message) => {
                is.next.is_some_and(|next| self.would_hold(it, next.at).is_some_and(|why| message.starts_with(why)))
            }
            Held::By { reason: HeldBy::Suspended, .. } => it.suspended,
            Held::By { reason: HeldBy::TriagePaused, .. } => is.paused_by().is_some(),
            Held::By { message, .. } => {
                let plan = it.plan.as_ref().ok();
                let due = moved(it, self.now).map(|moved| moved.due).or_else(|| usual(it, plan?));
                let at_work = it.children.iter().any(|child| child.state == ChildState::AtWork);
                !at_work && !message.is_empty() && due.is_some_and(|due| due + 10 <= secs(self.now))
            }
        };
        self.require("12.6", fits, || format!("{id} says that it is {:?}", is.held));
        if let Held::By { message, .. } | Held::Ahead(message) = &is.held {
            let is_whole = message.chars().count() <= READ_BACK;
            self.require("14", is_whole, || format!("{id} is held by more words than are read back: {message}"));
        }
    }
}

impl Check<'_> {
    /// Returns why a child for `slot` would be skipped until a person or a recovery ends the block. For a slot that is
    /// due already, the child is created now.
    fn would_hold(&self, it: &Schedule, slot: Time) -> Option<&'static str> {
        let time = slot.max(self.now);
        let id =
            ExecutionId { uid: Uid::new("no such child"), namespace: it.id.namespace.clone(), name: "child".into() };
        let child =
            Execution { workflow_id: it.workflow_id.clone(), ..Execution::undecided(id, Version::new(""), time) };
        let reasons = Before::new(self.target, self.policy, time).forbids(&child).into_iter().map(|(why, _)| why);
        reasons.into_iter().find(|why| ["PreviousExecutionFailed", "ExhaustedRetries"].contains(why))
    }
}

/// How many characters of a condition's message are read back. A longer message would never equal the status, and would
/// be written again and again.
const READ_BACK: usize = 1_024;
