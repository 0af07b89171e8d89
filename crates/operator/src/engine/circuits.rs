//! The circuits, as the engine keeps them up to date and shows them: log, events and metrics.
//!
//! The index folds them; a follower does so too, and tells nobody.

use std::sync::Arc;

use wfe_view::index::CircuitNews;

use super::Engine;
use crate::events::Announcement;

impl Engine {
    /// Takes the policy that is in force for what circuits open by.
    pub(super) fn rule_circuits(&mut self) {
        let config = Arc::clone(&self.settings.config.borrow());
        self.index.rule_circuits(&config.policy);
    }

    /// Folds what has happened, and tells what became of the circuits. What they change is dirty then.
    pub(super) fn settle_circuits(&mut self) {
        let news = self.index.settle_circuits(self.settings.clock.now());
        if !self.leads {
            return;
        }
        self.circuits.show(self.index.circuits());
        for news in news {
            match &news {
                CircuitNews::Opened(circuit) => tracing::warn!(
                    circuit = %circuit.key, failed = circuit.failed, of = circuit.of, since = %circuit.opened_at,
                    holds = %circuit.scope,
                    "a circuit is open: the schedules that it touches wait, but for one probe at a time"
                ),
                CircuitNews::Closed(circuit) => tracing::info!(
                    circuit = %circuit.key, since = %circuit.opened_at, held = %circuit.scope,
                    why = circuit.why.as_str(),
                    "a circuit has closed: what it held goes on"
                ),
                CircuitNews::Probed { key, got_past } => {
                    self.metrics.circuits().probed(*got_past);
                    tracing::info!(circuit = %key, got_past, "a probe has ended");
                }
            }
            self.announce_circuit(&news);
        }
    }

    /// Tells of the circuits as they are when a term begins: whoever led before may not have come to it. Their events
    /// have names of their own, so what was told is not told twice.
    pub(super) fn tell_of_circuits(&mut self) {
        self.circuits.show(self.index.circuits());
        let opened = self.index.circuits().open().cloned().map(CircuitNews::Opened);
        let closed = self.index.circuits().closed().cloned().map(CircuitNews::Closed);
        for news in opened.chain(closed) {
            self.announce_circuit(&news);
        }
    }

    /// An event needs an object that it is about: without a `ConfigMap` the log alone says it.
    fn announce_circuit(&self, news: &CircuitNews) {
        let config = Arc::clone(&self.settings.config.borrow());
        let Some(object) = &config.object else { return };
        let announcement = match news {
            CircuitNews::Opened(circuit) => Announcement::circuit_opened(object, circuit),
            CircuitNews::Closed(circuit) => Announcement::circuit_closed(object, circuit),
            CircuitNews::Probed { .. } => return,
        };
        self.performer.announce(announcement);
    }
}
