//! What the history of a target forbids (SPEC sections 6 and 7), by the shipped binary at its default settings.
//!
//! Time is moved by writing histories with past times while no operator runs, never by waiting.

use anyhow::{Context as _, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, wfe};

use crate::expect::text;

/// How something in the past ended.
#[derive(Clone, Copy)]
enum Past {
    /// It completed.
    Completed,
    /// Nothing of it ran. With how many of the kind in a row, itself included, and for how long the target backs off.
    NothingRan(u32, TimeDelta),
    /// Something of it ran.
    Ran,
}

/// Writes an execution that ended so long ago, as an operator would have.
async fn past(
    world: &World,
    name: &str,
    target: &str,
    workflow: &str,
    number: u64,
    ago: TimeDelta,
    how: Past,
) -> Result<()> {
    world.wfe(name).target(target).workflow(workflow).create().await?;
    let ended = Utc::now() - ago;
    let run = json!({"name": format!("past-{number}"), "uid": format!("past-{name}"), "namespace": world.execution_namespace()});
    let started = json!({"phase": "Running", "startTime": time(ended), "pipelineRunRef": run, "runSequence": number});
    let failed = |ran: bool| {
        json!({
            "phase": "Failed", "completionTime": time(ended), "runSequence": number,
            "failureDetails": {
                "failedTaskIndex": 0, "failedTaskName": "", "reason": "Unknown", "message": "in the past",
                "failedAt": time(ended), "executionTimeBeforeFailure": "0s", "naturalLanguageSummary": "in the past",
                "wasExecutionFailure": ran, "requiresManualReview": ran,
            },
        })
    };
    let steps = match how {
        Past::Completed => vec![started, json!({"phase": "Completed", "completionTime": time(ended)})],
        Past::Ran => vec![started, failed(true)],
        Past::NothingRan(in_a_row, wait) => {
            let mut status = failed(false);
            status["consecutiveFailures"] = json!(in_a_row);
            status["nextAllowedExecution"] = json!(time(ended + wait));
            vec![status]
        }
    };
    let executions = world.api(&wfe::resource(), world.namespace());
    for status in steps {
        let patch = Patch::Merge(json!({"status": status}));
        executions.patch_status(name, &PatchParams::default(), &patch).await.with_context(|| format!("past {name}"))?;
    }
    Ok(())
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn moment(value: &Value) -> Result<DateTime<Utc>> {
    Ok(DateTime::parse_from_rfc3339(text(value))?.into())
}

const MINUTE: TimeDelta = TimeDelta::minutes(1);

async fn short(world: &World) -> Result<String> {
    world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await
}

/// Asserts that an execution was skipped for this reason, on this execution.
async fn assert_skipped(world: &World, name: &str, reason: &str, on: &str) -> Result<Value> {
    let skipped = world.await_terminal(name).await?;
    let details = &skipped["status"]["skipDetails"];
    assert_eq!((&skipped["status"]["phase"], &details["reason"]), (&json!("Skipped"), &json!(reason)), "{skipped:#}");
    assert_eq!(details["recentRemediation"]["name"], on, "{details:#}");
    assert_eq!(world.get_wfe(name).await?["status"]["pipelineRunRef"], Value::Null);
    Ok(details.clone())
}

/// The table of 001: cooldown, per workflow and target.
#[tokio::test]
async fn the_same_workflow_cools_down_and_another_does_not() -> Result<()> {
    let world = World::new("cooldown").await?;
    let bundle = short(&world).await?;
    let recent = TimeDelta::minutes(5) - TimeDelta::seconds(60);
    for (target, ago) in [("node/warm", recent), ("node/cold", TimeDelta::minutes(5)), ("node/twice", recent)] {
        past(&world, &target.replace('/', "-"), target, "w1", 1, ago, Past::Completed).await?;
    }
    // w1, w2, and w1 again inside the cooldown of w1.
    past(&world, "between", "node/twice", "w2", 2, MINUTE, Past::Completed).await?;
    let _operator = world.operator().start().await?;
    for (name, target, workflow) in [
        ("same", "node/warm", "w1"),
        ("again", "node/twice", "w1"),
        ("over", "node/cold", "w1"),
        ("elsewhere", "node/other", "w1"),
    ] {
        world.wfe(name).target(target).workflow(workflow).image(&bundle).create().await?;
    }
    let details = assert_skipped(&world, "same", "RecentlyRemediated", "node-warm").await?;
    assert!(text(&details["message"]).contains("cooldown"), "{details:#}");
    assert_skipped(&world, "again", "RecentlyRemediated", "node-twice").await?;
    world.await_phase("over", "Completed").await?;
    world.await_phase("elsewhere", "Completed").await?;
    world.wfe("different").target("node/warm").workflow("w2").image(&bundle).create().await?;
    world.await_phase("different", "Completed").await?;
    world.close().await
}

/// The table of 000: five failures across different executions, each of the last ones a real one.
#[tokio::test]
async fn failures_back_off_for_one_two_four_eight_and_ten_minutes_and_then_stop() -> Result<()> {
    let world = World::new("backoff").await?;
    let waits = [1, 2, 4, 8, 10].map(TimeDelta::minutes);
    for (before, _) in waits.iter().enumerate() {
        for (nth, wait) in waits.into_iter().take(before).enumerate() {
            let (name, target) = (format!("past-{before}-{nth}"), format!("node/after-{before}"));
            let how = Past::NothingRan(u32::try_from(nth + 1)?, wait);
            let ago = TimeDelta::hours(5) - TimeDelta::minutes(i64::try_from(nth)? * 30);
            past(&world, &name, &target, &name, u64::try_from(nth + 1)?, ago, how).await?;
        }
    }
    let bundle = short(&world).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client(), &world.execution_namespace());
    let quota = json!({"metadata": {"name": "no-runs"}, "spec": {"hard": {"count/pipelineruns.tekton.dev": "0"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    let admitted = |quota: Option<&ResourceQuota>| quota.is_some_and(|quota| quota.status.is_some());
    kube::runtime::wait::await_condition(quotas.clone(), "no-runs", admitted).await?;
    let _operator = world.operator().start().await?;
    for before in 0..waits.len() {
        let (name, target) = (format!("real-{before}"), format!("node/after-{before}"));
        world.wfe(&name).target(&target).workflow(&name).image(&bundle).create().await?;
    }
    for (before, wait) in waits.into_iter().enumerate() {
        let (name, target) = (format!("real-{before}"), format!("node/after-{before}"));
        let failed = world.await_phase(&name, "Failed").await?;
        let status = &failed["status"];
        assert_eq!(status["failureDetails"]["reason"], "ResourceExhausted", "{failed:#}");
        assert_eq!(status["consecutiveFailures"], before + 1, "{status:#}");
        let allowed = moment(&status["nextAllowedExecution"])? - moment(&status["failureDetails"]["failedAt"])?;
        assert_eq!(allowed, wait, "{status:#}");
        let next = format!("next-{before}");
        world.wfe(&next).target(&target).workflow(&next).image(&bundle).create().await?;
        let reason = if before + 1 == 5 { "ExhaustedRetries" } else { "RecentlyRemediated" };
        assert_skipped(&world, &next, reason, &name).await?;
    }
    // Deleting the executions of a target is a reset.
    let mut of_target: Vec<String> = (0..4).map(|nth| format!("past-4-{nth}")).collect();
    of_target.extend(["real-4".to_owned(), "next-4".to_owned()]);
    for name in of_target {
        world.delete_wfe(&name).await?;
    }
    quotas.delete("no-runs", &DeleteParams::default()).await?;
    world.wfe("anew").target("node/after-4").image(&bundle).create().await?;
    world.await_phase("anew", "Completed").await?;
    world.close().await
}

/// An execution failure blocks at any age, outranks the rest, and is passed by `recoveryOf` alone.
#[tokio::test]
async fn an_execution_failure_blocks_until_a_recovery_succeeds() -> Result<()> {
    let world = World::new("block").await?;
    let bundle = short(&world).await?;
    let month = TimeDelta::days(30);
    past(&world, "old", "node/old", "w1", 1, month, Past::Ran).await?;
    past(&world, "first", "node/both", "w1", 1, month, Past::Ran).await?;
    past(&world, "later", "node/both", "w2", 2, MINUTE, Past::NothingRan(1, TimeDelta::hours(1))).await?;
    past(&world, "broken", "node/mended", "w1", 1, month, Past::Ran).await?;
    past(&world, "mended", "node/mended", "w2", 2, TimeDelta::days(29), Past::Completed).await?;
    let _operator = world.operator().start().await?;
    let create = async |name: &str, target: &str, workflow: &str, recovery_of: Option<&str>| {
        let wfe = world.wfe(name).target(target).workflow(workflow).image(&bundle);
        wfe.patch(|wfe| wfe["spec"]["recoveryOf"] = json!(recovery_of)).create().await
    };
    create("plain", "node/old", "w2", None).await?;
    create("retry", "node/old", "w1", Some("old")).await?;
    create("both", "node/both", "w3", None).await?;
    create("after", "node/mended", "w3", None).await?;
    assert_skipped(&world, "plain", "PreviousExecutionFailed", "old").await?;
    assert_skipped(&world, "retry", "PreviousExecutionFailed", "old").await?;
    assert_skipped(&world, "both", "PreviousExecutionFailed", "first").await?;
    world.await_phase("after", "Completed").await?;
    create("recovery", "node/old", "w2", Some("old")).await?;
    world.await_phase("recovery", "Completed").await?;
    create("free", "node/old", "w3", None).await?;
    world.await_phase("free", "Completed").await?;
    world.close().await
}
