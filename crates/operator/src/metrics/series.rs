//! A gauge of counts, each in a series of its own while there is room.
//!
//! A count of zero has no series. The number of series is limited, as every one costs Prometheus memory for weeks: what
//! is beyond the limit shares one, which shows the highest of their counts.

use std::collections::BTreeMap;

use prometheus::IntGaugeVec;

/// How many have a series of their own (section 15).
pub(super) const MAX_SERIES: usize = 10_000;

/// The gauge, by `N` labels.
pub(super) struct LimitedSeries<const N: usize> {
    pub(super) gauge: IntGaugeVec,
    /// The labels of the series that is shared.
    overflow: [&'static str; N],
    pub(super) most: usize,
    pub(super) series: usize,
    /// The counts without a series, and how many have each.
    beyond: BTreeMap<u32, usize>,
}

impl<const N: usize> LimitedSeries<N> {
    /// Makes it over a gauge that has these labels. Nothing else may be labelled as what is beyond the limit.
    pub(super) fn new(gauge: IntGaugeVec, overflow: [&'static str; N]) -> Self {
        Self { gauge, overflow, most: MAX_SERIES, series: 0, beyond: BTreeMap::new() }
    }

    /// Shows a count that is not shown yet. Returns whether it has a series of its own.
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

    /// Shows a count no more that has a series of its own.
    pub(super) fn remove(&mut self, labels: [&str; N]) {
        self.series -= 1;
        // It was there, as this is the only place that removes it.
        let _ = self.gauge.remove_label_values(&labels);
    }

    /// Shows a count no more that has no series of its own.
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
