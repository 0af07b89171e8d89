//! The decision on one target: one pure function from what is known to what to do next.
//!
//! # Guarantees
//! - Every action carries the precondition that makes it safe when the view lags.
//! - The answer depends on the view alone, not on why it was asked: deciding again on the same view says the same.
//! - Each step of section 5 is derived from what is there, so a restart resumes wherever the last process stopped.

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision, Ending, Unneeded, Waiting};
use crate::ending::{Failure, FailureReason, Refusal, Success};
use crate::execution::{Execution, ExecutionState};
use crate::name::{ExecutionId, RunId};
use crate::rules::{self, Contender, Verdict};
use crate::run::{Outcome, Owner, Presence, Progress, Run};
use crate::target::Target;

/// How far after now a time of the run may lie; a skewed clock is cut (section 9).
const MAX_SKEW: Duration = Duration::from_mins(1);

/// Decides what to do on a target.
#[must_use]
pub fn decide(target: &Target, now: Time) -> Decision {
    let mut decision = Decision::default();
    for execution in target.executions.values() {
        decision.actions.extend(advance(target, execution, now));
    }
    for run in target.runs.values() {
        decision.actions.extend(clear_away(target, run));
    }
    decide_contenders(target, now, &mut decision);
    decision
}

/// Moves a Running execution on: releases its run (step d), or ends it when the run is done or gone.
fn advance(target: &Target, execution: &Execution, now: Time) -> Option<Action> {
    let ExecutionState::Running { run, started_at } = &execution.state else {
        return None;
    };
    let finish = |ending, lost| Action::Finish {
        execution: execution.id.clone(),
        version: execution.version.clone(),
        ending,
        lost,
    };
    let Some(run) = run else {
        let message = "phase Running without a pipelineRunRef: something other than the operator wrote this status";
        return Some(finish(Ending::Failed(unknown_failure(message, *started_at, now)), None));
    };
    match target.own_run_named(&execution.id, run).map(|run| &run.progress) {
        Some(Progress::Pending) => Some(Action::Release { run: run.clone() }),
        Some(Progress::Released) => None,
        Some(Progress::Done(outcome)) => Some(finish(ending_of(outcome, *started_at, now), None)),
        None if target.runs.contains_key(&run.uid) => {
            let message = format!(
                "status names PipelineRun {run}, which another WorkflowExecution made: something other than the operator wrote this status"
            );
            Some(finish(Ending::Failed(unknown_failure(&message, *started_at, now)), None))
        }
        None => {
            let message = format!("PipelineRun {run} was deleted while the workflow was running");
            Some(finish(Ending::Failed(unknown_failure(&message, *started_at, now)), Some(run.clone())))
        }
    }
}

/// Translates what Tekton said into how the execution ends. Until the evidence of section 9 is read, every failed run
/// counts as one that executed: the unsafe direction is to repeat it.
fn ending_of(outcome: &Outcome, started_at: Option<Time>, now: Time) -> Ending {
    let completed_at = outcome.completed_at.map_or(now, |time| time.min(now + MAX_SKEW));
    if outcome.succeeded {
        let ran_for = elapsed(started_at, completed_at);
        return Ending::Completed(Success { completed_at, ran_for, outcome: outcome.clone() });
    }
    let message = format!("{}: {}", outcome.reason, outcome.message);
    Ending::Failed(Failure { outcome: Some(outcome.clone()), ..unknown_failure(&message, started_at, completed_at) })
}

fn unknown_failure(message: &str, started_at: Option<Time>, failed_at: Time) -> Failure {
    Failure {
        reason: FailureReason::Unknown,
        message: message.into(),
        was_execution_failure: true,
        failed_at,
        ran_for: elapsed(started_at, failed_at),
        number: None,
        outcome: None,
    }
}

/// The time from start to end, in the whole seconds that the status shows; zero where a skewed clock puts it below.
fn elapsed(start: Option<Time>, end: Time) -> Duration {
    let seconds = start.map_or(0, |start| end.timestamp().saturating_sub(start.timestamp()));
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// Deletes a pending run that nobody will commit to, and cancels one that runs for an owner that was deleted.
fn clear_away(target: &Target, run: &Run) -> Option<Action> {
    let Owner::Execution { id, presence, .. } = &run.owner else {
        return None;
    };
    let unproven = match (target.owner_of(run), presence) {
        (Some(owner), _) => return (run.is_pending() && is_leftover(target, owner, run)).then(|| delete(run, None)),
        (None, Presence::Elsewhere) => return None,
        (None, Presence::Gone) => None,
        (None, Presence::Watched) => Some(id.clone()),
    };
    match run.progress {
        Progress::Pending => Some(delete(run, unproven)),
        Progress::Released if !run.cancelled => Some(Action::Cancel { run: run.id.clone(), gone: unproven }),
        Progress::Released | Progress::Done(_) => None,
    }
}

fn delete(run: &Run, gone: Option<ExecutionId>) -> Action {
    Action::Delete { run: run.id.clone(), version: run.version.clone(), why: Unneeded::Leftover, gone }
}

/// A pending run is needed by the owner that committed to it, or that may still do so: an undecided one's first.
fn is_leftover(target: &Target, owner: &Execution, run: &Run) -> bool {
    let needed = if owner.is_undecided() {
        own_run(target, owner).is_some_and(|first| first.id.uid == run.id.uid)
    } else {
        owner.is_running(&run.id)
    };
    !needed
}

/// The run that an undecided execution has created: the first, where a lost answer made it create two.
fn own_run<'a>(target: &'a Target, execution: &Execution) -> Option<&'a Run> {
    target.runs.values().filter(|run| run.is_owned_by(&execution.id)).min_by_key(|run| (run.order, run.number))
}

