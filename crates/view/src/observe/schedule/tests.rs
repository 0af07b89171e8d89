//! Tests a valid schedule with every field, every invalid input of section 13.8, and objects of any shape.

use proptest::prelude::*;
use wfe_core::fingerprint::Fingerprint;
use wfe_core::schedule::{Held, HeldBy, LastRun, Missed, Outcome, Planned, PlannedBy, Ready, ScheduleStatus};

use super::*;

const SECRET: &str = "hunter2";

fn spec() -> Value {
    json!({
        "interval": "10m",
        "template": {
            "metadata": {"labels": {"team": "payment"}, "annotations": {"note": "nightly"}},
            "spec": {
                "targetResource": "payment/Deployments.apps/api",
                "workflowRef": {"workflowId": "restart", "version": "1.0", "containerImage": "registry.example/r:1.0"},
                "parameters": {"PASSWORD": SECRET},
                "executionConfig": {"timeout": "5m"},
                "retry": 3,
            },
        },
    })
}

fn cron(expression: &str, zone: Option<&str>) -> Value {
    let mut spec = with("/interval", Value::Null);
    (spec["cron"], spec["timeZone"]) = (expression.into(), zone.into());
    spec
}

/// Returns the valid spec with one part replaced.
fn with(path: &str, value: impl Into<Value>) -> Value {
    let mut spec = spec();
    let (parent, field) = path.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[field] = value.into();
    spec
}

