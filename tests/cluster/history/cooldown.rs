//! The cooldown of each workflow on each target.

use anyhow::Result;
use chrono::TimeDelta;
use wfe_testkit::World;

use super::past::{Past, past};
use super::{assert_skipped, short};
use crate::audited::audited;
use crate::expect::text;

#[tokio::test]
async fn the_same_workflow_cools_down_and_another_does_not() -> Result<()> {
    let world = World::new("cooldown").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let recent = TimeDelta::minutes(5) - TimeDelta::seconds(60);
    for (target, ago) in [("node/warm", recent), ("node/cold", TimeDelta::minutes(5)), ("node/twice", recent)] {
        past(&world, &target.replace('/', "-"), target, "w1", 1, ago, Past::Completed).await?;
    }
    // First w1, then w2, and then w1 again while w1 cools down.
    past(&world, "between", "node/twice", "w2", 2, TimeDelta::minutes(1), Past::Completed).await?;
    let _operator = world.operator().start().await?;
    for (name, target, workflow) in [
        ("same", "node/warm", "w1"),
        ("again", "node/twice", "w1"),
        ("over", "node/cold", "w1"),
        ("elsewhere", "node/other", "w1"),
    ] {
        world.wfe(name).target(target).workflow(workflow).image(&bundle).create().await?;
    }
    let details = assert_skipped(&world, "same", "RecentlyRemediated", "node-warm").await?;
    assert!(text(&details["message"]).contains("cooldown"), "{details:#}");
    assert_skipped(&world, "again", "RecentlyRemediated", "node-twice").await?;
    world.await_phase("over", "Completed").await?;
    world.await_phase("elsewhere", "Completed").await?;
    world.wfe("different").target("node/warm").workflow("w2").image(&bundle).create().await?;
    world.await_phase("different", "Completed").await?;
    audited(&world, recording).await?;
    world.close().await
}
