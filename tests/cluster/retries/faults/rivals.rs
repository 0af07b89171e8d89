//! Two operators, neither of which leads: each takes the steps that the other has not taken yet.

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use wfe_testkit::{Proxy, When, World, is_terminal};

use super::super::await_wait;
use super::{STEPS, check, check_all, exits, hopeless, sign};
use crate::expect::text;
use crate::faults::all;
use crate::faults::judge::History;

#[tokio::test]
async fn two_operators_make_no_attempt_too_many_and_skip_every_rival() -> Result<()> {
    let holders = if all() { 40 } else { 5 };
    let world = World::new("retry-rivals").await?;
    let bundle = exits(&world).await?;
    let recording = world.record_all().await?;
    let first = world.operator().start().await?;
    let second = world.operator().start().await?;
    try_join_all((0..holders).map(|n| holder_and_rivals(&world, n, &bundle))).await?;
    let all = world.await_wfes("all terminal", |all| all.values().all(is_terminal)).await?;
    first.terminate().await?;
    second.terminate().await?;
    let history = History::judged(&world, recording).await?;
    assert_eq!(history.released(), holders * 3);
    for (name, wfe) in &all {
        if name.starts_with("holder") {
            check(&history, wfe);
        } else {
            let details = &wfe["status"]["skipDetails"];
            assert_eq!(
                (text(&wfe["status"]["phase"]), &details["reason"]),
                ("Skipped", &"ResourceBusy".into()),
                "{wfe:#}"
            );
        }
    }
    world.close().await
}

/// Makes an execution, and a rival whenever it waits.
async fn holder_and_rivals(world: &World, n: usize, bundle: &str) -> Result<()> {
    let name = format!("holder-{n}");
    hopeless(world, &name, bundle).create().await?;
    for attempt in [2, 3] {
        let holder: Value = await_wait(world, &name, attempt).await?;
        let rival = format!("rival-{n}-{attempt}");
        world.wfe(&rival).target(text(&holder["spec"]["targetResource"])).workflow(&rival).create().await?;
    }
    Ok(())
}

/// Steps at which the quick variant stops an operator: each is sent late, to what has gone on without it.
const LATE: [(&str, When); 3] = [("retry 1", When::Before), ("create 2", When::Before), ("commit 2", When::Before)];

#[tokio::test]
async fn an_operator_that_was_stopped_at_a_step_of_an_attempt_changes_nothing_when_it_goes_on() -> Result<()> {
    let every = STEPS.iter().flat_map(|step| [(*step, When::Before), (*step, When::After)]);
    let points: Vec<(&str, When)> = if all() { every.collect() } else { LATE.to_vec() };
    let points = futures::stream::iter(points).map(Ok);
    points.try_for_each_concurrent(LATE.len(), |(step, when)| stopped_at(step, when)).await
}

/// Stops (SIGSTOP) an operator with a step on its way, lets another take all the other steps, and lets the first go on
/// then.
async fn stopped_at(step: &'static str, when: When) -> Result<()> {
    let world = World::new("retry-stopped").await?;
    let bundle = exits(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let first = world.operator().through(&proxy).start().await?;
    let second = world.operator().start().await?;
    second.pause()?;
    let mut gate = proxy.hold(when, move |request| sign(request) == step);
    hopeless(&world, "taken", &bundle).create().await?;
    gate.reached().await.with_context(|| format!("{when:?} {step}"))?;
    first.pause()?;
    second.resume()?;
    let taken = world.await_terminal("taken").await.with_context(|| format!("stopped {when:?} {step}"))?;

    second.pause()?;
    gate.open();
    first.resume()?;
    // What the first decides on a newcomer it decides after that.
    world.wfe("newcomer").target("node/taken").workflow("other").create().await?;
    let newcomer = world.await_terminal("newcomer").await?;
    assert_eq!(newcomer["status"]["skipDetails"]["reason"], "PreviousExecutionFailed", "{newcomer:#}");
    second.resume()?;
    first.terminate().await?;
    second.terminate().await?;
    check_all(&world, recording, [&taken].into_iter()).await?;
    println!("stopped {when:?} {step}");
    world.close().await
}
