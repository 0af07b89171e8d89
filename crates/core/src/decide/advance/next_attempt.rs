//! Follows an execution that waits for its next attempt. Its finished run holds the target meanwhile (section 11.4). A
//! later attempt is created, checked and committed to like the first one. Rules 2 to 5 are not applied again, because
//! the execution has held the target all the time.

use std::time::Duration;

use super::Running;
use super::attempts::Failed;
use crate::action::{Action, Decision, Ending, Says};
use crate::decide::contend;
use crate::decide::waiting::SHOW_AFTER;
use crate::ending::{Failure, Tried};
use crate::evidence::{Absence, Started};
use crate::fingerprint::Stage;
use crate::moment::after;
use crate::name::RunId;
use crate::reason::FailureReason;
use crate::retry::{NextAttempt, Retry, Stop};
use crate::run::{Owner, Presence, Run};
use crate::target::OwnerRead;
use crate::verdict::Fact;
use crate::waiting::Waiting;

impl<'a> Running<'a> {
    /// Takes the next step between two attempts. `last` is the finished run of the last attempt, if the view contains
    /// it.
    pub(super) fn wait(
        self,
        retry: &Retry,
        named: &RunId,
        last: Option<&Run>,
        next: &NextAttempt,
        decision: &mut Decision,
    ) {
        let (target, now) = (self.view.target, self.view.now);
        let mine = self.own_next_run(named);
        if let Some(run) = mine.filter(|run| !run.is_pending()) {
            // Another program released the run. The execution commits to an active run before anything else is judged.
            decision.actions.push(contend::commit(self.view, self.execution, run, contend::Left::OfOthers));
            return;
        }
        let run_deleted = last.is_none().then_some(Stop::RunDeleted);
        let too_late = (next.ends_by <= now).then_some(Stop::MaxDuration);
        if let Some(stop) = self.asked_to_end().or(run_deleted).or(too_late) {
            let gone = (!target.runs.contains_key(&named.uid)).then(|| named.clone());
            return decision.actions.push(self.end_waiting(self.between(retry, stop, None), named, gone));
        }
        decision.wake_at(next.ends_by);
        if let Some(refusal) = self.execution.recall().refusal.as_ref().filter(|_| mine.is_none()) {
            let failure = self.refused(refusal.reason, &refusal.message);
            // The conditions cannot refer to the cluster, because there never was a run.
            self.fail(Failed { run: None, failure, ended_by: None }, decision);
            return;
        }
        // The end of the pause or of the remains triggers another decision.
        if let Some(waiting) = self.paused() {
            return self.held_back(waiting, next, decision);
        }
        let is_beside = || self.runs_beside(mine) || mine.is_some_and(|run| !self.is_first(run));
        if !target.residue.is_empty() {
            return self.held_back(Waiting::Remains, next, decision);
        } else if is_beside() {
            return self.held_back(Waiting::Beside, next, decision);
        }
        if now < next.not_before {
            return decision.wake_at(next.not_before);
        }
        match mine {
            Some(run) => decision.actions.push(contend::commit(self.view, self.execution, run, contend::Left::OfAll)),
            None => self.create(retry, named, next, decision),
        }
    }

    /// Ends the execution between two attempts. The run of the next attempt may exist although no watch shows it: the
    /// answer to its creation, or its label, may have been lost. A live read must then find no such run.
    fn end_waiting(self, failure: Failure, named: &RunId, gone: Option<RunId>) -> Action {
        let Self { view, execution, .. } = self;
        let is_next = |run: &Run| run.is_owned_by(&execution.id) && run.id.uid != named.uid;
        let is_refused = execution.recall().refusal.is_some();
        let may_have_made_one = !is_refused && !view.target.runs.values().any(is_next);
        let made = may_have_made_one.then(|| Fact::NothingMade(execution.id.clone(), view.target.next_number()));
        let gone = gone.map(|run| Fact::RunGone(execution.id.clone(), run));
        self.finish_if(gone.into_iter().chain(made).collect(), Ending::Failed(failure))
    }

    fn paused(self) -> Option<Waiting> {
        let everywhere = || self.view.policy.paused_by.clone().map(Waiting::PausedEverywhere);
        self.execution.paused.clone().map(Waiting::Paused).or_else(everywhere)
    }

    /// Reports what delays the next attempt, once the delay has lasted for a while.
    fn held_back(self, waiting: Waiting, next: &NextAttempt, decision: &mut Decision) {
        if self.execution.waiting_shown.as_ref().is_some_and(|shown| *shown.reason == *waiting.reason()) {
            return;
        }
        let due = after(next.not_before, SHOW_AFTER);
        if self.view.now < due {
            decision.wake_at(due);
        } else {
            decision.actions.push(self.execution.says(Says::HeldBack { waiting }));
        }
    }

