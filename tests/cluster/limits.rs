//! Limits of how many targets may be busy at once (section 18): thirty nodes, of which three are drained at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use wfe_testkit::{OperatorBuilder, Outcome, Pipeline, World};

use crate::configuration::{await_in_force, set};
use crate::expect::condition;
use crate::faults::judge::{History, assert_completed};
use crate::leader::{await_leading, quick};

/// The number of nodes that are to be drained.
const NODES: usize = 30;
/// The limit, in the format of the flag.
const THREE: &str = r#"[{"name":"drains","kind":"node","maxRunning":3}]"#;
/// How long all runs may take: ten rounds of three runs. Each run takes two seconds and the time of Tekton's own work,
/// and other tests use the machine too.
const WITHIN: Duration = Duration::from_mins(4);

fn ended<'a>(wfes: impl IntoIterator<Item = &'a Value>) -> usize {
    wfes.into_iter().filter(|wfe| wfe["status"]["phase"] == "Completed").count()
}

fn running<'a>(wfes: impl IntoIterator<Item = &'a Value>) -> usize {
    wfes.into_iter().filter(|wfe| wfe["status"]["phase"] == "Running").count()
}

#[tokio::test]
async fn thirty_nodes_go_three_at_a_time_through_a_killed_leader_and_a_lowered_limit() -> Result<()> {
    let world = World::new("limits").await?;
    let bundle = world.push_pipeline("drain", &Pipeline::new().task("apply", Outcome::Ok).lasting("2s")).await?;
    let recording = world.record().await?;
    let replica = |name: &str| -> OperatorBuilder<'_> { quick(world.operator().replica(name)).arg("--limits", THREE) };
    let first = replica("first").start().await?;
    await_leading(&first).await?;
    let second = replica("second").start().await?;
    for node in 0..NODES {
        let target = format!("node/n{node:02}");
        world.wfe(&format!("drain-{node:02}")).target(&target).image(&bundle).create().await?;
    }
    // A target that matches no limit does not wait.
    world.wfe("free").target(&format!("{}/deployment/api", world.namespace())).image(&bundle).create().await?;
    world.await_phase("free", "Completed").await?;
    // Executions that were created in the same second are ordered by uid, so any of them may be the last.
    let waits_for_a_place = |wfe: &&Value| condition(wfe, "Waiting") == "True Limit";
    let is_seen = |wfes: &BTreeMap<String, Value>| wfes.values().any(|wfe| waits_for_a_place(&wfe));
    let all = world.await_wfes_within(WITHIN, "one waits for a place", is_seen).await?;
    let waits = all.values().find(waits_for_a_place).context("seen a moment ago")?;
    assert!(waits["status"]["phase"] == "Pending" && waits["status"]["pipelineRunRef"].is_null(), "{waits:#}");
    let labels = [("limit", "drains")];
    let max =
        |metrics: &wfe_testkit::Metrics| (metrics.value("workflowexecution_limit_max", &labels) - 3.0).abs() < 0.5;
    first.await_metrics("the limit", max).await?;

    world.await_wfes_within(WITHIN, "six have ended", |wfes| ended(wfes.values()) >= 7).await?;
    first.kill().await?;
    await_leading(&second).await?;
    world.await_wfes_within(WITHIN, "twelve have ended", |wfes| ended(wfes.values()) >= 13).await?;

    let one = set(&world, &[("limits", "- name: drains\n  kind: Node\n  maxRunning: 1\n")]).await?;
    await_in_force(&second, &one).await?;
    // A target that got its place under the limit of three may still start, and counts.
    let is_lowered = |metrics: &wfe_testkit::Metrics| {
        let value = |name: &str| metrics.value(&format!("workflowexecution_limit_{name}"), &labels);
        value("max") < 1.5 && value("running") < 1.5
    };
    second.await_metrics("a limit of one, and at most one place taken", is_lowered).await?;
    world.await_wfes_within(WITHIN, "at most one runs", |wfes| running(wfes.values()) <= 1).await?;
    let before = ended(&world.wfes().await?);
    for _ in 0..20 {
        let now = world.wfes().await?;
        assert!(running(&now) <= 1, "{} run", running(&now));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    world.await_wfes_within(WITHIN, "the line moves", |wfes| ended(wfes.values()) > before).await?;
    let three = set(&world, &[]).await?;
    await_in_force(&second, &three).await?;
    world.await_wfes_within(WITHIN, "three run again", |wfes| running(wfes.values()) == 3).await?;

    let all = world.await_wfes_within(WITHIN, "all have ended", |wfes| ended(wfes.values()) == NODES + 1).await?;
    assert_completed(all.values());
    let idle = |metrics: &wfe_testkit::Metrics| {
        metrics.value("workflowexecution_limit_running", &labels) == 0.0
            && metrics.value("workflowexecution_limit_waiting", &labels) == 0.0
    };
    second.await_metrics("an empty line", idle).await?;
    second.terminate().await?;
    // The auditor reads the limit from the flag.
    let history = History::judged(&world, recording).await?;
    for wfe in all.values() {
        assert_eq!(history.created_for(wfe), 1);
    }
    world.close().await
}

#[tokio::test]
async fn a_bad_limit_refuses_the_version_and_names_the_entry_and_the_field() -> Result<()> {
    let world = World::new("bad-limits").await?;
    let operator = world.operator().start().await?;
    set(&world, &[("limits", "[{name: a, maxRunning: 1}, {name: b, maxRunning: 0}]")]).await?;
    operator.await_value("workflowexecution_config_refused", 1.0).await?;
    let (_, page) = operator.get("health", "/configz").await?;
    assert!(page.contains("entry 2 (b): maxRunning is not a whole number from 1 to 100000"), "{page}");
    operator.terminate().await?;
    world.close().await
}
