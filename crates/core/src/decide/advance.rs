//! Follows the executions that have their turn: releases and cancels their runs, ends the executions, and records when
//! the target has drained.

mod attempts;
mod end;
mod next_attempt;

use std::time::Duration;

use super::{View, cancelling};
use crate::Time;
use crate::action::{Action, Announce, Decision, Ending, RunChange, Says, Unneeded};
use crate::awaiting::{Awaiting, AwaitingShown};
use crate::evidence::Proof;
use crate::execution::{Execution, ExecutionState, Lost, RunShown};
use crate::findings::Wait;
use crate::guard::{Directive, DirectiveState};
use crate::moment::after;
use crate::retry::Retry;
use crate::run::{CancelReason, Progress, Run};
use crate::verdict::Fact;

#[cfg(test)]
pub(super) use end::{DRAIN, MAX_SKEW, SETTLE};

/// The minimum time before the first progress write, and between two such writes (section 9).
const BETWEEN_PROGRESS: Duration = Duration::from_secs(5);
/// How long the status does not repeat a wait that it has already shown: the reasons of pods flap.
const BETWEEN_WAITS: Duration = Duration::from_mins(1);
/// How long after the time-out of a run the operator cancels it, if Tekton has not ended it (section 5.8).
const TIMEOUT_GRACE: Duration = Duration::from_mins(1);

/// Takes the next step of one execution.
pub(super) fn advance(view: View<'_>, execution: &Execution, decision: &mut Decision) {
    let (target, now) = (view.target, view.now);
    let ExecutionState::Running { run, started_at } = &execution.state else {
        // If another program wrote the phase, the run may still be active.
        let goes_on = || target.runs.values().any(|run| run.is_unfinished() && run.is_owned_by(&execution.id));
        let is_over = || target.residue_of(&execution.id).next().is_none() && !goes_on();
        if execution.draining_shown && execution.is_terminal() && is_over() {
            decision.actions.push(execution.says(Says::Freed));
        }
        return;
    };
    if execution.elsewhere {
        return;
    }
    let running = Running { view, execution, started_at: *started_at };
    let Some(run) = run else {
        // The view fills in a run that carries the uid of the execution, if there is one. Our CRD does not allow the
        // phase Running without `pipelineRunRef`.
        let message = "phase Running without a pipelineRunRef, and no run of it is there: something other than the \
                       operator wrote this status, or another CRD dropped a part of it";
        let facts = vec![Fact::NoRunOf(execution.id.clone())];
        decision.actions.push(running.finish_if(facts, Ending::Failed(running.failed(message, now))));
        return;
    };
    let found = target.own_run_named(&execution.id, run);
    if let Some((retry, next)) = execution.retry.as_ref().zip(execution.next_attempt())
        && found.is_none_or(|found| matches!(found.progress, Progress::Done(_)))
    {
        return running.wait(retry, run, found, &next, decision);
    }
    match found {
        Some(found) if found.never_starts() => {
            let message = format!("PipelineRun {run} is being deleted, and was never started");
            decision.actions.push(running.finish(Ending::Failed(running.never_started(&message, now)), None));
        }
        Some(found) if found.memory.seen.is_over => {
            decision.actions.push(running.finish(Ending::Failed(running.left_over(found)), None));
        }
        Some(found) => running.follow(found, decision),
        None if target.runs.contains_key(&run.uid) => {
            let message = format!(
                "status names PipelineRun {run}, which another WorkflowExecution made: a backup brought this status back, or \
                 something other than the operator wrote it"
            );
            decision.actions.push(running.finish(Ending::Failed(running.failed(&message, now)), None));
        }
        None => {
            let failure = match &execution.recall().lost_proof {
                Some(Lost::Unreleased(trouble)) => running.unreleased(trouble),
                Some(lost) if lost.never_started() => {
                    running.failed(&format!("PipelineRun {run} was deleted before it was started"), now)
                }
                _ => running.failed(&format!("PipelineRun {run} was deleted while the workflow was running"), now),
            };
            decision.actions.push(running.finish(Ending::Failed(failure), Some(run.clone())));
        }
    }
}

/// A Running execution, with everything that its next step depends on.
#[derive(Clone, Copy)]
struct Running<'a> {
    view: View<'a>,
    execution: &'a Execution,
    started_at: Option<Time>,
}