/// Decides on all that ask for a turn, together: the oldest goes first, then the smaller uid.
fn decide_contenders(target: &Target, now: Time, decision: &mut Decision) {
    let mut undecided: Vec<&Execution> =
        target.executions.values().filter(|execution| execution.is_undecided()).collect();
    undecided.sort_by(|a, b| (a.created, &a.id.uid).cmp(&(b.created, &b.id.uid)));

    let mut turn_taken = false;
    for execution in undecided {
        let contender = Contender { target, execution, run: own_run(target, execution) };
        let verdict = match refusal_of(&contender) {
            Some(refusal) => {
                // Its failure is part of what the others are judged by, so they wait until it is written.
                turn_taken = true;
                decision.actions.push(fail(execution, refusal.reason, &refusal.message, Some(refusal), now));
                continue;
            }
            None => rules::judge(&contender),
        };
        match (verdict, contender.run) {
            (Verdict::Run, Some(run)) => decision.actions.push(commit(&contender, run, now)),
            (Verdict::Run, None) if turn_taken => decision.waiting.push((execution.id.clone(), Waiting::Turn)),
            (Verdict::Run, None) => {
                turn_taken = true;
                let number = target.next_number();
                decision.actions.push(Action::Create { execution: execution.id.clone(), number });
            }
            (Verdict::Wait(Waiting::RivalUndecided) | Verdict::Skip { .. } | Verdict::Fail { .. }, Some(run)) => {
                // Only a pending run can be withdrawn. One that was released past us holds the target until it ends.
                decision.actions.extend(run.is_pending().then(|| withdraw(run)));
            }
            (Verdict::Wait(waiting), _) => decision.waiting.push((execution.id.clone(), waiting)),
            (Verdict::Skip { skip, unfinished }, None) => add_skip(decision, execution, skip, unfinished),
            (Verdict::Fail { reason, message }, None) => {
                decision.actions.push(fail(execution, reason, &message, None, now));
            }
        }
    }
}

/// A refused create, unless a run of this execution is there after all.
fn refusal_of<'a>(contender: &Contender<'a>) -> Option<&'a Refusal> {
    match &contender.execution.state {
        ExecutionState::Undecided { refusal, .. } if contender.run.is_none() => refusal.as_ref(),
        _ => None,
    }
}

fn commit(contender: &Contender<'_>, run: &Run, now: Time) -> Action {
    let target = contender.target;
    let mut gone: Vec<ExecutionId> = target
        .runs
        .values()
        .filter(|other| !other.is_unfinished() && target.owner_of(other).is_none())
        .filter_map(|other| match &other.owner {
            Owner::Execution { id, presence: Presence::Watched, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    gone.sort_by(|a, b| a.uid.cmp(&b.uid));
    gone.dedup();
    Action::Commit {
        execution: contender.execution.id.clone(),
        version: contender.execution.version.clone(),
        run: run.id.clone(),
        number: run.number,
        started_at: now,
        gone,
    }
}

fn withdraw(run: &Run) -> Action {
    Action::Delete { run: run.id.clone(), version: run.version.clone(), why: Unneeded::Withdrawn, gone: None }
}

fn fail(execution: &Execution, reason: FailureReason, message: &str, refusal: Option<&Refusal>, now: Time) -> Action {
    let failure = Failure {
        reason,
        message: message.into(),
        was_execution_failure: false,
        failed_at: now,
        ran_for: Duration::ZERO,
        number: refusal.map(|refusal| refusal.number),
        outcome: None,
    };
    Action::Finish {
        execution: execution.id.clone(),
        version: execution.version.clone(),
        ending: Ending::Failed(failure),
        lost: None,
    }
}

/// Adds a skip to the batch that rests on the same fact, so that one live read serves all.
fn add_skip(decision: &mut Decision, execution: &Execution, skip: crate::ending::Skip, fact: RunId) {
    let one = (execution.id.clone(), execution.version.clone());
    for action in &mut decision.actions {
        if let Action::Skip { skipped, unfinished, .. } = action
            && *unfinished == fact
        {
            skipped.push(one);
            return;
        }
    }
    decision.actions.push(Action::Skip { skipped: vec![one], skip, unfinished: fact });
}

#[cfg(test)]
mod tests;
