//! Backoff and cooldown end at their second, and not a moment before.
//!
//! A run is ended at such a past time that its backoff or cooldown ends some seconds from now. Until then one execution
//! after the other asks for a turn; what is judged are the times that the operator and the API server have written.

use anyhow::{Result, bail};
use chrono::{SubsecRound as _, TimeDelta, Utc};
use futures::future::try_join;
use serde_json::Value;
use wfe_testkit::{World, is_terminal};

use super::moment;
use super::player::{End, end_run, stage};
use crate::expect::text;

/// How long before the end, so that some ask in time; a machine with much to do is given longer. Less than a minute.
const AHEAD: [TimeDelta; 3] = [TimeDelta::seconds(3), TimeDelta::seconds(10), TimeDelta::seconds(30)];
/// Far more than can ask in that time, one after the other.
const MOST: usize = 10_000;

#[tokio::test]
async fn backoff_and_cooldown_end_to_the_second() -> Result<()> {
    let world = stage("boundaries").await?;
    let _operator = world.operator().start().await?;
    let cooldown = ends_to_the_second(&world, "cooldown", End::Completed, TimeDelta::minutes(5));
    let backoff = ends_to_the_second(&world, "backoff", End::NothingRan, TimeDelta::minutes(1));
    try_join(cooldown, backoff).await?;
    world.close().await
}

async fn ends_to_the_second(world: &World, rule: &str, how: End, lasts: TimeDelta) -> Result<()> {
    for ahead in AHEAD {
        if skipped_before(world, &format!("{rule}-{}", ahead.num_seconds()), how, lasts, ahead).await? > 0 {
            return Ok(());
        }
    }
    bail!("{rule}: nobody ever asked in time")
}

/// Ends a run so that what follows it ends so far ahead, and has others ask for a turn until one gets it. Returns how
/// many were skipped.
async fn skipped_before(world: &World, target: &str, how: End, lasts: TimeDelta, ahead: TimeDelta) -> Result<usize> {
    let first = format!("{target}-first");
    let wfe = |name: &str| world.wfe(name).target(&format!("node/{target}"));
    wfe(&first).create().await?;
    world.await_phase(&first, "Running").await?;
    let boundary = Utc::now().trunc_subsecs(0) + ahead;
    end_run(world, &first, how, boundary - lasts).await?;
    world.await_terminal(&first).await?;

    for skipped in 0..MOST {
        let name = format!("{target}-{skipped}");
        wfe(&name).create().await?;
        let is_decided = |wfe: &Value| is_terminal(wfe) || wfe["status"]["phase"] == "Running";
        let decided = world.await_wfe(&name, "is decided", is_decided).await?;
        let status = &decided["status"];
        if status["phase"] == "Running" {
            assert!(moment(&status["startTime"])? >= boundary, "it ran before {boundary}: {decided:#}");
            let run = text(&status["pipelineRunRef"]["name"]);
            let run = world.await_run("is there", |it| it["metadata"]["name"] == *run).await?;
            assert!(moment(&run["metadata"]["creationTimestamp"])? >= boundary, "created before {boundary}: {run:#}");
            return Ok(skipped);
        }
        let details = &status["skipDetails"];
        assert_eq!(details["reason"], "RecentlyRemediated", "{decided:#}");
        assert_eq!(details["recentRemediation"]["name"], first.as_str(), "{decided:#}");
        // What remains is more than nothing, and to the second what was left then.
        assert_eq!(moment(&details["skippedAt"])? + remaining(details)?, boundary, "{decided:#}");
    }
    bail!("none of {MOST} got a turn, though {boundary} is over")
}

fn remaining(details: &Value) -> Result<TimeDelta> {
    let text = text(&details["recentRemediation"]["cooldownRemaining"]);
    let Some(seconds) = text.strip_suffix('s').and_then(|seconds| seconds.parse().ok()) else {
        bail!("{text:?} is no number of seconds below a minute: {details:#}");
    };
    anyhow::ensure!(seconds > 0, "skipped though nothing remains: {details:#}");
    Ok(TimeDelta::seconds(seconds))
}
