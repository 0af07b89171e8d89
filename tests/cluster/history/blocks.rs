//! An execution failure blocks: at any age, before all else, and until a success or a clearance.

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, WfeBuilder, World};

use super::past::{Past, past};
use super::{WAITS, assert_charged, assert_skipped, short, unusable};
use crate::audited::audited;
use crate::expect::{condition, text};

const MONTH: TimeDelta = TimeDelta::days(30);
const MINUTE: TimeDelta = TimeDelta::minutes(1);

/// Begins an execution that is meant to recover another one.
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

#[tokio::test]
async fn a_recovery_that_fails_itself_is_not_followed_by_one_of_the_first_workflow() -> Result<()> {
    let world = World::new("circle").await?;
    let recording = world.record_all().await?;
    let works = short(&world).await?;
    let fails =
        world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1)).lasting("100ms")).await?;
    past(&world, "first", "node/n", "w1", 1, MONTH, Past::Ran).await?;
    let _operator = world.operator().start().await?;
    let wfe = |name, workflow| world.wfe(name).target("node/n").workflow(workflow).image(&works);
    recovery(wfe("second", "w2").image(&fails), "first").create().await?;
    let second = world.await_phase("second", "Failed").await?;
    assert_eq!(second["status"]["failureDetails"]["wasExecutionFailure"], true, "{second:#}");
    let is_free = |wfe: &Value| condition(wfe, "TargetLocked") == "False Free";
    world.await_wfe("second", "has drained", is_free).await?;

    recovery(wfe("back", "w1"), "second").create().await?;
    let details = assert_skipped(&world, "back", "PreviousExecutionFailed", "second").await?;
    assert!(text(&details["message"]).contains("this workflow has itself failed"), "{details:#}");
    recovery(wfe("of-the-first", "w3"), "first").create().await?;
    assert_skipped(&world, "of-the-first", "PreviousExecutionFailed", "second").await?;
    recovery(wfe("onward", "w3"), "second").create().await?;
    world.await_phase("onward", "Completed").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_later_failure_before_anything_ran_lifts_no_block_and_holds_a_recovery_up() -> Result<()> {
    let world = World::new("still-blocked").await?;
    let recording = world.record_all().await?;
    past(&world, "broken", "node/n", "w1", 1, MONTH, Past::Ran).await?;
    let _operator = world.operator().start().await?;
    let wfe = |name, workflow| world.wfe(name).target("node/n").workflow(workflow);
    unusable(wfe("unusable", "w2")).create().await?;
    let unusable = world.await_phase("unusable", "Failed").await?;
    assert_eq!(unusable["status"]["failureDetails"]["reason"], "ConfigurationError", "{unusable:#}");
    assert_charged(&unusable, 1, WAITS[0])?;

    wfe("plain", "w2").create().await?;
    assert_skipped(&world, "plain", "PreviousExecutionFailed", "broken").await?;
    recovery(wfe("recovery", "w2"), "broken").create().await?;
    assert_skipped(&world, "recovery", "RecentlyRemediated", "unusable").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn in_the_scope_of_a_workflow_it_alone_is_blocked() -> Result<()> {
    let world = World::new("scope").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    past(&world, "broken", "node/n", "w1", 1, MONTH, Past::Ran).await?;
    let _operator = world.operator().arg("--previous-execution-failed-scope", "Workflow").start().await?;
    let wfe = |name, workflow| world.wfe(name).target("node/n").workflow(workflow).image(&bundle);
    wfe("same", "w1").create().await?;
    assert_skipped(&world, "same", "PreviousExecutionFailed", "broken").await?;
    wfe("other", "w2").create().await?;
    world.await_phase("other", "Completed").await?;
    wfe("still", "w1").create().await?;
    assert_skipped(&world, "still", "PreviousExecutionFailed", "broken").await?;
    audited(&world, recording).await?;
    world.close().await
}
