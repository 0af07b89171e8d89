//! An execution failure of any age blocks its target until a success or a clearance. This rule applies before every
//! other rule.

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::json;
use wfe_testkit::{WfeBuilder, World};

use super::past::{Past, past};
use super::{assert_skipped, short};
use crate::audited::audited;

const MONTH: TimeDelta = TimeDelta::days(30);
const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// Returns an execution that is the recovery of another one.
fn recovery(wfe: WfeBuilder, of: &str) -> WfeBuilder {
    wfe.patch(|wfe| wfe["spec"]["recoveryOf"] = json!(of))
}

#[tokio::test]
async fn an_execution_failure_blocks_until_a_recovery_succeeds() -> Result<()> {
    let world = World::new("block").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    past(&world, "old", "node/old", "w1", 1, MONTH, Past::Ran).await?;
    past(&world, "first", "node/both", "w1", 1, MONTH, Past::Ran).await?;
    past(&world, "later", "node/both", "w2", 2, MINUTE, Past::NothingRan(1, TimeDelta::hours(1))).await?;
    past(&world, "broken", "node/mended", "w1", 1, MONTH, Past::Ran).await?;
    past(&world, "mended", "node/mended", "w2", 2, TimeDelta::days(29), Past::Completed).await?;
    let _operator = world.operator().start().await?;
    let wfe = |name, target, workflow| world.wfe(name).target(target).workflow(workflow).image(&bundle);
    wfe("plain", "node/old", "w2").create().await?;
    recovery(wfe("retry", "node/old", "w1"), "old").create().await?;
    wfe("both", "node/both", "w3").create().await?;
    wfe("after", "node/mended", "w3").create().await?;
    assert_skipped(&world, "plain", "PreviousExecutionFailed", "old").await?;
    assert_skipped(&world, "retry", "PreviousExecutionFailed", "old").await?;
    assert_skipped(&world, "both", "PreviousExecutionFailed", "first").await?;
    world.await_phase("after", "Completed").await?;
    recovery(wfe("recovery", "node/old", "w2"), "old").create().await?;
    world.await_phase("recovery", "Completed").await?;
    wfe("free", "node/old", "w3").create().await?;
    world.await_phase("free", "Completed").await?;
    audited(&world, recording).await?;
    world.close().await
}
