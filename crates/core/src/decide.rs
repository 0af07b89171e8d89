//! The decision on one target: one pure function from what is known to what to do next.
//!
//! # Guarantees
//! - Every action carries the precondition that makes it safe when the view lags.
//! - The answer depends on the view alone, not on why it was asked: deciding again on the same view says the same.
//! - Each step of section 5 is derived from what is there, so a restart resumes wherever the last process stopped.
//!
//! [`advance`] follows what runs, [`clear_away`] what nobody needs, [`waiting`] what waits; who gets the next turn is
//! decided here.

mod advance;
mod clear_away;
mod waiting;

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision, Ending, Fact, Waiting};
use crate::ending::{Failure, FailureReason, Refusal, Skip};
use crate::execution::{Execution, ExecutionState};
use crate::name::ExecutionId;
use crate::policy::Policy;
use crate::rules::{self, Contender, Verdict};
use crate::run::{Owner, Presence, Run};
use crate::target::Target;

pub use waiting::decide_blind;

/// Decides what to do on a target.
#[must_use]
pub fn decide(target: &Target, policy: &Policy, now: Time) -> Decision {
    let mut decision = Decision::default();
    for execution in target.executions.values() {
        advance::advance(target, execution, policy, now, &mut decision);
    }
    clear_away::clear_away(target, policy, now, &mut decision);
    decide_contenders(target, policy, now, &mut decision);
    waiting::show(target, now, &mut decision);
    decision
}

impl Decision {
    /// Asks to be looked at again at a time; the earliest counts.
    fn wake_at(&mut self, time: Time) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }
}

/// Returns the time that lies a duration after another; a time that no clock reaches where the sum is out of range.
fn after(time: Time, duration: Duration) -> Time {
    chrono::TimeDelta::from_std(duration)
        .ok()
        .and_then(|duration| time.checked_add_signed(duration))
        .unwrap_or(Time::MAX_UTC)
}

/// Returns the run that an undecided execution has created: the first, where a lost answer made it create two. One that
/// it has given up is none, unless somebody has released it all the same.
fn own_run<'a>(target: &'a Target, execution: &Execution) -> Option<&'a Run> {
    let own = target.runs.values().filter(|run| run.is_owned_by(&execution.id));
    own.filter(|run| !run.is_pending() || !execution.has_given_up(run)).min_by_key(|run| (run.order, run.number))
}

/// Decides on all that ask for a turn, together: the oldest goes first, then the smaller uid.
fn decide_contenders(target: &Target, policy: &Policy, now: Time, decision: &mut Decision) {
    let mut undecided: Vec<&Execution> =
        target.executions.values().filter(|execution| execution.is_undecided()).collect();
    undecided.sort_by(|a, b| (a.created, &a.id.uid).cmp(&(b.created, &b.id.uid)));

    let mut turn_taken = false;
    for execution in undecided {
        let contender = Contender { target, execution, run: own_run(target, execution), now };
        if let Some(refusal) = refusal_of(&contender) {
            // Its failure is part of what the others are judged by, so they wait until it is written.
            turn_taken = true;
            decision.actions.push(fail(execution, refusal.reason, &refusal.message, Some(refusal), now));
            continue;
        }
        wake_for_start_before(execution, now, decision);
        match (rules::judge(&contender), contender.run) {
            (Verdict::Run, Some(run)) => decision.actions.push(commit(&contender, run)),
            (Verdict::Run, None) if target.runs.values().any(|run| run.is_owned_by(&execution.id)) => {
                decision.waiting.push((execution.id.clone(), Waiting::Withdrawn));
            }
            (Verdict::Run, None) if turn_taken => decision.waiting.push((execution.id.clone(), Waiting::Turn)),
            (Verdict::Run, None) => {
                turn_taken = true;
                create(&contender, policy, decision);
            }
            (Verdict::Wait(waiting @ Waiting::OwnerLate), _) | (Verdict::Wait(waiting), None) => {
                decision.waiting.push((execution.id.clone(), waiting));
            }
            // What was released past us holds the target until it ends.
            (Verdict::Wait(_) | Verdict::Skip { .. } | Verdict::Fail { .. }, Some(run)) if !run.is_pending() => {}
            (Verdict::Wait(_), Some(_)) => decision.actions.push(give_up(target, execution)),
            // A pending run of a terminal execution is cleared away.
            (Verdict::Skip { skip, fact }, _) => add_skip(decision, execution, skip, fact),
            (Verdict::Fail { reason, message }, _) => {
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

/// An execution that waits fails by itself when its `startBefore` has passed.
fn wake_for_start_before(execution: &Execution, now: Time, decision: &mut Decision) {
    if let ExecutionState::Undecided { start_before: Some(start_before), .. } = &execution.state
        && now <= *start_before
    {
        decision.wake_at(after(*start_before, Duration::from_secs(1)));
    }
}

/// Step (a), as long as the first try is not too long ago (section 5, 8).
fn create(contender: &Contender<'_>, policy: &Policy, decision: &mut Decision) {
    let execution = contender.execution;
    if let ExecutionState::Undecided { first_try: Some(first_try), .. } = &execution.state {
        let deadline = after(*first_try, policy.start_deadline);
        if deadline <= contender.now {
            let why = contender.target.trouble.as_deref().unwrap_or("the API server did not say why");
            let minutes = crate::duration::format(policy.start_deadline);
            let message = format!("the PipelineRun could not be created within {minutes}: {why}");
            decision.actions.push(fail(execution, FailureReason::Unknown, &message, None, contender.now));
            return;
        }
        decision.wake_at(deadline);
    }
    let number = contender.target.next_number();
    decision.actions.push(Action::Create { execution: execution.id.clone(), number });
}

/// Step (c).
fn commit(contender: &Contender<'_>, run: &Run) -> Action {
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
        started_at: contender.now,
        gone,
    }
}

/// The withdrawal's first half. All of its runs, so that which of several is its own need not be agreed on.
fn give_up(target: &Target, execution: &Execution) -> Action {
    let own = target.runs.values().filter(|run| run.is_owned_by(&execution.id));
    Action::GiveUp {
        execution: execution.id.clone(),
        version: execution.version.clone(),
        number: own.map(|run| run.number).max().unwrap_or_default(),
    }
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
        draining: false,
    }
}

/// Adds a skip to the batch that rests on the same fact, so that one live read serves all.
fn add_skip(decision: &mut Decision, execution: &Execution, skip: Skip, because: Fact) {
    let one = (execution.id.clone(), execution.version.clone());
    for action in &mut decision.actions {
        if let Action::Skip { skipped, fact, .. } = action
            && *fact == because
        {
            skipped.push(one);
            return;
        }
    }
    decision.actions.push(Action::Skip { skipped: vec![one], skip, fact: because });
}

#[cfg(test)]
mod tests;
