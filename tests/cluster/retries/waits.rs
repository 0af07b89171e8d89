//! What happens between two attempts: rivals, deletions, a cancellation, a pause, the end of the time, a quota, and
//! remains of the attempt before.

use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, FixedOffset, Utc};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, look, wfe};
use wfe_tests::quota_of_none;

use super::{RETRYING, attempts, await_wait, check_starts, end, events_of, message, time, undecided, with_retry};
use crate::audited::audited;
use crate::cancelled::cancel;
use crate::expect::{condition, text};
use crate::faults::short;
use crate::kubectl_wfe::Caller;
use crate::lock::pause;

/// Makes an execution whose first attempt fails, and waits until it waits for the second. Returns it.
async fn waiting(world: &World, name: &str, policy: &Value) -> Result<Value> {
    let bundle = undecided(world).await?;
    with_retry(world.wfe(name).image(&bundle), policy).create().await?;
    end(world, name, 1, Outcome::ImagePull).await?;
    await_wait(world, name, 2).await
}

/// A policy whose wait no test outlives.
fn for_an_hour() -> Value {
    json!({"initialDelay": "1h", "maxDuration": "12h"})
}

async fn await_past(moment: DateTime<FixedOffset>) {
    while Utc::now() <= moment {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_rival_of_one_that_waits_is_skipped_and_told_until_when() -> Result<()> {
    let world = World::new("wait-rival").await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    let holder = waiting(&world, "holder", &for_an_hour()).await?;
    let not_before = text(&attempts(&holder)[1]["notBefore"]);
    operator.await_value("workflowexecution_retry_waits", 1.0).await?;

    world.wfe("rival").workflow("other").create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    let details = &rival["status"]["skipDetails"];
    assert_eq!(
        (&details["reason"], &details["conflictingWorkflow"]["name"]),
        (&json!("ResourceBusy"), &json!("holder"))
    );
    for words in ["waits for attempt 2 of 3, which begins at ", not_before, "; it ends by "] {
        assert!(text(&details["message"]).contains(words), "{words}: {details:#}");
    }

    let caller = Caller::new(&world, "explainer", &["wfe-explain"]).await?;
    let told = caller.says(0, &["explain", "holder", "-n", world.namespace()]).await?;
    for words in ["is Running, and waits for its next attempt", "waits for 2 of 3, which begins at ", not_before] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(world.runs().await?.len(), 1);
    cancel(&world, "holder").await?;
    world.await_phase("holder", "Failed").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_cancellation_ends_the_wait_and_the_next_execution_runs() -> Result<()> {
    let world = World::new("wait-cancelled").await?;
    let short = short(&world).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    waiting(&world, "stopped", &for_an_hour()).await?;
    operator.await_value("workflowexecution_retry_waits", 1.0).await?;
    cancel(&world, "stopped").await?;
    let stopped = world.await_phase("stopped", "Failed").await?;
    assert_eq!(condition(&stopped, RETRYING), "False Cancelled", "{stopped:#}");
    assert_eq!((condition(&stopped, "TargetLocked").as_str(), attempts(&stopped).len()), ("False Free", 2));
    let details = &stopped["status"]["failureDetails"];
    assert_eq!((&details["reason"], &details["wasExecutionFailure"]), (&json!("Unknown"), &json!(false)));
    let words = "cancelled by jo@example.com: wrong cluster; attempt 1 failed, ImagePullBackOff: ";
    assert!(text(&details["message"]).starts_with(words), "{details:#}");
    assert_eq!(stopped["status"]["consecutiveFailures"], 0, "{stopped:#}");

    world.wfe("next").workflow("other").image(&short).create().await?;
    assert_eq!(world.await_phase("next", "Completed").await?["status"]["runSequence"], 2);
    operator
        .await_metrics("no waits and one stop", |metrics| {
            let stops = metrics.value("workflowexecution_retry_stops_total", &[("reason", "Cancelled")]);
            (metrics.value("workflowexecution_retry_waits", &[]), stops) == (0.0, 1.0)
        })
        .await?;
    let expected = [
        "PipelineRunCreated",
        "AttemptFailed 1",
        "StepRetry 1",
        // The second never began, so it did not fail.
        "StepFailedTerminal 2",
        "WorkflowFailed",
    ];
    world.await_event("stopped", "WorkflowFailed").await?;
    assert_eq!(events_of(&world, "stopped").await?, expected);
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn the_next_execution_runs_at_once_when_one_that_waits_is_deleted() -> Result<()> {
    let world = World::new("wait-deleted").await?;
    let short = short(&world).await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    waiting(&world, "gone", &for_an_hour()).await?;
    world.delete_wfe("gone").await?;
    world.wfe("next").workflow("other").image(&short).create().await?;
    let next = world.await_terminal("next").await?;
    assert_eq!(
        (&next["status"]["phase"], &next["status"]["runSequence"]),
        (&json!("Completed"), &json!(2)),
        "{next:#}"
    );
    let waited = time(&next["status"]["startTime"])? - time(&next["metadata"]["creationTimestamp"])?;
    assert!(waited.num_seconds() <= 5, "it waited for {waited}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_deletion_that_a_finalizer_holds_ends_the_wait() -> Result<()> {
    let world = World::new("wait-deleting").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    let waits = waiting(&world, "leaving", &for_an_hour()).await?;
    let executions = world.api(&wfe::resource(), world.namespace());
    let finalizers = |all: Value| Patch::Merge(json!({"metadata": {"finalizers": all}}));
    executions.patch("leaving", &PatchParams::default(), &finalizers(json!(["test.kubernaut.ai/hold"]))).await?;
    world.delete_wfe("leaving").await?;
    let failed = world.await_phase("leaving", "Failed").await?;
    assert_eq!(condition(&failed, RETRYING), "False Deleted", "{failed:#}");
    assert_eq!(condition(&failed, "TargetLocked"), "False Free", "{failed:#}");
    assert_eq!(failed["status"]["attempts"], waits["status"]["attempts"], "the second only waited");
    executions.patch("leaving", &PatchParams::default(), &finalizers(json!([]))).await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_run_that_is_deleted_in_the_wait_ends_its_execution() -> Result<()> {
    let world = World::new("wait-pruned").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    let waits = waiting(&world, "pruned", &for_an_hour()).await?;
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    runs.delete(text(&waits["status"]["pipelineRunRef"]["name"]), &DeleteParams::background()).await?;
    let failed = world.await_phase("pruned", "Failed").await?;
    assert_eq!(condition(&failed, RETRYING), "False RunDeleted", "{failed:#}");
    let details = &failed["status"]["failureDetails"];
    // The record of the attempt that the run was of is what counts.
    assert_eq!((&details["reason"], &details["wasExecutionFailure"]), (&json!("ImagePullBackOff"), &json!(false)));
    assert_eq!(details["message"], attempts(&failed)[0]["message"], "{failed:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_pause_holds_the_next_attempt_back() -> Result<()> {
    let world = World::new("wait-paused").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    let bundle = undecided(&world).await?;
    with_retry(world.wfe("patient").image(&bundle), &json!(2)).create().await?;
    world.await_phase("patient", "Running").await?;
    pause(&world, json!("change freeze")).await?;
    end(&world, "patient", 1, Outcome::ImagePull).await?;
    let waits = await_wait(&world, "patient", 2).await?;
    await_past(time(&attempts(&waits)[1]["notBefore"])? + super::LATE).await;
    let waits = world.get_wfe("patient").await?;
    assert_eq!((condition(&waits, RETRYING).as_str(), world.runs().await?.len()), ("True Backoff", 1), "{waits:#}");

    let unpaused = Utc::now();
    pause(&world, Value::Null).await?;
    end(&world, "patient", 2, Outcome::Ok).await?;
    let done = world.await_phase("patient", "Completed").await?;
    let begun = time(&attempts(&done)[1]["startTime"])?;
    assert!(begun.timestamp() >= unpaused.timestamp(), "{begun} is before {unpaused}: {done:#}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn the_end_of_the_time_ends_the_wait() -> Result<()> {
    let world = World::new("wait-too-long").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    let bundle = undecided(&world).await?;
    let policy = json!({"maxDuration": "8s"});
    with_retry(world.wfe("late").image(&bundle), &policy).create().await?;
    world.await_phase("late", "Running").await?;
    // So that the wait is not over before the time is.
    pause(&world, json!("change freeze")).await?;
    end(&world, "late", 1, Outcome::ImagePull).await?;
    let failed = world.await_phase("late", "Failed").await?;
    assert_eq!(condition(&failed, RETRYING), "False MaxDuration", "{failed:#}");
    assert_eq!(failed["status"]["failureDetails"]["reason"], "ImagePullBackOff", "{failed:#}");
    let took = time(&failed["status"]["completionTime"])? - time(&failed["status"]["startTime"])?;
    assert!((8..=10).contains(&took.num_seconds()), "it took {took}: {failed:#}");
    let runs = world.runs().await?;
    assert_eq!((attempts(&failed).len(), runs.len()), (2, 1), "{failed:#}");
    assert_eq!(runs[0]["spec"]["timeouts"]["pipeline"], "8s", "a run has no longer than that");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_create_that_is_refused_uses_up_an_attempt_and_the_next_one_runs() -> Result<()> {
    let world = World::new("wait-quota").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    let bundle = undecided(&world).await?;
    let policy = json!({"maxAttempts": 6, "maxDelay": "2s"});
    with_retry(world.wfe("squeezed").image(&bundle), &policy).create().await?;
    world.await_phase("squeezed", "Running").await?;
    quota_of_none(&world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await?;
    end(&world, "squeezed", 1, Outcome::ImagePull).await?;
    await_wait(&world, "squeezed", 3).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client(), &world.execution_namespace());
    quotas.delete("none", &DeleteParams::default()).await?;
    end(&world, "squeezed", 2, Outcome::Ok).await?;
    let done = world.await_phase("squeezed", "Completed").await?;

    let (last, before) = attempts(&done).split_last().expect("it has attempts");
    assert_eq!((text(&last["started"]), &done["status"]["runSequence"]), ("True", &json!(2)), "{done:#}");
    // More than one where the API server still counts by the quota that is gone.
    for refused in &before[1..] {
        assert_eq!((&refused["reason"], text(&refused["started"])), (&json!("ResourceExhausted"), "False"), "{done:#}");
        assert_eq!((&refused["pipelineRun"], &refused["startTime"]), (&Value::Null, &Value::Null), "{done:#}");
        assert!(text(&refused["message"]).contains("exceeded quota"), "{done:#}");
    }
    check_starts(&world, &done).await?;
    let told = events_of(&world, "squeezed").await?;
    let begins =
        ["PipelineRunCreated", "AttemptFailed 1", "StepRetry 1", "AttemptFailed 2", "StepRetry 2"].map(str::to_owned);
    assert!(told.starts_with(&begins), "{told:?}");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_pod_that_still_stops_delays_the_next_attempt() -> Result<()> {
    let world = World::new("wait-remains").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().arg("--drain-deadline", "2s").start().await?;
    let slow = Pipeline::new().task("apply", Outcome::Waiting("ContainerCreating")).terminating_slowly();
    let bundle = world.push_pipeline("slow", &slow).await?;
    with_retry(world.wfe("drains").image(&bundle), &json!(2)).create().await?;
    end(&world, "drains", 1, Outcome::ImagePull).await?;
    world.await_pod("is terminating", |pod| pod["metadata"]["deletionTimestamp"].is_string()).await?;
    let waits = await_wait(&world, "drains", 2).await?;
    await_past(time(&attempts(&waits)[1]["notBefore"])? + super::LATE).await;
    let slow = world.await_event("drains", "DrainSlow").await?;
    assert!(text(&slow["note"]).contains("Pod"), "{slow:#}");
    assert_eq!(world.runs().await?.len(), 1);
    let rival = world.wfe("rival").workflow("other");
    rival.create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert!(message_of_skip(&rival).contains("waits for attempt 2 of 2"), "{rival:#}");

    let let_go = Utc::now();
    world.let_pods_go("").await?;
    end(&world, "drains", 2, Outcome::Ok).await?;
    let done = world.await_phase("drains", "Completed").await?;
    let begun = time(&attempts(&done)[1]["startTime"])?;
    assert!(begun.timestamp() >= let_go.timestamp(), "{begun} is before {let_go}: {done:#}");
    assert_eq!(message(&done, RETRYING), "attempt 2 of 2 succeeded");
    audited(&world, recording).await?;
    world.close().await
}

/// The kubelet tries for ever to start a container that refers to a Secret which is not there, and Tekton fails the
/// TaskRun and leaves the pod: its container would run as soon as the Secret is there.
#[tokio::test]
async fn a_pod_that_never_ends_delays_the_next_attempt_until_somebody_deletes_it() -> Result<()> {
    let world = World::new("wait-endless").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().arg("--drain-deadline", "2s").start().await?;
    let endless = Pipeline::new().task("apply", Outcome::Waiting("CreateContainerConfigError"));
    let bundle = world.push_pipeline("endless", &endless).await?;
    let policy = json!({"maxAttempts": 2, "retryWhen": "reason == 'ConfigurationError'"});
    with_retry(world.wfe("endless").image(&bundle), &policy).create().await?;
    let waits = await_wait(&world, "endless", 2).await?;
    let slow = world.await_event("endless", "DrainSlow").await?;
    assert!(text(&slow["note"]).contains("Pod"), "{slow:#}");
    await_past(time(&attempts(&waits)[1]["notBefore"])? + super::LATE).await;
    assert_eq!(world.runs().await?.len(), 1);
    let pod = world.await_pod("is left", |pod| pod["metadata"]["deletionTimestamp"].is_null()).await?;
    assert_eq!(pod["status"]["phase"], "Pending", "{pod:#}");

    let deleted = Utc::now();
    let pods = world.api(&look::pods(), &world.execution_namespace());
    pods.delete(text(&pod["metadata"]["name"]), &DeleteParams::default()).await?;
    let failed = world.await_phase("endless", "Failed").await?;
    assert_eq!(condition(&failed, RETRYING), "False Exhausted", "{failed:#}");
    let begun = time(&attempts(&failed)[1]["startTime"])?;
    assert!(begun.timestamp() >= deleted.timestamp(), "{begun} is before {deleted}: {failed:#}");
    audited(&world, recording).await?;
    world.close().await
}

fn message_of_skip(wfe: &Value) -> &str {
    text(&wfe["status"]["skipDetails"]["message"])
}
