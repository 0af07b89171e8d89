//! What holds a schedule, and what ends that: no child is made only to be skipped.

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World};

use super::{await_at_work, await_children, await_held, await_outcome, await_schedule, create, edit, end_child, hurry};
use crate::audited::audited;
use crate::clearing::clear;
use crate::configuration::pause::annotate;
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
    // Nothing was made only to be skipped, and the history leaves what blocks where it is.
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
    // The failure that nobody needs any more goes, as the history has no room for one.
    let left = await_children(&world, "blocked", 1).await?;
    assert_eq!(text(&left[0]["metadata"]["name"]), second);
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_suspension_lets_the_child_go_on_and_loses_its_slots() -> Result<()> {
    let world = World::new("suspended").await?;
    let recording = world.record_all().await?;
    let bundle = held_pipeline(&world).await?;
    let _operator = world.operator().start().await?;
    create(&world, "suspended", "node/worker", &bundle, &json!({"interval": "5s", "minInterval": "1s"})).await?;
    let child = await_at_work(&world, "suspended").await?;
    edit(&world, "suspended", json!({"suspend": true})).await?;
    await_held(&world, "suspended", "Suspended").await?;
    end_child(&world, &child, "ok").await?;
    let done = await_outcome(&world, "suspended", "Completed").await?;
    assert_eq!(done["status"]["nextRunTime"], Value::Null, "{done:#}");
    edit(&world, "suspended", json!({"suspend": false, "interval": "1h", "minInterval": null})).await?;
    let resumed = |it: &Value| condition(it, "Held") == "False Released" && it["status"]["nextRunTime"].is_string();
    let resumed = await_schedule(&world, "suspended", "is resumed", resumed).await?;
    let status = &resumed["status"];
    assert_eq!(
        super::moment(&status["nextRunTime"])? - super::moment(&status["plannedFrom"])?,
        chrono::TimeDelta::hours(1),
        "{status:#}"
    );
    await_children(&world, "suspended", 1).await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_pause_and_another_execution_hold_a_schedule_until_they_end() -> Result<()> {
    let world = World::new("held-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = held_pipeline(&world).await?;
    let _operator = world.operator().start().await?;
    world.wfe("busy").target("node/worker").image(&bundle).create().await?;
    world.await_phase("busy", "Running").await?;
    create(&world, "waits", "node/worker", &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    hurry(&world, "waits").await?;
    await_held(&world, "waits", "ResourceBusy").await?;
    annotate(&world, json!("maintenance")).await?;
    end_child(&world, "busy", "ok").await?;
    await_held(&world, "waits", "Paused").await?;
    await_children(&world, "waits", 0).await?;
    annotate(&world, Value::Null).await?;
    let child = await_at_work(&world, "waits").await?;
    end_child(&world, &child, "ok").await?;
    await_outcome(&world, "waits", "Completed").await?;
    await_children(&world, "waits", 1).await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn of_two_schedules_of_one_target_both_run() -> Result<()> {
    let world = World::new("two-schedules").await?;
    let recording = world.record_all().await?;
    let bundle = held_pipeline(&world).await?;
    let _operator = world.operator().start().await?;
    for name in ["one", "other"] {
        create(&world, name, "node/worker", &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    }
    let (one, other) = tokio::join!(hurry(&world, "one"), hurry(&world, "other"));
    one.and(other)?;
    let is_at_work = |it: &Value| it["status"]["lastRun"]["name"].is_string();
    let begun =
        world.await_many(&super::resource(), world.namespace(), "one of them runs", |all| all.values().any(is_at_work));
    let begun = begun.await?;
    let (first, second) = if is_at_work(&begun["one"]) { ("one", "other") } else { ("other", "one") };
    await_held(&world, second, "ResourceBusy").await?;
    let child = await_at_work(&world, first).await?;
    end_child(&world, &child, "ok").await?;
    let child = await_at_work(&world, second).await?;
    end_child(&world, &child, "ok").await?;
    for name in ["one", "other"] {
        await_outcome(&world, name, "Completed").await?;
        await_children(&world, name, 1).await?;
    }
    audited(&world, recording).await?;
    world.close().await
}
