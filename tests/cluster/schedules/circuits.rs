//! A failure that many targets share, on real Tekton: a circuit opens, holds, is probed and closes (SPEC section 13.5).

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use wfe_testkit::awaits::Objects;
use wfe_testkit::{ControlPlane, Metrics, Operator, Options, Outcome, Pipeline, World, WorldOptions};

use super::{await_held, await_outcome, await_schedule, children, create, hurry, moment};
use crate::audited::audited;
use crate::configuration::{NAME, set};
use crate::expect::{condition, text};
use crate::history::short;
use crate::kubectl_wfe::Caller;

/// What the schedules of these tests fail with: the image of a step is nowhere.
const SHARED: &str = "ImagePullBackOff/registry/test.invalid";
/// Each on a target of its own, with one workflow.
const TOUCHED: [&str; 4] = ["one", "two", "three", "four"];
/// How long the first probe waits. Each further one waits twice as long.
const BASE: TimeDelta = TimeDelta::seconds(6);
/// `kubectl wfe` reads the `ConfigMap`, the auditor reads flags: both have the same.
const SETTINGS: [(&str, &str); 3] =
    [("outage-targets", "4"), ("base-cooldown-period", "6s"), ("max-cooldown-period", "1m")];

async fn start(world: &World) -> Result<Operator> {
    let mut operator = world.operator();
    for (key, value) in SETTINGS {
        operator = operator.arg(&format!("--{key}"), value);
    }
    operator.start().await
}

/// Pushes the workflow that all of them run, as it is now.
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

/// Returns what `kubectl wfe circuits` says of the one circuit that is open.
async fn told(person: &Caller<'_>) -> Result<Value> {
    let told: Value = serde_json::from_str(&person.says(1, &["circuits", "-o", "json"]).await?)?;
    ensure!(told["circuits"].as_array().is_some_and(|all| all.len() == 1), "{told:#}");
    Ok(told["circuits"][0].clone())
}

/// Returns the events about circuits that have this reason.
async fn events(world: &World, reason: &str) -> Result<Vec<Value>> {
    let all = world.events_in(&world.system_namespace()).await?;
    Ok(all.into_iter().filter(|event| event["reason"] == reason).collect())
}

