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

/// Which probe of which circuit a turn is for: that with this many failures before it, after the probe made then.
type Probe = (Time, u32, Time);

/// The schedules that wait for their turn.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    waiting: HashMap<Uid, Waiting>,
    /// Who had the turn of a probe, and did not make it in time.
    missed: BTreeMap<CircuitKey, (Probe, BTreeSet<Uid>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    /// The circuits that hold it.
    circuits: Vec<CircuitKey>,
    /// When it began to make its child, where it has the turn.
    makes_since: Option<Time>,
}

impl Turns {
    /// Records that nothing but these circuits keeps a schedule from running now.
    pub fn wait(&mut self, schedule: &Uid, circuits: Vec<CircuitKey>) {
        self.waiting.insert(schedule.clone(), Waiting { circuits, makes_since: None });
    }

    /// Records that a schedule makes its child by its turn now.
    pub fn make(&mut self, schedule: &Uid, circuits: Vec<CircuitKey>, now: Time) {
        let known = self.waiting.entry(schedule.clone());
        let waiting = known.or_insert(Waiting { circuits: Vec::new(), makes_since: None });
        waiting.circuits = circuits;
        waiting.makes_since.get_or_insert(now);
    }

    /// Records that a schedule waits for no turn.
    pub fn leave(&mut self, schedule: &Uid) {
        self.waiting.remove(schedule);
    }

    /// Gives the turns of the open circuits.
    pub fn give(&mut self, open: &mut [OpenCircuit], now: Time) {
        self.missed.retain(|key, _| open.iter().any(|circuit| circuit.key == *key));
        if open.is_empty() {
            self.waiting.clear();
        }
        let is_late = |it: &Waiting| it.makes_since.is_some_and(|since| after(since, GRANTED_FOR) <= now);
        let late: Vec<Uid> = self.waiting.iter().filter(|(_, it)| is_late(it)).map(|(uid, _)| uid.clone()).collect();
        for circuit in open.iter() {
            let probe = (circuit.opened_at, circuit.failed_probes, circuit.next_probe_at);
            let (of, missed) = self.missed.entry(circuit.key.clone()).or_default();
            if *of != probe {
                (*of, *missed) = (probe, BTreeSet::new());
            }
            let held = |uid: &&Uid| self.waiting.get(*uid).is_some_and(|it| it.circuits.contains(&circuit.key));
            missed.extend(late.iter().filter(held).cloned());
        }
        self.waiting.retain(|uid, _| !late.contains(uid));
        for circuit in open {
            circuit.turn = self.turn_of(circuit);
        }
    }

    /// The smallest draw, but who makes its child keeps the turn. Where all that wait have missed it, they try again.
    fn turn_of(&self, circuit: &OpenCircuit) -> Option<Uid> {
        let waiting = || self.waiting.iter().filter(|(_, it)| it.circuits.contains(&circuit.key));
        let makes = waiting().filter_map(|(uid, it)| Some((it.makes_since?, uid))).min();
        if let Some((_, uid)) = makes {
            return Some(uid.clone());
        }
        let missed = |uid: &Uid| self.missed.get(&circuit.key).is_some_and(|(_, missed)| missed.contains(uid));
        let drawn = waiting().map(|(uid, _)| (missed(uid), draw(&uid.to_string(), circuit.failed_probes), uid));
        drawn.min().map(|(_, _, uid)| uid.clone())
    }
}