/// The wait of a run of which nothing has started.
struct Starting {
    awaiting: Awaiting,
    /// When the status may show the wait.
    due: Time,
}

impl<'a> Running<'a> {
    /// Takes the step that the state of the run requires.
    fn follow(self, run: &'a Run, decision: &mut Decision) {
        if let Some(task_run) = run.memory.seen.replayed.clone().filter(|_| !run.memory.seen.replay_told) {
            let execution = self.execution.id.clone();
            decision.actions.push(Action::Tell(Announce::Replay { execution, run: run.id.clone(), task_run }));
        }
        if let Progress::Done(outcome) = &run.progress {
            self.end(run, outcome, decision);
            return;
        }
        let awaits = self.awaits(run, decision);
        self.show_progress(run, awaits, decision);
        if self.execution.cancelled(self.view.target.guard).is_some() {
            decision.actions.extend(cancel(run, CancelReason::Requested));
        } else if run.is_pending()
            && self.execution.directive(Directive::Cancellation, self.view.target.guard) == Some(DirectiveState::Open)
        {
            // The watch soon shows whether the execution is cancelled. Until then the run stays pending, so nothing of
            // it runs.
        } else if run.is_pending() {
            self.release(run, decision);
        } else if let Some((deadline, why)) = self.deadline(run) {
            if deadline <= self.view.now {
                decision.actions.extend(cancel(run, why));
            } else if !run.cancelled {
                decision.wake_at(deadline);
            }
        }
    }

    /// Releases the run (step d). If the release is refused until the start deadline, the run is deleted, with its
    /// pending version as the precondition, so that it never starts. Then the execution ends.
    fn release(self, run: &'a Run, decision: &mut Decision) {
        let View { target, policy, now, .. } = self.view;
        let trouble = target.memory.trouble.as_ref().filter(|trouble| trouble.has_deadline());
        if let Some(first_try) = run.memory.release_tried.filter(|_| trouble.is_some()) {
            let deadline = after(first_try, policy.start_deadline);
            if deadline <= now {
                decision.actions.push(run.change(run.deleted(Unneeded::Unreleased)));
                return;
            }
            decision.wake_at(deadline);
        }
        decision.actions.push(run.change(RunChange::Released));
    }

    /// Returns what the execution waits for while its run is not done, as the status should show it.
    fn awaits(self, run: &'a Run, decision: &mut Decision) -> Option<AwaitingShown> {
        let before = self.execution.run_shown.awaits.as_deref();
        let ends_by = self.should_end(run);
        if let Some(cancelling) = cancelling::see_to(run, &self.execution.id, ends_by, self.view.now, decision) {
            return Some(cancelling.shown(before));
        }
        let says = |reason: &str| before.filter(|before| &*before.reason == reason).cloned();
        // After a restart this process does not know when a person asked for the cancellation, but the status shows it.
        let goes_on = run.stop.as_ref().is_some_and(|stop| !stop.runs_finally);
        if let Some(said) = says(Awaiting::CANCELLING).filter(|_| goes_on) {
            return Some(said);
        }
        let has_started = run.memory.seen.has_started_anything || self.proof(run).is_some();
        if has_started || run.is_pending() {
            return None;
        }
        let Some(starting) = self.starting(run) else { return says(Awaiting::STARTING) };
        decision.awaiting.push((self.execution.id.clone(), starting.awaiting.clone()));
        if self.view.now < starting.due {
            decision.wake_at(starting.due);
            return says(Awaiting::STARTING);
        }
        Some(starting.awaiting.shown(before))
    }

    /// Returns the wait of a run of which nothing has started, and when the status may show it. Most runs start within
    /// seconds, so a wait is not shown at once. The reasons of pods flap, so a wait is not repeated within a minute.
    fn starting(self, run: &'a Run) -> Option<Starting> {
        let (released_at, (until, _)) = (run.released_at?, self.deadline(run)?);
        let wait = run.memory.seen.waits.or_else(|| run.doing.is_empty().then_some(Wait::Controller))?;
        let awaiting = Awaiting::Starting { wait, until };
        let first = after(released_at, BETWEEN_PROGRESS);
        let before = self.execution.run_shown.awaits.as_deref();
        let is_said = before.is_some_and(|before| *before == awaiting.shown(Some(before)));
        let said = self.execution.recall().waits_shown.iter().find(|(said, _)| *said == wait && !is_said);
        let due = said.map_or(first, |(_, at)| first.max(after(*at, BETWEEN_WAITS)));
        Some(Starting { awaiting, due })
    }

