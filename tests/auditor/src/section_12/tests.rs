use serde_json::json;

use super::*;

const NOON: Seconds = 1_780_315_200; // 2026-06-01T12:00:00Z

fn moment(seconds: Seconds) -> String {
    wfe_core::Time::from_timestamp(NOON + seconds, 0).unwrap().to_rfc3339()
}

/// The slot of noon has run, and so many have failed in a row.
fn after(failures: u64, ended: Seconds) -> State {
    let last = json!({"slot": moment(0), "endedAt": moment(ended), "outcome": "Failed"});
    State::read(&json!({"plannedFrom": moment(-600), "failureCount": failures, "lastRun": last})).unwrap()
}

/// The slot that is right at a time, in seconds after noon.
fn slot(spec: &Value, state: &State, now: Seconds) -> Vec<Seconds> {
    let plan = Plan::read(spec, &Value::Null).unwrap();
    let now = NOON + now..=NOON + now;
    (-3_600..7_200).filter(|slot| plan.denies(state, NOON + slot, &now).is_none()).collect()
}

#[test]
fn the_table_of_the_specification() {
    let minute = json!({"interval": "1m"});
    for (failures, due) in [(0, 60), (1, 130), (2, 250), (3, 490), (4, 970), (5, 1_930), (6, 1_930), (u64::MAX, 1_930)]
    {
        assert_eq!(slot(&minute, &after(failures, 10), due), [due], "{failures}");
        assert!(slot(&minute, &after(failures, 10), due - 1).is_empty(), "{failures} too early");
    }
    assert_eq!(slot(&json!({"interval": "1m", "maxInterval": "10m"}), &after(4, 10), 610), [610]);
    assert_eq!(slot(&minute, &after(0, 10), 450), [420], "of several that were missed the latest");
    assert_eq!(slot(&json!({"cron": "*/5 * * * *"}), &after(7, 10), 310), [300]);
    assert_eq!(slot(&json!({"cron": "*/5 * * * *"}), &after(7, 10), 910), [900]);
    assert!(slot(&json!({"cron": "*/5 * * * *"}), &after(7, 10), 299).is_empty());
}

#[test]
fn hints_and_their_clamps() {
    let hinted = |hint: Value, more: Value| {
        let mut spec = json!({"interval": "1m", "hint": hint});
        spec["hint"]["expiresAt"] = json!(moment(7_200));
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let soon = json!({"interval": "30s"});
    assert_eq!(slot(&hinted(soon.clone(), json!({})), &after(5, 10), 100), [60], "ClampedMin");
    assert_eq!(slot(&hinted(soon, json!({"minInterval": "10s"})), &after(5, 10), 100), [90], "of three the latest");
    let late = json!({"nextRunAt": moment(2_700)});
    assert_eq!(slot(&hinted(late, json!({"maxInterval": "30m"})), &after(0, 10), 2_800), [1_800], "ClampedMax");
    let spent = json!({"nextRunAt": moment(0)});
    assert_eq!(slot(&hinted(spent, json!({})), &after(0, 10), 60), [60]);
    let expired = json!({"interval": "1m", "hint": {"interval": "1s", "expiresAt": moment(50)}});
    assert_eq!(slot(&expired, &after(1, 10), 130), [130]);
    // One that came too late for its slot is spent: seed 1040 of the world.
    let mut late = hinted(json!({"interval": "10s"}), json!({"cron": "*/2 * * * *", "startingDeadlineSeconds": 20}));
    late.as_object_mut().unwrap().remove("interval");
    assert_eq!(slot(&late, &after(1, 10), 80), [60]);
    assert_eq!(slot(&late, &after(1, 10), 125), [120]);
}

#[test]
fn a_plan_that_has_just_begun_waits_for_its_first_slot() {
    let state = State::read(&json!({"plannedFrom": moment(20)})).unwrap();
    assert!(slot(&json!({"interval": "1m"}), &state, 79).is_empty());
    assert_eq!(slot(&json!({"interval": "1m"}), &state, 80), [80]);
    assert_eq!(slot(&json!({"interval": "1m", "spread": "5s"}), &state, 90), [80, 81, 82, 83, 84, 85]);
    assert_eq!(slot(&json!({"cron": "* * * * *"}), &state, 65), [60]);
    assert!(State::read(&json!({})).is_none());
}

#[test]
fn what_is_not_understood_is_not_judged() {
    for spec in [json!({}), json!({"cron": "0 0 * *"}), json!({"cron": "0 0 L * *"}), json!({"interval": "soon"})] {
        assert!(Plan::read(&spec, &Value::Null).is_none(), "{spec}");
    }
    let elsewhere = json!({"cron": "0 2 * * *", "timeZone": "Europe/Berlin"});
    assert!(Plan::read(&elsewhere, &Value::Null).is_none());
}

#[test]
fn fields_of_a_cron_expression() {
    let has = |cron: &str, at: &str| Cron::read(cron).unwrap().has(crate::moment::seconds_of(at).unwrap());
    for (cron, at) in [
        ("30 2 * * *", "2026-06-01T02:30:00Z"),
        ("0 0 13 * FRI", "2026-06-05T00:00:00Z"),
        ("0 0 13 * FRI", "2026-06-13T00:00:00Z"),
        ("0 0 * * 7", "2026-06-07T00:00:00Z"),
        ("10-20/5 0 1 JAN,JUN *", "2026-06-01T00:15:00Z"),
    ] {
        assert!(has(cron, at), "{cron} {at}");
    }
    for (cron, at) in [
        ("30 2 * * *", "2026-06-01T02:30:01Z"),
        ("0 0 13 * *", "2026-06-05T00:00:00Z"),
        ("0 0 * * MON-FRI", "2026-06-07T00:00:00Z"),
    ] {
        assert!(!has(cron, at), "{cron} {at}");
    }
}
