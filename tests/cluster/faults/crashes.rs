//! A kill (SIGKILL) of the operator at every write in a WorkflowExecution's life.

use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use wfe_testkit::{Proxy, Recording, When, World};

use super::judge::{History, assert_completed};
use super::{PROGRESS, lasting, short, sign, writes_of_a_life};

/// How many worlds the crash points are distributed over. One operator at a time runs in each.
const WORLDS: usize = 5;

#[tokio::test]
async fn a_kill_before_or_after_any_write_changes_nothing_in_the_end() -> Result<()> {
    let mut worlds = Vec::new();
    let mut recordings = Vec::new();
    for _ in 0..WORLDS {
        let world = World::new("killed").await?;
        recordings.push(world.record().await?);
        worlds.push(world);
    }
    let writes = writes_of_a_life(&worlds[0]).await?;
    let mut points: Vec<(&str, When)> = Vec::new();
    for write in &writes {
        points.extend([(write.as_str(), When::Before), (write.as_str(), When::After)]);
    }
    try_join_all(worlds.iter().zip(recordings).enumerate().map(|(n, (world, recording))| {
        let mine: Vec<_> = points.iter().copied().skip(n).step_by(WORLDS).collect();
        async move { kill_at(world, recording, &mine).await }
    }))
    .await?;
    for world in worlds {
        world.close().await?;
    }
    Ok(())
}

/// Kills an operator at each of these points, each time with another WorkflowExecution. A new operator then continues.
async fn kill_at(world: &World, recording: Recording, points: &[(&str, When)]) -> Result<()> {
    let (short, lasting) = (short(world).await?, lasting(world).await?);
    let mut ended = Vec::new();
    for (n, (write, when)) in points.iter().enumerate() {
        let begun = Instant::now();
        let wfe = format!("killed-{n}");
        let proxy = Proxy::start(world.control_plane()).await?;
        let victim = world.operator().through(&proxy).start().await?;
        let point = (*write).to_owned();
        let mut gate = proxy.hold(*when, move |request| sign(request) == point);
        let bundle = if *write == PROGRESS { &lasting } else { &short };
        world.wfe(&wfe).target(&format!("node/killed-{n}")).image(bundle).create().await?;
        gate.reached().await.with_context(|| format!("{when:?} {write}"))?;
        victim.kill().await?;
        gate.abort();
        let next = world.operator().start().await?;
        ended.push(world.await_terminal(&wfe).await.with_context(|| format!("killed {when:?} {write}"))?);
        next.terminate().await?;
        println!("killed {when:?} {write}: {:?}", begun.elapsed());
    }
    assert_completed(&ended);
    let history = History::judged(world, recording).await?;
    for (wfe, (write, when)) in ended.iter().zip(points) {
        assert_eq!(history.created_for(wfe), 1, "killed {when:?} {write}");
    }
    Ok(())
}