    /// Writes the progress of the run and its wait, if the status does not show them. A run that ends soon causes no
    /// such write. The proof that a step ran is written, too: otherwise it would be lost with this process.
    fn show_progress(self, run: &'a Run, awaits: Option<AwaitingShown>, decision: &mut Decision) {
        let before = &self.execution.run_shown;
        // A recorded proof is kept, even a proof of an earlier attempt.
        let seen = || self.proof(run).cloned().map(|proof| Box::new(self.of_attempt(proof)));
        let proof = before.proof.clone().or_else(seen);
        let tasks = run.tasks(run.memory.seen.completed_tasks).or(before.tasks);
        let is_starting = awaits.as_ref().is_some_and(|awaits| &*awaits.reason == Awaiting::STARTING);
        let wait = self.starting(run).filter(|_| is_starting).and_then(|starting| starting.awaiting.wait());
        self.show(run, &run.doing, RunShown { proof, tasks, awaits: awaits.map(Box::new) }, wait, decision);
    }

    /// Writes what the status does not yet show of the run, unless the last such write was a moment ago.
    fn show(self, run: &Run, doing: &str, shown: RunShown, wait: Option<Wait>, decision: &mut Decision) {
        let is_new = !run.is_pending() && shown != self.execution.run_shown;
        let Some(started_at) = self.started_at.filter(|_| is_new) else { return };
        let due =
            after(self.execution.recall().progress_shown_at.unwrap_or(started_at).max(started_at), BETWEEN_PROGRESS);
        if self.view.now < due {
            return decision.wake_at(due);
        }
        let (run, doing) = (run.id.clone(), doing.into());
        decision.actions.push(self.execution.says(Says::Progress { run, shown, doing, wait, started_at }));
    }

    /// Returns the proof that a step of this run ran: the recorded one, or else the one that this process has seen.
    fn proof(self, run: &'a Run) -> Option<&'a Proof> {
        self.shown_proof().or(run.memory.seen.proof.as_ref())
    }

    /// Returns the operator's own deadline for the run to start or finish, because Tekton's deadlines can fail (section
    /// 5.8). The time counts from the release, however long ago the commit was.
    fn deadline(self, run: &'a Run) -> Option<(Time, CancelReason)> {
        let (released_at, finish) = (run.released_at?, self.should_end(run)?);
        if run.memory.seen.has_started_anything || self.proof(run).is_some() {
            return Some((finish, CancelReason::TimedOut));
        }
        let start = after(released_at, self.view.policy.start_deadline);
        Some(if start < finish { (start, CancelReason::NotStarted) } else { (finish, CancelReason::TimedOut) })
    }

    /// Returns when the run should have ended by itself; the operator cancels it then.
    fn should_end(self, run: &Run) -> Option<Time> {
        Some(after(run.released_at?, self.timeout(run).saturating_add(TIMEOUT_GRACE)).min(self.last_end()))
    }

    /// Returns the time-out with which Tekton ends the run. A later change of the default does not apply to the run.
    /// The time that a retry policy left is recorded only on the run.
    fn timeout(self, run: &Run) -> Duration {
        let (spec, made) = (self.execution.timeout, run.timeout);
        let own = if self.execution.retry.is_some() { made.or(spec) } else { spec.or(made) };
        own.unwrap_or(self.view.policy.default_timeout)
    }

    /// Returns when the retry policy requires a run to be over. The run's own time-out was fixed at its creation, which
    /// may be long ago.
    fn last_end(self) -> Time {
        let ends_by = |retry: &Retry| after(retry.ends_by(self.started_at, self.view.now), TIMEOUT_GRACE);
        self.execution.retry.as_deref().map_or(Time::MAX_UTC, ends_by)
    }
}

/// Requests a cancellation, once.
fn cancel(run: &Run, why: CancelReason) -> Option<Action> {
    (!run.cancelled).then(|| run.change(RunChange::Cancelled(why)))
}
