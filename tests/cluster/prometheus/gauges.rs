//! The gauges for waiting, paused and draining executions, and the alerts that use them, from beginning to end.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::{Metrics, Operator, Outcome, Pipeline, World};

use super::scrape;
use crate::faults::{await_free, short};
use crate::lock::pause;

async fn await_gauge(operator: &Operator, name: &str, labels: &[(&str, &str)], value: f64) -> Result<()> {
    let name = format!("workflowexecution_{name}");
    let is = |metrics: &Metrics| metrics.has(&name, labels) && (metrics.value(&name, labels) - value).abs() < 0.5;
    operator.await_metrics(&format!("{name}{labels:?} of {value}"), is).await
}

#[tokio::test]
async fn a_pause_and_a_slow_drain_fire_until_they_end() -> Result<()> {
    let world = World::new("gauges").await?;
    let slow = Pipeline::new().task("apply", Outcome::Hold).terminating_slowly();
    let slow = world.push_pipeline("slow", &slow).await?;
    let operator = world.operator().arg("--drain-deadline", "1s").start().await?;
    let prometheus = scrape(&world, &operator).await?;
    let alone = |name: &'static str| move |firing: &BTreeMap<String, Value>| firing.keys().eq([name]);

    pause(&world, json!("change freeze")).await?;
    world.wfe("patient").image(&slow).create().await?;
    await_gauge(&operator, "paused_namespaces", &[], 1.0).await?;
    await_gauge(&operator, "waiting", &[("reason", "Paused")], 1.0).await?;
    prometheus.await_firing("the alert of a pause", alone("WorkflowExecutionPausedTooLong")).await?;
    pause(&world, Value::Null).await?;
    await_gauge(&operator, "paused_namespaces", &[], 0.0).await?;
    await_gauge(&operator, "waiting", &[("reason", "Paused")], 0.0).await?;
    prometheus.await_firing("that it ends with the pause", BTreeMap::is_empty).await?;

    world.await_running_step().await?;
    await_gauge(&operator, "draining_targets", &[], 0.0).await?;
    world.delete_wfe("patient").await?;
    await_gauge(&operator, "draining_targets", &[("slow", "true")], 1.0).await?;
    await_gauge(&operator, "draining_targets", &[("slow", "false")], 0.0).await?;
    prometheus.await_firing("the alert of a slow drain", alone("WorkflowExecutionDrainSlow")).await?;
    world.let_pods_go("").await?;
    await_gauge(&operator, "draining_targets", &[], 0.0).await?;
    prometheus.await_firing("that it ends with the drain", BTreeMap::is_empty).await?;
    operator.terminate().await?;
    world.close().await
}

#[tokio::test]
async fn a_workflow_that_succeeds_five_times_on_a_target_is_named_and_fires() -> Result<()> {
    let world = World::new("recurring").await?;
    let operator = world.operator().arg("--cooldown-period", "0").start().await?;
    let prometheus = scrape(&world, &operator).await?;
    let bundle = short(&world).await?;
    let target = format!("node/{}", world.namespace());
    let labels = [("target_resource", &*target), ("workflow", "cleanup")];
    for number in 1..=5 {
        let has_series = operator.metrics().await?.has("workflowexecution_recurring_successes", &labels);
        assert!(!has_series, "{number}");
        let name = format!("cleanup-{number}");
        world.wfe(&name).target(&target).workflow("cleanup").image(&bundle).create().await?;
        await_free(&world, &name).await?;
    }
    await_gauge(&operator, "recurring_successes", &labels, 5.0).await?;
    let fires = |firing: &BTreeMap<String, Value>| firing.keys().eq(["WorkflowExecutionRecurringSuccesses"]);
    let firing = prometheus.await_firing("the alert of recurring successes", fires).await?;
    let said = firing["WorkflowExecutionRecurringSuccesses"]["annotations"]["summary"].clone();
    assert_eq!(said, format!("cleanup succeeded 5 times on {target} within 24h"));
    // A deleted execution does not count.
    world.delete_wfe("cleanup-1").await?;
    prometheus.await_firing("that it ends with the count", BTreeMap::is_empty).await?;
    operator.terminate().await?;
    world.close().await
}
