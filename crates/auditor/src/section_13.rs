//! Section 13.5, read anew: which circuits are open, by what is known of the executions at a moment.
//!
//! [`Shared`] lists what circuits are computed from, over the whole recording; [`Circuits`] is the fold of what an
//! operator may have known of that. What was deleted may be known to one process and forgotten by the next, which has
//! never listed it.

mod fingerprint;
mod fold;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::Value;
use wfe_api::{FailureReason, Phase};

use crate::Policy;
use crate::history::{Execution, History, phase, text};
use crate::moment::{Seconds, seconds};
use crate::record::{Past, is_cancelled};
use crate::report::Moment;
use crate::section_7::wait;
use fingerprint::touches;
use fold::State;

/// The circuit of all.
pub(crate) const ALL: &str = "*";
/// The reason of what was refused: no circuit knows it.
const REFUSED: &str = "Refused/";

/// What an execution runs, or what the children of a schedule would run.
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
    /// The namespace of its execution.
    asked_in: &'e str,
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
    Succeeded,
    /// Before anything ran; with its fingerprint, where circuits know that.
    FailedBefore(Option<&'e str>),
    FailedAfter,
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
    /// `*`, or a fingerprint.
    pub(crate) key: String,
    /// The namespaces whose schedules it holds. None: those of all.
    pub(crate) holds: Option<BTreeSet<String>>,
    pub(crate) opened: Seconds,
    /// From when on a probe may be made.
    pub(crate) next_probe: Seconds,
    /// When it closes by itself.
    pub(crate) quiet: Seconds,
}

/// The circuits that are open, as they may be known at a moment.
#[derive(Debug)]
pub(crate) struct Circuits(pub(crate) Vec<OpenCircuit>);

// === impl Runs ===

impl<'a> Runs<'a> {
    /// Reads what a `workflowRef` names.
    pub(crate) fn read(reference: &'a Value) -> Self {
        let of = |field: &str| reference[field].as_str().unwrap_or_default();
        Self { workflow: of("workflowId"), version: of("version"), image: of("containerImage") }
    }

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
        let is_known = |event: &&Event<'_>| {
            let is_gone = event.gone.is_some_and(|gone| gone <= view);
            let is_lost = matches!(event.what, What::Made { ends: false });
            event.known <= view && !(is_gone && (is_lost || forgets == Forgets::Deleted))
        };
        let mut state = State::new(self.policy);
        for event in self.events.iter().filter(is_known) {
            state.take(event);
        }
        Circuits(state.open())
    }
}

// === impl Circuits ===

impl Circuits {
    /// Lists those that are open at a time, hold this namespace, and touch what runs this, or failed with this
    /// fingerprint last.
    pub(crate) fn touching<'c>(
        &'c self,
        namespace: &'c str,
        runs: Runs<'c>,
        failed_last_with: Option<&'c str>,
        now: Seconds,
    ) -> impl Iterator<Item = &'c OpenCircuit> {
        let is_held = move |circuit: &OpenCircuit| circuit.holds.as_ref().is_none_or(|some| some.contains(namespace));
        let open = self.0.iter().filter(move |circuit| now < circuit.quiet && is_held(circuit));
        open.filter(move |circuit| failed_last_with == Some(&circuit.key) || touches(&circuit.key, runs))
    }

    /// Tells whether a failure with this fingerprint that ended at a time is shared.
    pub(crate) fn share(&self, fingerprint: &str, ended: Seconds) -> bool {
        let is_of = |circuit: &&OpenCircuit| circuit.key == ALL || circuit.key == fingerprint;
        self.0.iter().filter(is_of).any(|circuit| circuit.opened <= ended && ended < circuit.quiet)
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
        asked_in: &execution.object.namespace,
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
        Phase::Completed => End::Succeeded,
        _ if is_cancelled(ended.status) || is_late => return None,
        _ if details["wasExecutionFailure"] != false => End::FailedAfter,
        _ => End::FailedBefore(text(details, "/fingerprint").filter(|text| !text.starts_with(REFUSED))),
    };
    Some(Event {
        at: past.ended?,
        uid: &execution.object.uid,
        known: ended.at,
        gone: execution.gone,
        asked_in: &execution.object.namespace,
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
