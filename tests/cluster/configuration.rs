//! The `ConfigMap` of a running operator: which changes take effect, which are refused, and where the operator reports
//! them (section 14).

pub(crate) mod pause;
mod start;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::{Map, Value, json};
use wfe_testkit::proxy::Fault;
use wfe_testkit::{Operator, Outcome, Pipeline, Proxy, Refusal, World, manifests};

use crate::expect::text;

pub(crate) const NAME: &str = "workflowexecution-config";

/// The time within which a change must take effect.
const SOON: Duration = Duration::from_secs(2);

/// Sets a world's `ConfigMap` to these keys, and returns its resourceVersion.
pub(crate) async fn set(world: &World, values: &[(&str, &str)]) -> Result<String> {
    let data: Map<String, Value> = values.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": world.system_namespace()},
        "data": data,
    });
    Ok(manifests::apply(&world.client(), &object).await?.metadata.resource_version.unwrap_or_default())
}

async fn remove(world: &World) -> Result<()> {
    let api = world.api(&manifests::resource("v1", "ConfigMap"), &world.system_namespace());
    api.delete(NAME, &DeleteParams::default()).await?;
    Ok(())
}

/// Waits until this version of the `ConfigMap` is in force.
pub(crate) async fn await_in_force(operator: &Operator, version: &str) -> Result<()> {
    let labels = [("version", version)];
    operator
        .await_metrics(&format!("version {version} in force"), |metrics| {
            metrics.has("workflowexecution_config_info", &labels)
        })
        .await
}

async fn is_refusing(operator: &Operator) -> Result<bool> {
    Ok(operator.metrics().await?.value("workflowexecution_config_refused", &[]) > 0.0)
}

async fn page(operator: &Operator) -> Result<String> {
    let (status, page) = operator.get("health", "/configz").await?;
    ensure!(status == 200, "/configz answered {status}: {page}");
    Ok(page)
}

/// Returns the line of a key on the page `/configz`, with single spaces.
fn line(page: &str, key: &str) -> String {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    page.lines().map(words).find(|words| words.first().is_some_and(|first| first == key)).unwrap_or_default().join(" ")
}

/// Creates an execution of the usual workflow on the usual target, and returns the operator's decision.
async fn decided(world: &World, name: &str, bundle: &str) -> Result<String> {
    world.wfe(name).image(bundle).create().await?;
    let wfe = world.await_terminal(name).await?;
    Ok(format!("{} {}", text(&wfe["status"]["phase"]), text(&wfe["status"]["skipDetails"]["reason"])).trim().to_owned())
}

async fn short(world: &World) -> Result<String> {
    world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await
}

#[tokio::test]
async fn a_changed_value_changes_the_next_decision_within_two_seconds_without_a_restart() -> Result<()> {
    let world = World::new("config-change").await?;
    let bundle = short(&world).await?;
    let mut operator = world.operator().start().await?;
    assert_eq!(line(&page(&operator).await?, "cooldown-period"), "cooldown-period 5m default");
    assert_eq!(decided(&world, "first", &bundle).await?, "Completed");
    assert_eq!(decided(&world, "cools", &bundle).await?, "Skipped RecentlyRemediated");

    let changed_at = Instant::now();
    let version =
        set(&world, &[("cooldown-period", "0"), ("default-timeout", "7m"), ("service-account", "other")]).await?;
    await_in_force(&operator, &version).await?;
    let took = changed_at.elapsed();
    assert!(took < SOON, "in force after {took:?}");
    // The service account does not exist, so the run does not start. The test only examines how the run was created.
    world.wfe("runs").image(&bundle).create().await?;
    let run = world
        .await_run("is made as the configuration says", |run| {
            run["spec"]["taskRunTemplate"]["serviceAccountName"] == "other" && run["spec"]["status"].is_null()
        })
        .await?;
    assert_eq!(run["spec"]["timeouts"]["pipeline"], "7m0s", "{run:#}");
    assert_eq!(world.await_phase("runs", "Running").await?["status"]["runSequence"], 2);

    let told = world.await_event_in(&world.system_namespace(), NAME, "ConfigApplied").await?;
    let note = text(&told["note"]);
    for word in
        ["cooldown-period 5m -> 0", "default-timeout 30m -> 7m", "service-account kubernaut-workflow-runner -> other"]
    {
        assert!(note.contains(word), "{word} is missing in {note}");
    }
    assert_eq!(told["type"], "Normal");
    let page = page(&operator).await?;
    assert!(page.contains(&format!("version {version} is in force")), "{page}");
    assert_eq!(line(&page, "cooldown-period"), "cooldown-period 0 ConfigMap");
    assert!(operator.ended().is_none());
    world.close().await
}

