//! Schedules against crashes, lost answers, rivals and changes of leader: one child a slot, no slot twice, and a count
//! that is the fold of the outcomes.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wfe_testkit::proxy::Request;
use wfe_testkit::{Fault, Outcome, Pipeline, Proxy, When, World, is_terminal};

use super::{await_children, await_failures, await_outcome, await_schedule, create, hurry};
use crate::audited::audited;
use crate::expect::text;
use crate::faults::all;
use crate::history::short;

/// The writes of a slot that are the schedule's own.
const WRITES: [&str; 3] =
    ["create workflowexecutions", "patch workflowschedules/status at work", "patch workflowschedules/status done"];

/// Names a write of a slot; nothing for any other request.
fn sign(request: &Request) -> Option<&'static str> {
    let run = &request.body["status"]["lastRun"];
    match request.what().as_str() {
        "create workflowexecutions" => Some(WRITES[0]),
        "patch workflowschedules/status" if run["outcome"].is_string() => Some(WRITES[2]),
        "patch workflowschedules/status" if run["name"].is_string() => Some(WRITES[1]),
        _ => None,
    }
}

/// Fails unless each slot has one child, and each child has its outcome in the status or is older than its last run.
async fn check(world: &World, name: &str, runs: usize) -> Result<Value> {
    let schedule = await_outcome(world, name, "Completed").await?;
    let children = await_children(world, name, runs).await?;
    let mut slots: Vec<&str> =
        children.iter().map(|it| text(&it["metadata"]["annotations"]["kubernaut.ai/scheduled-for"])).collect();
    slots.sort_unstable();
    slots.dedup();
    ensure!(slots.len() == runs, "{slots:?}");
    Ok(schedule)
}

#[tokio::test]
async fn a_kill_before_or_after_any_write_of_a_slot_changes_nothing_in_the_end() -> Result<()> {
    let world = World::new("killed-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let spec = json!({"interval": "1h", "minInterval": "1s", "history": {"successful": 20, "failed": 20}});
    for (n, write) in WRITES.into_iter().enumerate() {
        for (m, when) in [When::Before, When::After].into_iter().enumerate() {
            let name = format!("killed-{n}-{m}");
            let proxy = Proxy::start(world.control_plane()).await?;
            let victim = world.operator().through(&proxy).start().await?;
            create(&world, &name, &format!("node/{name}"), &bundle, &spec).await?;
            await_schedule(&world, &name, "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
            let mut gate = proxy.hold(when, move |request| sign(request) == Some(write));
            hurry(&world, &name).await?;
            gate.reached().await.with_context(|| format!("{when:?} {write}"))?;
            victim.kill().await?;
            gate.abort();
            let next = world.operator().start().await?;
            let done = check(&world, &name, 1).await.with_context(|| format!("killed {when:?} {write}"))?;
            assert_eq!(done["status"]["failureCount"], 0, "{done:#}");
            next.terminate().await?;
        }
    }
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn an_answer_that_is_lost_makes_no_second_child() -> Result<()> {
    let world = World::new("lost-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    for (n, write) in WRITES.into_iter().enumerate() {
        for (m, fault) in [Fault::LoseAnswer, Fault::Close].into_iter().enumerate() {
            let name = format!("lost-{n}-{m}");
            let proxy = Proxy::start(world.control_plane()).await?;
            let struck = std::sync::atomic::AtomicBool::new(false);
            let strike = fault.clone();
            proxy.on(move |request| {
                let strikes = sign(request) == Some(write) && !struck.swap(true, std::sync::atomic::Ordering::Relaxed);
                if strikes { strike.clone() } else { Fault::Pass }
            });
            let operator = world.operator().through(&proxy).start().await?;
            create(&world, &name, &format!("node/{name}"), &bundle, &json!({"interval": "1h", "minInterval": "1s"}))
                .await?;
            await_schedule(&world, &name, "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
            hurry(&world, &name).await?;
            check(&world, &name, 1).await.with_context(|| format!("{fault:?} of {write}"))?;
            operator.terminate().await?;
        }
    }
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn two_operators_make_one_child_a_slot_and_count_each_failure_once() -> Result<()> {
    let world = World::new("two-operators").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("unpullable", &Pipeline::new().task("apply", Outcome::ImagePull)).await?;
    let _one = world.operator().start().await?;
    let _other = world.operator().start().await?;
    let slots = if all() { 12 } else { 4 };
    let spec = json!({"interval": "1h", "minInterval": "1s", "history": {"failed": 100}});
    create(&world, "both", "node/worker", &bundle, &spec).await?;
    for failures in 1..=slots {
        hurry(&world, "both").await?;
        await_failures(&world, "both", failures).await?;
    }
    let children = await_children(&world, "both", usize::try_from(slots)?).await?;
    ensure!(children.iter().all(|child| child["status"]["phase"] == "Failed"), "{children:#?}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn the_next_leader_goes_on_where_the_last_one_stopped() -> Result<()> {
    let world = World::new("led-schedule").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let first = world.operator().replica("first").start().await?;
    create(&world, "led", "node/worker", &bundle, &json!({"interval": "2s", "minInterval": "1s"})).await?;
    await_outcome(&world, "led", "Completed").await?;
    let _second = world.operator().replica("second").start().await?;
    first.kill().await?;
    let before = await_schedule(&world, "led", "is there", |_| true).await?;
    let last = text(&before["status"]["lastRun"]["slot"]).to_owned();
    await_schedule(&world, "led", "runs a later slot", |it| {
        text(&it["status"]["lastRun"]["slot"]) > last.as_str() && it["status"]["lastRun"]["outcome"] == "Completed"
    })
    .await?;
    super::edit(&world, "led", json!({"suspend": true})).await?;
    super::await_held(&world, "led", "Suspended").await?;
    // A child that was made just before is still at work.
    let all = world.await_wfes("no child is at work", |all| all.values().all(is_terminal)).await?;
    let newest = all.values().map(|child| text(&child["metadata"]["name"])).max().unwrap_or_default();
    await_schedule(&world, "led", "has recorded its last child", |it| {
        it["status"]["lastRun"]["name"] == newest && it["status"]["lastRun"]["outcome"].is_string()
    })
    .await?;
    audited(&world, recording).await?;
    world.close().await
}
