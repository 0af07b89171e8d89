//! Circuits: what is known of failures that many targets share (sections 13.5 and 13.6).
//!
//! A circuit is open while a failure is shared. While it is, it holds the schedules whose own last run failed with its
//! fingerprint: they make no children, but for one probe at a time. What has not failed is never held. Failures of
//! executions that no schedule made count for no target meanwhile. [`Fold`] computes the circuits from what has ended,
//! and [`Circuits`] is what a decision sees of them.
//!
//! This module knows no clock and no store: it is a function of events, and `view` delivers these.

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
    /// Which failure it is about.
    pub fingerprint: Fingerprint,
    /// When the failure ended that opened it.
    pub opened_at: Time,
    /// From when on it holds schedules and puts off triage. Later than `opened_at` where somebody's success closed the
    /// circuit before it a short time ago (section 13.5).
    pub holds_from: Time,
    /// How many targets had failed when it opened.
    pub failed: u32,
    /// How many probes have failed since it opened.
    pub failed_probes: u32,
    /// How many probes each namespace has made since it opened.
    pub probes: Arc<Probes>,
    /// When the next probe may be made.
    pub next_probe_at: Time,
    /// When it closes by itself, unless a failure of its kind or a probe comes first.
    pub quiet_at: Time,
    /// The schedule that makes the next probe, where one can.
    pub turn: Option<Uid>,
}

/// How many probes each namespace has made.
pub type Probes = std::collections::BTreeMap<Arc<str>, u32>;

impl OpenCircuit {
    /// Tells whether it is still open at a time.
    #[must_use]
    pub fn is_open(&self, now: Time) -> bool {
        now < self.quiet_at
    }

    /// Tells whether it holds, at a time, the schedules that failed with it.
    #[must_use]
    pub fn holds(&self, now: Time) -> bool {
        self.is_open(now) && self.holds_from <= now
    }
}

/// A circuit that was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedCircuit {
    /// Which failure it was about.
    pub fingerprint: Fingerprint,
    /// When it opened.
    pub opened_at: Time,
    /// When it closed.
    pub closed_at: Time,
    /// Why.
    pub why: Closing,
}

/// Why a circuit closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// A probe completed.
    Probe,
    /// Another execution completed that uses what the circuit is about, and began after it opened.
    Success,
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
            Self::Probe => "a probe completed",
            Self::Success => "an execution that began after it opened, and uses the same, completed",
            Self::Quiet => "neither a failure of its kind nor a probe came for long",
            Self::Forgotten => "the settings, or what is left of the history, do not open it any more",
        }
    }
}

/// The circuits, as a decision sees them. The default is that none is open, none was, and few fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circuits(Option<Arc<Seen>>);

/// What is seen of the circuits at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Those that are open, in the order of their fingerprints.
    pub open: Vec<OpenCircuit>,
    /// Those that closed a short time ago, at most one of each fingerprint.
    pub closed: Vec<ClosedCircuit>,
    /// How many targets have failed of those that finished, where that is too large a share (section 13.6).
    pub degraded: Option<Share>,
}

impl From<Seen> for Circuits {
    fn from(seen: Seen) -> Self {
        let is_empty = seen == Seen::default();
        Self((!is_empty).then(|| Arc::new(seen)))
    }
}

impl Circuits {
    /// Returns the circuits that are open, in the order of their fingerprints.
    pub fn open(&self) -> impl Iterator<Item = &OpenCircuit> {
        self.0.iter().flat_map(|seen| &seen.open)
    }

    /// Returns the circuits that closed a short time ago.
    pub fn closed(&self) -> impl Iterator<Item = &ClosedCircuit> {
        self.0.iter().flat_map(|seen| &seen.closed)
    }

    /// Returns how many targets have failed of those that finished, while that share puts off triage.
    #[must_use]
    pub fn degraded(&self) -> Option<Share> {
        self.0.as_ref().and_then(|seen| seen.degraded)
    }

    /// Tells whether a failure with this fingerprint that ended at a time is shared: its circuit was open then.
    #[must_use]
    pub fn is_open_for(&self, fingerprint: &Fingerprint, at: Time) -> bool {
        self.of(fingerprint).is_some_and(|circuit| circuit.opened_at <= at && circuit.is_open(at))
    }

    /// Returns the circuit that holds, at a time, what failed with this fingerprint last.
    #[must_use]
    pub fn holding(&self, failed_last_with: Option<&Fingerprint>, now: Time) -> Option<&OpenCircuit> {
        self.of(failed_last_with?).filter(|circuit| circuit.holds(now))
    }

    /// Returns when the circuit closed that held what failed with this fingerprint at a time, and why.
    #[must_use]
    pub fn closing(&self, failed_last_with: &Fingerprint, failed_at: Time, now: Time) -> Option<(Time, Closing)> {
        let quiet = self.of(failed_last_with).filter(|circuit| !circuit.is_open(now));
        let quiet = quiet.map(|circuit| (circuit.quiet_at, Closing::Quiet));
        let closed = self.closed().find(|circuit| circuit.fingerprint == *failed_last_with);
        let last = quiet.or_else(|| closed.map(|circuit| (circuit.closed_at, circuit.why)));
        last.filter(|(closed_at, _)| failed_at <= *closed_at)
    }

    fn of(&self, fingerprint: &Fingerprint) -> Option<&OpenCircuit> {
        let open = &self.0.as_ref()?.open;
        let at = open.binary_search_by(|circuit| circuit.fingerprint.cmp(fingerprint)).ok()?;
        open.get(at)
    }
}

/// Returns when a schedule that a circuit held goes on after the circuit closed: within one base cooldown, and after
/// each closing at another place of it.
#[must_use]
pub fn goes_on_at(schedule: &Uid, closed_at: Time, base: Duration) -> Time {
    // The low half of a time says which closing it is.
    let occasion = u32::try_from(closed_at.timestamp() & i64::from(u32::MAX)).unwrap_or_default();
    after(closed_at, Duration::from_secs(share_of(&schedule.to_string(), occasion, base.as_secs())))
}

#[cfg(test)]
mod tests;