#[tokio::test]
async fn a_bad_version_changes_nothing_and_says_so_in_three_places() -> Result<()> {
    let world = World::new("config-bad").await?;
    let bundle = short(&world).await?;
    let good = set(&world, &[("cooldown-period", "0")]).await?;
    // With two operators, a duplicate report would be visible.
    let operator = world.operator().start().await?;
    let other = world.operator().start().await?;
    assert_eq!(decided(&world, "first", &bundle).await?, "Completed");

    let bad = set(&world, &[("cooldown-period", "-1m"), ("paused", "true"), ("max-backoff-exponent", "many")]).await?;
    for one in [&operator, &other] {
        one.await_value("workflowexecution_config_refused", 1.0).await?;
    }
    let problems = [
        r#"cooldown-period: "-1m" must not be negative"#,
        r#"max-backoff-exponent: "many" is not a whole number from 0 to 4294967295"#,
    ];
    let event = world.await_event_in(&world.system_namespace(), NAME, "ConfigRefused").await?;
    assert_eq!((&event["type"], &event["regarding"]["kind"]), (&json!("Warning"), &json!("ConfigMap")));
    let is_it = |line: &Value| line["level"] == "WARN" && text(&line["fields"]["version"]) == bad;
    let logged = operator.await_line("says that the version is refused", is_it).await?;
    let page = page(&operator).await?;
    assert!(page.contains(&format!("version {good} is in force")), "{page}");
    assert!(page.contains(&format!("version {bad} is refused:")), "{page}");
    for place in [text(&event["note"]), text(&logged["fields"]["message"]), &page] {
        for problem in problems {
            assert!(place.contains(problem), "{problem} is missing in {place}");
        }
    }
    // Nothing from the bad version is in force, neither the pause nor a cooldown.
    await_in_force(&operator, &good).await?;
    assert_eq!(decided(&world, "second", &bundle).await?, "Completed");
    assert_eq!(line(&page, "paused"), "paused false default");

    let better = set(&world, &[("cooldown-period", "0"), ("paused", "false")]).await?;
    await_in_force(&operator, &better).await?;
    assert!(!is_refusing(&operator).await?);
    world.await_event_in(&world.system_namespace(), NAME, "ConfigApplied").await?;
    let refusals = world.events_in(&world.system_namespace()).await?;
    let refusals = refusals.iter().filter(|event| event["reason"] == "ConfigRefused").count();
    assert_eq!(refusals, 1, "told once, by whichever of the two came first");
    world.close().await
}

