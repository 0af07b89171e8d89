//! Circuits: what is known of failures that many targets share (SPEC section 13.5).
//!
//! A circuit is open while a failure is shared: while it is, the schedules that it touches make no children, but for
//! one probe at a time, and failures count for no target. It touches only schedules of its [`Scope`]: of the namespaces
//! whose own executions have failed with it. [`Fold`] computes the circuits from what has ended, and [`Circuits`] is
//! what a decision sees of them. A circuit never holds an execution: only schedules and triage.
//!
//! This module knows no clock and no store: it is a function of events, and `view` delivers these.

mod event;
mod fold;
mod scope;
mod state;
mod turn;

use std::fmt;
use std::sync::Arc;

use crate::Time;
use crate::backoff::draw;
use crate::fingerprint::{Fingerprint, Origin};
use crate::name::Uid;

pub use event::{End, Event, What};
pub use fold::{Fold, Taken};
pub use scope::Scope;
pub use turn::{GRANTED_FOR, Turns};

/// How a circuit of all failures is written.
pub const ALL: &str = "*";

/// Which failures a circuit is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CircuitKey {
    /// All failures: the circuit `*`.
    All,
    /// Those with one fingerprint.
    Of(Fingerprint),
}

impl CircuitKey {
    /// Returns its spelling: `*`, or the fingerprint.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::All => ALL,
            Self::Of(fingerprint) => fingerprint.as_str(),
        }
    }

    /// Tells whether it is about one version of a workflow.
    #[must_use]
    pub fn is_of_workflow(&self) -> bool {
        matches!(self, Self::Of(fingerprint) if fingerprint.is_of_workflow())
    }

    /// Returns a number of it, the same for ever: to name what is said of it.
    #[must_use]
    pub fn number(&self) -> u32 {
        draw(self.as_str(), 0)
    }

    /// Tells whether the circuit is about what has this origin, or failed with this fingerprint last, wherever it is.
    #[must_use]
    pub(crate) fn touches(&self, origin: &Origin, failed_last_with: Option<&Fingerprint>) -> bool {
        match self {
            Self::All => true,
            Self::Of(fingerprint) => failed_last_with == Some(fingerprint) || fingerprint.touches(origin),
        }
    }
}

impl fmt::Display for CircuitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An open circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuit {
    /// Which failures it is about.
    pub key: CircuitKey,
    /// The namespaces that it holds.
    pub scope: Scope,
    /// When the failure ended that opened it.
    pub opened_at: Time,
    /// How many targets had failed when it opened.
    pub failed: u32,
    /// How many targets were counted when it opened: of `*` those that finished, of a fingerprint those that failed.
    pub of: u32,
    /// How many probes have failed since it opened.
    pub failed_probes: u32,
    /// When the next probe may be made.
    pub next_probe_at: Time,
    /// When it closes by itself, unless a failure of its kind or a probe comes first.
    pub quiet_at: Time,
    /// The schedule that makes the next probe, where one can.
    pub turn: Option<Uid>,
}

/// A circuit that was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedCircuit {
    /// Which failures it was about.
    pub key: CircuitKey,
    /// The namespaces that it held when it closed.
    pub scope: Scope,
    /// When it opened.
    pub opened_at: Time,
    /// When it closed.
    pub closed_at: Time,
    /// Why.
    pub why: Closing,
}

impl OpenCircuit {
    /// Tells whether it touches what is asked for in this namespace, has this origin, or failed with this fingerprint
    /// last.
    #[must_use]
    pub fn touches(&self, namespace: &str, origin: &Origin, failed_last_with: Option<&Fingerprint>) -> bool {
        self.scope.has(namespace) && self.key.touches(origin, failed_last_with)
    }
}

impl ClosedCircuit {
    /// Tells whether it touched what is asked for in this namespace, has this origin, or failed with this fingerprint
    /// last.
    fn touched(&self, namespace: &str, origin: &Origin, failed_last_with: Option<&Fingerprint>) -> bool {
        self.scope.has(namespace) && self.key.touches(origin, failed_last_with)
    }
}

/// Why a circuit closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// An execution that began after it opened got past what it was about.
    Past,
    /// Neither a failure of its kind nor a probe came for long.
    Quiet,
    /// The settings or what is left of the history do not open it any more.
    Forgotten,
}

impl Closing {
    /// Returns the reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Past => "an execution that began after it opened got past what it was about",
            Self::Quiet => "neither a failure of its kind nor a probe came for long",
            Self::Forgotten => "the settings, or what is left of the history, do not open it any more",
        }
    }
}

/// The circuits, as a decision sees them. The default is that none is open and none was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circuits(Option<Arc<Seen>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    open: Vec<OpenCircuit>,
    closed: Vec<ClosedCircuit>,
}

impl Circuits {
    /// Makes what a decision sees: the open circuits, and those that closed a short time ago.
    #[must_use]
    pub fn new(open: Vec<OpenCircuit>, closed: Vec<ClosedCircuit>) -> Self {
        let is_empty = open.is_empty() && closed.is_empty();
        Self((!is_empty).then(|| Arc::new(Seen { open, closed })))
    }

    /// Returns the circuits that are open, in the order of their keys.
    pub fn open(&self) -> impl Iterator<Item = &OpenCircuit> {
        self.0.iter().flat_map(|seen| &seen.open)
    }

    /// Returns the circuits that closed a short time ago.
    pub fn closed(&self) -> impl Iterator<Item = &ClosedCircuit> {
        self.0.iter().flat_map(|seen| &seen.closed)
    }

    /// Tells whether a failure with this fingerprint that ended at a time is shared: its circuit was open then, or that
    /// of all. By this failure its namespace is one that the circuit holds.
    #[must_use]
    pub fn is_open_for(&self, fingerprint: &Fingerprint, at: Time) -> bool {
        self.open().filter(|circuit| circuit.opened_at <= at && at < circuit.quiet_at).any(|circuit| {
            match &circuit.key {
                CircuitKey::All => true,
                CircuitKey::Of(other) => other == fingerprint,
            }
        })
    }

    /// Returns the circuits that are open now and touch what is asked for in this namespace, has this origin, or failed
    /// with this fingerprint last.
    pub fn touching<'a>(
        &'a self,
        namespace: &'a str,
        origin: &'a Origin,
        failed_last_with: Option<&'a Fingerprint>,
        now: Time,
    ) -> impl Iterator<Item = &'a OpenCircuit> {
        let touches = move |circuit: &&OpenCircuit| circuit.touches(namespace, origin, failed_last_with);
        self.open().filter(move |circuit| now < circuit.quiet_at).filter(touches)
    }

    /// Returns when the circuits closed that touched what is asked for in this namespace, has this origin, or failed
    /// with this fingerprint last.
    pub fn closings<'a>(
        &'a self,
        namespace: &'a str,
        origin: &'a Origin,
        failed_last_with: Option<&'a Fingerprint>,
        now: Time,
    ) -> impl Iterator<Item = (&'a CircuitKey, Time)> {
        let quiet = self.open().filter(move |circuit| circuit.quiet_at <= now);
        let quiet = quiet.filter(move |circuit| circuit.touches(namespace, origin, failed_last_with));
        let closed = self.closed().filter(move |circuit| circuit.touched(namespace, origin, failed_last_with));
        quiet.map(|it| (&it.key, it.quiet_at)).chain(closed.map(|it| (&it.key, it.closed_at)))
    }
}

#[cfg(test)]
mod tests;
