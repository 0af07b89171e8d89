//! Circuits: failures that many targets share (sections 13.5 and 13.6).
//!
//! An open circuit holds the schedules whose own last run failed with its fingerprint: they create no children, except
//! one probe at a time. A schedule that has not failed is never held. While the circuit is open, the failures of
//! executions without a schedule do not count for their targets. [`Fold`] computes the circuits from finished
//! executions, and decisions read them as [`Circuits`].
//!
//! This module has no clock and stores nothing: it is a function of the events that `view` delivers.

mod counted;
mod event;
mod fold;
mod share;
mod state;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use crate::Time;
use crate::backoff::share_of;
use crate::fingerprint::Fingerprint;
use crate::moment::after;
use crate::name::Uid;

pub use event::{End, Event, What};
pub use fold::{Fold, Taken};
pub use share::Share;
pub use state::PUT_OFF;
pub use turn::{Asks, GRANTED_FOR, Turns};

/// An open circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCircuit {
    /// The fingerprint of the failures that opened the circuit.
    pub fingerprint: Fingerprint,
    /// The end of the failure that opened the circuit.
    pub opened_at: Time,
    /// When the circuit begins to hold schedules and to delay triage. This is later than `opened_at` if another
    /// execution's success closed the same circuit shortly before (section 13.5).
    pub holds_from: Time,
    /// How many targets had failed when the circuit opened.
    pub failed: u32,
    /// How many probes have failed since the circuit opened.
    pub failed_probes: u32,
    /// How many probes each namespace has made since the circuit opened.
    pub probes: Arc<Probes>,
    /// When the next probe may be created.
    pub next_probe_at: Time,
    /// When the circuit closes by itself, unless a probe or another failure with its fingerprint comes before.
    pub quiet_at: Time,
    /// The schedule whose turn it is to probe, if there is one.
    pub turn: Option<Uid>,
}

/// How many probes each namespace has made.
pub type Probes = std::collections::BTreeMap<Arc<str>, u32>;

impl OpenCircuit {
    /// Returns whether the circuit is open at a given time.
    #[must_use]
    pub fn is_open(&self, now: Time) -> bool {
        now < self.quiet_at
    }

    /// Returns whether the circuit holds, at a given time, the schedules that failed with its fingerprint.
    #[must_use]
    pub fn holds(&self, now: Time) -> bool {
        self.is_open(now) && self.holds_from <= now
    }
}

/// A circuit that has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedCircuit {
    /// The fingerprint of the failures that had opened the circuit.
    pub fingerprint: Fingerprint,
    /// When the circuit opened.
    pub opened_at: Time,
    /// When the circuit closed.
    pub closed_at: Time,
    /// Why the circuit closed.
    pub why: Closing,
}

/// Why a circuit closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// A probe completed.
    Probe,
    /// Another execution completed that uses the same registry, workflow or cluster, and that began after the circuit
    /// opened.
    Success,
    /// No probe and no failure with the fingerprint came for a long time.
    Quiet,
    /// With the current settings and history the circuit would no longer open.
    Forgotten,
}

impl Closing {
    /// Returns the reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "a probe completed",
            Self::Success => "an execution that began after it opened, and uses the same, completed",
            Self::Quiet => "neither a failure of its kind nor a probe came for long",
            Self::Forgotten => "the settings, or what is left of the history, do not open it any more",
        }
    }
}

/// The circuits, as a decision sees them. By default no circuit is or was open, and few targets fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circuits(Option<Arc<Seen>>);

/// The circuits at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The open circuits, in the order of their fingerprints.
    pub open: Vec<OpenCircuit>,
    /// The circuits that closed recently, at most one for each fingerprint.
    pub closed: Vec<ClosedCircuit>,
    /// How many of the finished targets failed, if their share is too large (section 13.6).
    pub degraded: Option<Share>,
}

impl From<Seen> for Circuits {
    fn from(seen: Seen) -> Self {
        let is_empty = seen == Seen::default();
        Self((!is_empty).then(|| Arc::new(seen)))
    }
}

impl Circuits {
    /// Returns the open circuits, in the order of their fingerprints.
    pub fn open(&self) -> impl Iterator<Item = &OpenCircuit> {
        self.0.iter().flat_map(|seen| &seen.open)
    }

    /// Returns the circuits that closed recently.
    pub fn closed(&self) -> impl Iterator<Item = &ClosedCircuit> {
        self.0.iter().flat_map(|seen| &seen.closed)
    }

    /// Returns how many of the finished targets failed, while their share delays triage.
    #[must_use]
    pub fn degraded(&self) -> Option<Share> {
        self.0.as_ref().and_then(|seen| seen.degraded)
    }

    /// Returns whether a failure with this fingerprint is shared: its circuit was open at the time of the failure.
    #[must_use]
    pub fn is_open_for(&self, fingerprint: &Fingerprint, at: Time) -> bool {
        self.of(fingerprint).is_some_and(|circuit| circuit.opened_at <= at && circuit.is_open(at))
    }

    /// Returns the circuit that holds, at a given time, schedules whose last failure has this fingerprint.
    #[must_use]
    pub fn holding(&self, failed_last_with: Option<&Fingerprint>, now: Time) -> Option<&OpenCircuit> {
        self.of(failed_last_with?).filter(|circuit| circuit.holds(now))
    }

    /// Returns when and why the circuit of a fingerprint closed, for schedules whose last failure has this fingerprint
    /// and ended at `failed_at`.
    #[must_use]
    pub fn closing(&self, failed_last_with: &Fingerprint, failed_at: Time, now: Time) -> Option<(Time, Closing)> {
        let quiet = self.of(failed_last_with).filter(|circuit| !circuit.is_open(now));
        let quiet = quiet.map(|circuit| (circuit.quiet_at, Closing::Quiet));
        let closed = self.closed().find(|circuit| circuit.fingerprint == *failed_last_with);
        let last = quiet.or_else(|| closed.map(|circuit| (circuit.closed_at, circuit.why)));
        last.filter(|(closed_at, _)| failed_at <= *closed_at)
    }

    /// Returns the open circuit of a fingerprint.
    pub(crate) fn of(&self, fingerprint: &Fingerprint) -> Option<&OpenCircuit> {
        let open = &self.0.as_ref()?.open;
        let at = open.binary_search_by(|circuit| circuit.fingerprint.cmp(fingerprint)).ok()?;
        open.get(at)
    }
}

/// Returns when a held schedule continues after the circuit closed: within one base cooldown, at a different point
/// after each closing.
#[must_use]
pub fn goes_on_at(schedule: &Uid, closed_at: Time, base: Duration) -> Time {
    // The low 32 bits of the time identify the closing.
    let occasion = u32::try_from(closed_at.timestamp() & i64::from(u32::MAX)).unwrap_or_default();
    after(closed_at, Duration::from_secs(share_of(&schedule.to_string(), occasion, base.as_secs())))
}

#[cfg(test)]
mod tests;
