//! Keeps the circuits up to date, and shows them in the log, in events and in metrics.
//!
//! The index derives the circuits from ended executions, also on a follower. A follower announces nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wfe_core::Time;
use wfe_core::fingerprint::Fingerprint;
use wfe_view::index::CircuitNews;

use super::Engine;
use crate::events::NewEvent;

/// The shortest time between two announced openings of the same circuit (section 13.5). A flaky registry opens and
/// closes its circuit many times in a minute.
const TOLD_AGAIN_AFTER: Duration = Duration::from_mins(10);
/// How many announced circuits are remembered: ten times as many as can be open.
const MOST_TOLD: usize = 1_000;

/// The announcements of circuits. A follower records them as well, so that a new leader announces nothing twice.
#[derive(Debug, Default)]
pub(super) struct AnnouncedCircuits(BTreeMap<Fingerprint, AnnouncedCircuit>);

#[derive(Clone, Copy, Debug)]
struct AnnouncedCircuit {
    /// When the announced circuit opened.
    opened_at: Time,
    /// Whether the circuit is open according to the latest announcement.
    is_open: bool,
}

impl AnnouncedCircuits {
    /// Returns whether a change of a circuit is to be announced, and records the announcement.
    fn takes(&mut self, news: &CircuitNews) -> bool {
        match news {
            CircuitNews::Opened(circuit) => {
                let last = self.0.get(&circuit.fingerprint);
                if last.is_some_and(|last| circuit.opened_at < last.opened_at + TOLD_AGAIN_AFTER) {
                    return false;
                }
                let told = AnnouncedCircuit { opened_at: circuit.opened_at, is_open: true };
                self.0.insert(circuit.fingerprint.clone(), told);
                if self.0.len() > MOST_TOLD {
                    let oldest = self.0.iter().min_by_key(|(_, told)| told.opened_at).map(|(it, _)| it.clone());
                    oldest.map(|oldest| self.0.remove(&oldest));
                }
                true
            }
            CircuitNews::Closed(circuit) => {
                let told = self.0.get_mut(&circuit.fingerprint).filter(|told| told.is_open);
                told.map(|told| told.is_open = false).is_some()
            }
            CircuitNews::Probed { .. } => false,
        }
    }

    fn is_of(&self, fingerprint: &Fingerprint, opened_at: Time) -> bool {
        self.0.get(fingerprint).is_some_and(|told| told.opened_at == opened_at)
    }
}

impl Engine {
    /// Applies the circuit policy in force to the index.
    pub(super) fn rule_circuits(&mut self) {
        let config = Arc::clone(&self.settings.config.borrow());
        self.index.set_circuit_policy(&config.policy);
    }

    /// Updates the circuits from new ends of executions, and announces the changes of circuits. The index marks the
    /// affected targets.
    pub(super) fn update_circuits(&mut self) {
        let news = self.index.update_circuits(self.settings.clock.now());
        if self.leads {
            self.circuits.show(self.index.circuits());
        }
        for news in news {
            let is_told = self.announced_circuits.takes(&news);
            if self.leads {
                self.log_circuit(&news);
                if is_told {
                    self.announce_circuit(&news);
                }
            }
        }
    }

    fn log_circuit(&self, news: &CircuitNews) {
        match news {
            CircuitNews::Opened(circuit) => tracing::warn!(
                circuit = %circuit.fingerprint, failed = circuit.failed, since = %circuit.opened_at,
                holds_from = %circuit.holds_from,
                "a circuit is open: the schedules that failed with it wait, but for one probe at a time"
            ),
            CircuitNews::Closed(circuit) => tracing::info!(
                circuit = %circuit.fingerprint, since = %circuit.opened_at, why = circuit.why.as_str(),
                "a circuit has closed: what it held goes on"
            ),
            CircuitNews::Probed { fingerprint, completed } => {
                self.metrics.circuits().probed(*completed);
                tracing::info!(circuit = %fingerprint, completed, "a probe has ended");
            }
        }
    }

    /// Announces the state of the circuits at the beginning of a term, because the last leader may have failed to do
    /// so. Events of circuits have fixed names, so none is created twice.
    pub(super) fn tell_of_circuits(&mut self) {
        self.circuits.show(self.index.circuits());
        let opened = self.index.circuits().open().cloned().map(CircuitNews::Opened);
        let closed = self.index.circuits().closed().cloned().map(CircuitNews::Closed);
        for news in opened.chain(closed) {
            let (fingerprint, opened_at) = match &news {
                CircuitNews::Opened(circuit) => (&circuit.fingerprint, circuit.opened_at),
                CircuitNews::Closed(circuit) => (&circuit.fingerprint, circuit.opened_at),
                CircuitNews::Probed { .. } => continue,
            };
            if self.announced_circuits.is_of(fingerprint, opened_at) {
                self.announce_circuit(&news);
            }
        }
    }

    /// Creates the event of a change. An event must refer to an object: without a `ConfigMap`, only the log shows the
    /// change.
    fn announce_circuit(&self, news: &CircuitNews) {
        let config = Arc::clone(&self.settings.config.borrow());
        let Some(object) = &config.object else { return };
        let announcement = match news {
            CircuitNews::Opened(circuit) => NewEvent::circuit_opened(object, circuit),
            CircuitNews::Closed(circuit) => NewEvent::circuit_closed(object, circuit),
            CircuitNews::Probed { .. } => return,
        };
        self.performer.announce(announcement);
    }
}

#[cfg(test)]
mod tests {
    use wfe_core::circuit::{ClosedCircuit, Closing, OpenCircuit};

    use super::*;

    #[test]
    fn people_are_told_of_a_circuit_that_flaps_once_in_ten_minutes() {
        let at = |second| Time::from_timestamp(second, 0).unwrap();
        let opened = |fingerprint: &str, second| {
            CircuitNews::Opened(OpenCircuit {
                fingerprint: Fingerprint::parse(fingerprint).unwrap(),
                opened_at: at(second),
                holds_from: at(second),
                failed: 5,
                failed_probes: 0,
                probes: Arc::default(),
                next_probe_at: at(second),
                quiet_at: at(second),
                turn: None,
            })
        };
        let closed = |fingerprint: &str, second| {
            CircuitNews::Closed(ClosedCircuit {
                fingerprint: Fingerprint::parse(fingerprint).unwrap(),
                opened_at: at(second),
                closed_at: at(second),
                why: Closing::Success,
            })
        };
        let (one, other) = ("Forbidden/cluster", "ImagePullBackOff/registry/r.example");
        let mut told = AnnouncedCircuits::default();
        for (news, expected) in [
            (opened(one, 0), true),
            (closed(one, 0), true),
            (opened(one, 20), false),
            (opened(other, 20), true),
            (closed(one, 20), false),
            (opened(one, 599), false),
            (closed(one, 599), false),
            (opened(one, 600), true),
            (closed(other, 25), true),
        ] {
            assert_eq!(told.takes(&news), expected, "{news:?}");
        }
        let fingerprint = Fingerprint::parse(one).unwrap();
        assert!(told.is_of(&fingerprint, at(600)) && !told.is_of(&fingerprint, at(599)));
        for n in 0..2 * MOST_TOLD {
            told.takes(&opened(&format!("Unknown/workflow/w{n}@1"), 1_000));
        }
        assert!(told.0.len() <= MOST_TOLD);
    }
}
