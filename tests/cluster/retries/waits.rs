//! What can happen between two attempts: rivals, deletions, a cancellation, a pause, the end of the allowed time, a
//! quota, and remains of the previous attempt.

use anyhow::Result;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, World, look, wfe};
use wfe_tests::quota_of_none;

use super::{RETRYING, attempts, check_starts, end, events_of, fails, undecided, with_retry};
use crate::audited::audited;
use crate::cancelled::cancel;
use crate::expect::{condition, text};
use crate::faults::short;

/// Creates an execution and waits until its first attempt has failed and it waits for the second. Returns the
/// execution.
async fn waiting(world: &World, name: &str, policy: &Value) -> Result<Value> {
    let bundle = undecided(world).await?;
    with_retry(world.wfe(name).image(&bundle), policy).create().await?;
    fails(world, name, 1, 2).await
}

/// Returns a policy with a wait that is longer than any test.
fn for_an_hour() -> Value {
    json!({"initialDelay": "1h", "maxDuration": "12h"})
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
        // The second attempt never started, so it has not failed.
        "StepFailedTerminal 2",
        "WorkflowFailed",
    ];
    world.await_event("stopped", "WorkflowFailed").await?;
    assert_eq!(events_of(&world, "stopped").await?, expected);
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
async fn a_create_that_is_refused_uses_up_an_attempt_and_the_next_one_runs() -> Result<()> {
    let world = World::new("wait-quota").await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    let bundle = undecided(&world).await?;
    let policy = json!({"maxAttempts": 6, "maxDelay": "2s"});
    with_retry(world.wfe("squeezed").image(&bundle), &policy).create().await?;
    world.await_phase("squeezed", "Running").await?;
    quota_of_none(&world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await?;
    fails(&world, "squeezed", 1, 3).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client(), &world.execution_namespace());
    quotas.delete("none", &DeleteParams::default()).await?;
    end(&world, "squeezed", 2, Outcome::Ok).await?;
    let done = world.await_phase("squeezed", "Completed").await?;

    let (last, before) = attempts(&done).split_last().expect("it has attempts");
    assert_eq!((text(&last["started"]), &done["status"]["runSequence"]), ("True", &json!(2)), "{done:#}");
    // Several attempts are refused if the API server still enforces the quota after its deletion.
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
