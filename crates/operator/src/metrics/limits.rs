//! The metrics of limits (section 18). A limit that is not configured any more has no series.

use std::collections::BTreeSet;

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};
use wfe_view::index::LimitCount;

/// The metrics of limits. Cheap to clone.
#[derive(Clone)]
pub struct LimitMetrics {
    max: IntGaugeVec,
    running: IntGaugeVec,
    waiting: IntGaugeVec,
    places: IntCounterVec,
}

impl LimitMetrics {
    pub(super) fn new() -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str| IntGaugeVec::new(Opts::new(name, help), &["limit"]);
        Ok(Self {
            max: gauges("workflowexecution_limit_max", "How many targets may have a place in a limit at once.")?,
            running: gauges("workflowexecution_limit_running", "Targets that have a place in a limit.")?,
            waiting: gauges(
                "workflowexecution_limit_waiting",
                "Targets in the line of a limit; several executions of one target and workflow count once.",
            )?,
            places: IntCounterVec::new(
                Opts::new("workflowexecution_limit_places_total", "Places of a limit that were given."),
                &["limit"],
            )?,
        })
    }

    pub(super) fn register(&self, registry: &Registry) -> prometheus::Result<()> {
        for gauge in [&self.max, &self.running, &self.waiting] {
            registry.register(Box::new(gauge.clone()))?;
        }
        registry.register(Box::new(self.places.clone()))
    }

    /// Returns the gauges of the limits.
    #[must_use]
    pub fn gauges(&self) -> LimitGauges {
        LimitGauges { all: self.clone(), shown: BTreeSet::new() }
    }
}

/// Updates the metrics of limits. Owned by the engine.
pub struct LimitGauges {
    all: LimitMetrics,
    shown: BTreeSet<Box<str>>,
}

impl LimitGauges {
    /// Shows the limits that are in force, and no others.
    pub fn show(&mut self, limits: &[LimitCount]) {
        let is_there = |name: &str| limits.iter().any(|it| *it.limit.name == *name);
        for name in self.shown.extract_if(.., |name| !is_there(name)) {
            for gauge in [&self.all.max, &self.all.running, &self.all.waiting] {
                let _ = gauge.remove_label_values(&[&*name]); // the series exists
            }
        }
        for LimitCount { limit, count, given } in limits {
            let labels = [&*limit.name];
            self.all.max.with_label_values(&labels).set(i64::from(limit.max_running));
            self.all.running.with_label_values(&labels).set(i64::from(count.running));
            self.all.waiting.with_label_values(&labels).set(i64::try_from(count.waiting).unwrap_or(i64::MAX));
            let places = self.all.places.with_label_values(&labels);
            places.inc_by(given.saturating_sub(places.get()));
            self.shown.insert(limit.name.clone());
        }
    }

    /// Removes all gauges.
    pub fn forget_all(&mut self) {
        self.show(&[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::limit::{Count, Limit};

    fn count(name: &str, running: u32, given: u64) -> LimitCount {
        let name = name.into();
        let limit = Limit { name, kind: None, workflow_id: None, namespace: None, max_running: 3 };
        LimitCount { limit, count: Count { running, waiting: 2 }, given }
    }

    #[test]
    fn a_limit_has_series_while_it_is_in_force_and_its_counter_never_falls() {
        let metrics = LimitMetrics::new().unwrap();
        let registry = Registry::new();
        metrics.register(&registry).unwrap();
        let mut gauges = metrics.gauges();
        let text = || {
            let series = registry.gather().into_iter().flat_map(|mut family| {
                let name = family.name().to_owned();
                let values = family
                    .take_metric()
                    .into_iter()
                    .map(|it| it.get_gauge().get_value() + it.get_counter().get_value());
                values.map(|value| format!("{name} {value}")).collect::<Vec<_>>()
            });
            series.collect::<Vec<_>>()
        };
        gauges.show(&[count("drains", 1, 4)]);
        let all = [
            "workflowexecution_limit_max 3",
            "workflowexecution_limit_places_total 4",
            "workflowexecution_limit_running 1",
            "workflowexecution_limit_waiting 2",
        ];
        assert_eq!(text(), all);
        gauges.show(&[count("drains", 1, 4)]);
        assert_eq!(text(), all);
        gauges.forget_all();
        assert_eq!(text(), ["workflowexecution_limit_places_total 4"]);
        gauges.show(&[count("drains", 1, 5)]);
        assert_eq!(text()[1], "workflowexecution_limit_places_total 5");
    }
}
