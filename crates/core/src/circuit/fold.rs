//! The circuits as a fold over events in the order of their times, whatever the order of delivery.
//!
//! The events of the last half minute are kept, together with the state before them. A slightly late event then costs
//! one pass over the kept events. An older event requires folding all events again; an event older than the window
//! changes nothing (section 13.5).

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

/// How late an event may arrive before all events must be folded again. This is the time that a busy API server takes
/// to accept a status, and its watch to deliver it.
const LATE: Duration = Duration::from_secs(30);
/// The base state advances when more events than this are kept, even if no event arrived late.
pub(super) const MOST_KEPT: usize = 16_384;

/// The result of adding events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// The events count, were already known, or change nothing.
    Yes,
    /// Some events are older than the kept events: all events must be folded again.
    TooOld,
}

/// The circuits, with the most recent events.
#[derive(Clone, Debug)]
pub struct Fold {
    settings: Settings,
    /// The state before the kept events.
    base: State,
    /// The position of the last event that is not kept any more.
    before: Option<Place>,
    /// The most recent events, in order.
    events: Vec<(Place, Event)>,
    /// The state after the first `folded` events; outdated if those have changed since.
    current: State,
    folded: Option<usize>,
    newest: Newest,
}

impl Fold {
    /// Creates an empty fold.
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

    /// Creates a fold of all known events.
    #[must_use]
    pub fn of(policy: &Policy, events: impl IntoIterator<Item = Event>) -> Self {
        let mut fold = Self::new(policy);
        // Nothing is older than the kept events, because nothing is folded yet.
        let (Taken::Yes | Taken::TooOld) = fold.take(events);
        fold.settle();
        fold
    }

    /// Returns whether the fold uses these settings of circuits.
    #[must_use]
    pub fn is_by(&self, policy: &Policy) -> bool {
        self.settings == Settings::of(policy)
    }

    /// Adds events, in any order. They are folded when the circuits are next read.
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

    /// Removes the creation of a child that was deleted before its end: the outcome of its probe is unknown.
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

    /// Returns the circuit that a child of a schedule probes if it was created at this time, according to the folded
    /// events.
    #[must_use]
    pub fn probed(&self, schedule: &Uid, created: Time) -> Option<&Fingerprint> {
        self.current.probed_circuit(schedule, created, &self.settings)
    }

    /// Returns the open circuits at a time, the circuits that closed recently, and whether too many targets fail.
    /// `turn` is not filled in.
    pub fn seen(&mut self, now: Time) -> Seen {
        self.settle();
        let (open, closed) = self.current.snapshot(&self.settings, now);
        Seen { open, closed, degraded: self.newest.degraded(&self.settings.circuits, now) }
    }

    /// Returns the circuits as decisions see them, without turns.
    #[must_use]
    pub fn circuits(&mut self, now: Time) -> Circuits {
        self.seen(now).into()
    }

    /// Marks the events from this position on as not folded.
    fn undo(&mut self, from: usize) {
        self.folded = self.folded.filter(|folded| from >= *folded);
    }

    /// Folds the events that are not folded yet. Returns how many events were applied.
    pub(super) fn settle(&mut self) -> usize {
        if self.folded.is_none() || self.events.len() > MOST_KEPT {
            self.move_on();
        }
        let folded = self.folded.unwrap_or_else(|| {
            self.current = self.base.clone();
            0
        });
        for (_, event) in &self.events[folded..] {
            self.current.apply(event, &self.settings);
        }
        self.folded = Some(self.events.len());
        self.events.len() - folded
    }

    /// Advances the base state past the events that can no longer be late. The current state stays as it is, if it
    /// includes all of them. A flood within [`LATE`] is therefore not folded again at each look.
    fn move_on(&mut self) {
        let Some(((newest, ..), _)) = self.events.last() else { return };
        let begins = before(*newest, LATE);
        let settled = self.events.partition_point(|((at, ..), _)| *at < begins);
        for (place, event) in self.events.drain(..settled) {
            self.base.apply(&event, &self.settings);
            self.before = Some(place);
        }
        self.folded = self.folded.and_then(|folded| folded.checked_sub(settled));
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
