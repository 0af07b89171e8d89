//! How people and Prometheus see a block: the condition `Blocked` and the gauges, from the failure to the end of the
//! block (section 15).

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::{Operator, Outcome, Pipeline, World};

use crate::audited::audited;
use crate::clearing::{await_free, clear};
use crate::expect::condition;
use crate::history::{assert_skipped, unusable};

const BLOCKED: &str = "workflowexecution_blocked_targets";
const FAILURES: &str = "workflowexecution_consecutive_failures";

async fn await_blocked(operator: &Operator, reason: &str, targets: f64) -> Result<()> {
    let seen = |metrics: &wfe_testkit::Metrics| metrics.value(BLOCKED, &[("reason", reason)]);
    operator.await_metrics(&format!("{reason}: {targets} targets"), |it| (seen(it) - targets).abs() < 0.5).await
}

async fn await_says(world: &World, name: &str, blocked: &str) -> Result<()> {
    world.await_wfe(name, &format!("Blocked is {blocked}"), |it| condition(it, "Blocked") == blocked).await?;
    Ok(())
}

#[tokio::test]
async fn a_block_is_shown_from_the_failure_that_makes_it_to_what_ends_it() -> Result<()> {
    let world = World::new("blocked").await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let fails_too = world.push_pipeline("exit-2", &Pipeline::new().task("apply", Outcome::Exit(2))).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;

    world.wfe("broken").workflow("w1").image(&fails).create().await?;
    // The write that ends the execution also sets the condition.
    let broken = world.await_phase("broken", "Failed").await?;
    assert_eq!(condition(&broken, "Blocked"), "True PreviousExecutionFailed", "{broken:#}");
    await_blocked(&operator, "PreviousExecutionFailed", 1.0).await?;

    // A failed recovery blocks in place of the first failure. A second recovery lifts both blocks.
    await_free(&world, "broken").await?;
    let recovery = |name: &str, of: &'static str, workflow: &str, image: &str| {
        world.wfe(name).workflow(workflow).image(image).patch(move |it| it["spec"]["recoveryOf"] = json!(of))
    };
    recovery("same-bundle", "broken", "w2", &fails).create().await?;
    assert_skipped(&world, "same-bundle", "PreviousExecutionFailed", "broken").await?;
    recovery("again", "broken", "w2", &fails_too).create().await?;
    world.await_phase("again", "Failed").await?;
    await_says(&world, "broken", "False Superseded").await?;
    await_blocked(&operator, "PreviousExecutionFailed", 1.0).await?;
    await_free(&world, "again").await?;
    recovery("recovered", "again", "w3", &works).create().await?;
    world.await_phase("recovered", "Completed").await?;
    await_says(&world, "again", "False Recovered").await?;
    await_says(&world, "broken", "False Superseded").await?;
    await_blocked(&operator, "PreviousExecutionFailed", 0.0).await?;

    // Only a further execution on the target lifts the block for good.
    await_free(&world, "recovered").await?;
    world.wfe("later").workflow("w4").image(&works).create().await?;
    await_says(&world, "again", "False Lifted").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn failures_in_a_row_have_a_series_until_a_clearance_resets_them() -> Result<()> {
    let world = World::new("exhausted").await?;
    let operator = world.operator().arg("--max-consecutive-failures", "2").start().await?;
    let unusable = |name: &str, target: &str| unusable(world.wfe(name).target(target));
    let failures = |wanted: f64| {
        let operator = &operator;
        async move {
            let seen = |it: &wfe_testkit::Metrics| it.value(FAILURES, &[("target_resource", "node/n7")]);
            operator.await_metrics(&format!("{wanted} failures in a row"), |it| (seen(it) - wanted).abs() < 0.5).await
        }
    };
    unusable("first", "node/n7").create().await?;
    let first = world.await_phase("first", "Failed").await?;
    assert_eq!((condition(&first, "Blocked"), &first["status"]["consecutiveFailures"]), (String::new(), &json!(1)));
    failures(1.0).await?;
    unusable("second", "node/n7").create().await?;
    let second = world.await_phase("second", "Failed").await?;
    assert_eq!(condition(&second, "Blocked"), "True ExhaustedRetries", "{second:#}");
    failures(2.0).await?;
    await_blocked(&operator, "ExhaustedRetries", 1.0).await?;
    world.wfe("valid").target("node/n7").create().await?;
    world.await_phase("valid", "Skipped").await?;
    // The operator writes the status before it counts the skip in the metric.
    let reason = [("reason", "ExhaustedRetries")];
    let skips = |it: &wfe_testkit::Metrics| it.value("workflowexecution_backoff_skip_total", &reason);
    operator.await_metrics("one skip for failures", |it| (skips(it) - 1.0).abs() < 0.5).await?;

    // If two failures end in the same second, either may be the newest.
    let blocks = |it: &Value| condition(it, "Blocked") == "True ExhaustedRetries";
    let all = world.await_wfes("one of them blocks", |all| all.values().filter(|it| blocks(it)).count() == 1).await?;
    let newest = all.into_iter().find(|(_, it)| blocks(it)).map(|(name, _)| name).unwrap_or_default();
    clear(&world, &newest, "looked").await?;
    await_says(&world, &newest, "False Cleared").await?;
    await_blocked(&operator, "ExhaustedRetries", 0.0).await?;
    operator
        .await_metrics("no series of the target", |it| !it.has(FAILURES, &[("target_resource", "node/n7")]))
        .await?;

    // If all executions of a target are deleted, the metric's series for this target is removed too.
    unusable("third", "node/n8").create().await?;
    let series = |it: &wfe_testkit::Metrics| it.has(FAILURES, &[("target_resource", "node/n8")]);
    operator.await_metrics("a series of the other target", series).await?;
    world.delete_wfe("third").await?;
    operator.await_metrics("no series of the other target", |it| !series(it)).await?;
    world.close().await
}
