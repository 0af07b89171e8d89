//! A gauge of counts, each in its own series up to a limit.
//!
//! A count of zero has no series. The number of series is limited because each one costs Prometheus memory for weeks.
//! All counts beyond the limit share one series, which shows the highest of them.

use std::collections::BTreeMap;

use prometheus::IntGaugeVec;

/// The limit of counts with their own series (section 15).
pub(super) const MAX_SERIES: usize = 10_000;

/// The gauge, with `N` labels.
pub(super) struct LimitedSeries<const N: usize> {
    pub(super) gauge: IntGaugeVec,
    /// The labels of the shared series.
    overflow: [&'static str; N],
    pub(super) most: usize,
    pub(super) series: usize,
    /// The counts without their own series: how many targets have each count.
    beyond: BTreeMap<u32, usize>,
}

impl<const N: usize> LimitedSeries<N> {
    /// Wraps a gauge that has these labels. No other series may have the labels `overflow`.
    pub(super) fn new(gauge: IntGaugeVec, overflow: [&'static str; N]) -> Self {
        Self { gauge, overflow, most: MAX_SERIES, series: 0, beyond: BTreeMap::new() }
    }

    /// Shows a new count. Returns whether it has its own series.
    pub(super) fn add(&mut self, labels: [&str; N], count: u32) -> bool {
        if count == 0 {
            return false;
        }
        let has_series = self.series < self.most;
        if has_series {
            self.series += 1;
            self.gauge.with_label_values(&labels).set(i64::from(count));
        } else {
            *self.beyond.entry(count).or_default() += 1;
            self.show_overflow();
        }
        has_series
    }

    /// Removes a count that has its own series.
    pub(super) fn remove(&mut self, labels: [&str; N]) {
        self.series -= 1;
        // The series exists, as only this line removes it.
        let _ = self.gauge.remove_label_values(&labels);
    }

    /// Removes a count without its own series.
    pub(super) fn remove_beyond(&mut self, count: u32) {
        if count == 0 {
            return;
        }
        if let Some(having) = self.beyond.get_mut(&count) {
            *having -= 1;
        }
        self.beyond.retain(|_, having| *having > 0);
        self.show_overflow();
    }

    fn show_overflow(&self) {
        match self.beyond.last_key_value() {
            Some((highest, _)) => self.gauge.with_label_values(&self.overflow).set(i64::from(*highest)),
            None => {
                let _ = self.gauge.remove_label_values(&self.overflow);
            }
        }
    }
}
