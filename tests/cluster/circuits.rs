//! A failure that many targets share, on real Tekton. A circuit opens, holds schedules, is probed, and closes (section
//! 13.5).

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use wfe_testkit::awaits::Objects;
use wfe_testkit::{Metrics, Operator, Outcome, Pipeline, World, wfe};

use crate::audited::audited;
use crate::configuration::{NAME, set};
use crate::expect::{condition, text};
use crate::history::short;
use crate::kubectl_wfe::Caller;
use crate::schedules::{self, await_outcome, await_schedule, children, create, hurry, moment};

/// The fingerprint of the failures in these tests. It means that the image of a step does not exist.
const SHARED: &str = "ImagePullBackOff/registry/test.invalid";
/// The schedules. Each has a target of its own, and all have the same workflow.
const FAILING: [&str; 4] = ["one", "two", "three", "four"];
/// The time from the opening until the first probe. Each later probe waits twice as long.
const BASE: TimeDelta = TimeDelta::seconds(6);
/// The settings, which are given twice: as a `ConfigMap` for `kubectl wfe`, and as flags for the auditor.
const SETTINGS: [(&str, &str); 3] =
    [("outage-targets", "4"), ("base-cooldown-period", "6s"), ("max-cooldown-period", "1m")];

async fn start(world: &World) -> Result<Operator> {
    let mut operator = world.operator();
    for (key, value) in SETTINGS {
        operator = operator.arg(&format!("--{key}"), value);
    }
    operator.start().await
}

/// Pushes a version of the workflow that all schedules run.
async fn push(world: &World, outcome: Outcome) -> Result<String> {
    world.push_pipeline("shared", &Pipeline::new().task("apply", outcome).lasting("100ms")).await
}

fn is_open(metrics: &Metrics) -> bool {
    metrics.value("workflow_circuit_open", &[("fingerprint", SHARED)]) > 0.0
}

fn probes(metrics: &Metrics, outcome: &str) -> f64 {
    metrics.value("workflow_circuit_probes_total", &[("outcome", outcome)])
}

fn held_by_circuit(all: &Objects) -> Vec<String> {
    let held = all.iter().filter(|(_, it)| condition(it, "Held") == "True CircuitOpen");
    held.map(|(name, _)| name.clone()).collect()
}

/// Returns what `kubectl wfe circuits` reports about the only open circuit.
async fn told(person: &Caller<'_>) -> Result<Value> {
    let told: Value = serde_json::from_str(&person.says(1, &["circuits", "-o", "json"]).await?)?;
    ensure!(told["circuits"].as_array().is_some_and(|all| all.len() == 1), "{told:#}");
    Ok(told["circuits"][0].clone())
}

/// Returns the events about circuits with this reason.
async fn events(world: &World, reason: &str) -> Result<Vec<Value>> {
    let all = world.events_in(&world.system_namespace()).await?;
    Ok(all.into_iter().filter(|event| event["reason"] == reason).collect())
}

/// Lets all schedules except the last fail, each with a triage. Then the last schedule fails, which opens the circuit.
async fn open(world: &World, operator: &Operator, bundle: &str) -> Result<()> {
    let spec = json!({"interval": "1h", "minInterval": "1s", "history": {"failed": 10}, "triage": {"after": 1}});
    let (last, first) = FAILING.split_last().context("none")?;
    for name in first {
        create(world, name, &format!("node/{name}"), bundle, &spec).await?;
        hurry(world, name).await?;
    }
    for name in first {
        let is_over = |it: &Value| matches!(text(&it["status"]["triage"]["state"]), "Noted" | "Filed");
        await_schedule(world, name, "has had its triage", is_over).await?;
    }
    ensure!(!is_open(&operator.metrics().await?), "{} targets are too few", first.len());
    create(world, last, &format!("node/{last}"), bundle, &spec).await?;
    hurry(world, last).await?;
    operator.await_metrics("the circuit is open", is_open).await
}

/// Returns when each child was created after the circuit had opened, in order, up to the first child that completes.
fn probed(all: &Objects, opened: DateTime<Utc>) -> Result<Vec<DateTime<Utc>>> {
    let mut mine: Vec<_> = FAILING.iter().flat_map(|name| children(all, name)).collect();
    mine.sort_by_key(|wfe| text(&wfe["metadata"]["creationTimestamp"]).to_owned());
    let closes = mine.iter().position(|wfe| wfe["status"]["phase"] == "Completed").context("no probe has completed")?;
    let made = mine[..=closes].iter().map(|wfe| moment(&wfe["metadata"]["creationTimestamp"]));
    let made: Vec<_> = made.collect::<Result<_>>()?;
    Ok(made.into_iter().filter(|at| *at > opened).collect())
}

