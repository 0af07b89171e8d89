//! A person lifts a block. The tests show which executions are skipped before, which run afterwards, and what the
//! cleared execution reports (section 10). `admission/clearance.rs` covers the permissions.

use anyhow::Result;
use chrono::TimeDelta;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, wfe};

use crate::audited::audited;
use crate::expect::{condition, text};
use crate::history::past::{Past, five_failures, past};
use crate::history::{assert_skipped, short};

#[tokio::test]
async fn a_target_that_a_failure_has_blocked_goes_on_once_somebody_clears_it() -> Result<()> {
    let world = World::new("clearing").await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    world.wfe("broken").image(&fails).create().await?;
    let broken = world.await_phase("broken", "Failed").await?;
    assert_eq!(broken["status"]["failureDetails"]["wasExecutionFailure"], true);
    await_free(&world, "broken").await?;

    world.wfe("blocked").workflow("scale").image(&works).create().await?;
    let blocked = world.await_terminal("blocked").await?;
    let details = &blocked["status"]["skipDetails"];
    assert_eq!(
        (&blocked["status"]["phase"], &details["reason"]),
        (&json!("Skipped"), &json!("PreviousExecutionFailed")),
        "{blocked:#}"
    );
    assert_eq!(details["recentRemediation"]["name"], "broken");
    assert!(text(&details["message"]).contains("spec.clearance"), "{details:#}");

    clear(&world, "broken", "disk replaced").await?;
    let is_recorded = |wfe: &Value| wfe["status"]["clearance"].is_object();
    let cleared = world.await_wfe("broken", "says that it was cleared", is_recorded).await?;
    let recorded = &cleared["status"]["clearance"];
    assert_eq!((text(&recorded["clearedBy"]), text(&recorded["reason"])), ("jo@example.com", "disk replaced"));
    assert!(recorded["clearedAt"].is_string(), "{recorded:#}");
    assert_eq!(cleared["status"]["observedGeneration"], cleared["metadata"]["generation"], "{cleared:#}");
    assert_eq!(condition(&cleared, "Succeeded"), condition(&broken, "Succeeded"));
    assert_eq!(cleared["status"]["failureDetails"], broken["status"]["failureDetails"]);
    let event = world.await_event("broken", "BlockCleared").await?;
    assert_eq!(text(&event["note"]), "jo@example.com has cleared the target: disk replaced");

    world.wfe("freed").workflow("scale").image(&works).create().await?;
    world.await_phase("freed", "Completed").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_clearance_of_what_blocks_nothing_any_more_is_said_to_do_nothing() -> Result<()> {
    let world = World::new("cleared-late").await?;
    let recording = world.record_all().await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("broken").image(&fails).create().await?;
    world.await_phase("broken", "Failed").await?;
    await_free(&world, "broken").await?;
    // A recovery also lifts the block.
    let recovery = world.wfe("recovery").workflow("scale").image(&works);
    recovery.patch(|it| it["spec"]["recoveryOf"] = json!("broken")).create().await?;
    world.await_phase("recovery", "Completed").await?;

    clear(&world, "broken", "too late").await?;
    let is_said = |wfe: &Value| condition(wfe, "ClearanceIneffective") == "True NothingBlocked";
    let cleared = world.await_wfe("broken", "says that its clearance did nothing", is_said).await?;
    assert_eq!(cleared["status"]["clearance"], Value::Null);
    assert_eq!(cleared["status"]["observedGeneration"], cleared["metadata"]["generation"], "{cleared:#}");
    assert_eq!(condition(&cleared, "TargetLocked"), "False Free");
    assert!(world.events().await?.iter().all(|event| event["reason"] != "BlockCleared"));

    // Without its recovery, the failure blocks again. Its clearance still has no effect.
    world.delete_wfe("recovery").await?;
    world.wfe("blocked").workflow("scale").image(&works).create().await?;
    let blocked = world.await_terminal("blocked").await?;
    let details = &blocked["status"]["skipDetails"];
    assert_eq!(
        (&details["reason"], &details["recentRemediation"]["name"]),
        (&json!("PreviousExecutionFailed"), &json!("broken")),
        "{blocked:#}"
    );
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_clearance_lifts_what_failures_left_behind_and_not_a_cooldown() -> Result<()> {
    let world = World::new("lifted").await?;
    let works = short(&world).await?;
    let ago = TimeDelta::seconds;
    past(&world, "success", "node/n", "w1", 1, ago(60), Past::Completed).await?;
    past(&world, "broken", "node/n", "w2", 2, ago(50), Past::Ran).await?;
    five_failures(&world, "failure", "node/n", 3, ago(30)).await?;
    let _operator = world.operator().start().await?;
    let wfe = |name, workflow| world.wfe(name).target("node/n").workflow(workflow).image(&works);
    wfe("blocked", "w3").create().await?;
    assert_skipped(&world, "blocked", "PreviousExecutionFailed", "broken").await?;
    // The clearance lifts the execution failure, the exhausted failures in a row, and the backoff after the last of
    // them, which would last some minutes more.
    clear(&world, "failure-5", "all in order").await?;
    wfe("hot", "w1").create().await?;
    assert_skipped(&world, "hot", "RecentlyRemediated", "success").await?;
    wfe("free", "w3").create().await?;
    world.await_phase("free", "Completed").await?;
    world.close().await
}

#[tokio::test]
async fn a_clearance_that_does_nothing_does_not_end_a_backoff_either() -> Result<()> {
    let world = World::new("cleared-early").await?;
    let hour = TimeDelta::hours(1);
    past(&world, "stalled", "node/n", "restart", 1, TimeDelta::minutes(1), Past::NothingRan(1, hour)).await?;
    clear(&world, "stalled", "too early").await?;
    let _operator = world.operator().start().await?;
    let is_said = |wfe: &Value| condition(wfe, "ClearanceIneffective") == "True NothingBlocked";
    world.await_wfe("stalled", "says that its clearance did nothing", is_said).await?;
    world.wfe("next").target("node/n").create().await?;
    assert_skipped(&world, "next", "RecentlyRemediated", "stalled").await?;
    world.close().await
}

/// Waits until an execution has released its target.
pub(crate) async fn await_free(world: &World, name: &str) -> Result<()> {
    world.await_wfe(name, "has let the target go", |wfe| condition(wfe, "TargetLocked") == "False Free").await?;
    Ok(())
}

/// Sets `spec.clearance` of an execution as a user with the permission to clear.
pub(crate) async fn clear(world: &World, name: &str, reason: &str) -> Result<()> {
    let patch = json!({"spec": {"clearance": {"reason": reason, "clearedBy": "jo@example.com"}}});
    world.api(&wfe::resource(), world.namespace()).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}
