//! The table of 000: failures in a row before anything ran, and what ends the row.

use anyhow::Result;
use chrono::{SubsecRound as _, TimeDelta, Utc};
use serde_json::Value;
use wfe_testkit::World;

use super::past::{Past, five_failures, past};
use super::player::{End, end_run, stage};
use super::{WAITS, assert_charged, assert_skipped, refuse_runs};
use crate::audited::audited;
use crate::clearing::clear;

/// Five failures of different workflows on one target, each at the very end of the backoff from the one before.
#[tokio::test]
async fn five_workflows_fail_one_after_the_other_and_the_target_is_exhausted_until_it_is_cleared() -> Result<()> {
    let world = stage("progression").await?;
    let mut operator = world.operator().start().await?;
    let create = async |name: &str| world.wfe(name).workflow(name).create().await;
    let mut at = Utc::now().trunc_subsecs(0) - TimeDelta::minutes(60);
    for (before, wait) in WAITS.into_iter().enumerate() {
        let name = format!("failure-{}", before + 1);
        create(&name).await?;
        let running = end_run(&world, &name, End::NothingRan, at).await?;
        assert_eq!(running["status"]["consecutiveFailures"], before, "inherited from the commit on: {running:#}");
        at = assert_charged(&world.await_phase(&name, "Failed").await?, before + 1, wait)?;
        // All that counts is in the statuses.
        operator.kill().await?;
        operator = world.operator().start().await?;
    }
    create("sixth").await?;
    assert_skipped(&world, "sixth", "ExhaustedRetries", "failure-5").await?;
    assert_eq!(world.await_event("sixth", "Skipped").await?["type"], "Warning");

    clear(&world, "failure-5", "the registry is back").await?;
    for (nth, name) in [(1, "cleared"), (2, "once-more")] {
        create(name).await?;
        end_run(&world, name, End::NothingRan, at).await?;
        at = assert_charged(&world.await_phase(name, "Failed").await?, nth, WAITS[nth - 1])?;
    }
    create("success").await?;
    end_run(&world, "success", End::Completed, at).await?;
    let success = world.await_phase("success", "Completed").await?;
    assert_eq!(success["status"]["consecutiveFailures"], 0);
    assert_eq!(success["status"]["nextAllowedExecution"], Value::Null);
    create("anew").await?;
    end_run(&world, "anew", End::NothingRan, at).await?;
    assert_charged(&world.await_phase("anew", "Failed").await?, 1, WAITS[0])?;
    world.close().await
}

/// Each number of the row by a failure of its own, of which the API server says what it was: a quota.
#[tokio::test]
async fn failures_back_off_for_one_two_four_eight_and_ten_minutes_and_then_stop() -> Result<()> {
    let world = World::new("backoff").await?;
    let recording = world.record_all().await?;
    for before in 0..WAITS.len() {
        for (nth, wait) in WAITS.into_iter().take(before).enumerate() {
            let (name, target) = (format!("past-{before}-{nth}"), format!("node/after-{before}"));
            let how = Past::NothingRan(u32::try_from(nth + 1)?, wait);
            let ago = TimeDelta::hours(5) - TimeDelta::minutes(i64::try_from(nth)? * 30);
            past(&world, &name, &target, &name, u64::try_from(nth + 1)?, ago, how).await?;
        }
    }
    refuse_runs(&world).await?;
    let _operator = world.operator().start().await?;
    for before in 0..WAITS.len() {
        let (name, target) = (format!("real-{before}"), format!("node/after-{before}"));
        world.wfe(&name).target(&target).workflow(&name).create().await?;
    }
    for (before, wait) in WAITS.into_iter().enumerate() {
        let (name, target) = (format!("real-{before}"), format!("node/after-{before}"));
        let failed = world.await_phase(&name, "Failed").await?;
        assert_eq!(failed["status"]["failureDetails"]["reason"], "ResourceExhausted", "{failed:#}");
        assert_charged(&failed, before + 1, wait)?;
        let next = format!("next-{before}");
        world.wfe(&next).target(&target).workflow(&next).create().await?;
        let reason = if before + 1 == WAITS.len() { "ExhaustedRetries" } else { "RecentlyRemediated" };
        assert_skipped(&world, &next, reason, &name).await?;
    }
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn after_exhaustion_a_success_a_clearance_and_a_deletion_begin_the_row_anew() -> Result<()> {
    let world = World::new("reset").await?;
    let recording = world.record_all().await?;
    for target in ["succeeded", "cleared", "deleted"] {
        five_failures(&world, target, &format!("node/{target}"), 1, TimeDelta::hours(1)).await?;
    }
    past(&world, "success", "node/succeeded", "other", 6, TimeDelta::minutes(30), Past::Completed).await?;
    refuse_runs(&world).await?;
    let _operator = world.operator().start().await?;
    for target in ["cleared", "deleted"] {
        let name = format!("before-{target}");
        world.wfe(&name).target(&format!("node/{target}")).create().await?;
        assert_skipped(&world, &name, "ExhaustedRetries", &format!("{target}-5")).await?;
    }
    clear(&world, "cleared-5", "the quota was raised").await?;
    for nth in 1..=5 {
        world.delete_wfe(&format!("deleted-{nth}")).await?;
    }
    for target in ["succeeded", "cleared", "deleted"] {
        let name = format!("after-{target}");
        world.wfe(&name).target(&format!("node/{target}")).create().await?;
        assert_charged(&world.await_phase(&name, "Failed").await?, 1, WAITS[0])?;
    }
    audited(&world, recording).await?;
    world.close().await
}
