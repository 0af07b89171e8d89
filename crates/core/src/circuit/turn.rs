//! Whose turn it is to probe an open circuit (section 13.5).
//!
//! Of the schedules that nothing but their circuit keeps from running now, one makes the next probe: one of the
//! namespace that has probed this circuit least, so that a crowd of somebody else's cannot keep a namespace from
//! finding out; in it the one that has failed least often, as one that is broken by itself fails most often; else by a
//! draw. Decisions say which schedules wait so; what is kept of them here is forgotten at a restart.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::{OpenCircuit, Probes};
use crate::Time;
use crate::backoff::draw;
use crate::fingerprint::Fingerprint;
use crate::moment::after;
use crate::name::{ScheduleId, Uid};

/// How long a schedule keeps its turn after it has begun to make its child: the time-outs of a read and a create, and
/// of the watch that delivers the child.
pub const GRANTED_FOR: Duration = Duration::from_secs(30);

/// A schedule that asks for the turn to probe the circuit that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Which circuit.
    pub circuit: Fingerprint,
    /// How many of its runs have failed in a row.
    pub failures: u32,
}

/// Where a schedule is in the line for a probe: behind those that have not missed it yet, by how often its namespace
/// has probed, by how often it has failed, by its draw, by its uid.
type Place = (bool, u32, u32, u32, Uid);

/// The schedules that wait for their turn. A line is kept in order for each circuit: there may be thousands of them,
/// and each decision on one asks.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    waiting: HashMap<Uid, Waits>,
    /// Who makes its child by its turn, and since when.
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
    /// When the circuit opened, and what its namespaces have probed since: the line is made anew when that changes.
    of: Option<(Time, Arc<Probes>)>,
    order: BTreeSet<Place>,
}

impl Line {
    fn place(&self, schedule: &Uid, waits: &Waits) -> Place {
        let probes = self.of.as_ref().and_then(|(_, probes)| probes.get(&waits.namespace).copied()).unwrap_or_default();
        (waits.missed, probes, waits.asks.failures, draw(&schedule.to_string(), 0), schedule.clone())
    }
}

impl Turns {
    /// Records that nothing but its circuit keeps a schedule from running now.
    pub fn wait(&mut self, schedule: &ScheduleId, asks: Asks) {
        self.making.remove(&schedule.uid);
        self.line_up(schedule, asks);
    }

    /// Records that a schedule makes its child by its turn now.
    pub fn make(&mut self, schedule: &ScheduleId, asks: Asks, now: Time) {
        self.line_up(schedule, asks);
        self.making.entry(schedule.uid.clone()).or_insert(now);
    }

    /// Records that a schedule waits for no turn.
    pub fn leave(&mut self, schedule: &Uid) {
        self.making.remove(schedule);
        if let Some(waits) = self.waiting.remove(schedule)
            && let Some(line) = self.lines.get_mut(&waits.asks.circuit)
        {
            let place = line.place(schedule, &waits);
            line.order.remove(&place);
        }
    }

    /// Gives the turns of the open circuits, which are in the order of their fingerprints.
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

    /// The first in the line, but who makes its child keeps the turn.
    fn turn_of(&mut self, circuit: &OpenCircuit) -> Option<Uid> {
        let line = self.lines.entry(circuit.fingerprint.clone()).or_default();
        let of = (circuit.opened_at, Arc::clone(&circuit.probes));
        if line.of.as_ref() != Some(&of) {
            *line = Line { of: Some(of), order: BTreeSet::new() };
            // A probe was made: who had missed a turn waits with the others again.
            for (schedule, waits) in self.waiting.iter_mut().filter(|(_, it)| it.asks.circuit == circuit.fingerprint) {
                waits.missed = false;
                line.order.insert(line.place(schedule, waits));
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
            line.order.insert(line.place(&schedule.uid, &waits));
        }
        self.waiting.insert(schedule.uid.clone(), waits);
    }

    fn change(&mut self, schedule: &Uid, change: impl FnOnce(&mut Waits)) {
        let Some(waits) = self.waiting.get_mut(schedule) else { return };
        let line = self.lines.get_mut(&waits.asks.circuit);
        let was = line.as_ref().map(|line| line.place(schedule, waits));
        change(waits);
        if let (Some(line), Some(was)) = (line, was) {
            line.order.remove(&was);
            line.order.insert(line.place(schedule, waits));
        }
    }
}
