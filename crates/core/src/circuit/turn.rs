//! Decides which schedule probes an open circuit (section 13.5).
//!
//! Among the schedules that only their circuit keeps from running now, one makes the next probe. This schedule belongs
//! to the namespace that has probed this circuit least, so many schedules in one namespace cannot block another
//! namespace. Within the namespace it is the schedule with the fewest failures, because a schedule with a fault of its
//! own fails most often. After that, a draw decides. Decisions report which schedules wait for a turn. This module
//! keeps them in memory, and a restart forgets them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::{OpenCircuit, Probes};
use crate::Time;
use crate::backoff::draw;
use crate::fingerprint::Fingerprint;
use crate::moment::after;
use crate::name::{ScheduleId, Uid};

/// How long a schedule keeps its turn after it has begun to create its child. This covers a read and a create that both
/// take until their time-outs.
pub const GRANTED_FOR: Duration = Duration::from_secs(30);

/// A schedule's request for the turn to probe the circuit that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// The circuit.
    pub circuit: Fingerprint,
    /// The number of the schedule's failed runs in a row.
    pub failures: u32,
}

/// The position of a schedule in the line for a probe. It is ordered by whether the schedule has missed its turn, then
/// by the probes of its namespace, its failures, its draw and its uid.
type Place = (bool, u32, u32, u32, Uid);

/// The schedules that wait for their turn. The line of each circuit is kept sorted: it may have thousands of schedules,
/// and every decision on one of them reads it.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    waiting: HashMap<Uid, Waits>,
    /// The schedules that are creating their child in their turn, and since when.
    making: BTreeMap<Uid, Time>,
    lines: BTreeMap<Fingerprint, Line>,
}

#[derive(Clone, Debug)]
struct Waits {
    asks: Asks,
    namespace: Arc<str>,
    missed: bool,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// When the circuit opened, and the probes of its namespaces since. When these change, the line is sorted again.
    of: Option<(Time, Arc<Probes>)>,
    order: BTreeSet<Place>,
}

impl Line {
    fn place_in_line(&self, schedule: &Uid, waits: &Waits) -> Place {
        let probes = self.of.as_ref().and_then(|(_, probes)| probes.get(&waits.namespace).copied()).unwrap_or_default();
        (waits.missed, probes, waits.asks.failures, draw(&schedule.to_string(), 0), schedule.clone())
    }
}

impl Turns {
    /// Records that a schedule could run now if its circuit did not hold it.
    pub fn wait(&mut self, schedule: &ScheduleId, asks: Asks) {
        self.making.remove(&schedule.uid);
        self.line_up(schedule, asks);
    }

    /// Records that a schedule in its turn is now creating its child.
    pub fn make(&mut self, schedule: &ScheduleId, asks: Asks, now: Time) {
        self.line_up(schedule, asks);
        self.making.entry(schedule.uid.clone()).or_insert(now);
    }

    /// Records that a schedule no longer waits for a turn.
    pub fn leave(&mut self, schedule: &Uid) {
        self.making.remove(schedule);
        if let Some(waits) = self.waiting.remove(schedule)
            && let Some(line) = self.lines.get_mut(&waits.asks.circuit)
        {
            let place = line.place_in_line(schedule, &waits);
            line.order.remove(&place);
        }
    }

    /// Sets the schedule whose turn it is in each open circuit. The circuits must be in the order of their
    /// fingerprints.
    pub fn give(&mut self, open: &mut [OpenCircuit], now: Time) {
        if open.is_empty() {
            return *self = Self::default();
        }
        self.lines.retain(|key, _| open.binary_search_by(|circuit| circuit.fingerprint.cmp(key)).is_ok());
        let is_over = |since: Time| after(since, GRANTED_FOR) <= now;
        let over: Vec<Uid> = self.making.extract_if(.., |_, since| is_over(*since)).map(|(uid, _)| uid).collect();
        for schedule in over {
            self.change(&schedule, |waits| waits.missed = true);
        }
        for circuit in open {
            circuit.turn = self.turn_of(circuit);
        }
    }

    /// Returns the head of the line, except that a schedule that is creating its child keeps the turn.
    fn turn_of(&mut self, circuit: &OpenCircuit) -> Option<Uid> {
        let line = self.lines.entry(circuit.fingerprint.clone()).or_default();
        let of = (circuit.opened_at, Arc::clone(&circuit.probes));
        if line.of.as_ref() != Some(&of) {
            *line = Line { of: Some(of), order: BTreeSet::new() };
            // The circuit is new, or a probe was created. Schedules that had missed their turn are now treated like the
            // others again.
            for (schedule, waits) in self.waiting.iter_mut().filter(|(_, it)| it.asks.circuit == circuit.fingerprint) {
                waits.missed = false;
                line.order.insert(line.place_in_line(schedule, waits));
            }
        }
        let holds = |uid: &&Uid| self.waiting.get(*uid).is_some_and(|it| it.asks.circuit == circuit.fingerprint);
        let making = self.making.keys().find(holds);
        making.or_else(|| line.order.first().map(|(.., uid)| uid)).cloned()
    }

    fn line_up(&mut self, schedule: &ScheduleId, asks: Asks) {
        if self.waiting.get(&schedule.uid).is_some_and(|waits| waits.asks == asks) {
            return;
        }
        let making = self.making.remove(&schedule.uid);
        self.leave(&schedule.uid);
        self.making.extend(making.map(|since| (schedule.uid.clone(), since)));
        let waits = Waits { asks, namespace: Arc::clone(&schedule.namespace), missed: false };
        if let Some(line) = self.lines.get_mut(&waits.asks.circuit) {
            line.order.insert(line.place_in_line(&schedule.uid, &waits));
        }
        self.waiting.insert(schedule.uid.clone(), waits);
    }

    fn change(&mut self, schedule: &Uid, change: impl FnOnce(&mut Waits)) {
        let Some(waits) = self.waiting.get_mut(schedule) else { return };
        let line = self.lines.get_mut(&waits.asks.circuit);
        let was = line.as_ref().map(|line| line.place_in_line(schedule, waits));
        change(waits);
        if let (Some(line), Some(was)) = (line, was) {
            line.order.remove(&was);
            line.order.insert(line.place_in_line(schedule, waits));
        }
    }
}
