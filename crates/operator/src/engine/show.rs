//! What the engine shows of itself: metrics, health, and the lines of the log about pauses.

use wfe_view::index::Kind;

use super::Engine;

impl Engine {
    pub(super) fn show(&mut self) {
        self.health.engine_alive(self.index.is_synced(), self.stale());
        self.metrics.load(self.queue.depth(), self.queue.places(), self.index.len(), self.index.is_synced());
        self.show_pauses();
        self.hear_schedules();
        // What a process knew when it led says nothing any more.
        let denied = || self.failures.values().filter(|_| self.leads).filter_map(|failures| failures.denied.as_deref());
        self.health.denied(denied().count(), denied().next());
        self.metrics.operator_forbidden(denied().count());
        for kind in Kind::ALL {
            self.metrics.silent(kind, self.hearing.silence(kind));
        }
    }

    /// Shows what is paused, and logs when the pause of everything begins or ends.
    pub(super) fn show_pauses(&mut self) {
        let paused_by = self.settings.config.borrow().policy.paused_by.clone();
        let namespaces = self.index.paused_namespaces();
        self.metrics.paused(paused_by.is_some(), namespaces.len());
        match &paused_by {
            Some(by) if self.paused_by != paused_by => tracing::info!(%by, "everything is paused: nothing new starts"),
            None if self.paused_by.is_some() => tracing::info!("the pause of everything has ended"),
            _ => {}
        }
        self.health.paused(paused_by.as_deref(), &namespaces);
        self.paused_by = paused_by;
    }
}