/// Lets all but the last of them fail, each of which is analysed; then the last one, which opens the circuit.
async fn open(world: &World, operator: &Operator, bundle: &str) -> Result<()> {
    let spec = json!({"interval": "1h", "minInterval": "1s", "history": {"failed": 10}, "triage": {"after": 1}});
    let (last, first) = TOUCHED.split_last().context("none")?;
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

/// Returns the children of all of them that were made after the circuit opened, up to its closing, in that order.
fn probed(all: &Objects, opened: DateTime<Utc>) -> Result<Vec<DateTime<Utc>>> {
    let mut mine: Vec<_> = TOUCHED.iter().flat_map(|name| children(all, name)).collect();
    mine.sort_by_key(|wfe| text(&wfe["metadata"]["creationTimestamp"]).to_owned());
    let closes = mine.iter().position(|wfe| wfe["status"]["phase"] == "Completed").context("no probe has completed")?;
    let made = mine[..=closes].iter().map(|wfe| moment(&wfe["metadata"]["creationTimestamp"]));
    let made: Vec<_> = made.collect::<Result<_>>()?;
    Ok(made.into_iter().filter(|at| *at > opened).collect())
}

#[tokio::test]
async fn a_shared_failure_opens_a_circuit_that_holds_schedules_alone_outlives_a_kill_and_closes_by_a_probe()
-> Result<()> {
    let world = World::new("circuit").await?;
    let recording = world.record_all().await?;
    set(&world, &SETTINGS).await?;
    let person = Caller::new(&world, "sre", &["wfe-explain"]).await?;
    let (broken, sound) = (push(&world, Outcome::ImagePull).await?, short(&world).await?);
    let operator = start(&world).await?;
    open(&world, &operator, &broken).await?;

    let event = world.await_event_in(&world.system_namespace(), NAME, "CircuitOpened").await?;
    let note = format!("4 targets failed with {SHARED} within outage-window: the schedules that this touches wait");
    assert!(event["type"] == "Warning" && text(&event["note"]).starts_with(&note), "{event:#}");
    let whose = format!("it holds schedules of namespace {}, and of others when they fail with it", world.namespace());
    assert!(text(&event["note"]).contains(&whose), "{event:#}");
    let opened = told(&person).await?;
    assert_eq!(
        (&opened["fingerprint"], &opened["failed"], &opened["of"]),
        (&json!(SHARED), &json!(4), &json!(4)),
        "{opened:#}"
    );
    assert_eq!(opened["namespaces"], json!([world.namespace()]), "{opened:#}");

    // The failure that opened it is shared, and begins no triage.
    let last = await_outcome(&world, "four", "Failed").await?;
    assert_eq!(last["status"]["triage"], Value::Null, "{last:#}");
    let suppressed = [("reason", "CircuitOpen")];
    operator
        .await_metrics("a triage is suppressed", |it| it.value("workflow_triage_suppressed_total", &suppressed) >= 1.0)
        .await?;
    let explained = person.says(0, &["schedule", "explain", "four"]).await?;
    assert!(explained.contains(&format!("no triage while the circuit {SHARED} is open")), "{explained}");

    // What is due waits, but for one probe at a time. What the circuit does not touch runs.
    for name in TOUCHED {
        hurry(&world, name).await?;
    }
    create(&world, "untouched", "node/untouched", &sound, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    hurry(&world, "untouched").await?;
    await_outcome(&world, "untouched", "Completed").await?;
    operator.await_metrics("a probe has failed", |metrics| probes(metrics, "failed") >= 1.0).await?;
    let resource = super::resource();
    let what = "two schedules that the circuit holds";
    let all = world.await_many(&resource, world.namespace(), what, |all| held_by_circuit(all).len() >= 2).await?;
    let held = held_by_circuit(&all);
    let why = all[&held[0]]["status"]["conditions"].to_string();
    assert!(why.contains(&format!("circuit {SHARED} is open since {}", text(&opened["since"]))), "{why}");
    world.await_event(&held[0], "Held").await?;
    let explained = person.says(1, &["schedule", "explain", &held[0]]).await?;
    assert!(explained.contains(&format!("circuit {SHARED} is open since")), "{explained}");

    // A circuit holds no execution: not of another workflow on a target whose schedule it holds, nor of the same one.
    let target = format!("node/{}", held[0]);
    world.wfe("other-workflow").target(&target).workflow("other").image(&sound).create().await?;
    world.await_phase("other-workflow", "Completed").await?;
    world.wfe("same-workflow").target(&target).workflow(&held[0]).image(&broken).create().await?;
    let same = world.await_phase("same-workflow", "Failed").await?;
    let details = &same["status"]["failureDetails"];
    assert_eq!((&details["fingerprint"], &details["sharedOutage"]), (&json!(SHARED), &json!(true)), "{details:#}");
    assert!(is_open(&operator.metrics().await?), "it is open all the time");

    // The next process knows what this one knew, and tells nobody anew. No probe is under way: the next process could
    // not prove that nothing of it ran, and a failure of what may have run closes a circuit.
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

    // Those whose probes failed are not due; the others run by themselves.
    let ended = super::schedules(&world).list(&kube::api::ListParams::default()).await?;
    for schedule in ended.items.iter().filter(|it| it.data["status"]["lastRun"]["fingerprint"] == SHARED) {
        let name = schedule.metadata.name.as_deref().unwrap_or_default();
        if condition(&serde_json::to_value(schedule)?, "Held") != "True CircuitOpen" {
            hurry(&world, name).await?;
        }
    }
    for name in TOUCHED {
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

/// On a control plane of its own: the operator watches all namespaces.
#[tokio::test]
async fn a_namespace_whose_executions_fail_on_many_targets_holds_its_own_schedules_alone() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let options = WorldOptions { all_namespaces: true, ..WorldOptions::default() };
    let here = World::with(&control_plane, "scope", options).await?;
    let there = here.neighbour().await?;
    // Without a ConfigMap nothing tells of circuits. The first probe is due after a minute: nobody makes it here.
    set(&here, &[("base-cooldown-period", "1m")]).await?;
    let bundle = short(&here).await?;
    // With a bundle alone the registry says nothing: Tekton as shipped never says that it is not there.
    let image = json!(format!("{}/nothing/is-there:1.0.0", control_plane.registry()));
    let step =
        Pipeline::new().task("apply", Outcome::ImagePull).patch(|it| it["taskSpec"]["steps"][0]["image"] = image);
    let missing = here.push_pipeline("missing", &step).await?;
    let operator = here.operator().start().await?;
    let spec = json!({"interval": "1h", "minInterval": "1s"});
    create(&here, "mine", "node/mine", &bundle, &spec).await?;
    create(&there, "theirs", "node/theirs", &bundle, &spec).await?;

    // Whoever may create executions in one namespace lets them fail on five targets, with a registry that all use.
    for number in 0..5 {
        let name = format!("missing-{number}");
        here.wfe(&name).target(&format!("node/{name}")).workflow("nothing").image(&missing).create().await?;
    }
    let shared = format!("ImagePullBackOff/registry/{}", control_plane.registry());
    let is_open = |metrics: &Metrics| metrics.value("workflow_circuit_open", &[("fingerprint", &shared)]) > 0.0;
    operator.await_metrics("the circuit is open", is_open).await?;
    let event = here.await_event_in(&here.system_namespace(), NAME, "CircuitOpened").await?;
    let whose = format!("it holds schedules of namespace {}, and", here.namespace());
    assert!(text(&event["note"]).contains(&whose), "{event:#}");

    // Of two schedules that fetch from this registry the one there runs, and its success closes nothing.
    hurry(&here, "mine").await?;
    await_held(&here, "mine", "CircuitOpen").await?;
    hurry(&there, "theirs").await?;
    await_outcome(&there, "theirs", "Completed").await?;
    await_held(&here, "mine", "CircuitOpen").await?;
    assert!(is_open(&operator.metrics().await?), "a success of another namespace closes it");

    // With a failure of its own the other namespace is held too; that failure is shared.
    there.wfe("missing").target("node/missing").workflow("nothing").image(&missing).create().await?;
    let failed = there.await_phase("missing", "Failed").await?;
    assert_eq!(failed["status"]["failureDetails"]["sharedOutage"], true, "{failed:#}");
    hurry(&there, "theirs").await?;
    await_held(&there, "theirs", "CircuitOpen").await?;
    there.close().await?;
    here.close().await
}
