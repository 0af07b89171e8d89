//! Times of another clock, and statuses that no operator has written: what is at fault is named, and nothing runs early
//! but where Tekton's clock is behind, which is told.
//!
//! What the CRD of today refuses is the business of `poison`.

use anyhow::Result;
use chrono::{SubsecRound as _, TimeDelta, Utc};
use serde_json::json;
use wfe_testkit::World;

use super::past::{Past, past, time, write};
use super::player::{End, end_run, stage};
use super::{WAITS, assert_charged, assert_skipped, moment, short, way_out};
use crate::expect::text;

const HOUR: TimeDelta = TimeDelta::hours(1);

/// A history of one execution of `w1`, and what becomes of the next one: skipped for a reason, in words that hold
/// these, or nothing that hinders it.
type Row<'a> = (&'a str, TimeDelta, Past, Option<(&'a str, &'a str)>);

#[tokio::test]
async fn a_history_by_another_clock_or_hand_lets_nothing_run_early() -> Result<()> {
    let world = World::new("odd-history").await?;
    let bundle = short(&world).await?;
    let minute = TimeDelta::minutes(1);
    let decade = TimeDelta::days(3650);
    let far = (Utc::now() + decade).format("from %Y-").to_string();
    let rows: [Row<'_>; 7] = [
        ("ahead-success", -HOUR, Past::Completed, Some(("RecentlyRemediated", "cooldown"))),
        ("ahead-failure", -HOUR, Past::NothingRan(1, minute), Some(("RecentlyRemediated", "backoff"))),
        ("ahead-broken", -HOUR, Past::Ran, Some(("PreviousExecutionFailed", "clear"))),
        ("in-ten-years", minute, Past::NothingRan(1, decade), Some(("RecentlyRemediated", &far))),
        ("behind-success", HOUR, Past::Completed, None),
        ("behind-failure", HOUR, Past::NothingRan(1, minute), None),
        ("miscounted", HOUR, Past::NothingRan(u32::try_from(i32::MAX)?, minute), None),
    ];
    for (name, ago, how, _) in rows {
        past(&world, name, &format!("node/{name}"), "w1", 1, ago, how).await?;
    }
    // The clock was ahead when the first was written, and right again for the second: the numbers tell their order.
    past(&world, "ahead-mended", "node/mended", "w1", 1, -HOUR, Past::Ran).await?;
    past(&world, "mended", "node/mended", "w2", 2, TimeDelta::minutes(10), Past::Completed).await?;
    // A success without a run or a number, and with a fraction of a second.
    world.wfe("runless").target("node/runless").workflow("w1").create().await?;
    let recent = time(Utc::now() - minute).replace('Z', ".75Z");
    write(&world, "runless", &[json!({"phase": "Running"}), json!({"phase": "Completed", "completionTime": recent})])
        .await?;

    let operator = world.operator().start().await?;
    let ask = async |target: &str, workflow: &str| {
        let name = format!("{workflow}-after-{target}");
        world.wfe(&name).target(&format!("node/{target}")).workflow(workflow).image(&bundle).create().await?;
        anyhow::Ok(name)
    };
    for (name, _, _, then) in rows {
        let next = ask(name, "w1").await?;
        if let Some((reason, words)) = then {
            let details = assert_skipped(&world, &next, reason, name).await?;
            for words in [words, &format!("{}/{name}", world.namespace()), way_out(reason)] {
                assert!(text(&details["message"]).contains(words), "{words}: {details:#}");
            }
        }
    }
    assert_skipped(&world, &ask("runless", "w1").await?, "RecentlyRemediated", "runless").await?;
    ask("runless", "w2").await?;
    ask("mended", "w1").await?;
    for run in [
        "w1-after-behind-success",
        "w1-after-behind-failure",
        "w1-after-miscounted",
        "w2-after-runless",
        "w1-after-mended",
    ] {
        world.await_phase(run, "Completed").await?;
    }
    assert!(operator.ready().await);
    world.close().await
}

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
        // At the most a minute after now, rounded up (section 9).
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
    // Its cooldown was over before it began, which is why somebody is told.
    world.wfe("after-behind").target("node/behind").create().await?;
    world.await_phase("after-behind", "Running").await?;
    world.close().await
}
