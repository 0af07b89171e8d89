//! Checks the steps of a triage (sections 13.2 to 13.4, 16.13 and 16.15).

use super::super::Check;
use super::{secs, whole};
use crate::action::{TriageDoes, TriageStep};
use crate::schedule::{ChildState, Outcome, Schedule, ScheduleStatus, child_name};
use crate::triage::{Adjust, Analyst, AnalystRun, AnalystState, Field, State, Triage};

impl Check<'_> {
    /// Checks a step: rows 0 to 4 do not decide, and the schedule fails.
    pub(super) fn triages(&mut self, step: &TriageStep) {
        let id = &step.schedule;
        let Some(it) = self.target.schedules.get(&id.uid) else {
            return self.require("13.2", false, || format!("analyses {id}, which is unknown"));
        };
        let works = !it.leaving && it.plan.is_ok() && !it.suspended && it.status.paused_by().is_none();
        self.require("13.2", works, || format!("analyses {id}, which makes no children"));
        let current = it.status.triage.as_deref().filter(|triage| triage.state == State::Analysing);
        match &step.does {
            TriageDoes::Gather(gather) => {
                if current.is_none() {
                    self.may_begin(it, &step.of);
                }
                self.require("13.3", gather.children.len() <= 5, || format!("reads too much of {id}: {gather:?}"));
                let failed = |slot: crate::Time, uid: &crate::name::Uid| {
                    let known = it.children.iter().find(|child| child.uid == *uid && child.slot == slot);
                    let ended = known.map(|child| &child.state);
                    matches!(ended, Some(ChildState::Ended { outcome: Outcome::Failed, .. }))
                };
                let all = gather.children.iter().all(|(slot, uid)| failed(*slot, uid));
                self.require("13.3", all, || format!("reads what has not failed of {id}: {gather:?}"));
            }
            TriageDoes::Analyse(analyse) => {
                let fits = current.is_some_and(|it| it.analyst == Analyst::Pipeline && it.run.is_none());
                // The analyst of an earlier triage exists until its time to live is over.
                let is_its_own = |run: &AnalystRun| *child_name(&id.name, run.of) == *step.of;
                let is_first = fits && !it.analyst.as_deref().is_some_and(is_its_own);
                let is_first = is_first && current.is_some_and(|it| it.of == step.of);
                self.require("16.13", is_first, || {
                    format!("analyses {id} twice, or for nothing: {:?}", it.status.triage)
                });
                let begins = current.map(|it| secs(it.at) + whole(analyse.timeout));
                let ends = begins == Some(secs(analyse.start_before)) && analyse.timeout == it.triage.timeout;
                self.require("13.3", ends, || format!("the analyst of {id} may take too long: {analyse:?}"));
            }
            TriageDoes::ReadVerdict(analyst) => {
                let completed = |it: &AnalystRun| it.state == AnalystState::Completed && it.id == *analyst;
                let fits = current.is_some() && it.analyst.as_deref().is_some_and(completed);
                self.require("13.3", fits, || format!("reads a verdict of {id} that is not there"));
            }
        }
    }

    /// Checks that a triage may begin.
    fn may_begin(&mut self, it: &Schedule, of: &str) {
        let (status, policy, now) = (&it.status, self.policy.triage, secs(self.now));
        // Only the failure that made the triage due shows when it was due; later failures do not.
        let due = status.last_run.as_ref().filter(|_| status.failure_count == it.triage.after);
        let open = due.and_then(|last| self.target.circuits.holding(last.fingerprint.as_ref(), self.now));
        let is_late = due.is_some_and(|last| secs(last.ended_at.unwrap_or(last.slot)) + 3600 <= now);
        let mut demand = |holds: bool, why: &str| {
            self.require("16.13", holds, || format!("a triage of {} begins for {of}, but {why}", it.id));
        };
        demand(it.triage.analyst != Analyst::Off, "nobody analyses");
        demand(status.failure_count >= it.triage.after, "it has not failed so often");
        let failed = |outcome| matches!(outcome, Some(Outcome::Failed | Outcome::Refused));
        demand(status.last_run.as_ref().is_some_and(|last| failed(last.outcome)), "its last run has not failed");
        let cold = |triage: &Triage| secs(triage.at) + whole(policy.cooldown) <= now;
        demand(status.triage.as_deref().is_none_or(cold), "the last one has just begun");
        demand(status.triage.as_deref().is_none_or(|triage| *triage.of != *of), "that has had its own");
        demand(open.is_none() || is_late, "a circuit holds it");
        demand(policy.max_per_hour > 0, "the policy lets none begin");
        let is_free = it.memory.others_begun.free_at(policy.max_per_hour).is_none();
        demand(it.triage.analyst != Analyst::Pipeline || is_free, "too many have begun");
    }

    /// Checks that a record changes by one step, and that only fields which the schedule allows are adjusted.
    pub(super) fn says_triage(&mut self, it: &Schedule, is: &ScheduleStatus) {
        let (was, id) = (&it.status, &it.id);
        if is.triage == was.triage {
            return self.require("13.4", is.adjust == was.adjust, || format!("{id} is adjusted by nothing: {is:?}"));
        }
        self.require("13.4", is.last_run == was.last_run, || format!("{id} records a run and a triage at once"));
        let Some(new) = is.triage.as_deref() else {
            return self.require("13.4", false, || format!("{id} forgets its triage"));
        };
        match was.triage.as_deref() {
            Some(old) if old.of == new.of => {
                let goes_on = old.state == State::Analysing && old.at == new.at && old.analyst == new.analyst;
                self.require("13.4", goes_on, || format!("the triage of {id} is over, and says {new:?}"));
            }
            _ => {
                self.may_begin(it, &new.of);
                let begins = secs(new.at) == secs(self.now) && new.analyst == it.triage.analyst && new.run.is_none();
                self.require("13.4", begins, || format!("the triage of {id} begins as {new:?}"));
            }
        }
        let has_verdict = !matches!(new.state, State::Analysing | State::Failed);
        self.require("13.4", has_verdict == new.verdict.is_some(), || format!("{id} has no such verdict: {new:?}"));
        let is_of_streak = it.status.last_success.is_none_or(|at| secs(at) <= secs(new.at))
            && it.status.planned_from.is_none_or(|since| secs(since) <= secs(new.at));
        let acts = matches!(new.state, State::Filed | State::Paused | State::Adjusted);
        self.require("13.3", !acts || is_of_streak, || format!("{id} acts on failures that have ended: {new:?}"));
        self.require("13.4", new.state != State::Over, || format!("{id} goes on, and its triage is over"));
        if is.adjust != was.adjust {
            let adjusts = new.state == State::Adjusted;
            self.require("13.4", adjusts, || format!("{id} is adjusted, and says {new:?}"));
            self.adjusts(it, is.adjust.as_deref());
        }
    }

    fn adjusts(&mut self, it: &Schedule, is: Option<&Adjust>) {
        let (none, id) = (Adjust::default(), &it.id);
        let was = it.status.adjust.as_deref().unwrap_or(&none);
        let Some(is) = is else {
            return self.require("13.4", false, || format!("{id} loses what was adjusted"));
        };
        let mut changed = Vec::new();
        if is.interval != was.interval {
            changed.push(Field::Interval);
        }
        if is.timeout != was.timeout {
            changed.push(Field::Timeout);
        }
        let other = is.parameters.iter().filter(|(key, value)| was.parameters.get(*key) != Some(value));
        changed.extend(other.map(|(key, _)| Field::Parameter(key.clone())));
        let refused = changed.iter().find(|field| !it.triage.allow_adjust.contains(field));
        self.require("16.15", refused.is_none(), || format!("{id} lets nobody change {refused:?}"));
        let length: usize = is.parameters.values().map(|value| value.chars().count()).sum();
        let fits = is.parameters == was.parameters || length <= it.triage.room;
        self.require("13.4", fits, || format!("{id} has parameters of {length} characters"));
        let plan = it.plan.as_ref().ok();
        let within = is.interval.is_none_or(|interval| {
            plan.is_some_and(|plan| (plan.min_interval..=plan.max_interval).contains(&interval))
        });
        let least = it.triage.template_timeout.unwrap_or(self.policy.default_timeout).as_secs();
        let short =
            is.timeout == was.timeout || is.timeout.is_none_or(|timeout| (least..=86_400).contains(&timeout.as_secs()));
        self.require("13.4", within && short, || format!("{id} is adjusted too far: {is:?}"));
    }
}