fn object(spec: &Value, status: &Value) -> DynamicObject {
    let object = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
        "metadata": {"name": "nightly", "namespace": "ops", "uid": "u", "generation": 7, "resourceVersion": "12"},
        "spec": spec, "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn read(spec: &Value) -> Schedule {
    observe_schedule(&object(spec, &json!({}))).unwrap().schedule
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(text: &str) -> Time {
    parse_moment(text).unwrap()
}

#[test]
fn a_schedule_is_read_with_its_defaults() {
    let ScheduleRecord { schedule, target } = observe_schedule(&object(&spec(), &Value::Null)).unwrap();
    assert_eq!(target.as_ref().map(TargetName::as_str), Some("payment/deployment/api"));
    let plan = Plan {
        every: Every::Interval(seconds(600)),
        min_interval: MINUTE,
        max_interval: DAY,
        spread: Duration::ZERO,
        deadline: None,
    };
    assert_eq!((schedule.plan, schedule.generation, &*schedule.workflow_id), (Ok(plan), 7, "restart"));
    assert_eq!((schedule.suspended, schedule.leaving, schedule.hint), (false, false, None));
    assert_eq!(schedule.history, HistoryLimits { successful: 3, failed: 3 });
    assert_eq!(schedule.status, ScheduleStatus::default());
}

#[test]
fn what_is_not_given_never_contradicts_what_is() {
    let day = DAY.as_secs();
    for (spec, min, max) in [
        (with("/interval", "30s"), 30, day),
        (with("/interval", "720h"), 72 * 3600, 720 * 3600),
        (with("/interval", "1h"), 360, day),
        (with("/interval", "1s"), 1, day),
        (with("/minInterval", "5m"), 300, day),
        (with("/maxInterval", "10m"), 60, 600),
        (with("/minInterval", "10m"), 600, day),
        (cron("30 2 * * *", None), 60, day),
    ] {
        let plan = read(&spec).plan.unwrap();
        assert_eq!((plan.min_interval, plan.max_interval), (seconds(min), seconds(max)), "{spec}");
    }
    let clamped = |field: &str, value: &str| {
        let mut spec = cron("30 2 * * *", None);
        spec[field] = value.into();
        let plan = read(&spec).plan.unwrap();
        (plan.min_interval, plan.max_interval)
    };
    assert_eq!(clamped("minInterval", "48h"), (2 * DAY, 2 * DAY));
    assert_eq!(clamped("maxInterval", "30s"), (seconds(30), seconds(30)));
}

#[test]
fn a_spec_that_cannot_be_used_names_the_field_and_what_to_do() {
    let many: Value = (0..17).map(|number| (format!("l{number}"), json!(""))).collect::<serde_json::Map<_, _>>().into();
    let crossed = |min: &str, max: &str| {
        let mut spec = cron("30 2 * * *", None);
        (spec["minInterval"], spec["maxInterval"]) = (min.into(), max.into());
        spec
    };
    let mut spread = with("/spread", "10m");
    spread["interval"] = "10m".into();
    for (spec, said) in [
        (json!(null), "spec: "),
        (json!([]), "spec: "),
        (with("/interval", "0s"), "spec.interval: must be a duration in whole seconds from 1s to 720h"),
        (with("/interval", "-1m"), "spec.interval: "),
        (with("/interval", "1500ms"), "spec.interval: "),
        (with("/interval", "1 m"), "spec.interval: "),
        (with("/interval", "721h"), "spec.interval: "),
        (with("/interval", "99999999999999999999h"), "spec.interval: "),
        (with("/interval", ""), "spec.interval: "),
        (with("/interval", 60), "spec.interval: "),
        (with("/interval", Value::Null), "spec: has neither interval nor cron"),
        (with("/cron", "30 2 * * *"), "spec: has both interval and cron"),
        (with("/timeZone", "UTC"), "spec.timeZone: goes with cron only"),
        (cron("0 0 31 2 *", None), "spec.cron"),
        (cron("61 * * * *", None), "spec.cron"),
        (cron("* * * *", None), "spec.cron"),
        (cron("* * * * * *", None), "spec.cron"),
        (cron("@daily", None), "spec.cron"),
        (cron("30 2 * * *", Some("Mars/Olympus")), "spec.timeZone"),
        (cron("30 2 * * *", Some("Local")), "spec.timeZone"),
        (cron("30 2 * * *", Some("+02:00")), "spec.timeZone"),
        (cron("30 2 * * *", Some("")), "spec.timeZone"),
        (with("/spread", "25h"), "spec.spread: must be a duration in whole seconds from 0s to 24h"),
        (spread, "spec.spread: must be shorter than interval"),
        (with("/minInterval", "11m"), "spec.minInterval: must not be longer than interval"),
        (with("/maxInterval", "9m"), "spec.maxInterval: must not be shorter than interval"),
        (with("/maxInterval", "0s"), "spec.maxInterval: "),
        (crossed("2h", "1h"), "spec.maxInterval: must not be shorter than minInterval"),
        (with("/startingDeadlineSeconds", 9), "spec.startingDeadlineSeconds: "),
        (with("/startingDeadlineSeconds", 2_592_001), "spec.startingDeadlineSeconds: "),
        (with("/startingDeadlineSeconds", "60"), "spec.startingDeadlineSeconds: "),
        (with("/suspend", "yes"), "spec.suspend: "),
        (with("/history", 3), "spec.history: "),
        (with("/history", json!({"successful": -1})), "spec.history.successful: "),
        (with("/history", json!({"failed": 101})), "spec.history.failed: "),
        (with("/template", Value::Null), "spec.template.spec: "),
        (with("/template/spec/targetResource", "nonsense"), "spec.template.spec.targetResource: "),
        (with("/template/spec/targetResource", "ops/node/x"), "spec.template.spec.targetResource: "),
        (with("/template/spec/workflowRef/containerImage", "UPPER"), "spec.template.spec.workflowRef.containerImage: "),
        (with("/template/spec/parameters", json!({"TARGET_RESOURCE": SECRET})), "spec.template.spec.parameters: "),
        (with("/template/spec/parameters", json!({"PASSWORD": 7})), "spec.template.spec: "),
        (
            with("/template/spec/parameters", json!({"A": format!("{SECRET}$(tasks.a.results.b)")})),
            "spec.template.spec.parameters.A: a value must not refer to a variable of Tekton",
        ),
        (with("/template/spec/executionConfig/timeout", "soon"), "spec.template.spec.executionConfig.timeout: "),
        (with("/template/spec/ttlSecondsAfterFinished", -1), "spec.template.spec.ttlSecondsAfterFinished: "),
        (with("/template/spec/retry", 21), "spec.template.spec.retry: "),
        (with("/template/spec/retry", json!({"retryWhen": "nonsense("})), "spec.template.spec.retry.retryWhen: "),
        (with("/template/metadata/labels", json!({"kubernaut.ai/schedule": "x"})), "spec.template.metadata.labels: "),
        (with("/template/metadata/labels", many.clone()), "spec.template.metadata.labels: has more than 16 entries"),
        (with("/template/metadata/annotations", many), "spec.template.metadata.annotations: has more than 16 entries"),
        (with("/template/metadata/annotations", json!({"a": 1})), "spec.template.metadata.annotations: "),
    ] {
        let why = read(&spec).plan.unwrap_err();
        assert!(why.starts_with(said), "{spec}\n{why}");
        assert!(why.len() > said.len() + 5, "it says what to do: {why}");
        assert!(!why.contains(SECRET), "{why}");
    }
    let mut long = object(&spec(), &Value::Null);
    long.metadata.name = Some("n".repeat(64));
    let why = observe_schedule(&long).unwrap().schedule.plan.unwrap_err();
    assert!(why.starts_with("metadata.name: is longer than 63 characters"), "{why}");
}

#[test]
fn a_schedule_that_cannot_be_used_is_suspended_and_pruned_as_it_says_all_the_same() {
    let mut spec = with("/interval", "0s");
    (spec["suspend"], spec["history"]) = (true.into(), json!({"successful": 0, "failed": 100}));
    let schedule = read(&spec);
    assert!(schedule.suspended && schedule.plan.is_err());
    assert_eq!(schedule.history, HistoryLimits { successful: 0, failed: 100 });
    let unreadable = read(&with("/history", json!({"successful": "none"}))).history;
    assert_eq!(unreadable, HistoryLimits { successful: 100, failed: 100 }, "nothing is removed by mistake");
    let record = observe_schedule(&object(&with("/template/spec/targetResource", 3), &Value::Null)).unwrap();
    assert_eq!(record.key(), crate::index::Key::Unreadable(Uid::new("u")));
}

#[test]
fn a_hint_is_read_or_is_none() {
    let (soon, late) = ("2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z");
    let hint = |value: Value| read(&with("/hint", value)).hint.map(|hint| *hint);
    let good = hint(json!({"nextRunAt": soon, "expiresAt": late, "reason": "disk fills up"}));
    assert_eq!(good, Some(Hint { wish: Wish::At(at(soon)), expires_at: at(late) }));
    let good = hint(json!({"interval": "30s", "expiresAt": late}));
    assert_eq!(good, Some(Hint { wish: Wish::Interval(seconds(30)), expires_at: at(late) }));
    for none in [
        json!(null),
        json!("soon"),
        json!({"expiresAt": late}),
        json!({"nextRunAt": soon}),
        json!({"nextRunAt": soon, "interval": "30s", "expiresAt": late}),
        json!({"nextRunAt": late, "expiresAt": soon}),
        json!({"nextRunAt": soon, "expiresAt": soon}),
        json!({"nextRunAt": "1969-12-31T23:59:59Z", "expiresAt": late}),
        json!({"nextRunAt": soon, "expiresAt": "9999-01-01T00:00:00Z"}),
        json!({"interval": "0s", "expiresAt": late}),
        json!({"interval": "721h", "expiresAt": late}),
        json!({"interval": "1500ms", "expiresAt": late}),
    ] {
        assert_eq!(hint(none.clone()), None, "{none}");
    }
    assert!(read(&with("/hint", "soon")).plan.is_ok(), "an advisor stops nothing");
}

#[test]
fn the_revision_changes_with_what_the_plan_is_made_of_and_with_nothing_else() {
    let revision = |spec: &Value| read(spec).revision;
    let (known, slow) = (revision(&spec()), revision(&with("/interval", "11m")));
    assert_ne!(known, slow);
    let mut other = object(&spec(), &Value::Null);
    other.metadata.uid = Some("v".to_owned());
    assert_ne!(observe_schedule(&other).unwrap().schedule.revision, known);
    assert_ne!(revision(&cron("30 2 * * *", None)), revision(&cron("30 2 * * *", Some("Europe/Berlin"))));
    let parts = |path: &str, value: &Value| revision(&with(path, value.clone())).parts();
    let (uid, plan, template) = known.parts();
    for (path, value) in [("/interval", "11m"), ("/spread", "1s"), ("/timeZone", "UTC")] {
        let (same_uid, other, same) = parts(path, &json!(value));
        assert_eq!((same_uid, other != plan, same), (uid, true, template), "{path}");
    }
    for path in ["/template/spec/workflowRef/version", "/template/spec/targetResource", "/template/spec/parameters"] {
        let (same_uid, same, other) = parts(path, &json!("2"));
        assert_eq!((same_uid, same, other != template), (uid, plan, true), "{path}");
    }
    for (path, value) in [
        ("/suspend", json!(true)),
        ("/hint", json!({})),
        ("/history", json!({"failed": 1})),
        ("/minInterval", json!("1s")),
        ("/maxInterval", json!("48h")),
        ("/template/spec/rationale", json!("2")),
        ("/template/spec/ttlSecondsAfterFinished", json!(2)),
        ("/template/metadata", json!({"labels": {"release": "2"}})),
        ("/startingDeadlineSeconds", json!(10)),
    ] {
        assert_eq!(revision(&with(path, value)), known, "{path}");
    }
    // A revision that an earlier build wrote still identifies the plan of an unchanged spec.
    let written = |spec: &Value, revision: &str| {
        observe_schedule(&object(spec, &json!({"revision": revision}))).unwrap().schedule.status.revision
    };
    let uid = object(&spec(), &Value::Null).metadata.uid.unwrap();
    let former = format!("{:016x}", former_revision(&Uid::new(&uid), &spec()));
    assert_eq!(written(&spec(), &former), Some(known));
    assert_eq!(written(&with("/template/metadata", json!({"labels": {"a": "b"}})), &former), None, "it was edited");
    let ordered = r#"{"template": {"spec": {"b": 1, "a": {"d": 2, "c": 3}}}}"#;
    let turned = r#"{"template": {"spec": {"a": {"c": 3, "d": 2}, "b": 1}}}"#;
    let of = |text: &str| revision(&serde_json::from_str(text).unwrap());
    assert_eq!(of(ordered), of(turned), "the order of the keys says nothing");
}

#[test]
fn a_status_is_read_as_it_is_however_absurd() {
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2027-01-01T00:00:00Z"});
    let status = |value: Value| observe_schedule(&object(&spec(), &value)).unwrap().schedule.status;
    let read = status(json!({
        "observedGeneration": 7, "revision": "0001-00002-00003", "plannedFrom": "2027-01-01T00:00:00Z", "failureCount": 4,
        "lastRun": {
            "name": "nightly-1798761600", "slot": "2027-01-01T00:00:00Z", "startedAt": "2027-01-01T00:00:01Z",
            "endedAt": "2027-01-01T00:00:09Z", "outcome": "Failed", "reason": "Forbidden", "message": "no",
            "fingerprint": "Forbidden/cluster", "again": true,
        },
        "phase": "2026-12-31T23:50:00Z", "lastSuccessTime": "2026-12-31T00:00:00Z", "lastMissed": {"slot": "2026-12-31T12:00:00Z", "count": 3},
        "nextRunTime": "2027-01-01T00:20:00Z", "nextRunReason": "Backoff",
        "conditions": [condition("Ready", "True", "Accepted"), condition("Held", "True", "Paused")],
    }));
    let last_run = LastRun {
        slot: at("2027-01-01T00:00:00Z"),
        again: true,
        started_at: Some(at("2027-01-01T00:00:01Z")),
        ended_at: Some(at("2027-01-01T00:00:09Z")),
        outcome: Some(Outcome::Failed),
        reason: Some("Forbidden".into()),
        fingerprint: Fingerprint::parse("Forbidden/cluster"),
        message: Some("no".into()),
    };
    let expected = ScheduleStatus {
        observed_generation: Some(7),
        revision: Some(Revision::of(1, 2, 3)),
        planned_from: Some(at("2027-01-01T00:00:00Z")),
        phase: Some(at("2026-12-31T23:50:00Z")),
        failure_count: 4,
        last_run: Some(last_run.clone()),
        last_success: Some(at("2026-12-31T00:00:00Z")),
        last_missed: Some(Missed { slot: at("2026-12-31T12:00:00Z"), count: 3 }),
        next: Some(Planned { at: at("2027-01-01T00:20:00Z"), why: PlannedBy::Backoff }),
        triage: None,
        adjust: None,
        ready: Ready::Yes,
        held: Held::By { reason: HeldBy::Paused, message: "m".into() },
        ready_since: Some(at("2027-01-01T00:00:00Z")),
        held_since: Some(at("2027-01-01T00:00:00Z")),
    };
    assert_eq!(read, expected);

    let last = |value: Value| status(json!({ "lastRun": value })).last_run;
    let absurd = "9998-12-31T23:59:59Z";
    assert_eq!(last(json!({"slot": absurd})).unwrap().slot, at(absurd), "the decision sees to it");
    let named = last(json!({"slot": "soon", "name": "nightly-1798761600"})).unwrap();
    assert_eq!((named.slot, named.outcome), (at("2027-01-01T00:00:00Z"), None));
    for none in [json!({}), json!(7), json!({"name": "other-1798761600"}), json!({"name": "nightly-+5"})] {
        assert_eq!(last(none.clone()), None, "{none}");
    }
    let unknown = last(json!({"slot": absurd, "outcome": "Marvellous"})).unwrap().outcome;
    assert_eq!(unknown, Some(Outcome::Skipped), "another version's word counts for nothing");
    let long = last(json!({"slot": absurd, "message": "x".repeat(100_000)})).unwrap().message.unwrap();
    assert_eq!(long.chars().count(), 1024);

    let odd = status(json!({
        "failureCount": u64::MAX, "revision": "+0000000000000ff", "lastMissed": {"slot": absurd},
        "nextRunTime": absurd, "nextRunReason": "Mood",
    }));
    assert_eq!((odd.failure_count, odd.revision, odd.last_missed, odd.next), (2_147_483_647, None, None, None));
    assert_eq!(status(json!({"failureCount": -3})).failure_count, 0);
    for (conditions, ready, held) in [
        (json!([condition("Ready", "False", "InvalidSpec")]), Ready::InvalidSpec("m".into()), Held::Never),
        (json!([condition("Ready", "False", "ChildRefused")]), Ready::ChildRefused("m".into()), Held::Never),
        (json!([condition("Held", "False", "Released")]), Ready::Unsaid, Held::Released),
        (json!([condition("Held", "False", "WouldBeHeld")]), Ready::Unsaid, Held::Ahead("m".into())),
        (json!([condition("Ready", "Unknown", "Mood"), {"type": "Held"}]), Ready::Unsaid, Held::Never),
    ] {
        let read = status(json!({ "conditions": conditions }));
        assert_eq!((read.ready, read.held), (ready, held), "{conditions}");
    }
}

const KEYS: &[&str] = &[
    "interval",
    "cron",
    "timeZone",
    "spread",
    "minInterval",
    "maxInterval",
    "suspend",
    "template",
    "metadata",
    "labels",
    "spec",
    "targetResource",
    "workflowRef",
    "parameters",
    "retry",
    "history",
    "successful",
    "hint",
    "nextRunAt",
    "expiresAt",
    "lastRun",
    "slot",
    "name",
    "outcome",
    "revision",
    "phase",
    "plannedFrom",
    "failureCount",
    "conditions",
];

const TEXTS: &[&str] =
    &["", "10m", "30 2 * * *", "UTC", "2027-01-01T00:00:00Z", "9998-12-31T23:59:59Z", "node/x", "nightly-60"];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(TEXTS).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        (2000..40_000_usize).prop_map(|length| "ä".repeat(length).into()),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(prop::sample::select(KEYS), inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Replaces the part of a value that `steps` leads to.
fn replace(value: &mut Value, steps: &[usize], by: Value) {
    let inside = match value {
        Value::Array(entries) if !entries.is_empty() => {
            let place = steps.first().map_or(0, |step| step % entries.len());
            entries.get_mut(place)
        }
        Value::Object(fields) if !fields.is_empty() => {
            let place = steps.first().map_or(0, |step| step % fields.len());
            fields.values_mut().nth(place)
        }
        _ => None,
    };
    match (inside, steps) {
        (Some(inside), [_, rest @ ..]) => replace(inside, rest, by),
        _ => *value = by,
    }
}

proptest! {
    #[test]
    fn a_schedule_of_any_shape_has_a_record(
        changes in prop::collection::vec((prop::collection::vec(any::<usize>(), 0..5), any_json()), 0..4),
        status in any_json(),
    ) {
        let mut spec = spec();
        for (steps, by) in changes {
            replace(&mut spec, &steps, by);
        }
        let record = observe_schedule(&object(&spec, &status)).unwrap();
        if let Err(why) = &record.schedule.plan {
            prop_assert!(why.starts_with("spec") && why.chars().count() <= 1024, "{}", why);
            prop_assert!(!why.contains(SECRET), "{}", why);
        }
        // Planning accepts every record, too.
        let now = at("2027-01-01T00:00:00Z");
        let _ = record.schedule.next_run(now);
        let _ = record.schedule.keeps();
        prop_assert!(record.schedule.status.failure_count <= 2_147_483_647);
    }
}
