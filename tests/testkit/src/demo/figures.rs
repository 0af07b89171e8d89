//! The operator's metrics in the demo: which counters changed, and by how much.

use std::collections::BTreeMap;

/// The values of the operator's metrics, by series.
#[derive(Debug, Default)]
pub(super) struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// Parses Prometheus' text format: the last word of a line is the value. Buckets and durations are left out.
    pub(super) fn parse(text: &str) -> Self {
        let samples = text.lines().filter(|line| line.starts_with("workflowexecution_"));
        let samples = samples.filter_map(|line| line.rsplit_once(' '));
        let is_left_out = |series: &str| ["_bucket", "_sum", "_seconds{"].iter().any(|part| series.contains(part));
        let counted = samples.filter(|(series, _)| !is_left_out(series));
        Self(counted.filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect())
    }

    /// Returns by how much a series has increased since `before`.
    pub(super) fn moved(&self, before: &Self, series: &str) -> f64 {
        let value = |figures: &Self| figures.0.get(series).copied().unwrap_or_default();
        value(self) - value(before)
    }

    /// Returns a line for every series whose value differs from `before`.
    pub(super) fn changes(&self, before: &Self) -> Vec<String> {
        let moved: Vec<_> = self.0.iter().filter(|(series, _)| self.moved(before, series).abs() > 0.0).collect();
        let width = moved.iter().map(|(series, _)| series.len()).max().unwrap_or_default();
        let line = |(series, value): (&String, &f64)| {
            let before = before.0.get(series).copied().unwrap_or_default();
            format!("{series:<width$}  {before} -> {value}")
        };
        moved.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_moved_and_only_that() {
        let before = Figures::parse(
            "# HELP a b\nworkflowexecution_total{outcome=\"Completed\"} 1\nworkflowexecution_targets 2\n",
        );
        let after = Figures::parse(
            "workflowexecution_total{outcome=\"Completed\"} 3\nworkflowexecution_targets 2\n\
             workflowexecution_duration_seconds_bucket{le=\"1\"} 7\nprocess_cpu 9\n\
             workflowexecution_watch_silence_seconds{resource=\"pods\"} 3\n",
        );
        let changes = after.changes(&before);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(changes[0].starts_with("workflowexecution_total{outcome=\"Completed\"} "), "{changes:?}");
        assert!(changes[0].ends_with(" 1 -> 3"), "{changes:?}");
    }
}
