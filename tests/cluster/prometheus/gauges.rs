//! The gauges for waiting, paused and draining executions, and the alerts that read them, from beginning to end.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::{Metrics, Operator, Outcome, Pipeline, World};

use super::scrape;
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
