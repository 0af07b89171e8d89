//! Follows the executions that have their turn: releases, cancels, ends, and says when the target has drained.

use std::time::Duration;

use super::View;
use crate::Time;
use crate::action::{Action, Decision, Ending};
use crate::duration;
use crate::ending::{Failure, FailureReason, Success};
use crate::evidence::{Absence, Doubt, Started};
use crate::execution::{Execution, ExecutionState};
use crate::history::Charge;
use crate::moment::{after, round_up};
use crate::name::RunId;
use crate::run::{CancelReason, Outcome, Progress, Run, Tasks};

/// How far after now a time of the run may lie; a skewed clock is cut (section 9).
pub(super) const MAX_SKEW: Duration = Duration::from_mins(1);
/// How long a finished run's tasks and pods may take to be seen finished, before the status says that the target drains.
/// They come by other watches than the run, some milliseconds apart.
pub(super) const SETTLE: Duration = Duration::from_secs(2);
/// How long after its time-out a run is cancelled by us, where Tekton has not done it (section 5, 8).
const TIMEOUT_GRACE: Duration = Duration::from_mins(1);

/// Moves one execution on.
pub(super) fn advance(view: View<'_>, execution: &Execution, decision: &mut Decision) {
    let (target, now) = (view.target, view.now);
    let ExecutionState::Running { run, started_at } = &execution.state else {
        if execution.draining_shown && execution.is_terminal() && target.residue_of(&execution.id).next().is_none() {
            let (execution, version) = (execution.id.clone(), execution.version.clone());
            decision.actions.push(Action::Freed { execution, version });
        }
        return;
    };
    if execution.elsewhere {
        return;
    }
    let running = Running { view, execution, started_at: *started_at };
    let Some(run) = run else {
        let message = "phase Running without a pipelineRunRef: something other than the operator wrote this status";
        decision.actions.push(running.finish(Ending::Failed(running.failed(message, now)), None));
        return;
    };
    match target.own_run_named(&execution.id, run) {
        Some(found) => running.follow(found, decision),
        None if target.runs.contains_key(&run.uid) => {
            let message = format!(
                "status names PipelineRun {run}, which another WorkflowExecution made: something other than the operator \
                 wrote this status"
            );
            decision.actions.push(running.finish(Ending::Failed(running.failed(&message, now)), None));
        }
        None => {
            let message = format!("PipelineRun {run} was deleted while the workflow was running");
            decision.actions.push(running.finish(Ending::Failed(running.failed(&message, now)), Some(run.clone())));
        }
    }
}

/// A Running execution, with what its next step depends on.
#[derive(Clone, Copy)]
struct Running<'a> {
    view: View<'a>,
    execution: &'a Execution,
    started_at: Option<Time>,
}

