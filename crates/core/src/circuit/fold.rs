//! The circuits as a fold over events, in the order of their times, whatever the order of their delivery.
//!
//! The events of the last half minute are kept beside the state before them, so that a somewhat late event costs one
//! pass over these. An event that is older requires folding everything anew; an event older than the window changes
//! nothing (section 13.5).

use std::time::Duration;

use super::event::{Event, Place, What};
use super::share::Newest;
use super::state::{Settings, State};
use super::{Circuits, End, Seen};
use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::moment::before;
use crate::name::Uid;
use crate::policy::Policy;

/// How late an event may come without everything being folded anew: the time that a busy API server takes to accept a
/// status, and its watch to deliver it.
const LATE: Duration = Duration::from_secs(30);
/// After how many events the base state moves on even if none of them is late, so that their number is limited.
const MOST_KEPT: usize = 16_384;

/// The result of taking events in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// They count, were known, or change nothing.
    Yes,
    /// Some are older than the kept events: everything must be folded anew.
    TooOld,
}

/// The circuits, with the newest events.
#[derive(Clone, Debug)]
pub struct Fold {
    settings: Settings,
    /// The state before the kept events.
    base: State,
    /// The position of the last event that is not kept.
    before: Option<Place>,
    /// The newest events, in order.
    events: Vec<(Place, Event)>,
    /// The state after the first `folded` events; outdated if these have changed since.
    current: State,
    folded: Option<usize>,
    newest: Newest,
}

impl Fold {
    /// Makes an empty fold.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            settings: Settings::of(policy),
            base: State::default(),
            before: None,
            events: Vec::new(),
            current: State::default(),
            folded: Some(0),
            newest: Newest::default(),
        }
    }

    /// Makes a fold of all known events.
    #[must_use]
    pub fn of(policy: &Policy, events: impl IntoIterator<Item = Event>) -> Self {
        let mut fold = Self::new(policy);
        // Nothing is older than the kept events, because nothing is folded yet.
        let (Taken::Yes | Taken::TooOld) = fold.take(events);
        fold.settle();
        fold
    }

    /// Returns whether it was folded with these settings of circuits.
    #[must_use]
    pub fn is_by(&self, policy: &Policy) -> bool {
        self.settings == Settings::of(policy)
    }

    /// Takes events in, in any order. They are folded when the circuits are read next.
    pub fn take(&mut self, events: impl IntoIterator<Item = Event>) -> Taken {
        let known = self.events.len();
        let mut taken = Taken::Yes;
        let old = self.before.as_ref().map(|(at, ..)| before(*at, self.settings.circuits.outage_window));
        for event in events {
            if let What::Ended { target, end, .. } = &event.what {
                self.newest.put(*target, event.at, matches!(end, End::Succeeded { .. }));
            }
            let place = event.order();
            if self.before.as_ref().is_none_or(|before| *before < place) {
                self.events.push((place, event));
            } else if old < Some(event.at) {
                taken = Taken::TooOld;
            }
        }
        let Some(first) = self.events[known..].iter().map(|(place, _)| place).min().cloned() else { return taken };
        let from = self.events[..known].partition_point(|(place, _)| *place < first);
        self.events[from..].sort_by(|(a, _), (b, _)| a.cmp(b));
        self.events.dedup_by(|(a, _), (b, _)| a == b);
        self.undo(from);
        taken
    }

    /// Forgets that a child was made: it was deleted before its end, so the outcome of the probe is unknown.
    pub fn forget(&mut self, created: Time, child: &Uid) -> Taken {
        let place = (created, child.clone(), false);
        match self.events.binary_search_by(|(other, _)| other.cmp(&place)) {
            Ok(at) => {
                self.events.remove(at);
                self.undo(at);
                Taken::Yes
            }
            Err(_) if self.before.as_ref().is_some_and(|before| place <= *before) => Taken::TooOld,
            Err(_) => Taken::Yes,
        }
    }

    /// Returns the circuit that a child of a schedule probes, if it was made at this time, by the folded events.
    #[must_use]
    pub fn probed(&self, schedule: &Uid, created: Time) -> Option<&Fingerprint> {
        self.current.probed_circuit(schedule, created, &self.settings)
    }

    /// Returns the circuits that are open at a time, without turns, those that closed a short time before, and whether
    /// too many targets fail.
    pub fn seen(&mut self, now: Time) -> Seen {
        self.settle();
        let (open, closed) = self.current.snapshot(&self.settings, now);
        Seen { open, closed, degraded: self.newest.degraded(&self.settings.circuits, now) }
    }

    /// Returns the circuits as a decision sees them, without turns.
    #[must_use]
    pub fn circuits(&mut self, now: Time) -> Circuits {
        self.seen(now).into()
    }

    /// Marks the events from this position on as changed.
    fn undo(&mut self, from: usize) {
        self.folded = self.folded.filter(|folded| from >= *folded);
    }

    /// Folds the events that are not folded yet.
    fn settle(&mut self) {
        let folded = match self.folded {
            Some(folded) if self.events.len() <= MOST_KEPT => folded,
            _ => {
                self.move_on();
                self.current = self.base.clone();
                0
            }
        };
        for (_, event) in &self.events[folded..] {
            self.current.apply(event, &self.settings);
        }
        self.folded = Some(self.events.len());
    }

    /// Moves the base state on past the events that can no longer be late.
    fn move_on(&mut self) {
        let Some(((newest, ..), _)) = self.events.last() else { return };
        let begins = before(*newest, LATE);
        let settled = self.events.partition_point(|((at, ..), _)| *at < begins);
        for (place, event) in self.events.drain(..settled) {
            self.base.apply(&event, &self.settings);
            self.before = Some(place);
        }
    }
}

#[cfg(test)]
impl Fold {
    pub(super) fn state(&mut self) -> &State {
        self.settle();
        &self.current
    }

    pub(super) fn targets(&self) -> usize {
        self.newest.len()
    }
}
