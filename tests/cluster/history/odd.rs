//! Times of a wrong clock, and statuses that no operator has written. The message names the faulty execution, and
//! nothing runs early. The only exception is a Tekton clock that is behind, which the operator reports.
//!
//! `poison` covers statuses that the current CRD refuses.

use anyhow::Result;
use chrono::{SubsecRound as _, TimeDelta, Utc};

use super::player::{End, end_run, stage};
use super::{WAITS, assert_charged, assert_skipped, moment};
use crate::expect::text;

const HOUR: TimeDelta = TimeDelta::hours(1);

#[tokio::test]
async fn a_run_whose_clock_is_ahead_is_cut_and_one_whose_clock_is_behind_is_believed_and_told() -> Result<()> {
    let world = stage("odd-clock").await?;
    let _operator = world.operator().start().await?;
    let now = Utc::now().trunc_subsecs(0);
    let rows = [
        ("ahead", End::Completed, now + HOUR),
        ("failed-ahead", End::NothingRan, now + HOUR),
        ("behind", End::Completed, now - HOUR),
    ];
    for (name, how, at) in rows {
        world.wfe(name).target(&format!("node/{name}")).create().await?;
        end_run(&world, name, how, at).await?;
        let ended = world.await_terminal(name).await?;
        let status = &ended["status"];
        // The time is limited to one minute from now, rounded up (section 9).
        let latest = Utc::now() + TimeDelta::seconds(61);
        assert!(moment(&status["completionTime"])? <= latest, "{ended:#}");
        assert!(text(&status["duration"]).ends_with('s'), "{ended:#}");
        if let End::NothingRan = how {
            assert_charged(&ended, 1, WAITS[0])?;
        }
    }
    assert_eq!(moment(&world.get_wfe("behind").await?["status"]["completionTime"])?, now - HOUR);
    for (name, words) in [("ahead", "is taken"), ("failed-ahead", "is taken"), ("behind", "it is believed")] {
        let told = world.await_event(name, "ClockSkewed").await?;
        assert!(told["type"] == "Warning" && text(&told["note"]).contains(words), "{told:#}");
    }
    for name in ["ahead", "failed-ahead"] {
        let next = format!("after-{name}");
        world.wfe(&next).target(&format!("node/{name}")).create().await?;
        assert_skipped(&world, &next, "RecentlyRemediated", name).await?;
    }
    // By the wrong time, the cooldown is already over. The operator has reported this.
    world.wfe("after-behind").target("node/behind").create().await?;
    world.await_phase("after-behind", "Running").await?;
    world.close().await
}
