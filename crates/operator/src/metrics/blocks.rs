//! The gauges of the blocks of each target.
//!
//! A series is removed when its target has no failure any more.

use std::collections::HashMap;

use prometheus::{IntGaugeVec, Opts, Registry};
use wfe_core::blocks::TargetBlocks;
use wfe_core::ending::Skip;
use wfe_core::reason::BlockReason;
use wfe_view::index::Key;

use super::series::LimitedSeries;

/// The label of targets without their own series. It is no target's name, because every target name contains a `/`.
const OVERFLOW: &str = "overflow";

/// How many blocked targets are named: an alert shows a few of them, and `kubectl wfe status` all.
const NAMED: usize = 50;

/// The metrics of the blocks of each target.
pub(super) struct BlockMetrics {
    failures: IntGaugeVec,
    blocked: IntGaugeVec,
    info: IntGaugeVec,
}

impl BlockMetrics {
    /// Makes the gauges. Those with known labels start at 0.
    pub(super) fn new() -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels);
        let all = Self {
            failures: gauges(
                "workflowexecution_consecutive_failures",
                "Failures in a row before anything ran, by target; a target without one has no series.",
                &["target_resource"],
            )?,
            blocked: gauges(
                "workflowexecution_blocked_targets",
                "Targets on which nothing runs until a person clears them, by the reason that is met first.",
                &["reason"],
            )?,
            info: gauges(
                "workflowexecution_blocked_target_info",
                "The blocked targets by name, and the execution that blocks each: 50 of them.",
                &["target_resource", "reason", "execution"],
            )?,
        };
        for reason in BlockReason::ALL {
            let _ = all.blocked.with_label_values(&[reason.as_str()]);
        }
        Ok(all)
    }

    pub(super) fn register(&self, registry: &Registry) -> prometheus::Result<()> {
        registry.register(Box::new(self.failures.clone()))?;
        registry.register(Box::new(self.blocked.clone()))?;
        registry.register(Box::new(self.info.clone()))
    }

    /// Returns the gauges.
    pub(super) fn gauges(&self) -> BlockGauges {
        BlockGauges::new(self.failures.clone(), self.blocked.clone(), self.info.clone())
    }
}

/// Updates the gauges. Owned by the engine.
pub struct BlockGauges {
    failures: LimitedSeries<1>,
    blocked: IntGaugeVec,
    /// The names of blocked targets.
    info: LimitedSeries<3>,
    shown: HashMap<Key, Shown>,
}

/// What is shown of a target.
struct Shown {
    /// The label of the target's own series; `None` if the target has none.
    label: Option<Box<str>>,
    failures: u32,
    block: Option<BlockReason>,
    /// The labels of the target's own series in `info`; `None` if the target has none.
    info: Option<[Box<str>; 3]>,
}

impl BlockGauges {
    fn new(failures: IntGaugeVec, blocked: IntGaugeVec, info: IntGaugeVec) -> Self {
        let failures = LimitedSeries::new(failures, [OVERFLOW]);
        let mut info = LimitedSeries::new(info, [OVERFLOW, "", ""]);
        info.most = NAMED;
        Self { failures, blocked, info, shown: HashMap::new() }
    }

    /// Shows the blocks of a target with this name. A target without a readable name has no series.
    pub fn show(&mut self, key: &Key, name: Option<&str>, blocks: &TargetBlocks) {
        let block = blocks.reason();
        let failures = blocks.consecutive_failures;
        if self.shown.get(key).is_some_and(|shown| shown.failures == failures && shown.block == block) {
            return;
        }
        let label = self.take_away(key).or_else(|| name.map(Into::into));
        let Some(label) = label.filter(|_| failures > 0 || block.is_some()) else { return };
        let past = blocks.blocks.first().and_then(Skip::remediation);
        let info =
            block.zip(past).map(|(block, past)| [&*label, block.as_str(), &past.execution.to_string()].map(Into::into));
        if let Some(block) = block {
            self.blocked.with_label_values(&[block.as_str()]).inc();
        }
        let info = info.filter(|labels: &[Box<str>; 3]| self.info.add(labels.each_ref().map(|it| &**it), 1));
        let has_series = self.failures.add([&*label], failures);
        self.shown.insert(key.clone(), Shown { label: has_series.then_some(label), failures, block, info });
    }

    /// Removes a target.
    pub fn forget(&mut self, key: &Key) {
        self.take_away(key);
    }

    /// Removes all targets.
    pub fn forget_all(&mut self) {
        let shown: Vec<Key> = self.shown.keys().cloned().collect();
        for key in &shown {
            self.take_away(key);
        }
    }

