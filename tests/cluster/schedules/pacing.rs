//! How fast a schedule runs: failures slow it down, a success, an edit or a person's word end that.

use anyhow::Result;
use chrono::{SubsecRound, TimeDelta, Timelike};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, look};
use wfe_tests::quota_of_none;

use super::{await_children, await_failures, await_outcome, await_schedule, create, edit, hint, hurry, moment, shown};
use super::{wait_after_end, write_status};
use crate::audited::audited;
use crate::expect::text;
use crate::history::short;

/// How long a schedule of 60 seconds waits after the n-th failure in a row: the table of 002.
const WAITS: [i64; 7] = [120, 240, 480, 960, 1920, 1920, 1920];

/// Every run is refused: it fails before anything ran.
async fn refuse_runs(world: &World) -> Result<()> {
    quota_of_none(world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await
}

#[tokio::test]
async fn the_wait_doubles_with_each_failure_and_the_target_is_left_out_of_it() -> Result<()> {
    let world = World::new("doubling").await?;
    let recording = world.record_all().await?;
    refuse_runs(&world).await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    let spec = json!({"interval": "60s", "minInterval": "1s", "history": {"failed": 10}});
    create(&world, "nightly", "node/worker", &bundle, &spec).await?;
    let planned = await_schedule(&world, "nightly", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    let status = &planned["status"];
    assert_eq!(moment(&status["nextRunTime"])? - moment(&status["plannedFrom"])?, TimeDelta::seconds(60), "{status:#}");
    assert_eq!((&status["nextRunReason"], &status["failureCount"]), (&json!("Interval"), &json!(0)));

    let mut failures = 0;
    for wait in WAITS {
        hurry(&world, "nightly").await?;
        failures += 1;
        let failed = await_failures(&world, "nightly", failures).await?;
        let status = &failed["status"];
        assert_eq!(status["lastRun"]["outcome"], "Failed", "{status:#}");
        assert_eq!(wait_after_end(&failed)?, TimeDelta::seconds(wait), "after {failures} failures: {status:#}");
        assert_eq!(status["nextRunReason"], "Backoff", "{status:#}");
    }
    // The typo of a schedule exhausts nobody's target.
    let children = await_children(&world, "nightly", 7).await?;
    for child in &children {
        let status = &child["status"];
        assert_eq!(status["consecutiveFailures"], json!(0), "{child:#}");
        assert_eq!(status["nextAllowedExecution"], Value::Null, "{child:#}");
    }
    world
        .api(&wfe_testkit::manifests::resource("v1", "ResourceQuota"), &world.execution_namespace())
        .delete_collection(&kube::api::DeleteParams::default(), &kube::api::ListParams::default())
        .await?;
    world.wfe("of-the-orchestrator").target("node/worker").workflow("repair").image(&bundle).create().await?;
    world.await_phase("of-the-orchestrator", "Completed").await?;

    hurry(&world, "nightly").await?;
    let well = await_outcome(&world, "nightly", "Completed").await?;
    let status = &well["status"];
    assert_eq!(status["failureCount"], 0, "{status:#}");
    // The run by a hint has not moved the slots.
    let (next, phase) = (moment(&status["nextRunTime"])?, moment(&status["phase"])?);
    assert_eq!((next - phase).num_seconds() % 60, 0, "{status:#}");
    let waits = next - moment(&status["lastRun"]["slot"])?;
    assert!(waits > TimeDelta::zero() && waits <= TimeDelta::seconds(60), "{status:#}");
    assert_eq!(status["nextRunReason"], "Interval", "{status:#}");
    assert!(status["lastSuccessTime"].is_string(), "{status:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn cron_is_not_moved_by_failures_and_an_edit_begins_the_plan_anew() -> Result<()> {
    let world = World::new("cron").await?;
    let recording = world.record_all().await?;
    refuse_runs(&world).await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    create(&world, "hourly", "node/worker", &bundle, &json!({"cron": "0 * * * *", "minInterval": "1s"})).await?;
    for failures in 1..=2 {
        hurry(&world, "hourly").await?;
        let failed = await_failures(&world, "hourly", failures).await?;
        let status = &failed["status"];
        let (next, ended) = (moment(&status["nextRunTime"])?, moment(&status["lastRun"]["endedAt"])?);
        assert_eq!((next.minute(), next.second(), &status["nextRunReason"]), (0, 0, &json!("Cron")), "{status:#}");
        assert!(next > ended && next - ended <= TimeDelta::hours(1), "{status:#}");
    }
    let before = await_failures(&world, "hourly", 2).await?;
    edit(&world, "hourly", json!({"cron": "30 2 * * *", "timeZone": "Europe/Berlin", "hint": null})).await?;
    let anew = await_schedule(&world, "hourly", "begins its plan anew", |it| it["status"]["failureCount"] == 0).await?;
    let (was, is) = (&before["status"], &anew["status"]);
    assert_ne!(was["revision"], is["revision"]);
    assert!(moment(&is["plannedFrom"])? > moment(&was["plannedFrom"])?, "{is:#}");
    assert_eq!(is["lastRun"], was["lastRun"]);
    assert_eq!(moment(&is["nextRunTime"])?.minute(), 30, "{is:#}");
    await_children(&world, "hourly", 2).await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn hints_move_a_slot_within_the_clamps_and_lift_no_suspension() -> Result<()> {
    let world = World::new("hints").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    let spec = json!({"interval": "1h", "minInterval": "30m", "maxInterval": "2h"});
    create(&world, "hinted", "node/worker", &bundle, &spec).await?;
    hurry(&world, "hinted").await?;
    let ran = await_outcome(&world, "hinted", "Completed").await?;
    let slot = moment(&ran["status"]["lastRun"]["slot"])?;
    let far = shown(slot + TimeDelta::minutes(8));
    for (wish, after, reason) in [
        (json!({"interval": "45m"}), TimeDelta::minutes(45), "Hint"),
        (json!({"interval": "1s"}), TimeDelta::minutes(30), "ClampedMin"),
        (json!({"interval": "720h"}), TimeDelta::hours(2), "ClampedMax"),
        (json!({"nextRunAt": far}), TimeDelta::minutes(30), "ClampedMin"),
    ] {
        edit(&world, "hinted", json!({"hint": hint(&wish)})).await?;
        let what = format!("is planned by {wish}");
        let planned = await_schedule(&world, "hinted", &what, |it| {
            it["status"]["nextRunReason"] == reason
                && it["status"]["observedGeneration"] == it["metadata"]["generation"]
        });
        let planned = planned.await?;
        assert_eq!(moment(&planned["status"]["nextRunTime"])?, slot + after, "{wish}: {planned:#}");
    }
    // A hint that was used or has passed is told once, and plans nothing.
    edit(&world, "hinted", json!({"hint": hint(&json!({"nextRunAt": shown(slot)}))})).await?;
    world.await_event("hinted", "HintIgnored").await?;
    let usual =
        await_schedule(&world, "hinted", "is planned as usual", |it| it["status"]["nextRunReason"] == "Interval");
    let usual = usual.await?;
    let begun = moment(&usual["status"]["plannedFrom"])?;
    assert_eq!(
        moment(&usual["status"]["nextRunTime"])?,
        begun + TimeDelta::hours(1),
        "the run by a hint moved nothing"
    );

    edit(&world, "hinted", json!({"suspend": true})).await?;
    super::await_held(&world, "hinted", "Suspended").await?;
    edit(&world, "hinted", json!({"minInterval": "1s", "hint": hint(&json!({"interval": "1s"}))})).await?;
    let is_seen = |it: &Value| it["status"]["observedGeneration"] == it["metadata"]["generation"];
    let held = await_schedule(&world, "hinted", "has seen the hint", is_seen).await?;
    assert_eq!(held["status"]["nextRunTime"], Value::Null, "{held:#}");
    await_children(&world, "hinted", 1).await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_day_without_an_operator_is_one_run_or_none_where_a_deadline_says_so() -> Result<()> {
    let world = World::new("away").await?;
    let recording = world.record_all().await?;
    let bundle = short(&world).await?;
    let operator = world.operator().start().await?;
    for (name, spec) in [
        ("catches-up", json!({"interval": "10m"})),
        ("is-late", json!({"interval": "10m", "startingDeadlineSeconds": 10})),
    ] {
        create(&world, name, &format!("node/{name}"), &bundle, &spec).await?;
        await_schedule(&world, name, "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    }
    operator.terminate().await?;
    // The slots lie five minutes before and after now, far from both.
    let day_ago = (chrono::Utc::now() - TimeDelta::hours(24) - TimeDelta::minutes(5)).trunc_subsecs(0);
    for name in ["catches-up", "is-late"] {
        write_status(&world, name, json!({"plannedFrom": shown(day_ago)})).await?;
    }
    let _operator = world.operator().start().await?;
    let caught_up = await_outcome(&world, "catches-up", "Completed").await?;
    let status = &caught_up["status"];
    assert_eq!(status["lastMissed"]["count"], 143, "{status:#}");
    assert_eq!(moment(&status["lastRun"]["slot"])? - day_ago, TimeDelta::hours(24), "{status:#}");
    world.await_event("catches-up", "SlotsMissed").await?;
    let late =
        await_schedule(&world, "is-late", "says what it missed", |it| it["status"]["lastMissed"].is_object()).await?;
    let status = &late["status"];
    assert_eq!(
        (&status["lastMissed"]["count"], text(&status["nextRunReason"])),
        (&json!(144), "Interval"),
        "{status:#}"
    );
    assert_eq!(moment(&status["nextRunTime"])? - day_ago, TimeDelta::hours(24) + TimeDelta::minutes(10), "{status:#}");
    await_children(&world, "catches-up", 1).await?;
    await_children(&world, "is-late", 0).await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_status_that_is_wiped_or_lies_ahead_begins_the_plan_anew_and_runs_nothing_of_the_past() -> Result<()> {
    let world = World::new("wiped").await?;
    let bundle = world.push_pipeline("quick", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await?;
    let operator = world.operator().start().await?;
    create(&world, "wiped", "node/worker", &bundle, &json!({"interval": "1h"})).await?;
    hurry(&world, "wiped").await?;
    await_outcome(&world, "wiped", "Completed").await?;
    operator.terminate().await?;
    let wiped =
        json!({"revision": null, "plannedFrom": null, "lastRun": null, "nextRunTime": null, "failureCount": null});
    let ahead = json!({"plannedFrom": shown(chrono::Utc::now() + TimeDelta::hours(5))});
    for status in [wiped, ahead] {
        write_status(&world, "wiped", status.clone()).await?;
        let begun = chrono::Utc::now() - TimeDelta::seconds(1);
        let operator = world.operator().start().await?;
        let is_anew = |it: &Value| {
            moment(&it["status"]["plannedFrom"])
                .is_ok_and(|from| from >= begun && from <= begun + TimeDelta::minutes(2))
        };
        let anew = await_schedule(&world, "wiped", "begins its plan anew", is_anew).await?;
        let (from, next) = (moment(&anew["status"]["plannedFrom"])?, moment(&anew["status"]["nextRunTime"])?);
        assert_eq!(next - from, TimeDelta::hours(1), "{status}: {anew:#}");
        await_children(&world, "wiped", 1).await?;
        operator.terminate().await?;
    }
    world.close().await
}
