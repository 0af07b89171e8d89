use std::sync::atomic::{AtomicU32, Ordering};

use prometheus::core::Collector;
use serde_json::{Value, json};
use wfe_view::index::{Delivery, Kind};

use super::*;
use crate::metrics::schedules::ScheduleMetrics;

const PLANNED_FROM: &str = "2027-01-15T08:00:00Z";

/// Returns a target with these schedules and their statuses.
fn target(schedules: &[(&str, Value)]) -> Target {
    static VERSION: AtomicU32 = AtomicU32::new(1);
    let mut target = Target::default();
    let version = VERSION.fetch_add(1, Ordering::Relaxed).to_string();
    for (name, status) in schedules {
        let workflow = json!({"workflowId": "w", "version": "1", "containerImage": "registry.example/w:1"});
        let mut object = json!({
            "metadata": {"name": name, "namespace": "ops", "uid": name, "resourceVersion": version, "generation": 1},
            "spec": {
                "interval": "60s", "template": {"spec": {"targetResource": "node/n", "workflowRef": workflow}},
            },
            "status": {"plannedFrom": PLANNED_FROM},
        });
        object["status"].as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        let object = serde_json::from_value(object).unwrap();
        let Some(Delivery::Schedule(record)) = wfe_view::read::read(Kind::Schedule, &object, "runs") else {
            panic!("{name} cannot be read")
        };
        target.schedules.insert(Uid::new(name), record.schedule);
    }
    target
}

/// Returns the status of a schedule whose last run has ended. Its slot was `minute` minutes after the plan began, and
/// `missed` slots before it were missed.
fn ran(minute: u32, missed: u32) -> Value {
    let slot = |minute: u32| format!("2027-01-15T08:{minute:02}:00Z");
    let mut status = json!({"lastRun": {"slot": slot(minute), "outcome": "Failed", "endTime": slot(minute + 1)}});
    if missed > 0 {
        status["lastMissed"] = json!({"slot": slot(minute - 1), "count": missed});
    }
    status
}

fn key() -> Key {
    Key::Unreadable(Uid::new("n"))
}

/// Returns the series as `name/label`, with their values.
fn slots(each: &EachSchedule) -> Vec<(String, u64)> {
    let metrics = each.slots.collect().into_iter().flat_map(|mut family| family.take_metric());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small whole numbers
    let mut all: Vec<_> = metrics
        .map(|metric| {
            let label = |name: &str| metric.get_label().iter().find(|it| it.name() == name).unwrap().value().to_owned();
            let count = metric.get_counter().get_value() as u64;
            (format!("{}/{}", label("schedule"), label("came_of")), count)
        })
        .collect();
    all.sort();
    all
}

fn expect(each: &EachSchedule, expected: &[(&str, u64)]) {
    let expected: Vec<_> = expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert_eq!(slots(each), expected);
}

#[test]
fn each_slot_is_counted_once_and_the_series_begin_at_zero() {
    let mut each = ScheduleMetrics::new().unwrap().gauges().each;
    each.show(&key(), &target(&[("a", ran(5, 4))]));
    expect(&each, &[("a/Missed", 0), ("a/Run", 0)]); // another process has counted these slots
    for _ in 0..2 {
        each.show(&key(), &target(&[("a", ran(8, 2))]));
        expect(&each, &[("a/Missed", 2), ("a/Run", 1)]);
    }
    let at_work = json!({"lastRun": {"slot": "2027-01-15T08:10:00Z"}, "lastMissed": ran(8, 2)["lastMissed"]});
    each.show(&key(), &target(&[("a", at_work)]));
    expect(&each, &[("a/Missed", 2), ("a/Run", 1)]);
    each.show(&key(), &target(&[("a", ran(10, 0)), ("b", json!({}))]));
    expect(&each, &[("a/Missed", 2), ("a/Run", 2), ("b/Missed", 0), ("b/Run", 0)]);
    each.show(&key(), &target(&[("b", json!({}))]));
    expect(&each, &[("b/Missed", 0), ("b/Run", 0)]);
    each.forget_all();
    expect(&each, &[]);
}

#[test]
fn what_is_beyond_the_limit_is_counted_together() {
    let mut each = ScheduleMetrics::new().unwrap().gauges().each;
    each.most = 1;
    each.show(&key(), &target(&[("a", json!({}))]));
    let other = Key::Unreadable(Uid::new("m"));
    each.show(&other, &target(&[("b", json!({}))]));
    each.show(&other, &target(&[("b", ran(8, 2))]));
    expect(&each, &[("OVERFLOW/Missed", 2), ("OVERFLOW/Run", 1), ("a/Missed", 0), ("a/Run", 0)]);
    each.forget(&key());
    each.show(&other, &target(&[("b", ran(8, 2)), ("c", json!({}))]));
    expect(&each, &[("OVERFLOW/Missed", 2), ("OVERFLOW/Run", 1), ("c/Missed", 0), ("c/Run", 0)]);
}

#[test]
fn it_is_shown_by_when_a_schedule_should_have_succeeded() {
    let mut each = ScheduleMetrics::new().unwrap().gauges().each;
    let due = |each: &EachSchedule| {
        let mut found = each.success_due.collect();
        found.remove(0).take_metric().first().map(|metric| metric.get_gauge().get_value())
    };
    each.show(&key(), &target(&[("a", json!({}))]));
    assert_eq!(due(&each), Some(1_800_000_180.), "three intervals after the plan began");
    each.show(&key(), &target(&[("a", json!({"lastSuccessTime": "2027-01-15T08:10:00Z"}))]));
    assert_eq!(due(&each), Some(1_800_000_780.));
    let mut suspended = target(&[("a", json!({}))]);
    suspended.schedules.values_mut().for_each(|it| it.suspended = true);
    each.show(&key(), &suspended);
    assert_eq!(due(&each), None);
}
