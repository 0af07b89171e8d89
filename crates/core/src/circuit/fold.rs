//! The circuits as a fold over what happened: in the order of times, whatever the order in which it is delivered.
//!
//! The newest events are kept beside the state before them, so that an event which comes somewhat late costs one pass
//! over these. For one that is older than all of them, everything that is known must be folded anew.

use std::mem;

use super::event::{Event, Place};
use super::state::{Settings, State};
use super::{Circuits, ClosedCircuit, Closing, OpenCircuit};
use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::name::Uid;
use crate::policy::Policy;

/// How many of the newest events are kept, at the least; twice as many at the most. At a hundred executions a second
/// they reach back for a minute and a half, in 2 MB, and a pass over them takes about a millisecond.
const KEPT: usize = 8_192;

/// What became of what was said to have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// It counts, or was known.
    Yes,
    /// Some of it is older than what is kept: all events must be folded anew.
    TooOld,
}

/// The circuits, with the newest events.
#[derive(Clone, Debug)]
pub struct Fold {
    settings: Settings,
    /// Where the circuits stood before the events that are kept.
    base: State,
    /// The place of the last event that is not kept.
    before: Option<Place>,
    /// The newest events, in order.
    events: Vec<(Place, Event)>,
    /// Where the circuits stand after the first so many of them.
    current: State,
    folded: usize,
}

impl Fold {
    /// Makes a fold of nothing.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            settings: Settings::of(policy),
            base: State::default(),
            before: None,
            events: Vec::new(),
            current: State::default(),
            folded: 0,
        }
    }

    /// Makes a fold of all that is known.
    #[must_use]
    pub fn of(policy: &Policy, events: impl IntoIterator<Item = Event>) -> Self {
        let mut events: Vec<_> = events.into_iter().map(|event| (event.place(), event)).collect();
        events.sort_by(|(a, _), (b, _)| a.cmp(b));
        events.dedup_by(|(a, _), (b, _)| a == b);
        let mut fold = Self { events, ..Self::new(policy) };
        fold.settle();
        fold
    }

    /// Tells whether it was folded by this policy, as far as circuits read it.
    #[must_use]
    pub fn is_by(&self, policy: &Policy) -> bool {
        self.settings == Settings::of(policy)
    }

    /// Takes in events, in any order. They are folded with the next question.
    pub fn take(&mut self, events: impl IntoIterator<Item = Event>) -> Taken {
        let known = self.events.len();
        self.events.extend(events.into_iter().map(|event| (event.place(), event)));
        let Some(first) = self.events[known..].iter().map(|(place, _)| place).min().cloned() else { return Taken::Yes };
        let from = self.events[..known].partition_point(|(place, _)| *place < first);
        self.events[from..].sort_by(|(a, _), (b, _)| a.cmp(b));
        self.events.dedup_by(|(a, _), (b, _)| a == b);
        self.undo(from);
        let Some(before) = self.before.as_ref().filter(|before| first <= **before) else { return Taken::Yes };
        let late = self.events.partition_point(|(place, _)| place <= before);
        self.events.drain(..late);
        Taken::TooOld
    }

    /// Forgets that a child was made: it was deleted before its end, so nobody knows what became of the probe.
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

    /// Returns the fingerprint that a schedule failed with last, by what has been folded. None where its newest child
    /// got further. A probe is one of the circuits that this touches, whatever the probe itself comes to.
    #[must_use]
    pub fn failed_last(&self, schedule: &Uid) -> Option<&Fingerprint> {
        self.current.failed_last(schedule)
    }

    /// Returns the circuits that are open at a time, and those that have closed up to it.
    pub fn seen(&mut self, now: Time) -> (Vec<OpenCircuit>, Vec<ClosedCircuit>) {
        self.settle();
        let (open, mut closed) = self.current.seen(&self.settings, now);
        let (quiet, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|circuit| circuit.quiet_at <= now);
        closed.extend(quiet.into_iter().map(|circuit| ClosedCircuit {
            key: circuit.key,
            scope: circuit.scope,
            opened_at: circuit.opened_at,
            closed_at: circuit.quiet_at,
            why: Closing::Quiet,
        }));
        (open, closed)
    }

    /// Returns the circuits as a decision sees them, without turns.
    #[must_use]
    pub fn circuits(&mut self, now: Time) -> Circuits {
        let (open, closed) = self.seen(now);
        Circuits::new(open, closed)
    }

    /// Notes that the events from this place on have changed.
    fn undo(&mut self, from: usize) {
        if from < self.folded {
            self.folded = 0;
        }
    }

    /// Folds what is not folded yet.
    fn settle(&mut self) {
        if self.folded == 0 {
            self.current = self.base.clone();
        }
        for (_, event) in &self.events[self.folded..] {
            self.current.take(event, &self.settings);
        }
        self.folded = self.events.len();
        if self.folded > 2 * KEPT {
            let rest = self.events.split_off(self.events.len() - KEPT);
            for (place, event) in mem::replace(&mut self.events, rest) {
                self.base.take(&event, &self.settings);
                self.before = Some(place);
            }
            self.folded = self.events.len();
        }
    }
}

#[cfg(test)]
impl Fold {
    pub(super) fn state(&mut self) -> &State {
        self.settle();
        &self.current
    }
}
