//! The metrics of schedules (section 13.7).

mod each;

use std::collections::HashMap;
use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};
use wfe_api::workflow_schedule::conditions::{CHILD_REFUSED, INVALID_SPEC};
use wfe_core::action::ScheduleJudgement;
use wfe_core::name::{ScheduleId, Uid};
use wfe_core::schedule::{HeldBy, Outcome, Ready, Schedule};
use wfe_core::target::Target;
use wfe_core::triage::{State, Suppressed, Triage, Verdict};
use wfe_view::index::Key;

use self::each::EachSchedule;
use super::series::LimitedSeries;

/// The labels of schedules without their own series. No schedule has these labels, because a namespace name has no
/// capital letters.
const OVERFLOW: [&str; 2] = ["OVERFLOW", "OVERFLOW"];

/// The metrics of schedules. Cheap to clone.
#[derive(Clone)]
pub struct ScheduleMetrics {
    runs: IntCounterVec,
    missed: IntCounter,
    held: IntGaugeVec,
    failures: IntGaugeVec,
    unusable: IntGaugeVec,
    slots: IntCounterVec,
    success_due: IntGaugeVec,
    filed: IntGauge,
    creation_delay: Histogram,
    paused_by_triage: IntGauge,
    triages: IntCounterVec,
    suppressed: IntCounterVec,
}

impl ScheduleMetrics {
    pub(super) fn new() -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels);
        let delays = vec![0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 300., 1800., 3600.];
        let all = Self {
            runs: IntCounterVec::new(
                Opts::new("workflowschedule_runs_total", "Slots of schedules that have an outcome, by outcome."),
                &["outcome"],
            )?,
            missed: IntCounter::new(
                "workflowschedule_missed_slots_total",
                "Slots of schedules that passed without a run; of a cron expression 100 at once are counted at the most.",
            )?,
            held: gauges(
                "workflowschedule_held",
                "Schedules that make no execution though a slot is there, by what holds them.",
                &["reason"],
            )?,
            failures: gauges(
                "workflowschedule_failure_count",
                "Failures in a row, by schedule; a schedule without one has no series.",
                &["namespace", "schedule"],
            )?,
            unusable: gauges(
                "workflowschedule_unusable",
                "Schedules that make no execution until somebody corrects their spec, by why.",
                &["reason"],
            )?,
            slots: IntCounterVec::new(
                Opts::new("workflowschedule_slots_total", "Slots of a schedule, by what came of them: Run, or Missed."),
                &["namespace", "schedule", "came_of"],
            )?,
            success_due: gauges(
                "workflowschedule_success_due_timestamp_seconds",
                "When the third slot of a schedule comes that no success has followed.",
                &["namespace", "schedule"],
            )?,
            creation_delay: Histogram::with_opts(
                HistogramOpts::new(
                    "workflowschedule_creation_delay_seconds",
                    "Time from a slot to the creation of its execution.",
                )
                .buckets(delays),
            )?,
            filed: IntGauge::new(
                "workflowschedule_triages_filed",
                "Schedules that fail, and whose triage says what a person has to change.",
            )?,
            paused_by_triage: IntGauge::new(
                "workflowschedule_paused_by_triage",
                "Schedules that a triage has paused for a person.",
            )?,
            triages: IntCounterVec::new(
                Opts::new("workflow_triage_total", "Triages that have ended, by analyst, verdict and state."),
                &["analyst", "verdict", "state"],
            )?,
            suppressed: IntCounterVec::new(
                Opts::new(
                    "workflow_triage_suppressed_total",
                    "Failures of schedules that began no triage though they were enough for one, by why.",
                ),
                &["reason"],
            )?,
        };
        for why in Suppressed::ALL {
            let _ = all.suppressed.with_label_values(&[why.as_str()]);
        }
        for outcome in Outcome::ALL {
            let _ = all.runs.with_label_values(&[outcome.as_str()]);
        }
        for why in [INVALID_SPEC, CHILD_REFUSED] {
            let _ = all.unusable.with_label_values(&[why]);
        }
        for by in HeldBy::ALL {
            let _ = all.held.with_label_values(&[by.as_str()]);
        }
        Ok(all)
    }

    pub(super) fn register(&self, registry: &Registry) -> prometheus::Result<()> {
        registry.register(Box::new(self.runs.clone()))?;
        registry.register(Box::new(self.missed.clone()))?;
        registry.register(Box::new(self.held.clone()))?;
        registry.register(Box::new(self.failures.clone()))?;
        registry.register(Box::new(self.unusable.clone()))?;
        registry.register(Box::new(self.slots.clone()))?;
        registry.register(Box::new(self.success_due.clone()))?;
        registry.register(Box::new(self.filed.clone()))?;
        registry.register(Box::new(self.creation_delay.clone()))?;
        registry.register(Box::new(self.paused_by_triage.clone()))?;
        registry.register(Box::new(self.triages.clone()))?;
        registry.register(Box::new(self.suppressed.clone()))
    }

    /// Counts a slot that has an outcome.
    pub fn ran(&self, outcome: Outcome) {
        self.runs.with_label_values(&[outcome.as_str()]).inc();
    }

    /// Counts missed slots.
    pub fn missed(&self, count: u32) {
        self.missed.inc_by(count.into());
    }

    /// Records how long after its slot a child was created.
    pub fn child_created(&self, late: Duration) {
        self.creation_delay.observe(late.as_secs_f64());
    }

    /// Counts a triage that has ended.
    pub fn triaged(&self, triage: &Triage) {
        let verdict = triage.verdict.map_or("None", Verdict::as_str);
        self.triages.with_label_values(&[triage.analyst.as_str(), verdict, triage.state.as_str()]).inc();
    }

    /// Counts a failure that started no triage.
    pub fn triage_suppressed(&self, why: Suppressed) {
        self.suppressed.with_label_values(&[why.as_str()]).inc();
    }

    /// Returns the gauges of schedules.
    #[must_use]
    pub fn gauges(&self) -> ScheduleGauges {
        ScheduleGauges {
            held: self.held.clone(),
            failures: LimitedSeries::new(self.failures.clone(), OVERFLOW),
            each: EachSchedule::new(self.slots.clone(), self.success_due.clone()),
            unusable: self.unusable.clone(),
            filed: self.filed.clone(),
            paused_by_triage: self.paused_by_triage.clone(),
            shown: HashMap::new(),
        }
    }
}

