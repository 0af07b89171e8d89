//! Two operators with one execution namespace. Only one execution at a time has a target, even if the operators race.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use wfe_testkit::{WfeBuilder, World, is_terminal};

use super::judge::History;
use super::{all, await_free, finish, held, short};
use crate::expect::text;

/// How many executions compete for the target in each round.
const STORM: usize = 50;
const TARGET: &str = "node/worker-node-1";

/// Returns the number of rounds.
fn rounds() -> usize {
    if all() { 100 } else { 5 }
}

#[tokio::test]
async fn two_operators_never_run_two_at_once_nor_one_twice() -> Result<()> {
    let world = World::new("rivals").await?;
    let (held, short) = (held(&world).await?, short(&world).await?);
    let recording = world.record().await?;
    let first = world.operator().start().await?;
    let second = world.operator().start().await?;
    let mut ran = 0;
    for round in 0..rounds() {
        let begun = Instant::now();
        let storm = |image: &str| -> Vec<WfeBuilder> {
            (0..STORM)
                .map(|n| {
                    let name = format!("round-{round}-{n:02}");
                    // With a workflow of its own, no execution is held back by a cooldown.
                    world.wfe(&name).target(TARGET).workflow(&name).image(image)
                })
                .collect()
        };
        ran += if round % 2 == 0 {
            all_at_once(&world, round, &storm(&held)).await?
        } else {
            one_after_the_other(&world, round, &storm(&short)).await?
        };
        println!("round {round}: {:?}", begun.elapsed());
    }
    first.terminate().await?;
    second.terminate().await?;
    let history = History::judged(&world, recording).await?;
    assert_eq!(history.released(), ran, "every execution that ran was released once");
    let users: usize = history.accepted("create", "pipelineruns").count();
    println!("{ran} runs, {users} creates");
    world.close().await
}

/// Creates all executions at the same moment. The running one is held until all others are decided. Returns how many
/// executions ran, which is one.
async fn all_at_once(world: &World, round: usize, storm: &[WfeBuilder]) -> Result<usize> {
    try_join_all(storm.iter().map(WfeBuilder::create)).await?;
    let prefix = format!("round-{round}-");
    let decided = world
        .await_wfes("one Running and all others Skipped", |wfes| {
            let mine = wfes.iter().filter(|(name, _)| name.starts_with(&prefix));
            mine.filter(|(_, wfe)| is_terminal(wfe)).count() == STORM - 1
        })
        .await?;
    let mut mine = decided.iter().filter(|(name, _)| name.starts_with(&prefix));
    let holder = mine.find(|(_, wfe)| !is_terminal(wfe));
    let (holder, _) = holder.ok_or_else(|| anyhow::anyhow!("nobody holds the target"))?;
    finish(world, holder).await?;
    await_free(world, holder).await?;
    Ok(1)
}

/// Creates an execution every few milliseconds, while runs end and further runs begin. Returns how many executions ran.
async fn one_after_the_other(world: &World, round: usize, storm: &[WfeBuilder]) -> Result<usize> {
    for wfe in storm {
        wfe.create().await?;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    let prefix = format!("round-{round}-");
    let decided = world
        .await_wfes("all decided and done", |wfes| {
            let mine = wfes.iter().filter(|(name, _)| name.starts_with(&prefix));
            mine.filter(|(_, wfe)| is_terminal(wfe)).count() == STORM
        })
        .await?;
    let mine: Vec<_> = decided.iter().filter(|(name, _)| name.starts_with(&prefix)).collect();
    for (name, wfe) in &mine {
        let phase = text(&wfe["status"]["phase"]);
        ensure!(matches!(phase, "Completed" | "Skipped"), "{name} is {phase}: {wfe:#}");
    }
    let ran = mine.iter().filter(|(_, wfe)| wfe["status"]["phase"] == "Completed").count();
    ensure!(ran > 0, "nobody ran");
    Ok(ran)
}