#[tokio::test]
async fn a_shared_failure_opens_a_circuit_that_holds_what_failed_with_it_and_closes_by_a_probe() -> Result<()> {
    let world = World::new("circuit").await?;
    let recording = world.record_all().await?;
    set(&world, &SETTINGS).await?;
    let person = Caller::new(&world, "sre", &["wfe-explain"]).await?;
    let (broken, sound) = (push(&world, Outcome::ImagePull).await?, short(&world).await?);
    let operator = start(&world).await?;
    open(&world, &operator, &broken).await?;

    let event = world.await_event_in(&world.system_namespace(), NAME, "CircuitOpened").await?;
    let note = format!("4 targets failed with {SHARED} within outage-window: the schedules that failed with it wait");
    assert!(event["type"] == "Warning" && text(&event["note"]).starts_with(&note), "{event:#}");
    let opened = told(&person).await?;
    assert_eq!((&opened["fingerprint"], &opened["failed"]), (&json!(SHARED), &json!(4)), "{opened:#}");

    // The failure that opened the circuit counts for its schedule, but does not start a triage yet.
    let last = await_outcome(&world, "four", "Failed").await?;
    assert_eq!((&last["status"]["triage"], &last["status"]["failureCount"]), (&Value::Null, &json!(1)), "{last:#}");
    let suppressed = [("reason", "CircuitOpen")];
    operator
        .await_metrics("a triage is suppressed", |it| it.value("workflow_triage_suppressed_total", &suppressed) >= 1.0)
        .await?;
    let explained = person.says(0, &["schedule", "explain", "four"]).await?;
    assert!(explained.contains(&format!("no triage while the circuit {SHARED} is open")), "{explained}");

    // A schedule waits if its last run failed with the fingerprint, except for one probe at a time. Other schedules
    // run, even if they will fail.
    for name in FAILING {
        hurry(&world, name).await?;
    }
    for (name, bundle, outcome) in [("sound", &sound, "Completed"), ("new", &broken, "Failed")] {
        create(&world, name, &format!("node/{name}"), bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
        hurry(&world, name).await?;
        await_outcome(&world, name, outcome).await?;
    }
    operator.await_metrics("a probe has failed", |metrics| probes(metrics, "failed") >= 1.0).await?;
    let resource = wfe::schedules();
    let what = "two schedules that the circuit holds";
    let all = world.await_many(&resource, world.namespace(), what, |all| held_by_circuit(all).len() >= 2).await?;
    let held = held_by_circuit(&all);
    let why = all[&held[0]]["status"]["conditions"].to_string();
    assert!(why.contains(&format!("circuit {SHARED} is open since {}", text(&opened["since"]))), "{why}");
    world.await_event(&held[0], "Held").await?;
    let explained = person.says(1, &["schedule", "explain", &held[0]]).await?;
    assert!(explained.contains(&format!("circuit {SHARED} is open since")), "{explained}");

    // A circuit does not hold executions that other clients create on a held schedule's target, with the same workflow
    // or with another one.
    let target = format!("node/{}", held[0]);
    world.wfe("other-workflow").target(&target).workflow("other").image(&sound).create().await?;
    world.await_phase("other-workflow", "Completed").await?;
    world.wfe("same-workflow").target(&target).workflow(&held[0]).image(&broken).create().await?;
    let same = world.await_phase("same-workflow", "Failed").await?;
    let details = &same["status"]["failureDetails"];
    assert_eq!((&details["fingerprint"], &details["sharedOutage"]), (&json!(SHARED), &json!(true)), "{details:#}");
    assert!(is_open(&operator.metrics().await?), "it is open all the time");

    // The next process derives the same circuit from the stored objects, and announces nothing again. It is started
    // while no probe is in progress, because it would not count the failure of such a probe.
    let failed = probes(&operator.metrics().await?, "failed");
    operator.await_metrics("one more probe has failed", |metrics| probes(metrics, "failed") > failed).await?;
    operator.kill().await?;
    let operator = start(&world).await?;
    operator.await_metrics("the circuit is still open", is_open).await?;
    let still = told(&person).await?;
    assert_eq!((&still["since"], &still["failed"]), (&opened["since"], &opened["failed"]), "{still:#}");
    assert!(still["failedProbes"].as_u64() >= Some(1), "{still:#}");

    push(&world, Outcome::Ok).await?;
    let event = world.await_event_in(&world.system_namespace(), NAME, "CircuitClosed").await?;
    let note = format!("the circuit of {SHARED}, open since {}, is closed", text(&opened["since"]));
    assert!(event["type"] == "Normal" && text(&event["note"]).starts_with(&note), "{event:#}");
    let is_closed = |metrics: &Metrics| !is_open(metrics) && probes(metrics, "succeeded") >= 1.0;
    operator.await_metrics("a probe has closed the circuit", is_closed).await?;
    person.says(0, &["circuits"]).await?;

    // Schedules that are no longer held, but whose probes failed, are not due and get a hint. The others run on their
    // own.
    let ended = schedules::schedules(&world).list(&kube::api::ListParams::default()).await?;
    for schedule in ended.items.iter().filter(|it| it.data["status"]["lastRun"]["fingerprint"] == SHARED) {
        let name = schedule.metadata.name.as_deref().unwrap_or_default();
        if condition(&serde_json::to_value(schedule)?, "Held") != "True CircuitOpen" {
            hurry(&world, name).await?;
        }
    }
    for name in FAILING {
        let well = await_outcome(&world, name, "Completed").await?;
        assert!(!condition(&well, "Held").starts_with("True"), "{well:#}");
        assert_eq!(well["status"]["failureCount"], 0, "{well:#}");
    }
    world.await_event(&held[0], "Released").await?;
    let told = [events(&world, "CircuitOpened").await?, events(&world, "CircuitClosed").await?];
    assert!(told.iter().all(|events| events.len() == 1), "{told:#?}");

    let all = world.await_wfes("all of them", |_| true).await?;
    let (mut waited_from, mut wait) = (moment(&opened["since"])?, BASE);
    let probes = probed(&all, waited_from)?;
    ensure!(probes.len() >= 2, "{probes:?}");
    for at in probes {
        ensure!(at >= waited_from + wait, "a probe at {at}, earlier than {wait} after {waited_from}");
        (waited_from, wait) = (at, wait * 2);
    }
    audited(&world, recording).await?;
    world.close().await
}