impl Running<'_> {
    /// Takes the step that its run calls for.
    fn follow(self, run: &Run, decision: &mut Decision) {
        if let Progress::Done(outcome) = &run.progress {
            self.end(run, outcome, decision);
            return;
        }
        if self.execution.cancellation.is_some() {
            decision.actions.extend(cancel(run, CancelReason::Requested));
        } else if run.is_pending() {
            decision.actions.push(Action::Release { run: run.id.clone() });
        } else if let Some((deadline, why)) = self.deadline(run) {
            if deadline <= self.view.now {
                decision.actions.extend(cancel(run, why));
            } else if !run.cancelled {
                decision.wake_at(deadline);
            }
        }
    }

    /// Deadlines of our own, since Tekton's can fail (section 5, 8): to start, and to finish.
    fn deadline(self, run: &Run) -> Option<(Time, CancelReason)> {
        let started_at = self.started_at?;
        let finish = after(started_at, self.timeout().saturating_add(TIMEOUT_GRACE));
        if run.started {
            return Some((finish, CancelReason::TimedOut));
        }
        let start = after(started_at, self.view.policy.start_deadline);
        Some(if start < finish { (start, CancelReason::NotStarted) } else { (finish, CancelReason::TimedOut) })
    }

    fn timeout(self) -> Duration {
        self.execution.timeout.unwrap_or(self.view.policy.default_timeout)
    }

    /// Ends the execution, as soon as what is left of the run is seen finished too, or takes too long for that.
    fn end(self, run: &Run, outcome: &Outcome, decision: &mut Decision) {
        let settled = after(run.done_seen.unwrap_or(self.view.now), SETTLE);
        if self.drains() && self.view.now < settled {
            decision.wake_at(settled);
            return;
        }
        let mut finish = self.finish(self.ending_of(run, outcome), None);
        if let Action::Finish {
            ending: Ending::Failed(Failure { started: Started::NotStarted(_), .. }),
            unstarted,
            ..
        } = &mut finish
        {
            *unstarted = Some(run.id.clone());
        }
        decision.actions.push(finish);
    }

    fn drains(self) -> bool {
        self.view.target.residue_of(&self.execution.id).next().is_some()
    }

    fn finish(self, ending: Ending, lost: Option<RunId>) -> Action {
        Action::Finish {
            execution: self.execution.id.clone(),
            version: self.execution.version.clone(),
            ending,
            lost,
            unstarted: None,
            draining: self.drains(),
        }
    }

    /// Translates what Tekton said into how the execution ends. A failed run counts as
    /// one that executed, unless Tekton never made a task of it: the unsafe direction is to repeat it (section 9).
    fn ending_of(self, run: &Run, outcome: &Outcome) -> Ending {
        let completed_at = outcome.completed_at.map_or(self.view.now, |time| time.min(after(self.view.now, MAX_SKEW)));
        if outcome.succeeded {
            let completed_at = round_up(completed_at); // as a status keeps it
            let ran_for = elapsed(self.started_at, completed_at);
            return Ending::Completed(Success { completed_at, ran_for, outcome: outcome.clone() });
        }
        let said = format!("{}: {}", outcome.reason, outcome.message);
        let (reason, message) = match (run.cancel_reason, &self.execution.cancellation) {
            (Some(CancelReason::Requested), Some(cancellation)) => {
                let message = format!("cancelled by {}: {}", cancellation.requested_by, cancellation.reason);
                (FailureReason::Unknown, message)
            }
            (Some(CancelReason::NotStarted), _) => {
                let deadline = duration::format(self.view.policy.start_deadline);
                let message = format!(
                    "nothing of it was seen to start within {deadline}, so it was cancelled; Tekton says {said}"
                );
                (FailureReason::Unknown, message)
            }
            (Some(CancelReason::TimedOut), _) => {
                let timeout = duration::format(self.timeout());
                let message = format!(
                    "not done a minute after its time-out of {timeout}, so it was cancelled; Tekton says {said}"
                );
                (FailureReason::DeadlineExceeded, message)
            }
            _ => (FailureReason::Unknown, said),
        };
        let failure = self.failed(&message, completed_at);
        let started = match run.tasks {
            Tasks::NoneMade => Started::NotStarted(Absence::NoTaskRun),
            Tasks::Unknown | Tasks::Made => Started::Unknown(Doubt::Unread),
        };
        let charge = self.charge(failure.failed_at, run.tasks == Tasks::NoneMade);
        let outcome = Some(outcome.clone());
        Ending::Failed(Failure { reason, started, outcome, charge, ..failure })
    }

    fn failed(self, message: &str, failed_at: Time) -> Failure {
        let failed_at = round_up(failed_at); // as a status keeps it
        Failure {
            reason: FailureReason::Unknown,
            message: message.into(),
            started: Started::Unknown(Doubt::RunGone),
            task: None,
            tasks: None,
            failed_at,
            ran_for: elapsed(self.started_at, failed_at),
            number: None,
            outcome: None,
            charge: self.charge(failed_at, false),
        }
    }

    fn charge(self, at: Time, counts: bool) -> Charge {
        self.view.history.charge(self.view.policy, self.view.target.label(), at, counts)
    }
}

/// Asks for a cancel, once.
fn cancel(run: &Run, why: CancelReason) -> Option<Action> {
    (!run.cancelled).then(|| Action::Cancel { run: run.id.clone(), why, gone: None })
}

/// The time from start to end, in the whole seconds that the status shows; zero where a skewed clock puts it below.
fn elapsed(start: Option<Time>, end: Time) -> Duration {
    let seconds = start.map_or(0, |start| end.timestamp().saturating_sub(start.timestamp()));
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
