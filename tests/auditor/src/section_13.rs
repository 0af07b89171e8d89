//! Circuits (sections 13.5 and 13.6), read anew: which are open, by what is known of the executions at a moment.
//!
//! [`Shared`] lists what circuits are computed from, over the whole recording; [`Circuits`] is the fold of what an
//! operator may have known of that. What was deleted may be known to one process and forgotten by the next, which has
//! never listed it.

mod fingerprint;
mod fold;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use wfe_api::{FailureReason, Phase};

use crate::Policy;
use crate::history::{Execution, History, phase, text};
use crate::moment::{Seconds, seconds};
use crate::record::{Past, is_cancelled};
use crate::report::Moment;
use crate::section_7::{wait, whole};
use fold::State;

/// The reason of what was refused: no circuit knows it.
const REFUSED: &str = "Refused/";

/// What an execution runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Runs<'a> {
    workflow: &'a str,
    version: &'a str,
    image: &'a str,
}

/// Something that happened to one execution.
#[derive(Debug)]
struct Event<'e> {
    at: Seconds,
    uid: &'e str,
    /// By which change it became known.
    known: Moment,
    /// When its execution was deleted.
    gone: Option<Moment>,
    runs: Runs<'e>,
    /// The uid of the schedule that it was made for.
    schedule: Option<&'e str>,
    what: What<'e>,
}

#[derive(Debug)]
enum What<'e> {
    /// It was made for a schedule.
    Made {
        /// Whether the recording has its end.
        ends: bool,
    },
    Ended {
        target: &'e str,
        created: Seconds,
        end: End<'e>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End<'e> {
    Succeeded {
        /// When it was committed to its run.
        began: Seconds,
    },
    Failed {
        /// With what, where circuits know that.
        with: Option<&'e str>,
        /// Whether nothing of it had run.
        before: bool,
    },
}

/// All that circuits are computed from, in the order in which it is folded.
#[derive(Debug)]
pub(crate) struct Shared<'e> {
    policy: &'e Policy,
    events: Vec<Event<'e>>,
    /// From when to when some circuit was open, by all that happened. Elsewhere nothing is judged: what was known later
    /// may have opened one for a moment.
    open: Vec<RangeInclusive<Seconds>>,
}

/// What an operator may have forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forgets {
    /// Only probes that were deleted before their end.
    Little,
    /// Whatever was deleted: its process began after that.
    Deleted,
}

/// An open circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenCircuit {
    pub(crate) fingerprint: String,
    pub(crate) opened: Seconds,
    /// From when on it holds the schedules that failed with it.
    pub(crate) holds_from: Seconds,
    /// From when on a probe may be made.
    pub(crate) next_probe: Seconds,
    /// When it closes by itself.
    pub(crate) quiet: Seconds,
}

/// The circuits that are open, as they may be known at a moment.
#[derive(Debug)]
pub(crate) struct Circuits(Vec<OpenCircuit>);

// === impl Runs ===

impl<'a> Runs<'a> {
    fn of(execution: &Execution<'a>) -> Self {
        let of = |field: &str| execution.workflow(field);
        Self { workflow: of("workflowId"), version: of("version"), image: of("containerImage") }
    }
}

// === impl Shared ===

impl<'e> Shared<'e> {
    /// Lists what has happened; nothing where no circuit opens by the policy.
    pub(crate) fn read(history: &'e History<'e>, policy: &'e Policy) -> Self {
        let mut events = Vec::new();
        if policy.outage_targets > 0 || policy.breaker_threshold > 0 {
            for execution in history.executions.values().filter(|it| it.target.is_some()) {
                events.extend(made(execution));
                events.extend(ended(execution));
            }
        }
        events.sort_by_key(|event| (event.at, event.uid, matches!(event.what, What::Ended { .. })));
        let mut state = State::new(policy);
        for event in &events {
            state.take(event);
        }
        let open = state.spans();
        Self { policy, events, open }
    }

    /// Tells whether some circuit was open at a time, by all that happened.
    pub(crate) fn is_open_at(&self, time: Seconds) -> bool {
        self.open.iter().any(|span| span.contains(&time))
    }