/// Updates the gauges of schedules. Owned by the engine.
pub struct ScheduleGauges {
    held: IntGaugeVec,
    failures: LimitedSeries<2>,
    each: EachSchedule,
    unusable: IntGaugeVec,
    filed: IntGauge,
    paused_by_triage: IntGauge,
    shown: HashMap<Key, HashMap<Uid, Shown>>,
}

/// What is shown of a schedule.
struct Shown {
    id: ScheduleId,
    has_series: bool,
    stands: Stands,
}

/// The state of a schedule.
#[derive(Clone, Copy, Default)]
struct Stands {
    failures: u32,
    held: Option<HeldBy>,
    unusable: Option<&'static str>,
    filed: bool,
}

impl Stands {
    fn of(schedule: &Schedule, held: Option<HeldBy>) -> Self {
        let unusable = match (&schedule.plan, &schedule.status.ready) {
            _ if schedule.leaving => None,
            (Err(_), _) => Some(INVALID_SPEC),
            (Ok(_), Ready::ChildRefused(_)) => Some(CHILD_REFUSED),
            (Ok(_), _) => None,
        };
        let failures = schedule.status.failure_count;
        let triage = schedule.status.triage.as_ref();
        let filed = failures > 0 && triage.is_some_and(|triage| triage.state == State::Filed);
        Self { failures, held, unusable, filed }
    }

    fn is_worth_nothing(self) -> bool {
        self.failures == 0 && self.held.is_none() && self.unusable.is_none()
    }
}

impl ScheduleGauges {
    /// Shows the schedules of a target as they were judged.
    pub fn show(&mut self, key: &Key, target: &Target, judged: &[(ScheduleId, ScheduleJudgement)]) {
        if target.schedules.is_empty() && !self.shown.contains_key(key) && !self.each.knows(key) {
            return; // most targets have no schedules
        }
        self.forget_standing(key);
        self.each.show(key, target);
        let judged: HashMap<&Uid, _> = judged.iter().map(|(id, judgement)| (&id.uid, judgement.held)).collect();
        for schedule in target.schedules.values() {
            let held = judged.get(&schedule.id.uid).copied().flatten();
            self.show_one(key, schedule.id.clone(), Stands::of(schedule, held));
        }
    }

