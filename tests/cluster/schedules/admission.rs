//! A bad schedule is refused with a message that names the field, and a schedule just within the limits is accepted.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::objects::{Schedules, but, by_cron, good};
use crate::admission::objects::{expect, refusal, report};

pub(super) type Row<'a> = (&'a [(&'a str, Value)], &'a [&'a str]);

/// Tries a table of changes to a valid schedule.
pub(super) async fn check(from: &Value, rows: &[Row<'_>]) -> Result<()> {
    let schedules = Schedules::new().await?;
    let mut failures = Vec::new();
    for (changes, words) in rows {
        let row = format!("{:.120}", format!("{changes:?}"));
        expect(&mut failures, &row, words, schedules.try_create(but(from.clone(), changes)?).await?);
    }
    report(&failures)
}

/// Tries values of one field, which must all be refused with these words.
pub(super) async fn check_refused(from: &Value, field: &str, words: &[&str], values: &[Value]) -> Result<()> {
    let changes: Vec<_> = values.iter().map(|value| [(field, value.clone())]).collect();
    let rows: Vec<Row<'_>> = changes.iter().map(|change| (&change[..], words)).collect();
    check(from, &rows).await
}

/// Returns this many pairs whose keys are valid label keys.
fn pairs(count: usize, value: &str) -> Value {
    Value::Object((0..count).map(|n| (format!("key-{n}"), json!(value))).collect::<Map<_, _>>())
}

#[tokio::test]
async fn a_duration_that_is_none_is_refused_by_name() -> Result<()> {
    let malformed: Vec<Value> = ["", "-5m", "5", "1500ms", "1.5m", "1 m", "1m1h", "1d", "banana", "100000s", "5m\n"]
        .map(|text| json!(text))
        .into_iter()
        .chain([json!("99999999999999999999h")])
        .collect();
    for (field, least, beyond) in [
        ("interval", "1s", &["0s", "721h", "720h1s"][..]),
        ("minInterval", "1s", &["0s", "720h0m1s", "99999h"]),
        ("maxInterval", "1s", &["0s", "00000h", "43201m"]),
        ("spread", "0s", &["24h1s", "86401s"]),
    ] {
        let most = if field == "spread" { "24h" } else { "720h" };
        let words = format!("spec.{field}: must be a duration in whole seconds from {least} to {most}, e.g.");
        let beyond = beyond.iter().map(|text| json!(text));
        let values: Vec<Value> = malformed.iter().cloned().chain(beyond).collect();
        check_refused(&good(), field, &[&words], &values).await?;
        let (typed, long) = (format!("spec.{field}"), format!("spec.{field}: Too long"));
        check_refused(&good(), field, &[&typed, "must be of type string"], &[json!(60)]).await?;
        check_refused(&good(), field, &[&long], &[json!("1".repeat(33))]).await?;
    }
    let words = "spec.hint.interval: must be a duration in whole seconds from 1s to 720h, e.g.";
    let by_interval = but(good(), &[("hint/nextRunAt", json!(null))])?;
    check_refused(&by_interval, "hint/interval", &[words], &["0s", "721h", "1.5h", ""].map(|it| json!(it))).await
}

/// The refusal must not contain an additional error from `duration()`, which would hide which field is wrong.
#[tokio::test]
async fn a_malformed_duration_is_told_once() -> Result<()> {
    let schedules = Schedules::new().await?;
    for field in ["interval", "spread", "minInterval", "maxInterval"] {
        for from in [good(), by_cron()?] {
            if from["spec"][field].is_null() {
                continue;
            }
            let refusal = schedules.try_create(but(from, &[(field, json!("banana"))])?).await?.unwrap_or_default();
            let told = refusal.matches("spec.").count();
            ensure!(!refusal.contains("evaluating rule") && told <= 2, "{field}: {refusal}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_plan_that_contradicts_itself_is_refused_by_name() -> Result<()> {
    let one: &[&str] = &["spec.interval: exactly one of interval and cron must be set"];
    let spread: &[&str] = &["spec.spread: must be less than interval"];
    let min: &[&str] = &["spec.minInterval: must not be above interval"];
    let max: &[&str] = &["spec.maxInterval: must not be below interval"];
    let rows: &[Row<'_>] = &[
        (&[("cron", json!("0 2 * * *"))], one),
        (&[("interval", json!(null))], one),
        (&[("timeZone", json!("UTC"))], &["spec.timeZone: may be set only with cron"]),
        (&[("interval", json!("5m")), ("spread", json!("5m"))], spread),
        (&[("interval", json!("5m")), ("spread", json!("301s"))], spread),
        (&[("minInterval", json!("3601s"))], min),
        (&[("interval", json!("4m59s"))], min),
        (&[("maxInterval", json!("59m59s"))], max),
        (&[("interval", json!("13h"))], max),
        (&[("minInterval", json!("13h"))], min),
        (&[("startingDeadlineSeconds", json!(9))], &["spec.startingDeadlineSeconds", "greater than or equal to 10"]),
        (&[("startingDeadlineSeconds", json!(2_592_001))], &["spec.startingDeadlineSeconds", "less than or equal to"]),
        (&[("startingDeadlineSeconds", json!("60"))], &["spec.startingDeadlineSeconds", "must be of type integer"]),
        (&[("suspend", json!("true"))], &["spec.suspend", "must be of type boolean"]),
        (&[("history", json!({"successful": -1}))], &["spec.history.successful", "greater than or equal to 0"]),
        (&[("history", json!({"successful": 101}))], &["spec.history.successful", "less than or equal to 100"]),
        (&[("history", json!({"failed": -1}))], &["spec.history.failed", "greater than or equal to 0"]),
        (&[("history", json!({"failed": 101}))], &["spec.history.failed", "less than or equal to 100"]),
        (&[("/metadata/name", json!("n".repeat(64)))], &["metadata.name: must have at most 63 characters"]),
    ];
    check(&good(), rows).await?;
    let crossed: &[&str] = &["spec.maxInterval: must not be below minInterval"];
    let (no_min, no_max) = (("minInterval", json!(null)), ("maxInterval", json!(null)));
    let rows: &[Row<'_>] = &[
        (&[("minInterval", json!("2h")), ("maxInterval", json!("1h"))], crossed),
        (&[("minInterval", json!("25h")), no_max], crossed),
        (&[("maxInterval", json!("59s")), no_min], crossed),
    ];
    check(&by_cron()?, rows).await
}

#[tokio::test]
async fn what_is_no_cron_expression_is_refused_by_name() -> Result<()> {
    let words = "spec.cron: must be five fields with one blank between two of them";
    let bad = [
        "",
        "*",
        "* * * *",
        "* * * * * *",
        "*  * * * *",
        " * * * * *",
        "* * * * * ",
        "*\t* * * *",
        "* * * * *\n",
        "@daily",
        "@every 5m",
        "0 0 L * *",
        "0 0 1W * *",
        "0 0 * * MON#1",
        "0 0 ? * *",
        "+1 * * * *",
        "0 0 * * mon",
        "0 0 * jan *",
        "0 0 * * MONDAY",
        "0 0 * MON *",
        "0 0 * * JAN",
        "JAN 0 * * *",
        "TZ=UTC 0 0 * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "10/15 * * * *",
    ];
    check_refused(&by_cron()?, "cron", &[words], &bad.map(|text| json!(text))).await?;
    check_refused(&by_cron()?, "cron", &["spec.cron: Too long"], &[json!(format!("{} * * * *", "0".repeat(121)))])
        .await?;
    check_refused(&by_cron()?, "cron", &["spec.cron", "must be of type string"], &[json!(5)]).await
}

#[tokio::test]
async fn what_is_no_time_zone_is_refused_by_name() -> Result<()> {
    let words = "spec.timeZone: must be the IANA name of a time zone, e.g. Europe/Berlin or UTC";
    let malformed = ["", "Local", "+02:00", "02:00", "-1", "Europe/Berlin ", "../etc/passwd", "/UTC", "Europe\\Berlin"];
    check_refused(&by_cron()?, "timeZone", &[words], &malformed.map(|text| json!(text))).await?;
    let unknown = ["spec.timeZone", "unknown time zone Mars/Olympus", words];
    check_refused(&by_cron()?, "timeZone", &unknown, &[json!("Mars/Olympus")]).await?;
    check_refused(&by_cron()?, "timeZone", &["spec.timeZone: Too long"], &[json!("Z".repeat(65))]).await
}

#[tokio::test]
async fn a_hint_that_says_nothing_is_refused_by_name() -> Result<()> {
    let one: &[&str] = &["spec.hint.nextRunAt: exactly one of nextRunAt and interval must be set"];
    let after: &[&str] = &["spec.hint.expiresAt: must be after nextRunAt"];
    let at_years: &[&str] = &["spec.hint.nextRunAt: must lie in the years 1970 to 9998"];
    let end_years: &[&str] = &["spec.hint.expiresAt: must lie in the years 1970 to 9998"];
    let rows: &[Row<'_>] = &[
        (&[("hint/interval", json!("30s"))], one),
        (&[("hint/nextRunAt", json!(null))], one),
        (&[("hint/expiresAt", json!(null))], &["spec.hint.expiresAt: Required value"]),
        (&[("hint", json!({}))], &["spec.hint.expiresAt: Required value"]),
        (&[("hint/expiresAt", json!("2098-01-02T03:04:05Z"))], after),
        (&[("hint/expiresAt", json!("2098-01-02T03:04:04Z"))], after),
        (&[("hint/expiresAt", json!("2098-01-02T04:04:05+01:00"))], after),
        (&[("hint/nextRunAt", json!("1969-12-31T23:59:59Z"))], at_years),
        (&[("hint/expiresAt", json!("9999-01-01T00:00:00Z"))], end_years),
        (&[("hint/nextRunAt", json!("tomorrow"))], &["spec.hint.nextRunAt"]),
        (&[("hint/expiresAt", json!("2098-02-30T00:00:00Z"))], &["spec.hint.expiresAt"]),
        (&[("hint/expiresAt", json!("2098-01-02T03:14:05.1234567891Z"))], &["spec.hint.expiresAt", "should match"]),
        (&[("hint/reason", json!(""))], &["spec.hint.reason", "at least 1"]),
        (&[("hint/reason", json!("x".repeat(1025)))], &["spec.hint.reason: Too long"]),
        (&[("hint", json!("now"))], &["spec.hint", "must be of type object"]),
    ];
    check(&good(), rows).await
}

/// Tests each limit of an execution once. Another test compares the two schemas and checks that all limits are the
/// same.
#[tokio::test]
async fn a_template_that_no_execution_would_pass_is_refused_by_name() -> Result<()> {
    let target: &[&str] = &["spec.template.spec.targetResource: must be namespace/kind/name"];
    let image: &[&str] = &["spec.template.spec.workflowRef.containerImage: must be an image reference"];
    let timeout: &[&str] = &["spec.template.spec.executionConfig.timeout: must be a Go duration from 1s to 24h"];
    let account: &[&str] = &["spec.template.spec.executionConfig.serviceAccountName: must be a DNS subdomain"];
    let keys: &[&str] = &["spec.template.spec.parameters: keys must be UPPER_SNAKE_CASE"];
    let reserved: &[&str] = &["spec.template.spec.parameters: TARGET_RESOURCE is reserved"];
    let rows: &[Row<'_>] = &[
        (&[("template", json!(null))], &["spec.template: Required value"]),
        (&[("template/spec", json!(null))], &["spec.template.spec: Required value"]),
        (&[("template/spec/workflowRef", json!(null))], &["spec.template.spec.workflowRef: Required value"]),
        (&[("template/spec/targetResource", json!(null))], &["spec.template.spec.targetResource: Required value"]),
        (&[("template/spec/targetResource", json!("deployment/api"))], target),
        (&[("template/spec/targetResource", json!("node"))], target),
        (&[("template/spec/workflowRef/containerImage", json!("Upper/Case"))], image),
        (&[("template/spec/workflowRef/containerDigest", json!("sha256:0"))], &["containerDigest: must be sha256:"]),
        (&[("template/spec/workflowRef/workflowId", json!(""))], &["spec.template.spec.workflowRef.workflowId"]),
        (&[("template/spec/parameters", json!({"ready": ""}))], keys),
        (&[("template/spec/parameters", json!({"TARGET_RESOURCE": ""}))], reserved),
        (
            &[("template/spec/parameters", json!({"A": "x".repeat(8193)}))],
            &["spec.template.spec.parameters.A: Too long"],
        ),
        (&[("template/spec/executionConfig/timeout", json!("25h"))], timeout),
        (&[("template/spec/executionConfig/serviceAccountName", json!("Runner"))], account),
        (&[("template/spec/rationale", json!("x".repeat(32_769)))], &["spec.template.spec.rationale: Too long"]),
        (&[("template/spec/ttlSecondsAfterFinished", json!(-1))], &["spec.template.spec.ttlSecondsAfterFinished"]),
        (&[("template/spec/retry", json!(21))], &["spec.template.spec.retry", "less than or equal to 20"]),
        (&[("template/spec/retry/jitter", json!(1))], &["spec.template.spec.retry.jitter", "of type boolean"]),
    ];
    check(&good(), rows).await
}

#[tokio::test]
async fn labels_and_annotations_that_no_object_may_have_are_refused_by_name() -> Result<()> {
    for map in ["labels", "annotations"] {
        let field = format!("template/metadata/{map}");
        let told = format!("spec.template.metadata.{map}");
        let ours = format!("{told}: keys must not begin with kubernaut.ai/");
        let keys = format!("{told}: keys must be at most 63 letters");
        check_refused(&good(), &field, &[&ours], &[json!({"kubernaut.ai/schedule": "x"})]).await?;
        let bad = ["", "-a", "a b", "a/b/c", "/a", "a/", "Upper.example/a", "\u{e4}"].map(|key| json!({key: "x"}));
        check_refused(&good(), &field, &[&keys], &bad).await?;
        let long = [json!({"k".repeat(64): ""}), json!({format!("{}/a", "p".repeat(254)): ""})];
        check_refused(&good(), &field, &[&keys], &long).await?;
        check_refused(&good(), &field, &[&told, "at most 16"], &[pairs(17, "x")]).await?;
    }
    let values = "spec.template.metadata.labels: values must be at most 63 letters";
    let bad = ["-x", "a b", "a/b", "x."].map(|value| json!({"key": value}));
    check_refused(&good(), "template/metadata/labels", &[values], &bad).await?;
    let rows: &[Row<'_>] = &[
        (&[("template/metadata/labels", json!({"a": "x".repeat(64)}))], &["template.metadata.labels.a: Too long"]),
        (&[("template/metadata/annotations", json!({"a": "x".repeat(2049)}))], &["metadata.annotations.a: Too long"]),
    ];
    check(&good(), rows).await
}

#[tokio::test]
async fn nothing_is_accepted_and_ignored() -> Result<()> {
    let mut rows = Vec::new();
    for (field, path) in [
        ("concurrencyPolicy", "spec.concurrencyPolicy"),
        ("triage/cooldown", "spec.triage.cooldown"),
        ("triage/targetResource", "spec.triage.targetResource"),
        ("triage/workflowRef/parameters", "spec.triage.workflowRef.parameters"),
        ("timezone", "spec.timezone"),
        ("template/metadata/name", "spec.template.metadata.name"),
        ("template/spec/confidence", "spec.template.spec.confidence"),
        ("template/spec/startBefore", "spec.template.spec.startBefore"),
        ("template/spec/recoveryOf", "spec.template.spec.recoveryOf"),
        ("template/spec/remediationRequestRef", "spec.template.spec.remediationRequestRef"),
        ("template/spec/cancellation", "spec.template.spec.cancellation"),
        ("template/spec/clearance", "spec.template.spec.clearance"),
    ] {
        rows.push(([(field, json!("x"))], format!("unknown field \"{path}\"")));
    }
    let schedules = Schedules::new().await?;
    let mut failures = Vec::new();
    for (change, words) in rows {
        expect(&mut failures, change[0].0, &[&words], schedules.try_create(but(good(), &change)?).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn what_is_only_just_good_is_accepted() -> Result<()> {
    let minute_list = (0..60).step_by(2).map(|minute| minute.to_string()).collect::<Vec<_>>().join(",");
    let longest_cron = format!("{minute_list} 0{} * * *", ",00".repeat(12));
    ensure!(longest_cron.len() == 128, "{longest_cron}");
    let (no_min, no_max, no_spread) =
        (("minInterval", json!(null)), ("maxInterval", json!(null)), ("spread", json!(null)));
    let rows: &[Row<'_>] = &[
        (&[], &[]),
        (&[("/metadata/name", json!("n".repeat(63)))], &[]),
        (&[("interval", json!("1s")), no_min.clone(), no_max.clone(), no_spread.clone()], &[]),
        (&[("interval", json!("720h")), no_max.clone()], &[]),
        (&[("interval", json!("719h59m60s")), no_max.clone()], &[]),
        (&[("interval", json!("0h0m1s")), no_min.clone(), ("spread", json!("0s"))], &[]),
        (&[("minInterval", json!("1h")), ("maxInterval", json!("1h")), ("spread", json!("3599s"))], &[]),
        (&[("startingDeadlineSeconds", json!(10))], &[]),
        (&[("startingDeadlineSeconds", json!(2_592_000))], &[]),
        (&[("history", json!({"successful": 0, "failed": 100}))], &[]),
        (&[("history", json!({}))], &[]),
        (&[("hint/reason", json!("x".repeat(1024)))], &[]),
        (&[("hint/nextRunAt", json!("1970-01-01T00:00:00Z")), ("hint/expiresAt", json!("9998-12-31T23:59:59Z"))], &[]),
        (&[("hint/nextRunAt", json!(null)), ("hint/interval", json!("1s"))], &[]),
        (&[("hint", json!(null))], &[]),
        (&[("template/metadata/labels", pairs(16, &"v".repeat(63)))], &[]),
        (&[("template/metadata/annotations", pairs(16, &"\u{1f980}".repeat(2048)))], &[]),
        (&[("template/metadata/labels", json!({format!("{}x/a", "p.".repeat(126)): ""}))], &[]),
        (&[("template/metadata", json!({}))], &[]),
        (&[("template/spec/retry", json!(true))], &[]),
        (&[("template/spec/retry", json!(20))], &[]),
        (&[("template/spec/targetResource", json!("node/worker-1"))], &[]),
        (&[("template/spec/ttlSecondsAfterFinished", json!(0))], &[]),
    ];
    check(&good(), rows).await?;
    let crons =
        ["* * * * *", "*/5 0-23/2 1,15 JAN-DEC SUN,MON-FRI", "0 0 31 2 *", "10-59/15 23 31 12 7", &longest_cron];
    let zones = ["UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "Etc/GMT+5", "Australia/Lord_Howe"];
    let from = by_cron()?;
    check_refused(&from, "cron", &[], &crons.map(|it| json!(it))).await?;
    check_refused(&from, "timeZone", &[], &zones.map(|it| json!(it))).await?;
    let rows: &[Row<'_>] = &[
        (&[("timeZone", json!(null))], &[]),
        (&[("spread", json!("24h"))], &[]),
        (&[no_min.clone(), no_max.clone()], &[]),
        (&[("minInterval", json!("24h")), no_max], &[]),
        (&[no_min, ("maxInterval", json!("1m"))], &[]),
    ];
    check(&from, rows).await
}

/// The largest possible schedule, with every field at its limit, is within the limits of the rules and of the size.
#[tokio::test]
async fn the_largest_schedule_is_accepted() -> Result<()> {
    let value = "x".repeat(8192 - 2);
    let parameters: Map<_, _> = (0..8).map(|n| (format!("K{n}"), json!(value))).collect();
    let adjustable: Value = (0..8).map(|n| format!("parameters.K{n}")).collect();
    let largest = but(
        good(),
        &[
            ("template/spec/parameters", Value::Object(parameters)),
            ("template/spec/rationale", json!("x".repeat(32_768))),
            ("template/metadata/labels", pairs(16, &"v".repeat(63))),
            ("template/metadata/annotations", pairs(16, &"x".repeat(2048))),
            ("hint/reason", json!("x".repeat(1024))),
            ("triage/allowAdjust", adjustable),
        ],
    )?;
    let schedules = Schedules::new().await?;
    let name = schedules.create(largest).await?;
    ensure!(schedules.try_spec(&name, json!({"suspend": true})).await?.is_none(), "cannot be suspended");
    Ok(())
}

#[tokio::test]
async fn all_of_a_spec_may_change() -> Result<()> {
    let schedules = Schedules::new().await?;
    let name = schedules.create(good()).await?;
    let mut failures = Vec::new();
    for change in [
        json!({"interval": "2h"}),
        json!({"spread": null, "minInterval": "10m", "maxInterval": null}),
        json!({"startingDeadlineSeconds": null, "suspend": true}),
        json!({"hint": {"expiresAt": "2097-01-01T00:00:00Z", "nextRunAt": "2096-01-01T00:00:00Z"}}),
        json!({"hint": null, "suspend": null}),
        json!({"triage": {"analyst": "BuiltIn", "workflowRef": null, "serviceAccountName": null, "timeout": null}}),
        json!({"triage": null}),
        json!({"triage": {"analyst": "Off", "after": 10}}),
        json!({"resume": {"triage": "t", "reason": "r", "resumedBy": "jane"}}),
        json!({"resume": {"triage": "u", "reason": "s", "resumedBy": "joe"}}),
        json!({"resume": null}),
        json!({"template": {"spec": {"targetResource": "node/worker-2", "parameters": {"MORE": "1"}}}}),
        json!({"template": {"spec": {"workflowRef": {"version": "1.1"}, "retry": null, "executionConfig": null}}}),
        json!({"template": {"metadata": null}}),
        json!({"interval": null, "cron": "0 3 * * *", "timeZone": "Asia/Tokyo", "history": {"failed": 1}}),
        json!({"interval": "1h", "cron": null, "timeZone": null, "history": null}),
    ] {
        expect(&mut failures, &change.to_string(), &[], schedules.try_spec(&name, change.clone()).await?);
    }
    let words = ["spec.interval: exactly one of interval and cron must be set"];
    expect(&mut failures, "both", &words, schedules.try_spec(&name, json!({"cron": "0 3 * * *"})).await?);
    report(&failures)
}

#[tokio::test]
async fn a_status_has_limits_and_no_other_ones() -> Result<()> {
    let schedules = Schedules::new().await?;
    let name = schedules.create(good()).await?;
    let (time, absurd) = ("2026-01-02T03:04:05Z", "9998-12-31T23:59:59Z");
    let run = json!({"name": "n-1", "slot": time, "startedAt": time});
    let mut failures = Vec::new();
    for (status, words) in [
        (json!({"plannedFrom": time, "revision": "0123456789abcdef", "failureCount": 0, "lastRun": run}), &[][..]),
        (
            json!({"lastRun": {"endedAt": time, "outcome": "Failed", "reason": "Unknown", "message": "x".repeat(1024)}}),
            &[],
        ),
        (json!({"lastRun": {"slot": absurd}, "plannedFrom": absurd, "failureCount": i32::MAX}), &[]),
        (json!({"lastMissed": {"slot": time, "count": 100}, "nextRunTime": time, "nextRunReason": "CatchUp"}), &[]),
        (json!({"lastRun": {"message": "x".repeat(1025)}}), &["status.lastRun.message: Too long"]),
        (json!({"lastRun": {"outcome": "Lost"}}), &["status.lastRun.outcome: Unsupported value"]),
        (json!({"lastRun": {"slot": null}}), &["status.lastRun.slot: Required value"]),
        (json!({"nextRunReason": "Whim"}), &["status.nextRunReason: Unsupported value"]),
        (json!({"failureCount": -1}), &["status.failureCount", "greater than or equal to 0"]),
        (json!({"lastMissed": {"count": -1}}), &["status.lastMissed.count", "greater than or equal to 0"]),
        (json!({"revision": "0".repeat(17)}), &["status.revision: Too long"]),
        (json!(null), &[]),
    ] {
        let patch = Patch::Merge(json!({"status": status}));
        let answer = schedules.api.patch_status(&name, &PatchParams::default(), &patch).await;
        expect(&mut failures, &format!("{:.100}", status.to_string()), words, refusal(answer)?);
    }
    // A write to the status does not change the spec.
    let before = schedules.api.get(&name).await?;
    let patch = Patch::Merge(json!({"spec": {"suspend": true}, "status": {"failureCount": 1}}));
    let after = schedules.api.patch_status(&name, &PatchParams::default(), &patch).await?;
    ensure!(after.data["spec"] == before.data["spec"], "{:#}", after.data["spec"]);
    ensure!(after.metadata.generation == before.metadata.generation, "a status moved the generation");
    report(&failures)
}