    /// Returns the run that was created for the next attempt. A released run takes precedence, as for an undecided
    /// execution.
    fn own_next_run(self, last: &RunId) -> Option<&'a Run> {
        let last_number = self.view.target.last_number_of(self.execution);
        let above = |run: &&Run| last_number.is_none_or(|last| run.number > last);
        let own = self.view.target.runs.values().filter(|run| run.is_owned_by(&self.execution.id));
        own.filter(|run| run.id.uid != last.uid && !run.never_starts())
            .filter(above)
            .min_by_key(|run| (run.is_pending(), run.order, run.number))
    }

    /// Returns whether an unfinished run forbids the next attempt. Before the creation, any run of another execution
    /// does. A run of this execution that another program released always does.
    fn runs_beside(self, mine: Option<&Run>) -> bool {
        let target = self.view.target;
        target.runs.values().filter(|run| run.is_unfinished()).any(|run| {
            let is_own = run.is_owned_by(&self.execution.id);
            let counts = run.owner != Owner::Nobody || target.committed_to(run).is_some();
            if is_own { !run.is_pending() } else { mine.is_none() && counts }
        })
    }

    /// Checks a later attempt: every earlier run of another execution is finished, and its owner has ended.
    fn is_first(self, mine: &Run) -> bool {
        let target = self.view.target;
        let mut others = target.runs.values().filter(|run| !run.is_owned_by(&self.execution.id) && run.precedes(mine));
        others.all(|run| {
            let owner = match &run.owner {
                Owner::Nobody => target.committed_to(run),
                Owner::Execution { .. } => target.owner_of(run),
            };
            match (&run.owner, owner) {
                (Owner::Nobody, None) => true,
                (_, Some(owner)) => !run.is_unfinished() && owner.is_terminal(),
                (Owner::Execution { id, presence: Presence::Unwatched, .. }, None) => {
                    let read = target.memory.unwatched_owners.get(&id.uid);
                    !run.is_unfinished() && read.is_some_and(|it| it.found == OwnerRead::Over)
                }
                // Before the commit, a live read confirms that the owner is gone.
                (Owner::Execution { .. }, None) => !run.is_unfinished(),
            }
        })
    }

    fn create(self, retry: &Retry, named: &RunId, next: &NextAttempt, decision: &mut Decision) {
        let (execution, now) = (self.execution, self.view.now);
        if let Some(deadline) = contend::create_deadline(self.view, execution) {
            if deadline <= now {
                let failure = self.between(retry, Stop::NotCreated, Some(contend::uncreated(self.view)));
                return decision.actions.push(self.end_waiting(failure, named, None));
            }
            decision.wake_at(deadline);
        }
        let (number, left) = (self.view.target.next_number(), (next.ends_by - now).to_std().unwrap_or_default());
        let at_most = Some(Duration::from_secs(left.as_secs().max(1)));
        decision.actions.push(Action::Create { execution: execution.id.clone(), number, at_most });
    }

    /// Creates the failure of an attempt whose run the API server refused to create.
    fn refused(self, reason: FailureReason, message: &str) -> Failure {
        let none = Started::NotStarted(Absence::NoRun);
        let failure = self.failed_as(none.clone(), message, self.view.now);
        let tried = self.tried(&none, reason, message, failure.failed_at);
        Failure { reason, tried, stage: Stage::Creating, ..failure }
    }

    /// Creates the failure of an execution that ends between two attempts: the failure of its last attempt. A
    /// cancellation by a person, or a run that could not be created, takes precedence.
    fn between(self, retry: &Retry, stop: Stop, now_failed: Option<(FailureReason, String)>) -> Failure {
        let last = retry.ended().last();
        let reported =
            last.map(|(attempt, end)| (attempt, end.reason.unwrap_or(FailureReason::Unknown), &*end.message));
        let (attempt, last_reason, last_message) =
            reported.unwrap_or((1, FailureReason::Unknown, "nothing is on record"));
        let earlier = || format!("; attempt {attempt} failed, {last_reason}: {last_message}");
        let stage = if now_failed.is_some() { Stage::Creating } else { Stage::Released };
        let (reason, message) = match (&self.execution.cancellation, now_failed) {
            (Some(by), _) if stop == Stop::Cancelled => {
                let message = format!("cancelled by {}: {}{}", by.requested_by, by.reason, earlier());
                (FailureReason::Unknown, message)
            }
            (_, Some((reason, message))) => (reason, message + &earlier()),
            _ => (last_reason, last_message.to_owned()),
        };
        let cancelled = stop == Stop::Cancelled;
        let failure = self.failed_as(Started::NotStarted(Absence::NoRun), &message, self.view.now);
        let counts = !failure.was_execution_failure() && !cancelled;
        let tried = Tried { attempt: retry.current(), of: retry.policy.max_attempts, end: None, stop };
        let charge = self.charge(failure.failed_at, counts);
        Failure { reason, tasks: None, cancelled, stage, charge, tried: Some(Box::new(tried)), ..failure }
    }
}