    fn show_one(&mut self, key: &Key, id: ScheduleId, stands: Stands) {
        if stands.is_worth_nothing() {
            return;
        }
        self.count(stands, 1);
        let has_series = self.failures.add([&*id.namespace, &*id.name], stands.failures);
        let uid = id.uid.clone();
        self.shown.entry(key.clone()).or_default().insert(uid, Shown { id, has_series, stands });
    }

    /// Removes the schedules of a target.
    pub fn forget(&mut self, key: &Key) {
        self.each.forget(key);
        self.forget_standing(key);
    }

    fn forget_standing(&mut self, key: &Key) {
        let shown = self.shown.remove(key).into_iter().flat_map(HashMap::into_values);
        for Shown { id, has_series, stands } in shown {
            self.count(stands, -1);
            if has_series {
                self.failures.remove([&*id.namespace, &*id.name]);
            } else {
                self.failures.remove_beyond(stands.failures);
            }
        }
    }

    /// Adds a schedule to the gauges of its state, or removes it.
    fn count(&self, stands: Stands, by: i64) {
        if let Some(why) = stands.unusable {
            self.unusable.with_label_values(&[why]).add(by);
        }
        if let Some(held) = stands.held {
            self.held.with_label_values(&[held.as_str()]).add(by);
            self.paused_by_triage.add(by * i64::from(held == HeldBy::TriagePaused));
        }
        self.filed.add(by * i64::from(stands.filed));
    }

    /// Removes all schedules.
    pub fn forget_all(&mut self) {
        let shown: Vec<Key> = self.shown.keys().cloned().collect();
        for key in &shown {
            self.forget_standing(key);
        }
        self.each.forget_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::core::Collector;

    fn key(number: u8) -> Key {
        Key::Unreadable(Uid::new(&number.to_string()))
    }

    fn id(name: &str) -> ScheduleId {
        ScheduleId { namespace: "ops".into(), name: name.into(), uid: Uid::new(name) }
    }

    fn series(gauges: &ScheduleGauges) -> Vec<(String, i64)> {
        let metrics = gauges.failures.gauge.collect().into_iter().flat_map(|mut family| family.take_metric());
        #[allow(clippy::cast_possible_truncation)] // small whole numbers
        let one = |metric: prometheus::proto::Metric| {
            let name = metric.get_label().iter().find(|it| it.name() == "schedule").unwrap().value().to_owned();
            (name, metric.get_gauge().get_value() as i64)
        };
        let mut all: Vec<_> = metrics.map(one).collect();
        all.sort();
        all
    }

    #[test]
    fn a_series_lasts_as_long_as_the_streak_and_their_number_is_limited() {
        let metrics = ScheduleMetrics::new().unwrap();
        let mut gauges = metrics.gauges();
        gauges.failures.most = 1;
        let busy = Stands { failures: 5, held: Some(HeldBy::ResourceBusy), filed: true, ..Stands::default() };
        let odd = Stands { unusable: Some(INVALID_SPEC), ..Stands::default() };
        gauges.show_one(&key(1), id("a"), Stands { failures: 2, ..Stands::default() });
        gauges.show_one(&key(2), id("b"), busy);
        gauges.show_one(&key(3), id("c"), Stands::default());
        gauges.show_one(&key(4), id("d"), odd);
        let unusable = metrics.unusable.with_label_values(&[INVALID_SPEC]);
        assert_eq!(unusable.get(), 1);
        gauges.forget(&key(4));
        assert_eq!(unusable.get(), 0);
        assert_eq!(series(&gauges), [("OVERFLOW".to_owned(), 5), ("a".to_owned(), 2)]);
        assert_eq!((gauges.held.with_label_values(&["ResourceBusy"]).get(), metrics.filed.get()), (1, 1));
        gauges.forget(&key(2));
        assert_eq!(series(&gauges), [("a".to_owned(), 2)]);
        assert_eq!((gauges.held.with_label_values(&["ResourceBusy"]).get(), metrics.filed.get()), (0, 0));
        gauges.forget_all();
        assert!(series(&gauges).is_empty());
    }
}
