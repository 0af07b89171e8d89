//! The decision on one target: one pure function from what is known to what to do next.
//!
//! # Guarantees
//! - Every action carries the precondition that makes it safe when the view lags.
//! - The answer depends on the view alone, not on why it was asked: deciding again on the same view says the same.
//! - Each step of section 5 is derived from what is there, so a restart resumes wherever the last process stopped.
//!
//! [`advance`] follows what runs, [`cancelling`] the runs that Tekton does not stop, [`leaving`] those that are deleted
//! while they run, [`clear_away`] what nobody needs, [`contend`] who gets the next turn, [`waiting`] what waits,
//! [`blocked`] what blocks, [`schedules`] which schedule makes a child, [`guard`] whether what a person has set counts,
//! [`expire`] what is over and forgotten.

mod advance;
mod blocked;
mod cancelling;
mod clear_away;
mod contend;
mod elsewhere;
mod expire;
mod guard;
mod identify;
mod leaving;
pub mod schedules;
mod waiting;

use crate::Time;
use crate::action::{Decision, Says};
use crate::execution::Execution;
use crate::history::{History, Unrecorded};
use crate::policy::Policy;
use crate::run::Run;
use crate::target::Target;

pub use waiting::{decide_blind, decide_unseen};

/// Decides what to do on a target.
#[must_use]
pub fn decide(target: &Target, policy: &Policy, now: Time) -> Decision {
    let mut decision = Decision::default();
    let history = History::of(target, policy, now);
    let view = View { target, history: &history, policy, now };
    for execution in target.executions.values() {
        advance::advance(view, execution, &mut decision);
    }
    clear_away::clear_away(target, policy, now, &mut decision);
    leaving::see_to(target, now, &mut decision);
    elsewhere::read(target, now, &mut decision);
    record_clearances(&history, &mut decision);
    contend::decide_contenders(view, &mut decision);
    waiting::show(target, policy, now, &mut decision);
    blocked::show(view, &mut decision);
    schedules::decide_schedules(view, &mut decision);
    guard::show(view, &mut decision);
    expire::expire(view, &mut decision);
    decision
}

/// All that a decision depends on.
#[derive(Clone, Copy)]
struct View<'a> {
    target: &'a Target,
    history: &'a History<'a>,
    policy: &'a Policy,
    now: Time,
}

impl Decision {
    /// Asks to be looked at again at a time; the earliest counts.
    pub(crate) fn wake_at(&mut self, time: Time) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }
}

/// Returns the run that an undecided execution has created: the first, where a lost answer made it create two; but one
/// that is not pending any more comes before one that is. One that never starts is none. Unless somebody has released
/// it all the same, nor is one that it has given up: others take that for gone, and go on.
fn own_run<'a>(target: &'a Target, execution: &Execution) -> Option<&'a Run> {
    let own = target.runs.values().filter(|run| run.is_owned_by(&execution.id) && !run.never_starts());
    own.filter(|run| !run.is_pending() || !execution.has_given_up(run))
        .min_by_key(|run| (run.is_pending(), run.order, run.number))
}

/// A clearance acts at once; what it has done is written down, so that it does the same for ever.
fn record_clearances(history: &History<'_>, decision: &mut Decision) {
    for Unrecorded { execution: cleared, effective, until } in history.unrecorded() {
        let Some(clearance) = cleared.clearance.as_deref().cloned() else { continue };
        decision.actions.push(cleared.says(Says::Cleared { clearance, effective }));
        if let Some(until) = until {
            decision.wake_at(until);
        }
    }
}

#[cfg(test)]
mod tests;