#[tokio::test]
async fn deleted_it_gives_way_to_the_flags_and_made_again_it_is_in_force_again() -> Result<()> {
    let world = World::new("config-gone").await?;
    let bundle = short(&world).await?;
    let first = set(&world, &[("cooldown-period", "0"), ("log_level", "x")]).await?;
    let operator = world.operator().arg("--cooldown-period", "9m").start().await?;
    await_in_force(&operator, &first).await?;
    let told = page(&operator).await?;
    assert!(told.contains(r#"warning: unknown, and does nothing: "log_level""#), "{told}");
    assert_eq!(decided(&world, "one", &bundle).await?, "Completed");
    assert_eq!(decided(&world, "two", &bundle).await?, "Completed");

    remove(&world).await?;
    await_in_force(&operator, "none").await?;
    assert_eq!(line(&page(&operator).await?, "cooldown-period"), "cooldown-period 9m flag");
    assert_eq!(decided(&world, "three", &bundle).await?, "Skipped RecentlyRemediated");

    // A deleted ConfigMap no longer counts as refused.
    set(&world, &[("cooldown-period", "")]).await?;
    operator.await_value("workflowexecution_config_refused", 1.0).await?;
    remove(&world).await?;
    operator
        .await_metrics("nothing refused", |metrics| metrics.value("workflowexecution_config_refused", &[]) < 1.0)
        .await?;
    assert_eq!(decided(&world, "four", &bundle).await?, "Skipped RecentlyRemediated");

    let again = set(&world, &[("cooldown-period", "0")]).await?;
    await_in_force(&operator, &again).await?;
    assert_eq!(decided(&world, "five", &bundle).await?, "Completed");
    world.close().await
}

#[tokio::test]
async fn a_watch_that_breaks_changes_nothing_and_what_was_missed_comes_after_it() -> Result<()> {
    let world = World::new("config-broken-watch").await?;
    let bundle = short(&world).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let good = set(&world, &[("cooldown-period", "0")]).await?;
    let operator = world.operator().through(&proxy).start().await?;
    assert_eq!(decided(&world, "one", &bundle).await?, "Completed");

    proxy.on(|request| match request.resource.as_str() {
        "configmaps" => Fault::Refuse(Refusal::internal()),
        _ => Fault::Pass,
    });
    proxy.cut_all();
    let is_it =
        |line: &Value| line["level"] == "WARN" && text(&line["fields"]["message"]).starts_with("cannot follow ");
    operator.await_line("says that it cannot follow", is_it).await?;
    assert!(page(&operator).await?.contains("it cannot be followed, as of "), "{}", page(&operator).await?);
    let missed = set(&world, &[("cooldown-period", "9m")]).await?;
    assert_eq!(decided(&world, "two", &bundle).await?, "Completed");
    await_in_force(&operator, &good).await?;
    assert!(operator.ready().await, "it decides by the last good version");

    proxy.heal();
    await_in_force(&operator, &missed).await?;
    assert_eq!(decided(&world, "three", &bundle).await?, "Skipped RecentlyRemediated");
    world.close().await
}

#[tokio::test]
async fn the_log_level_changes_at_run_time_and_goes_back_with_its_key() -> Result<()> {
    let world = World::new("config-log").await?;
    let bundle = short(&world).await?;
    let operator = world.operator().arg("--log-level", "info").start().await?;
    let lines_of = async |name: &str, level: &str| {
        let id = format!("{}/{name}", world.namespace());
        let log = operator.log().await;
        log.iter().filter(|line| line["level"] == level && text(&line["fields"]["wfe"]) == id).count()
    };
    world.wfe("plain").target("node/a").image(&bundle).create().await?;
    world.await_phase("plain", "Completed").await?;
    assert!(lines_of("plain", "INFO").await > 0 && lines_of("plain", "DEBUG").await == 0);

    for (name, level, target) in [("loud", "debug", "node/b"), ("quiet", "error", "node/c")] {
        let version = set(&world, &[("log-level", level)]).await?;
        await_in_force(&operator, &version).await?;
        world.wfe(name).target(target).image(&bundle).create().await?;
        world.await_event(name, "WorkflowCompleted").await.map(drop)?;
        world.await_phase(name, "Completed").await?;
    }
    assert!(lines_of("loud", "DEBUG").await > 0 && lines_of("loud", "INFO").await > 0);
    assert_eq!(lines_of("quiet", "INFO").await, 0);

    let version = set(&world, &[]).await?;
    await_in_force(&operator, &version).await?;
    world.wfe("again").target("node/d").image(&bundle).create().await?;
    world.await_phase("again", "Completed").await?;
    assert!(lines_of("again", "INFO").await > 0 && lines_of("again", "DEBUG").await == 0);
    world.close().await
}