    /// Removes a target from the gauges, and returns the label that it had.
    fn take_away(&mut self, key: &Key) -> Option<Box<str>> {
        let Shown { label, failures, block, info } = self.shown.remove(key)?;
        if let Some(block) = block {
            self.blocked.with_label_values(&[block.as_str()]).dec();
            match &info {
                Some(labels) => self.info.remove(labels.each_ref().map(|it| &**it)),
                None => self.info.remove_beyond(1),
            }
        }
        match &label {
            Some(label) => self.failures.remove([label]),
            None => self.failures.remove_beyond(failures),
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::Opts;
    use prometheus::core::Collector;
    use wfe_core::ending::Remediation;
    use wfe_core::name::{ExecutionId, Uid};
    use wfe_core::target::TargetName;

    fn gauges(max_series: usize) -> BlockGauges {
        let vec = |name: &str, label: &str| IntGaugeVec::new(Opts::new(name, "h"), &[label]).unwrap();
        let info = IntGaugeVec::new(Opts::new("info", "h"), &["target_resource", "reason", "execution"]).unwrap();
        let mut gauges = BlockGauges::new(vec("failures", "target_resource"), vec("blocked", "reason"), info);
        gauges.info.most = 1;
        gauges.failures.most = max_series;
        gauges
    }

    fn show(gauges: &mut BlockGauges, name: &str, consecutive_failures: u32, block: Option<BlockReason>) {
        let past = || Remediation {
            execution: ExecutionId { namespace: "ops".into(), name: "w".into(), uid: Uid::new("u") },
            workflow_id: "w".into(),
            completed_at: wfe_core::Time::UNIX_EPOCH,
            completed: false,
            is_dated: true,
        };
        let skip = |reason| match reason {
            BlockReason::PreviousExecutionFailed => {
                Skip::PreviousExecutionFailed { failed: past(), is_repeated: false }
            }
            BlockReason::ExhaustedRetries => {
                Skip::ExhaustedRetries { latest: past(), failures: 5, limit: 5, until: None }
            }
        };
        let blocks = block.map(skip).into_iter().collect();
        let key = Key::Chain(TargetName::parse(name).unwrap().chain());
        gauges.show(&key, Some(name), &TargetBlocks { consecutive_failures, blocks });
    }

    fn series(vec: &IntGaugeVec) -> Vec<(String, i64)> {
        let families = vec.collect();
        let metrics = families.iter().flat_map(prometheus::proto::MetricFamily::get_metric);
        #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
        let mut series: Vec<_> =
            metrics.map(|it| (it.get_label()[0].value().to_owned(), it.get_gauge().get_value() as i64)).collect();
        series.sort();
        series
    }

    fn pairs(of: &[(&str, i64)]) -> Vec<(String, i64)> {
        of.iter().map(|(label, value)| ((*label).to_owned(), *value)).collect()
    }

    #[test]
    fn a_series_comes_with_a_failure_and_goes_with_the_last() {
        let mut gauges = gauges(10);
        show(&mut gauges, "node/a", 0, None);
        assert_eq!(series(&gauges.failures.gauge), []);
        show(&mut gauges, "node/a", 4, None);
        show(&mut gauges, "node/a", 5, Some(BlockReason::ExhaustedRetries));
        show(&mut gauges, "node/b", 0, Some(BlockReason::PreviousExecutionFailed));
        assert_eq!(series(&gauges.failures.gauge), pairs(&[("node/a", 5)]));
        assert_eq!(series(&gauges.blocked), pairs(&[("ExhaustedRetries", 1), ("PreviousExecutionFailed", 1)]));
        // One of the two blocked targets is named; the other is in the shared series. Labels are sorted by name, so the
        // first one is `execution`.
        assert_eq!(series(&gauges.info.gauge), pairs(&[("", 1), ("ops/w", 1)]));
        show(&mut gauges, "node/a", 0, None);
        gauges.forget(&Key::Chain(TargetName::parse("node/b").unwrap().chain()));
        assert_eq!(series(&gauges.failures.gauge), []);
        assert_eq!(series(&gauges.blocked), pairs(&[("ExhaustedRetries", 0), ("PreviousExecutionFailed", 0)]));
        assert_eq!(series(&gauges.info.gauge), []);
        assert!(gauges.shown.is_empty());
        show(&mut gauges, "node/a", 4, Some(BlockReason::ExhaustedRetries));
        gauges.forget_all();
        assert_eq!((series(&gauges.failures.gauge), gauges.failures.series), (Vec::new(), 0));
        assert!(gauges.shown.is_empty());
    }

    #[test]
    fn what_is_beyond_the_limit_shares_a_series_that_shows_the_highest() {
        let mut gauges = gauges(1);
        for (name, failures) in [("node/a", 1), ("node/b", 2), ("node/c", 3), ("node/d", 3)] {
            show(&mut gauges, name, failures, None);
        }
        assert_eq!(series(&gauges.failures.gauge), pairs(&[("node/a", 1), (OVERFLOW, 3)]));
        show(&mut gauges, "node/c", 0, None);
        assert_eq!(series(&gauges.failures.gauge), pairs(&[("node/a", 1), (OVERFLOW, 3)]), "there is another 3");
        show(&mut gauges, "node/d", 0, None);
        assert_eq!(series(&gauges.failures.gauge), pairs(&[("node/a", 1), (OVERFLOW, 2)]));
        show(&mut gauges, "node/a", 0, None);
        show(&mut gauges, "node/b", 4, None);
        assert_eq!(series(&gauges.failures.gauge), pairs(&[("node/b", 4)]), "a place was free when it changed");
    }
}
