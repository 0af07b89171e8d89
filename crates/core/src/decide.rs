//! The decision on one target: a pure function from the view to the next actions.
//!
//! # Guarantees
//! - Every action carries the precondition that makes it safe when the view lags.
//! - The answer depends on the view alone: a second decision on the same view gives the same answer.
//! - Each step of section 5 is derived from the objects, so a restarted operator resumes where the last process
//!   stopped.
//!
//! [`advance`] follows executions that run. [`cancelling`] follows runs that Tekton does not stop, and [`leaving`]
//! follows runs that are deleted while they run. [`cleanup`] deletes runs that no execution uses. [`contend`] decides
//! which execution gets the next turn. [`waiting`] reports what executions wait for, and [`blocked`] what blocks the
//! target. [`schedules`] decides which schedule creates a child, and [`guard`] records whether a clearance or
//! cancellation counts. [`expire`] removes executions whose time to live is over.

mod advance;
mod blocked;
mod cancelling;
mod cleanup;
mod contend;
mod expire;
mod guard;
mod identify;
mod leaving;
pub mod schedules;
mod unwatched_owners;
mod waiting;

use crate::Time;
use crate::action::{Decision, Says};
use crate::execution::Execution;
use crate::history::{History, Unrecorded};
use crate::limit::Ask;
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
    cleanup::clear_away(target, policy, now, &mut decision);
    leaving::see_to(target, now, &mut decision);
    unwatched_owners::read(target, now, &mut decision);
    record_clearances(&history, &mut decision);
    contend::decide_contenders(view, &mut decision);
    waiting::show(target, policy, now, &mut decision);
    blocked::show(view, &mut decision);
    schedules::decide_schedules(view, &mut decision);
    guard::show(view, &mut decision);
    expire::expire(view, &mut decision);
    decision
}

/// Everything that a decision depends on.
#[derive(Clone, Copy)]
struct View<'a> {
    target: &'a Target,
    history: &'a History<'a>,
    policy: &'a Policy,
    now: Time,
}

impl Decision {
    /// Requests another decision on the target at a time; the earliest request counts.
    pub(crate) fn wake_at(&mut self, time: Time) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }

    /// Requests a place in every limit of a set, unless an older execution or schedule of the target requests the same.
    pub(crate) fn ask_for_place(&mut self, ask: Ask) {
        match self.asks.iter_mut().find(|known| known.limits == ask.limits) {
            Some(known) if (ask.since, &ask.uid) < (known.since, &known.uid) => *known = ask,
            Some(_) => {}
            None => self.asks.push(ask),
        }
    }
}

/// Returns the run that an undecided execution has created; the first one, if a lost answer made it create two. A run
/// that is no longer pending takes precedence. Runs that can never start are ignored. Pending runs that the execution
/// gave up are ignored, too: other executions treat them as gone.
fn own_run<'a>(target: &'a Target, execution: &Execution) -> Option<&'a Run> {
    let own = target.runs.values().filter(|run| run.is_owned_by(&execution.id) && !run.never_starts());
    own.filter(|run| !run.is_pending() || !execution.has_given_up(run))
        .min_by_key(|run| (run.is_pending(), run.order, run.number))
}

/// Records the effect of new clearances. A clearance takes effect at once, and its recorded effect never changes.
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
