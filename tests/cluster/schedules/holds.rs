//! What holds a schedule, and what ends the hold. While a schedule is held, it creates no child that would only be
//! skipped.

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World};

use super::{await_at_work, await_children, await_held, await_outcome, await_schedule, create, edit, end_child};
use crate::audited::audited;
use crate::clearing::clear;
use crate::expect::{condition, text};

async fn held_pipeline(world: &World) -> Result<String> {
    world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold).lasting("100ms")).await
}

#[tokio::test]
async fn a_block_holds_a_schedule_and_a_clearance_lets_it_run() -> Result<()> {
    let world = World::new("blocked-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = held_pipeline(&world).await?;
    let _operator = world.operator().start().await?;
    let spec = json!({"interval": "1s", "minInterval": "1s", "history": {"successful": 1, "failed": 0}});
    create(&world, "blocked", "node/worker", &bundle, &spec).await?;
    let first = await_at_work(&world, "blocked").await?;
    end_child(&world, &first, "exit-1").await?;
    let failed = await_outcome(&world, "blocked", "Failed").await?;
    assert_eq!(failed["status"]["failureCount"], 1, "{failed:#}");
    let held = await_held(&world, "blocked", "PreviousExecutionFailed").await?;
    assert_eq!(held["status"]["nextRunTime"], Value::Null, "{held:#}");
    world.await_event("blocked", "Held").await?;
    // The hold has prevented a child that would only be skipped. The history keeps the child that blocks.
    let children = await_children(&world, "blocked", 1).await?;
    assert_eq!(text(&children[0]["metadata"]["name"]), first);
    clear(&world, &first, "looked").await?;
    let at_work =
        |it: &Value| it["status"]["lastRun"]["name"] != *first && it["status"]["lastRun"]["outcome"].is_null();
    let runs = await_schedule(&world, "blocked", "runs again", at_work).await?;
    assert_eq!(condition(&runs, "Held"), "False Released", "{runs:#}");
    world.await_event("blocked", "Released").await?;
    edit(&world, "blocked", json!({"suspend": true})).await?;
    let second = text(&runs["status"]["lastRun"]["name"]).to_owned();
    end_child(&world, &second, "ok").await?;
    let well = await_outcome(&world, "blocked", "Completed").await?;
    assert_eq!(well["status"]["failureCount"], 0, "{well:#}");
    // The failure no longer blocks and is removed, because the history keeps no failures.
    let left = await_children(&world, "blocked", 1).await?;
    assert_eq!(text(&left[0]["metadata"]["name"]), second);
    audited(&world, recording).await?;
    world.close().await
}
