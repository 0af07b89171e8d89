//! The gauge of workflows that succeed on one target again and again.
//!
//! A decision on a target finds its recurrences. Each tick counts the shown recurrences again, because successes grow
//! old without a decision. A target without a recurrence is not stored.

use std::collections::HashMap;

use prometheus::{IntGaugeVec, Opts};
use wfe_core::Time;
use wfe_core::recurrence::{Recurrence, recurrences};
use wfe_core::target::{Target, TargetName};
use wfe_view::index::Key;

use super::series::LimitedSeries;

/// The label of recurrences without their own series. It is no target's name, because every target name contains a `/`.
const OVERFLOW: &str = "overflow";

/// How many recurrences are named. Each has its own alert, and nobody reads more alerts than that.
const NAMED: usize = 50;

/// Makes the gauge.
pub(super) fn gauge() -> prometheus::Result<IntGaugeVec> {
    let help = "Executions of a workflow that completed on a target within 24 hours, without those of schedules: 50 \
                workflows and targets with at least five.";
    IntGaugeVec::new(Opts::new("workflowexecution_recurring_successes", help), &["target_resource", "workflow"])
}

/// Updates the gauge. Owned by the engine.
pub struct RecurringGauges {
    series: LimitedSeries<2>,
    shown: HashMap<Key, Vec<Shown>>,
}

/// What is shown of a recurrence.
struct Shown {
    target: TargetName,
    recurrence: Recurrence,
    count: u32,
    has_series: bool,
}

impl RecurringGauges {
    pub(super) fn new(gauge: IntGaugeVec) -> Self {
        let mut series = LimitedSeries::new(gauge, [OVERFLOW, ""]);
        series.most = NAMED;
        Self { series, shown: HashMap::new() }
    }

    /// Shows the recurrences of a target; a target whose name cannot be read has none.
    pub fn show(&mut self, key: &Key, target: &Target, now: Time) {
        let found = recurrences(target, now);
        let is_same = |shown: &Vec<Shown>| shown.iter().map(|it| &it.recurrence).eq(&found);
        if self.shown.get(key).map_or(found.is_empty(), is_same) {
            return;
        }
        self.forget(key);
        let Some(name) = target.name.as_ref().filter(|_| !found.is_empty()) else { return };
        let shown = found.into_iter().map(|recurrence| {
            let count = recurrence.count(now);
            let has_series = self.series.add([name.as_str(), &*recurrence.workflow_id], count);
            Shown { target: name.clone(), recurrence, count, has_series }
        });
        self.shown.insert(key.clone(), shown.collect());
    }

    /// Counts the shown recurrences again. A recurrence whose count stays costs one comparison.
    pub fn tick(&mut self, now: Time) {
        let series = &mut self.series;
        self.shown.retain(|_, of_target| {
            for shown in of_target.iter_mut() {
                let count = shown.recurrence.count(now);
                if count != shown.count {
                    take_away(series, shown);
                    shown.count = count;
                    shown.has_series = series.add([shown.target.as_str(), &*shown.recurrence.workflow_id], count);
                }
            }
            of_target.retain(|shown| shown.count > 0);
            !of_target.is_empty()
        });
    }

    /// Removes a target.
    pub fn forget(&mut self, key: &Key) {
        for shown in self.shown.remove(key).unwrap_or_default() {
            take_away(&mut self.series, &shown);
        }
    }

    /// Removes all targets.
    pub fn forget_all(&mut self) {
        for shown in std::mem::take(&mut self.shown).into_values().flatten() {
            take_away(&mut self.series, &shown);
        }
    }
}

/// Removes a recurrence from the gauge.
fn take_away(series: &mut LimitedSeries<2>, shown: &Shown) {
    if shown.has_series {
        series.remove([shown.target.as_str(), &*shown.recurrence.workflow_id]);
    } else {
        series.remove_beyond(shown.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use wfe_core::execution::{Execution, ExecutionState};
    use wfe_core::name::{ExecutionId, Uid, Version};
    use wfe_core::recurrence::WINDOW;

    fn at(seconds: u64) -> Time {
        Time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)
    }

    /// A target on which `cleanup` completed once a second.
    fn target(name: &str, successes: u64) -> (Key, Target) {
        let name = TargetName::parse(name).unwrap();
        let key = Key::Chain(name.chain());
        let mut target = Target { name: Some(name), ..Target::default() };
        for second in 1..=successes {
            let uid = Uid::new(&format!("u{second}"));
            let id = ExecutionId { namespace: "ops".into(), name: "w".into(), uid: uid.clone() };
            let state = ExecutionState::Completed { started_at: None, completed_at: Some(at(second)) };
            let nothing_special = Execution::undecided(id, Version::new("1"), at(0));
            target.executions.insert(uid, Execution { workflow_id: "cleanup".into(), state, ..nothing_special });
        }
        (key, target)
    }

    fn series(metrics: &Metrics) -> Vec<String> {
        let text = String::from_utf8(metrics.render().unwrap()).unwrap();
        let ours = text.lines().filter_map(|line| line.strip_prefix("workflowexecution_recurring_successes"));
        ours.map(str::to_owned).collect()
    }

    #[test]
    fn a_recurrence_has_a_series_until_its_successes_are_a_day_old() {
        let metrics = Metrics::new().unwrap();
        let mut gauges = metrics.recurring();
        let (key, four) = target("node/worker-1", 4);
        gauges.show(&key, &four, at(9));
        assert_eq!(series(&metrics), [""; 0]);
        let six = target("node/worker-1", 6).1;
        for _ in 0..2 {
            gauges.show(&key, &six, at(9));
            assert_eq!(series(&metrics), [r#"{target_resource="node/worker-1",workflow="cleanup"} 6"#]);
        }
        let day = WINDOW.as_secs();
        gauges.tick(at(day));
        assert_eq!(series(&metrics), [r#"{target_resource="node/worker-1",workflow="cleanup"} 6"#]);
        gauges.tick(at(day + 1));
        assert_eq!(series(&metrics), [r#"{target_resource="node/worker-1",workflow="cleanup"} 5"#]);
        gauges.tick(at(day + 2));
        assert_eq!(series(&metrics), [""; 0]);
        assert!(gauges.shown.is_empty());
        gauges.show(&key, &six, at(9));
        gauges.show(&key, &four, at(9));
        assert_eq!(series(&metrics), [""; 0], "an execution was deleted");
    }

    #[test]
    fn recurrences_beyond_the_limit_share_a_series_with_the_highest_count() {
        let metrics = Metrics::new().unwrap();
        let mut gauges = metrics.recurring();
        gauges.series.most = 1;
        let all = [("node/a", 5), ("node/b", 6), ("node/c", 7)].map(|(name, count)| target(name, count));
        for (key, target) in &all {
            gauges.show(key, target, at(9));
        }
        let (a, overflow) =
            (r#"{target_resource="node/a",workflow="cleanup"} 5"#, r#"{target_resource="overflow",workflow=""} "#);
        assert_eq!(series(&metrics), [a.to_owned(), format!("{overflow}7")]);
        gauges.forget(&all[2].0);
        assert_eq!(series(&metrics), [a.to_owned(), format!("{overflow}6")]);
        gauges.forget_all();
        assert_eq!((series(&metrics), gauges.series.series), (Vec::new(), 0));
    }
}
