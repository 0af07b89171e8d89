//! Consecutive failures before anything ran, and what resets their number.

use anyhow::Result;
use chrono::TimeDelta;
use wfe_testkit::World;

use super::past::{Past, past};
use super::{WAITS, assert_charged, assert_skipped, refuse_runs};
use crate::audited::audited;

/// Each of these failures is a create that the API server refuses because of a quota.
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
