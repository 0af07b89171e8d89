//! kill -9 at every write of three attempts.

use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use serde_json::json;
use wfe_testkit::{Proxy, Recording, When, World};

use super::super::{RETRYING, attempts, unpullable, with_retry};
use super::{STEPS, check_all, exits, hopeless, sign, writes};
use crate::audited::audited;
use crate::expect::condition;
use crate::faults::all;
use crate::leader::{await_standing, quick};

/// How many worlds share the points. Each has one operator at a time.
const WORLDS: usize = 5;

#[tokio::test]
async fn a_kill_before_each_step_of_one_life_changes_nothing_in_the_end() -> Result<()> {
    killed_at_each_step(When::Before).await
}

#[tokio::test]
async fn a_kill_after_each_step_of_one_life_changes_nothing_in_the_end() -> Result<()> {
    killed_at_each_step(When::After).await
}

/// Kills one operator after the other, each at the next step of the same execution.
async fn killed_at_each_step(when: When) -> Result<()> {
    let world = World::new("killed-often").await?;
    let bundle = exits(&world).await?;
    let recording = world.record_all().await?;
    hopeless(&world, "killed", &bundle).create().await?;
    for step in STEPS {
        let begun = Instant::now();
        kill_at(&world, step, when, async || Ok(())).await?;
        println!("killed {when:?} {step}: {:?}", begun.elapsed());
    }
    let last = world.operator().start().await?;
    let failed = world.await_terminal("killed").await?;
    last.terminate().await?;
    check_all(&world, recording, [&failed].into_iter()).await?;
    world.close().await
}

/// Starts an operator and kills it at a write.
async fn kill_at(world: &World, write: &str, when: When, begin: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let proxy = Proxy::start(world.control_plane()).await?;
    let point = write.to_owned();
    let mut gate = proxy.hold(when, move |request| sign(request) == point);
    let victim = world.operator().through(&proxy).spawn().await?;
    begin().await?;
    gate.reached().await.with_context(|| format!("{when:?} {write}"))?;
    victim.kill().await?;
    gate.abort();
    Ok(())
}

#[tokio::test]
async fn a_kill_before_or_after_any_write_of_three_attempts_changes_nothing_in_the_end() -> Result<()> {
    let writes = if all() { writes() } else { ["retry 1", "commit 2"].map(str::to_owned).to_vec() };
    let points: Vec<(&str, When)> =
        writes.iter().flat_map(|write| [(write.as_str(), When::Before), (write.as_str(), When::After)]).collect();
    let mut worlds = Vec::new();
    let mut recordings = Vec::new();
    for _ in 0..WORLDS.min(points.len()) {
        let world = World::new("killed-once").await?;
        recordings.push(world.record_all().await?);
        worlds.push(world);
    }
    try_join_all(worlds.iter().zip(recordings).enumerate().map(|(n, (world, recording))| {
        let mine: Vec<_> = points.iter().copied().skip(n).step_by(WORLDS).collect();
        async move { killed_once(world, recording, &mine).await }
    }))
    .await?;
    for world in worlds {
        world.close().await?;
    }
    Ok(())
}

/// Kills an operator at each of these points, each in the life of another execution, and lets another operator go on.
async fn killed_once(world: &World, recording: Recording, points: &[(&str, When)]) -> Result<()> {
    let bundle = exits(world).await?;
    let mut ended = Vec::new();
    for (n, (write, when)) in points.iter().enumerate() {
        let begun = Instant::now();
        let wfe = format!("killed-{n}");
        kill_at(world, write, *when, async || hopeless(world, &wfe, &bundle).create().await.map(drop)).await?;
        let next = world.operator().start().await?;
        ended.push(world.await_terminal(&wfe).await.with_context(|| format!("killed {when:?} {write}"))?);
        next.terminate().await?;
        println!("killed {when:?} {write}: {:?}", begun.elapsed());
    }
    check_all(world, recording, ended.iter()).await
}

/// Whether anything of a pod ran can be told by an operator that followed it: Tekton deletes a pod that gets no image.
#[tokio::test]
async fn an_attempt_that_no_operator_followed_to_its_record_is_not_tried_again_by_default() -> Result<()> {
    let world = World::new("unfollowed").await?;
    let bundle = unpullable(&world).await?;
    let recording = world.record_all().await?;
    with_retry(world.wfe("unfollowed").image(&bundle), &json!(true)).create().await?;
    kill_at(&world, "retry 1", When::Before, async || Ok(())).await?;
    let next = world.operator().start().await?;
    let failed = world.await_terminal("unfollowed").await?;
    assert_eq!((condition(&failed, RETRYING).as_str(), attempts(&failed).len()), ("False Ran", 1), "{failed:#}");
    assert_eq!((&attempts(&failed)[0]["started"], world.runs().await?.len()), (&json!("Unknown"), 1), "{failed:#}");
    next.terminate().await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_follower_that_saw_the_attempt_tries_again_where_its_leader_was_killed() -> Result<()> {
    let world = World::new("followed").await?;
    let bundle = unpullable(&world).await?;
    let recording = world.record_all().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let mut gate = proxy.hold(When::Before, |request| sign(request) == "retry 1");
    let leader = quick(world.operator().replica("one")).through(&proxy).start().await?;
    await_standing(&leader, |status, said| status == 200 && said == "ok; leading\n").await?;
    let follower = quick(world.operator().replica("two")).start().await?;
    await_standing(&follower, |status, said| status == 200 && said.starts_with("ok; following one_")).await?;
    with_retry(world.wfe("followed").image(&bundle), &json!({"maxDelay": "1s"})).create().await?;
    gate.reached().await?;
    leader.kill().await?;
    gate.abort();
    let failed = world.await_terminal("followed").await?;
    assert_eq!((condition(&failed, RETRYING).as_str(), attempts(&failed).len()), ("False Exhausted", 3), "{failed:#}");
    assert!(attempts(&failed).iter().all(|attempt| attempt["started"] == "False"), "{failed:#}");
    follower.terminate().await?;
    audited(&world, recording).await?;
    world.close().await
}
