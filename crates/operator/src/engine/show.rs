//! Shows the engine's own metrics and health, and logs when pauses begin and end.

use wfe_core::trouble::OwnCause;
use wfe_view::index::Kind;

use super::Engine;

impl Engine {
    pub(super) fn show(&mut self) {
        self.health.engine_alive(self.index.is_synced(), self.stale());
        self.metrics.load(
            self.queue.depth(),
            self.performer.concurrency_limit().places(),
            self.index.len(),
            self.index.is_synced(),
        );
        self.show_pauses();
        if self.leads {
            self.recurring.tick(self.settings.clock.now());
            self.limits.show(&self.index.limit_counts());
        }
        self.hear_schedules();
        // On a follower, the failures of its last term are out of date.
        let own = || self.failures.values().filter(|_| self.leads).filter_map(|failures| failures.own.as_ref());
        self.health.own_trouble(own().count(), own().next());
        // Failed runs that cannot be examined are counted elsewhere, from the decisions.
        for cause in OwnCause::ALL.into_iter().filter(|cause| *cause != OwnCause::CannotExamine) {
            let waiting = own().filter(|trouble| trouble.cause == cause).count();
            // Every target waits for the CRD. Without targets, show one: the first target would wait, too.
            let unfit = if cause == OwnCause::CrdLacksFields && self.is_unfit() { self.index.len().max(1) } else { 0 };
            self.metrics.own_trouble(cause, waiting.max(unfit));
        }
        for kind in Kind::ALL {
            self.metrics.silent(kind, self.staleness.silence(kind));
        }
    }

    /// Shows which namespaces are paused, and logs when the pause of everything begins or ends.
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
