//! Ended executions are removed when their time to live is over, unless they are still needed.

use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use wfe_testkit::{Metrics, WfeBuilder, World};

use crate::audited::audited;
use crate::clearing::{await_free, clear};
use crate::history::past::{Past, five_failures, past};
use crate::history::short;

/// Sets a time to live of zero.
fn fleeting(wfe: WfeBuilder) -> WfeBuilder {
    wfe.patch(|wfe| wfe["spec"]["ttlSecondsAfterFinished"] = json!(0))
}

/// Waits until the second in which an execution ended is over. If two executions end in the same second, their order is
/// unknown and neither is removed.
pub(crate) async fn await_later_second(world: &World, name: &str) -> Result<()> {
    let wfe = world.get_wfe(name).await?;
    let ended: DateTime<Utc> = wfe["status"]["completionTime"].as_str().context("it has not ended")?.parse()?;
    while Utc::now() < ended + TimeDelta::seconds(1) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn an_execution_that_is_over_is_removed_when_a_newer_one_is_over_too() -> Result<()> {
    let world = World::new("ttl").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let operator = world.operator().arg("--cooldown-period", "0").start().await?;
    fleeting(world.wfe("first").image(&bundle)).create().await?;
    world.await_phase("first", "Completed").await?;
    world.wfe("kept").target("node/kept").image(&bundle).create().await?;
    await_later_second(&world, "first").await?;
    fleeting(world.wfe("second").image(&bundle)).create().await?;
    world.await_wfes("the first gone", |all| !all.contains_key("first")).await?;
    await_free(&world, "kept").await?;
    await_free(&world, "second").await?;
    await_later_second(&world, "second").await?;
    // The numbering of runs continues.
    fleeting(world.wfe("third").image(&bundle)).create().await?;
    let left = world.await_wfes("the second gone", |all| !all.contains_key("second")).await?;
    assert!(left.keys().eq(["kept", "third"]), "{:?}", left.keys());
    assert_eq!(left["third"]["status"]["runSequence"], 3);
    // The operator may get the answers to its deletions after this test sees the deletions in its watch.
    let both_counted =
        |metrics: &Metrics| (metrics.value("workflowexecution_expired_total", &[]) - 2.0).abs() < f64::EPSILON;
    operator.await_metrics("both removals counted", both_counted).await?;
    await_free(&world, "third").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn what_blocks_or_counts_outlives_its_time_until_it_is_cleared() -> Result<()> {
    let world = World::new("ttl-blocks").await?;
    let recording = world.record_all().await?;
    let day = TimeDelta::days(1);
    let second = TimeDelta::seconds(1);
    past(&world, "old", "node/done", "w", 1, day, Past::Completed).await?;
    past(&world, "new", "node/done", "w", 2, day - second, Past::Completed).await?;
    past(&world, "broke", "node/broken", "w", 1, day, Past::Ran).await?;
    five_failures(&world, "failed", "node/exhausted", 1, day).await?;
    let _operator = world.operator().arg("--ttl-after-finished", "1h").start().await?;
    world.await_wfes("the old one gone", |all| !all.contains_key("old")).await?;
    let blocked = world.await_wfes("all blocks told", |all| {
        ["broke", "failed-5"].iter().all(|name| crate::expect::condition(&all[*name], "Blocked").starts_with("True"))
    });
    let all = blocked.await?;
    let failed = ["failed-1", "failed-2", "failed-3", "failed-4", "failed-5"];
    assert!(all.keys().eq(["broke"].iter().chain(&failed).chain(&["new"])), "{:?}", all.keys());
    clear(&world, "failed-5", "quota raised").await?;
    // The cleared failures no longer block and are removed, except the newest one.
    let gone = world.await_wfes("what was cleared gone", |all| !failed[..4].iter().any(|name| all.contains_key(*name)));
    let all = gone.await?;
    assert!(all.keys().eq(["broke", "failed-5", "new"]), "{:?}", all.keys());
    audited(&world, recording).await?;
    world.close().await
}
