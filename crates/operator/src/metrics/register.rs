//! The registration of all metrics, and the series that exist from the start.

use prometheus::{Gauge, Opts};
use wfe_api::SkipReason;
use wfe_core::retry::Stop;
use wfe_view::index::Kind;

use super::labels::{AttemptLabel, OutcomeLabel};
use super::{CAUSES, Inner, PANIC};

impl Inner {
    pub(super) fn register(&self) -> prometheus::Result<()> {
        let build = Gauge::with_opts(
            Opts::new("workflowexecution_build_info", "1, with the version of this build.")
                .const_label("version", env!("CARGO_PKG_VERSION")),
        )?;
        build.set(1.0);
        let registry = &self.registry;
        registry.register(Box::new(build))?;
        registry.register(Box::new(self.executions.clone()))?;
        registry.register(Box::new(self.duration.clone()))?;
        registry.register(Box::new(self.attempts.clone()))?;
        registry.register(Box::new(self.retry_stops.clone()))?;
        registry.register(Box::new(self.skips.clone()))?;
        registry.register(Box::new(self.backoff_skips.clone()))?;
        self.blocks.register(registry)?;
        registry.register(Box::new(self.recurring_successes.clone()))?;
        registry.register(Box::new(self.runs_created.clone()))?;
        registry.register(Box::new(self.decisions.clone()))?;
        registry.register(Box::new(self.performs.clone()))?;
        registry.register(Box::new(self.errors.clone()))?;
        registry.register(Box::new(self.api_requests.clone()))?;
        registry.register(Box::new(self.deliveries.clone()))?;
        registry.register(Box::new(self.cut_objects.clone()))?;
        registry.register(Box::new(self.events_lost.clone()))?;
        registry.register(Box::new(self.foreign_runs.clone()))?;
        registry.register(Box::new(self.slow_drains.clone()))?;
        registry.register(Box::new(self.expired.clone()))?;
        self.schedules.register(registry)?;
        self.circuits.register(registry)?;
        self.limits.register(registry)?;
        self.now.register(registry)?;
        registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        self.show_zeros();
        Ok(())
    }

    /// Series with known labels start at 0, so that Prometheus sees the first increase.
    fn show_zeros(&self) {
        for outcome in [OutcomeLabel::Completed, OutcomeLabel::Failed, OutcomeLabel::Skipped] {
            let _ = self.executions.with_label_values(&[outcome.as_str()]);
        }
        for outcome in [OutcomeLabel::Completed, OutcomeLabel::Failed] {
            let _ = self.duration.with_label_values(&[outcome.as_str()]);
        }
        for outcome in [AttemptLabel::Completed, AttemptLabel::Retried, AttemptLabel::Failed] {
            let _ = self.attempts.with_label_values(&[outcome.as_str()]);
        }
        for reason in Stop::REASONS {
            let _ = self.retry_stops.with_label_values(&[reason]);
        }
        for reason in SkipReason::ALL {
            let _ = self.skips.with_label_values(&[reason.as_str()]);
        }
        for reason in [SkipReason::RecentlyRemediated, SkipReason::ExhaustedRetries] {
            let _ = self.backoff_skips.with_label_values(&[reason.as_str()]);
        }
        for cause in CAUSES.into_iter().chain([PANIC]) {
            let _ = self.errors.with_label_values(&[cause]);
        }
        for kind in Kind::ALL {
            let _ = self.deliveries.with_label_values(&[kind.label()]);
            let _ = self.cut_objects.with_label_values(&[kind.label()]);
        }
    }
}
