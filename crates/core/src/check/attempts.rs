//! Checks the steps of executions with a retry policy (section 11.4).

use std::time::Duration;

use super::Check;
use super::guard::is_cancelled;
use crate::Time;
use crate::action::{Action, AttemptFacts, Decision, Says, Write};
use crate::chain::RunNumber;
use crate::evidence::Ran;
use crate::execution::{Execution, ExecutionState};
use crate::guard::Guard;
use crate::name::{ExecutionId, RunId};
use crate::reason::FailureReason;
use crate::retry::{AttemptEnd, Retry};
use crate::run::{Owner, Presence, Progress, Run};
use crate::target::OwnerRead;
use crate::waiting::Waiting;

impl Check<'_> {
    /// Checks that a decision takes at most one step for an execution: a create, a commit, a retry or the end.
    pub(super) fn steps_of_attempts(&mut self, decision: &Decision) {
        for (uid, execution) in self.target.executions.iter().filter(|(_, it)| it.retry.is_some()) {
            let steps = decision.actions.iter().filter(|action| match action {
                Action::Create { execution, .. } => execution.uid == *uid,
                Action::Write(Write { execution, says, .. }) => {
                    let step = matches!(says, Says::Retry { .. } | Says::Running { .. } | Says::Ended { .. });
                    step && execution.uid == *uid
                }
                _ => false,
            });
            let count = steps.count();
            self.require("11.4", count <= 1, || format!("{} takes {count} steps at once", execution.id));
        }
    }

    /// Checks that an execution between two attempts holds its target. A rival does not wait for the runs of earlier
    /// attempts: it is skipped, with the time of the next attempt.
    pub(super) fn holds_in_the_wait(&mut self, decision: &Decision) {
        let on_runs = |it: &&(ExecutionId, Waiting)| matches!(it.1, Waiting::OwnerLate | Waiting::RivalUndecided);
        for (rival, waiting) in decision.waiting.iter().filter(on_runs) {
            let holder = self.target.executions.values().find(|it| it.id != *rival && waiting_entry(it).is_some());
            self.require("11.4", holder.is_none(), || {
                format!("{rival} waits ({waiting:?}) beside {:?}", holder.map(|it| &it.id))
            });
        }
    }

    /// Checks a create or commit of a Running execution: its wait is over, and its last run holds the target.
    pub(super) fn may_begin_another(&mut self, found: &Execution, own: Option<RunNumber>, verb: &str) {
        let id = &found.id;
        let waiting = waiting_entry(found);
        self.require("11.4", waiting.is_some(), || format!("{verb} {id}, which waits for no attempt"));
        let Some((retry, not_before)) = waiting else { return };
        self.require("11.4", not_before <= self.now, || format!("{verb} {id} before {not_before}"));
        let over = ends_by(found, retry).is_some_and(|ends_by| ends_by <= self.now);
        self.require("11.4", !over, || format!("{verb} {id} after its maxDuration"));
        let is_paused = found.paused.is_some() || self.policy.paused_by.is_some();
        self.require("14", !is_paused, || format!("{verb} {id}, which is paused"));
        let leaves = found.deleting || is_cancelled(found, self.target.guard);
        self.require("11.4", !leaves, || format!("{verb} {id}, which is cancelled or deleted"));
        let last = self.last_run(found);
        let holds = last.is_some_and(|last| matches!(last.progress, Progress::Done(_)));
        self.require("11.4", holds, || format!("{verb} {id} without its last run"));
        let left = self.target.residue.is_empty();
        self.require("11.4", left, || format!("{verb} {id} while the target drains"));
        let beside =
            self.target.runs.values().any(|run| {
                run.is_owned_by(id) && Some(run.number) != own && matches!(run.progress, Progress::Released)
            });
        self.require("11.4", !beside, || format!("{verb} {id} beside a run of its own"));
    }

    /// Checks that all earlier runs are finished and their owners have ended.
    pub(super) fn is_first(&mut self, execution: &ExecutionId, own: &Run) {
        for other in self.target.runs.values().filter(|it| !it.is_owned_by(execution) && it.order <= own.order) {
            let Owner::Execution { id, presence, .. } = &other.owner else { continue };
            let over = match (self.target.executions.get(&id.uid), presence) {
                (Some(owner), _) => owner.is_terminal(),
                (None, Presence::Gone | Presence::Watched) => true, // read before the commit
                (None, Presence::Unwatched) => {
                    self.target.memory.unwatched_owners.get(&id.uid).is_some_and(|read| read.found == OwnerRead::Over)
                }
            };
            self.require("11.4", over, || format!("{execution} commits before {id} is over"));
        }
    }

    /// Checks that another attempt is recorded only if the table of section 11.3 allows it.
    pub(super) fn retry(&mut self, execution: &ExecutionId, says: &Says) {
        let Says::Retry { attempt, of, run, end, delay, not_before, .. } = says else { return };
        let Some(found) = self.execution(execution) else { return };
        let ExecutionState::Running { .. } = found.state else {
            return self.require("11.4", false, || format!("{execution} is tried again, and is not Running"));
        };
        let Some(retry) = &found.retry else {
            return self.require("11.4", false, || format!("{execution} is tried again without a policy"));
        };
        self.require("11.4", *attempt == retry.current() && *of == retry.policy.max_attempts, || {
            format!("{execution} ends attempt {attempt} of {of}, it is on {}", retry.current())
        });
        self.ends_a_run(found, run.as_ref());
        let is_stopped = run.is_some() && self.last_run(found).is_some_and(|last| last.stopped);
        self.require("9", !is_stopped, || format!("{execution} is tried again after a person stopped its run"));
        let why = forbidden(found, self.target.guard, retry, *attempt, end, *not_before);
        self.require("11.3", why.is_none(), || format!("{execution} is tried again, but {why:?}"));
        let least = retry.policy.initial_delay.min(retry.policy.max_delay / 3 * 2);
        let fits = (least..=retry.policy.max_delay).contains(delay);
        self.require("11.3", fits, || format!("{execution} waits {delay:?}"));
        let waits = (*not_before - self.now).to_std().unwrap_or_default();
        let counted =
            waits >= *delay && waits < *delay + Duration::from_secs(1) && not_before.timestamp_subsec_nanos() == 0;
        let now = self.now;
        self.require("11.3", counted, || format!("{execution} waits {delay:?} until {not_before}, it is {now}"));
    }

    /// Checks that the run of the attempt is done and has failed, or that its create was refused and no run exists.
    fn ends_a_run(&mut self, found: &Execution, run: Option<&RunId>) {
        let last = self.last_run(found);
        let done = last.is_some_and(|last| matches!(&last.progress, Progress::Done(outcome) if !outcome.succeeded));
        let fits = if let Some(run) = run {
            done && last.is_some_and(|last| last.id == *run)
        } else {
            let above = self.target.runs.values().any(|it| {
                it.is_owned_by(&found.id)
                    && !it.deleting
                    && self.highest_tried(found).is_none_or(|last| it.number > last)
            });
            waiting_entry(found).is_some() && found.recall().refusal.is_some() && !above
        };
        self.require("11.4", fits, || format!("{} records the end of an attempt that goes on", found.id));
    }

    /// Checks that the conditions are evaluated once, after a failed attempt.
    pub(super) fn ask(&mut self, execution: &ExecutionId, facts: &AttemptFacts) {
        let Some(found) = self.execution(execution) else { return };
        let open = found.retry.as_ref().is_some_and(|retry| {
            (retry.policy.stop_when.is_some() || retry.policy.retry_when.is_some())
                && facts.attempt == retry.current()
                && found.recall().answers.is_none()
                && !is_cancelled(found, self.target.guard)
                && !found.deleting
        });
        self.require("11.3", open, || format!("{execution} asks about attempt {}", facts.attempt));
        let ended = self.last_run(found).is_some_and(|last| matches!(last.progress, Progress::Done(_)));
        self.require("11.3", ended, || format!("{execution} asks about an attempt that goes on"));
    }

    /// Checks that an owner is read only if its run is done and no watch delivers the owner.
    pub(super) fn read_owner(&mut self, owner: &ExecutionId) {
        let fits = self.target.runs.values().any(|run| {
            let elsewhere =
                matches!(&run.owner, Owner::Execution { id, presence: Presence::Unwatched, .. } if id == owner);
            elsewhere && (run.memory.seen.is_over || matches!(run.progress, Progress::Done(_)))
        });
        self.require("11.4", fits && self.execution(owner).is_none(), || format!("reads {owner} for nothing"));
    }

    fn last_run(&self, found: &Execution) -> Option<&Run> {
        let ExecutionState::Running { run: Some(run), .. } = &found.state else { return None };
        let owned = |it: &&Run| it.owner.is(&found.id) || it.owner == Owner::Nobody;
        self.target.runs.get(&run.uid).filter(owned)
    }
}