    /// Lists the moments at which something became known or was forgotten.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Moment> {
        self.events.iter().flat_map(|event| [Some(event.known), event.gone]).flatten()
    }

    /// Folds what may have been known at a moment: by a process that knows what was deleted, and by one that does not.
    pub(crate) fn known_at(&self, view: Moment) -> [Circuits; 2] {
        [Forgets::Little, Forgets::Deleted].map(|forgets| self.at(view, forgets))
    }

    /// Folds what was known at a moment.
    fn at(&self, view: Moment, forgets: Forgets) -> Circuits {
        let mut state = State::new(self.policy);
        for event in self.known(view, forgets) {
            state.take(event);
        }
        Circuits(state.open())
    }

    fn known(&self, view: Moment, forgets: Forgets) -> impl Iterator<Item = &Event<'e>> {
        self.events.iter().filter(move |event| {
            let is_gone = event.gone.is_some_and(|gone| gone <= view);
            let is_lost = matches!(event.what, What::Made { ends: false });
            event.known <= view && !(is_gone && (is_lost || forgets == Forgets::Deleted))
        })
    }

    /// Tells how many targets only failed, of how many that finished, where that share puts triages off on both
    /// readings of a view.
    pub(crate) fn degraded(&self, view: Moment, now: Seconds) -> Option<(u64, u64)> {
        let [known, listed] = [Forgets::Little, Forgets::Deleted].map(|forgets| self.share(view, forgets, now));
        known.and(listed)
    }

    fn share(&self, view: Moment, forgets: Forgets, now: Seconds) -> Option<(u64, u64)> {
        let begins = now - whole(self.policy.outage_window.as_nanos());
        let mut only_failed: BTreeMap<&str, bool> = BTreeMap::new();
        for event in self.known(view, forgets).filter(|event| (begins..=now).contains(&event.at)) {
            if let What::Ended { target, end, .. } = &event.what {
                *only_failed.entry(target).or_insert(true) &= matches!(end, End::Failed { .. });
            }
        }
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (failed, of) = (count(only_failed.values().filter(|it| **it).count()), count(only_failed.len()));
        let threshold = u64::from(self.policy.breaker_threshold);
        let is_large = threshold > 0 && of >= u64::from(self.policy.breaker_minimum) && failed * 1000 >= of * threshold;
        is_large.then_some((failed, of))
    }
}

// === impl Circuits ===

impl Circuits {
    /// Returns the circuit that holds, at a time, the schedules that failed with this fingerprint last.
    pub(crate) fn holding(&self, failed_last_with: &str, now: Seconds) -> Option<&OpenCircuit> {
        let is_it = |it: &&OpenCircuit| it.fingerprint == failed_last_with && it.holds_from <= now && now < it.quiet;
        self.0.iter().find(is_it)
    }

    /// Tells whether a failure with this fingerprint that ended at a time is shared.
    pub(crate) fn share(&self, fingerprint: &str, ended: Seconds) -> bool {
        let is_open = |it: &OpenCircuit| it.fingerprint == fingerprint && it.opened <= ended && ended < it.quiet;
        self.0.iter().any(is_open)
    }
}

/// Returns that a child was made.
fn made<'e>(execution: &'e Execution<'e>) -> Option<Event<'e>> {
    let child = execution.child?;
    Some(Event {
        at: created(execution)?,
        uid: &execution.object.uid,
        known: execution.created,
        gone: execution.gone,
        runs: Runs::of(execution),
        schedule: Some(child.schedule),
        what: What::Made { ends: execution.ended().is_some() },
    })
}

/// Returns that an execution ended, where that says something of whether its workflow can run.
fn ended<'e>(execution: &'e Execution<'e>) -> Option<Event<'e>> {
    let ended = execution.ended().filter(|_| execution.analyses.is_none())?;
    let past = Past::read(execution, ended.at)?;
    let details = &ended.status["failureDetails"];
    let is_late = details["reason"] == FailureReason::DeadlineExceeded.as_str()
        && details["wasExecutionFailure"] == false
        && ended.status["runSequence"].is_null();
    let end = match phase(ended.status)? {
        Phase::Completed => {
            End::Succeeded { began: seconds(ended.status, "/startTime").or_else(|| created(execution))? }
        }
        _ if is_cancelled(ended.status) || is_late => return None,
        _ => End::Failed {
            with: text(details, "/fingerprint").filter(|text| !text.starts_with(REFUSED)),
            before: details["wasExecutionFailure"] == false,
        },
    };
    Some(Event {
        at: past.ended?,
        uid: &execution.object.uid,
        known: ended.at,
        gone: execution.gone,
        runs: Runs::of(execution),
        schedule: execution.child.map(|child| child.schedule),
        what: What::Ended { target: execution.target.as_ref()?.as_str(), created: created(execution)?, end },
    })
}

fn created(execution: &Execution<'_>) -> Option<Seconds> {
    seconds(execution.object_at(execution.created), "/metadata/creationTimestamp")
}

#[cfg(test)]
mod tests;
