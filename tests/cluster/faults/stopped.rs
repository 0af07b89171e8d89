//! An operator is stopped (SIGSTOP) between two steps, another takes over, and then the first goes on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::future::try_join_all;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::Value;
use wfe_testkit::awaits::DEADLINE;
use wfe_testkit::proxy::{Passed, Request};
use wfe_testkit::{Gate, Operator, Proxy, WfeBuilder, When, World, look};

use super::judge::History;
use super::{COMMIT, CREATE, OWNER, RELEASE, await_free, await_task, finish, held, sign};
use crate::expect::text;

#[tokio::test]
async fn stopped_between_create_and_look() -> Result<()> {
    taken_over("create-look", When::After, CREATE).await
}

#[tokio::test]
async fn stopped_between_look_and_commit() -> Result<()> {
    taken_over("look-commit", When::Before, COMMIT).await
}

#[tokio::test]
async fn stopped_between_commit_and_release() -> Result<()> {
    taken_over("commit-release", When::After, COMMIT).await
}

#[tokio::test]
async fn stopped_with_the_release_on_its_way() -> Result<()> {
    taken_over("release", When::Before, RELEASE).await
}

/// Stops an operator in the life of `taken`, lets another one run it to its end and start `after`, and lets the first
/// go on then.
async fn taken_over(name: &str, when: When, write: &'static str) -> Result<()> {
    let world = World::new(name).await?;
    let bundle = held(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let first = world.operator().through(&proxy).start().await?;
    let second = world.operator().start().await?;
    second.pause()?;
    let mut gate = proxy.hold(when, move |request| sign(request) == write);
    world.wfe("taken").image(&bundle).create().await?;
    gate.reached().await?;
    first.pause()?;

    second.resume()?;
    await_task(&world, "taken").await?;
    world.wfe("rival").workflow("other").image(&bundle).create().await?;
    world.await_phase("rival", "Skipped").await?;
    finish(&world, "taken").await?;
    await_free(&world, "taken").await?;
    world.wfe("after").workflow("other").image(&bundle).create().await?;
    await_task(&world, "after").await?;

    second.pause()?;
    goes_on(&world, &first, gate).await?;
    second.resume()?;
    finish(&world, "after").await?;
    let taken = world.get_wfe("taken").await?;
    let after = world.await_phase("after", "Completed").await?;
    first.terminate().await?;
    second.terminate().await?;
    let history = History::judged(&world, recording).await?;
    assert_eq!((history.created_for(&taken), history.created_for(&after)), (1, 1));
    assert_eq!(history.released(), 2);
    world.close().await
}

/// Lets a stopped operator go on with the request on which it was stopped, and waits until it has decided on a
/// newcomer: a run holds the target, so it skips it.
async fn goes_on(world: &World, operator: &Operator, gate: Gate) -> Result<()> {
    gate.open();
    operator.resume()?;
    world.wfe("newcomer").workflow("another").create().await?;
    let newcomer = world.await_terminal("newcomer").await?;
    assert_eq!(newcomer["status"]["skipDetails"]["conflictingWorkflow"]["name"], "after", "{newcomer:#}");
    Ok(())
}

#[tokio::test]
async fn a_create_that_comes_after_its_execution_has_completed_runs_nothing() -> Result<()> {
    let world = World::new("late-create").await?;
    let bundle = held(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let first = world.operator().through(&proxy).start().await?;
    let mut gate = proxy.hold(When::Before, |request| request.is(CREATE));
    world.wfe("taken").image(&bundle).create().await?;
    gate.reached().await?;
    first.pause()?;
    let second = world.operator().start().await?;
    finish(&world, "taken").await?;
    let taken = await_free(&world, "taken").await?;

    let run = make_room(&world, &taken, &bundle).await?;
    // The one that was stopped all the time has to clear away.
    second.pause()?;
    goes_on(&world, &first, gate).await?;
    await_cleared(&world, &proxy, &run).await?;
    second.resume()?;
    finish(&world, "after").await?;
    world.await_phase("after", "Completed").await?;
    first.terminate().await?;
    second.terminate().await?;
    let history = History::judged(&world, recording).await?;
    assert_eq!((history.created_for(&taken), history.released()), (2, 2));
    world.close().await
}

#[tokio::test]
async fn a_create_that_comes_after_its_execution_was_skipped_runs_nothing() -> Result<()> {
    let world = World::new("late-skipped").await?;
    let bundle = held(&world).await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let first = world.operator().through(&proxy).start().await?;
    let (loser, winner, gate) = loser_with_a_create_on_its_way(&world, &proxy, &bundle).await?;
    first.pause()?;
    let second = world.operator().start().await?;
    let loser = world.await_phase(&loser, "Skipped").await?;
    assert_eq!(loser["status"]["skipDetails"]["conflictingWorkflow"]["name"], winner.as_str());
    finish(&world, &winner).await?;
    let winner = await_free(&world, &winner).await?;

    let run = make_room(&world, &winner, &bundle).await?;
    // The one that has never seen the create has to clear away.
    gate.open();
    await_cleared(&world, &proxy, &run).await?;
    first.resume()?;
    finish(&world, "after").await?;
    world.await_phase("after", "Completed").await?;
    first.terminate().await?;
    second.terminate().await?;
    let history = History::judged(&world, recording).await?;
    assert_eq!((history.created_for(&loser), history.created_for(&winner)), (1, 1));
    world.close().await
}

/// Deletes the run of a finished execution, as retention does, and lets `after` hold the same target. Returns the name
/// of the deleted run, which a late create can take now.
async fn make_room(world: &World, done: &Value, bundle: &str) -> Result<String> {
    let run = text(&done["status"]["pipelineRunRef"]["name"]).to_owned();
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    runs.delete(&run, &DeleteParams::background()).await?;
    world.await_runs(&format!("{run} is gone"), |runs| !runs.contains_key(&run)).await?;
    let target = text(&done["spec"]["targetResource"]);
    world.wfe("after").target(target).workflow("other").image(bundle).create().await?;
    await_task(world, "after").await?;
    Ok(run)
}

/// Waits until the API server has made the run of a late create, and then until it is deleted.
async fn await_cleared(world: &World, proxy: &Proxy, run: &str) -> Result<()> {
    let is_late =
        |passed: &Passed| passed.request.is(CREATE) && passed.request.name == run && passed.applied == Some(201);
    let begun = Instant::now();
    while !proxy.requests().iter().any(is_late) {
        ensure!(begun.elapsed() < DEADLINE, "the late create of {run} was not accepted: {:#?}", proxy.requests());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.await_runs(&format!("{run} is cleared away"), |runs| !runs.contains_key(run)).await?;
    println!("{run} was cleared away after {:?}", begun.elapsed());
    Ok(())
}

/// Holds an operator on the create for an execution that loses against one that came after it: as old, to the second,
/// and of a smaller uid. Returns both names, and the gate.
async fn loser_with_a_create_on_its_way(world: &World, proxy: &Proxy, bundle: &str) -> Result<(String, String, Gate)> {
    for attempt in 0..10 {
        let target = format!("node/late-{attempt}");
        let loser = format!("loser-{attempt}");
        let name = loser.clone();
        let is_its_create =
            move |request: &Request| request.is(CREATE) && request.body["metadata"]["labels"][OWNER] == name.as_str();
        let mut gate = proxy.hold(When::Before, is_its_create);
        let created = world.wfe(&loser).target(&target).image(bundle).create().await?;
        gate.reached().await?;
        let rivals: Vec<_> =
            (0..6).map(|n| world.wfe(&format!("rival-{attempt}-{n}")).target(&target).image(bundle)).collect();
        let rivals = try_join_all(rivals.iter().map(WfeBuilder::create)).await?;
        let rank = |wfe: &DynamicObject| (wfe.metadata.creation_timestamp.clone(), wfe.metadata.uid.clone());
        let first = rivals.iter().min_by_key(|wfe| rank(wfe)).context("no rivals")?;
        if rank(first) < rank(&created) {
            return Ok((loser, first.metadata.name.clone().context("no name")?, gate));
        }
        gate.open();
        finish(world, &loser).await?;
        await_free(world, &loser).await?;
    }
    bail!("no rival was ever ahead of one that was created just before it")
}