/// Returns the retry state of an execution that waits for its next attempt, and until when it waits.
pub(super) fn waiting_entry(found: &Execution) -> Option<(&Retry, Time)> {
    let ExecutionState::Running { .. } = found.state else { return None };
    let retry = found.retry.as_deref()?;
    let last = retry.attempts.last()?;
    let waits = last.started_at.is_none() && last.end.is_none();
    Some((retry, last.not_before.filter(|_| waits)?))
}

fn ends_by(found: &Execution, retry: &Retry) -> Option<Time> {
    let ExecutionState::Running { started_at, .. } = found.state else { return None };
    let first = || retry.attempts.iter().find_map(|it| it.end.as_ref()).map(|end| end.completed_at);
    let begin = started_at.or_else(first)?;
    begin.checked_add_signed(chrono::TimeDelta::from_std(retry.policy.max_duration).ok()?)
}

/// The table of section 11.3: returns why another attempt is forbidden.
fn forbidden(
    found: &Execution,
    guard: Guard,
    retry: &Retry,
    attempt: u32,
    end: &AttemptEnd,
    not_before: Time,
) -> Option<&'static str> {
    let policy = &retry.policy;
    let answers = found.recall().answers.as_deref();
    let yes = |answer: Option<&Result<bool, Box<str>>>| answer.and_then(|answer| answer.as_ref().ok()).copied();
    let wants = match policy.retry_when {
        None => end.reason != Some(FailureReason::ConfigurationError),
        Some(_) => yes(answers.and_then(|it| it.retry_when.as_ref())) == Some(true),
    };
    let stops = policy.stop_when.is_some() && yes(answers.and_then(|it| it.stop_when.as_ref())) != Some(false);
    let begin = match found.state {
        ExecutionState::Running { started_at: Some(started_at), .. } => Some(started_at),
        _ => retry.attempts.iter().find_map(|it| it.end.as_ref()).map(|end| end.completed_at),
    };
    let begin = begin.unwrap_or(end.completed_at);
    let lasts = (not_before - begin).to_std().unwrap_or_default();
    [
        (is_cancelled(found, guard), "it is cancelled"),
        (found.deleting, "it is being deleted"),
        (stops, "stopWhen holds"),
        (!wants, "retryWhen does not hold"),
        (end.started != Ran::No && !policy.retry_execution_failures, "it ran"),
        (attempt >= policy.max_attempts, "it was the last"),
        (lasts >= policy.max_duration, "the time does not suffice"),
    ]
    .into_iter()
    .find_map(|(holds, why)| holds.then_some(why))
}
