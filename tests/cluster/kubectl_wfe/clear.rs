//! A person clears a target, even if something else currently hides the block from a new execution.

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World};

use super::{Caller, ROLES, TARGET, guard_clearances, has, pause, recorded};
use crate::clearing::await_free;
use crate::history::past::{Past, past};

const HOUR: TimeDelta = TimeDelta::hours(1);

#[tokio::test]
async fn a_person_asks_why_a_target_is_blocked_and_clears_it() -> Result<()> {
    let world = World::new("kubectl-wfe").await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("broken").image(&fails).create().await?;
    guard_clearances(&world, "broken").await?;
    let jo = Caller::new(&world, "jo", &ROLES).await?;
    world.await_phase("broken", "Failed").await?;
    await_free(&world, "broken").await?;

    let before = jo.says(1, &["explain", TARGET, "--workflow", "scale"]).await?;
    has(&before, &["would be skipped, PreviousExecutionFailed", "decided by   rule 2 previous execution failed"]);
    let ended = jo.says(1, &["explain", "broken"]).await?;
    has(&ended, &["is Failed", "blocks       its target, until somebody clears it: kubectl wfe clear"]);

    let cleared = jo.says(0, &["clear", TARGET, "--yes", "--reason", "disk replaced"]).await?;
    let (broken, user) = (format!("{}/broken", world.namespace()), world.user("jo"));
    has(
        &cleared,
        &[
            &format!("{TARGET} is blocked by {broken}, PreviousExecutionFailed"),
            "After that, a new execution on it would run now.",
            &format!("Cleared {broken} as {user}"),
            "The clearance has lifted the block.",
        ],
    );
    let wfe = world.get_wfe("broken").await?;
    assert_eq!(wfe["spec"]["clearance"], json!({"reason": "disk replaced", "clearedBy": user}));
    assert_eq!(recorded(&wfe), (&json!(user), String::new()));
    let again = jo.says(0, &["clear", TARGET, "--yes", "--reason", "once more"]).await?;
    let told = format!("{user} has cleared the latest, {broken}: disk replaced");
    has(&again, &["there is no block to clear, and nothing was written", &told]);
    assert_eq!(world.get_wfe("broken").await?["metadata"]["resourceVersion"], wfe["metadata"]["resourceVersion"]);

    let after = jo.says(0, &["explain", TARGET, "--workflow", "scale"]).await?;
    has(&after, &["would run now"]);
    world.wfe("freed").workflow("scale").image(&works).create().await?;
    world.await_phase("freed", "Completed").await?;
    world.close().await
}

#[tokio::test]
async fn a_block_is_cleared_that_another_rule_hides() -> Result<()> {
    let world = World::new("hidden-block").await?;
    past(&world, "broken", "node/busy", "w1", 1, HOUR, Past::Ran).await?;
    for nth in 1..=5 {
        let ago = HOUR * 10 - TimeDelta::minutes(30 * i64::from(nth));
        past(&world, &format!("f{nth}"), "node/paused", "w1", nth.into(), ago, Past::NothingRan(nth, HOUR / 60))
            .await?;
    }
    // There are two blocks at the same time. Clearing the newest execution lifts both.
    past(&world, "half-way", "node/both", "w1", 1, HOUR * 20, Past::Ran).await?;
    for nth in 2..=6 {
        let ago = HOUR * 10 - TimeDelta::minutes(30 * i64::from(nth));
        let how = Past::NothingRan(nth - 1, HOUR / 60);
        past(&world, &format!("both-{nth}"), "node/both", "w1", nth.into(), ago, how).await?;
    }
    past(&world, "stalled", "node/backoff", "w1", 1, TimeDelta::minutes(1), Past::NothingRan(1, HOUR)).await?;
    guard_clearances(&world, "broken").await?;
    let jo = Caller::new(&world, "jo", &ROLES).await?;
    let hangs = world.push_pipeline("hang", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    let recovery = world.wfe("recovery").target("node/busy").workflow("w2").image(&hangs);
    recovery.patch(|wfe| wfe["spec"]["recoveryOf"] = json!("broken")).create().await?;
    world.await_phase("recovery", "Running").await?;

    let busy = jo.says(1, &["explain", "node/busy"]).await?;
    has(&busy, &["would be skipped, ResourceBusy", "blocked too  PreviousExecutionFailed: ", "/broken (workflow w1)"]);
    let cleared = jo.says(0, &["clear", "node/busy", "-y", "--reason", "by hand"]).await?;
    has(&cleared, &["After that, a new execution on it would be skipped, ResourceBusy: ", "has lifted the block"]);

    // A backoff alone is not a block, and cannot be cleared.
    let backoff = jo.says(0, &["clear", "node/backoff", "-y", "--reason", "by hand"]).await?;
    has(
        &backoff,
        &[
            "there is no block to clear, and nothing was written",
            "would be skipped, RecentlyRemediated",
            "block        a backoff is none: it ends by itself, and a clearance would have no effect",
        ],
    );
    assert_eq!(world.get_wfe("stalled").await?["spec"]["clearance"], Value::Null);

    pause(&world, "upgrade; ask jo").await?;
    let paused = jo.says(1, &["explain", "node/paused"]).await?;
    has(&paused, &["would wait, Paused", "upgrade; ask jo", "blocked too  ExhaustedRetries: 5 executions in a row"]);
    let cleared = jo.says(0, &["clear", "node/paused", "-y", "--reason", "by hand"]).await?;
    has(
        &cleared,
        &["in a row     5 failed", "After that, a new execution on it would wait, Paused", "lifted the block"],
    );
    let cleared = jo.says(0, &["clear", "node/both", "-y", "--reason", "by hand"]).await?;
    has(&cleared, &["both-6, ExhaustedRetries", "half-way, PreviousExecutionFailed", "Cleared", "lifted the block"]);
    let again = jo.says(0, &["clear", "node/both", "-y", "--reason", "by hand"]).await?;
    has(&again, &["there is no block to clear"]);
    for (name, is_cleared) in [("broken", true), ("f5", true), ("f4", false), ("both-6", true), ("half-way", false)] {
        let wfe = world.get_wfe(name).await?;
        let by = if is_cleared { json!(world.user("jo")) } else { Value::Null };
        assert_eq!(recorded(&wfe), (&by, String::new()), "{name}: {wfe:#}");
    }
    world.close().await
}
