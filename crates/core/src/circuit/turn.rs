//! Whose turn it is to probe an open circuit.
//!
//! Of the schedules that nothing but circuits keeps from running now, one draws the next probe; with each probe that
//! fails, another. Decisions say which schedules wait so; what is kept of them here is forgotten at a restart.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::{CircuitKey, OpenCircuit};
use crate::Time;
use crate::backoff::draw;
use crate::moment::after;
use crate::name::Uid;

/// How long a schedule keeps its turn after it has begun to make its child: the time-outs of a read and a create, and
/// of the watch that delivers the child.
pub const GRANTED_FOR: Duration = Duration::from_secs(30);

/// Which probe of a circuit: that with so many failures before it, of the circuit that opened then, due then.
type Next = (Time, u32, Time);

/// Where a schedule is in the line for a probe: behind those that have not missed it yet, by its draw, by its uid.
type Place = (bool, u32, Uid);

/// The schedules that wait for their turn. A line is kept in order for each circuit: there may be thousands of them,
/// and each decision on one asks.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Which circuits hold each schedule that nothing else holds.
    waiting: HashMap<Uid, Vec<CircuitKey>>,
    /// Who makes its child by its turn, and since when.
    making: BTreeMap<Uid, Time>,
    lines: BTreeMap<CircuitKey, Line>,
}

#[derive(Clone, Debug, Default)]
struct Line {
    next: Next,
    order: BTreeSet<Place>,
}

impl Line {
    fn insert(&mut self, missed: bool, schedule: &Uid) {
        let (_, failed_probes, _) = self.next;
        self.order.insert((missed, draw(&schedule.to_string(), failed_probes), schedule.clone()));
    }

    /// Takes a schedule out, and tells whether it has missed its turn.
    fn remove(&mut self, schedule: &Uid) -> bool {
        let (_, failed_probes, _) = self.next;
        let drawn = draw(&schedule.to_string(), failed_probes);
        !self.order.remove(&(false, drawn, schedule.clone())) && self.order.remove(&(true, drawn, schedule.clone()))
    }
}

impl Turns {
    /// Records that nothing but these circuits keeps a schedule from running now.
    pub fn wait(&mut self, schedule: &Uid, circuits: Vec<CircuitKey>) {
        self.making.remove(schedule);
        self.line_up(schedule, circuits);
    }

    /// Records that a schedule makes its child by its turn now.
    pub fn make(&mut self, schedule: &Uid, circuits: Vec<CircuitKey>, now: Time) {
        self.line_up(schedule, circuits);
        self.making.entry(schedule.clone()).or_insert(now);
    }

    /// Records that a schedule waits for no turn.
    pub fn leave(&mut self, schedule: &Uid) {
        self.making.remove(schedule);
        for circuit in self.waiting.remove(schedule).unwrap_or_default() {
            if let Some(line) = self.lines.get_mut(&circuit) {
                line.remove(schedule);
            }
        }
    }

    /// Gives the turns of the open circuits.
    pub fn give(&mut self, open: &mut [OpenCircuit], now: Time) {
        if open.is_empty() {
            return *self = Self::default();
        }
        self.lines.retain(|key, _| open.iter().any(|circuit| circuit.key == *key));
        let is_over = |since: Time| after(since, GRANTED_FOR) <= now;
        let over: Vec<Uid> = self.making.extract_if(.., |_, since| is_over(*since)).map(|(uid, _)| uid).collect();
        for schedule in over {
            for circuit in self.waiting.get(&schedule).into_iter().flatten() {
                if let Some(line) = self.lines.get_mut(circuit) {
                    line.remove(&schedule);
                    line.insert(true, &schedule);
                }
            }
        }
        for circuit in open {
            circuit.turn = self.turn_of(circuit);
        }
    }

    /// The first in the line, but who makes its child keeps the turn.
    fn turn_of(&mut self, circuit: &OpenCircuit) -> Option<Uid> {
        let holds = |circuits: &Vec<CircuitKey>| circuits.contains(&circuit.key);
        let line = self.lines.entry(circuit.key.clone()).or_default();
        let next = (circuit.opened_at, circuit.failed_probes, circuit.next_probe_at);
        if line.next != next {
            *line = Line { next, order: BTreeSet::new() };
            self.waiting.iter().filter(|(_, it)| holds(it)).for_each(|(uid, _)| line.insert(false, uid));
        }
        let mut making = self.making.iter().filter(|(uid, _)| self.waiting.get(*uid).is_some_and(holds));
        let first = || line.order.first().map(|(_, _, uid)| uid);
        making.next().map(|(uid, _)| uid).or_else(first).cloned()
    }

    fn line_up(&mut self, schedule: &Uid, circuits: Vec<CircuitKey>) {
        if self.waiting.get(schedule) == Some(&circuits) {
            return;
        }
        let held_before = self.waiting.remove(schedule).unwrap_or_default();
        for circuit in held_before.iter().filter(|circuit| !circuits.contains(circuit)) {
            if let Some(line) = self.lines.get_mut(circuit) {
                line.remove(schedule);
            }
        }
        for circuit in circuits.iter().filter(|circuit| !held_before.contains(circuit)) {
            if let Some(line) = self.lines.get_mut(circuit) {
                line.insert(false, schedule);
            }
        }
        self.waiting.insert(schedule.clone(), circuits);
    }
}
