//! The complete lives of executions with a retry policy, event by event.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Metrics, Observed, Outcome, Pipeline, World, look};

use super::{
    RETRYING, attempts, await_wait, check_starts, end, events_of, fails, message, undecided, unpullable, with_retry,
};
use crate::audited::audited;
use crate::expect::{condition, text};

/// Returns the messages of an execution's condition `Retrying` in the order in which they were written.
fn said(changes: &[Observed], wfe: &str) -> Vec<String> {
    let of_it = changes.iter().filter(|change| change.kind == "WorkflowExecution");
    let of_it = of_it.filter(|change| change.object["metadata"]["name"] == wfe);
    let mut said: Vec<String> = of_it.map(|change| condition(&change.object, RETRYING)).collect();
    said.dedup();
    said
}

fn count(metrics: &Metrics, name: &str, label: (&str, &str)) -> f64 {
    metrics.value(&format!("workflowexecution_{name}"), &[label])
}

fn is(seen: f64, expected: f64) -> bool {
    (seen - expected).abs() < f64::EPSILON
}

#[tokio::test]
async fn two_attempts_fail_and_the_third_succeeds() -> Result<()> {
    let world = World::new("third").await?;
    let bundle = undecided(&world).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    with_retry(world.wfe("flaky").image(&bundle), &json!(true)).create().await?;
    for number in [1, 2] {
        let waits = fails(&world, "flaky", number, number as usize + 1).await?;
        let said = format!("attempt {} of 3 begins at ", number + 1);
        assert!(message(&waits, RETRYING).starts_with(&said), "{waits:#}");
        assert!(message(&waits, RETRYING).contains("failed, ImagePullBackOff: "), "{waits:#}");
    }
    end(&world, "flaky", 3, Outcome::Ok).await?;
    let done = world.await_phase("flaky", "Completed").await?;
    world.await_event("flaky", "WorkflowCompleted").await?;

    let expected = [
        "PipelineRunCreated",
        "AttemptFailed 1",
        "StepRetry 1",
        "PipelineRunCreated 2",
        "AttemptFailed 2",
        "StepRetry 2",
        "PipelineRunCreated 3",
        "WorkflowCompleted",
    ];
    assert_eq!(events_of(&world, "flaky").await?, expected);
    check_starts(&world, &done).await?;
    let delays: Vec<&str> = attempts(&done).iter().map(|attempt| text(&attempt["delay"])).collect();
    assert_eq!(delays, ["", "1s", "2s"], "{done:#}");
    let started: Vec<&str> = attempts(&done).iter().map(|attempt| text(&attempt["started"])).collect();
    assert_eq!(started, ["False", "False", "True"], "{done:#}");
    assert_eq!((&done["status"]["runSequence"], &done["status"]["failureDetails"]), (&json!(3), &Value::Null));
    assert_eq!(message(&done, RETRYING), "attempt 3 of 3 succeeded");
    check_notes(&world).await?;

    let metrics = operator.metrics().await?;
    assert!(is(count(&metrics, "attempts_total", ("outcome", "Retried")), 2.0), "{metrics:#?}");
    assert!(is(count(&metrics, "attempts_total", ("outcome", "Completed")), 1.0), "{metrics:#?}");
    assert!(is(count(&metrics, "total", ("outcome", "Completed")), 1.0), "{metrics:#?}");
    assert!(is(metrics.value("workflowexecution_retry_stops_total", &[]), 0.0), "{metrics:#?}");
    drop(operator);
    let changes = audited(&world, recording).await?;
    let runs = ["False Running", "True Backoff", "False Running", "True Backoff", "False Running", "False Succeeded"];
    assert_eq!(said(&changes, "flaky"), [&[""][..], &runs].concat());
    world.close().await
}

/// Checks the notes and the related objects of the events about a failed attempt.
async fn check_notes(world: &World) -> Result<()> {
    let failed = world.await_event("flaky", "AttemptFailed").await?;
    assert_eq!((&failed["type"], &failed["related"]["kind"]), (&json!("Warning"), &json!("PipelineRun")), "{failed:#}");
    let retry = world.await_event("flaky", "StepRetry").await?;
    assert_eq!(retry["type"], "Normal", "{retry:#}");
    for words in ["of 3 is followed by another after ", "; it failed, ImagePullBackOff: "] {
        assert!(text(&retry["note"]).contains(words), "{retry:#}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_tried_again_says_why_and_exhausts_nothing() -> Result<()> {
    let world = World::new("terminal").await?;
    let exits = world.push_pipeline("exit", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let asks = world.push_pipeline("asks", &Pipeline::new().param("ZONE").task("apply", Outcome::Ok)).await?;
    let unpullable = unpullable(&world).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    let rows = [
        ("ran", &exits, json!(true), "Ran"),
        ("misconfigured", &asks, json!(true), "RetryWhen"),
        ("stopped", &unpullable, json!({"stopWhen": "reason == 'ImagePullBackOff'"}), "StopWhen"),
        ("unwanted", &unpullable, json!({"retryWhen": "reason == 'OOMKilled'"}), "RetryWhen"),
        ("unanswered", &unpullable, json!({"retryWhen": "result.absent == ''"}), "ConditionError"),
    ];
    for (name, bundle, policy, _) in &rows {
        let target = format!("node/{name}");
        with_retry(world.wfe(name).target(&target).image(bundle), policy).create().await?;
    }
    for (name, _, _, stop) in &rows {
        let failed = world.await_phase(name, "Failed").await?;
        let last = if *stop == "Ran" { "TargetBlocked" } else { "WorkflowFailed" };
        world.await_event(name, last).await?;
        assert_eq!(condition(&failed, RETRYING), format!("False {stop}"), "{failed:#}");
        let mut expected = vec!["PipelineRunCreated", "AttemptFailed 1", "StepFailedTerminal 1", "WorkflowFailed"];
        expected.extend((last == "TargetBlocked").then_some(last));
        assert_eq!(events_of(&world, name).await?, expected, "{name}");
        let told = world.await_event(name, "StepFailedTerminal").await?;
        let note = format!("not tried again on attempt 1 of 3, {stop}: {}", message(&failed, RETRYING));
        assert!(text(&told["note"]).ends_with(&note), "{told:#}");
        assert_eq!(attempts(&failed).len(), 1, "{failed:#}");
    }
    assert_eq!(world.runs().await?.len(), rows.len());
    let metrics = operator.metrics().await?;
    for (stop, times) in [("Ran", 1.0), ("RetryWhen", 2.0), ("StopWhen", 1.0), ("Exhausted", 0.0)] {
        assert!(is(count(&metrics, "retry_stops_total", ("reason", stop)), times), "{stop}: {metrics:#?}");
    }
    drop(operator);
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn a_time_out_is_for_one_attempt_and_a_person_who_cancels_a_run_ends_them() -> Result<()> {
    let world = World::new("time-out").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    let policy = json!({"retryExecutionFailures": true, "retryWhen": "reason == 'DeadlineExceeded'"});
    with_retry(world.wfe("slow").image(&bundle).timeout("8s"), &policy).create().await?;
    let waits = await_wait(&world, "slow", 2).await?;
    let first = &attempts(&waits)[0];
    assert_eq!((text(&first["reason"]), text(&first["started"])), ("DeadlineExceeded", "True"), "{waits:#}");
    // The second run has the time-out of the first run.
    let is_second = |run: &Value| run["metadata"]["labels"]["kubernaut.ai/run-sequence"] == "2";
    let second = world.await_run("of the second attempt", is_second).await?;
    assert_eq!(second["spec"]["timeouts"]["pipeline"], "8s", "{second:#}");
    let runs = |pod: &Value| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["labels"]["kubernaut.ai/run-sequence"] == "2"
    };
    world.await_pod("of the second attempt runs", runs).await?;
    let cancel = Patch::Merge(json!({"spec": {"status": "Cancelled"}}));
    let name = text(&second["metadata"]["name"]);
    let api = world.api(&look::pipeline_runs(), &world.execution_namespace());
    api.patch(name, &PatchParams::default(), &cancel).await?;
    let failed = world.await_phase("slow", "Failed").await?;
    assert_eq!((condition(&failed, RETRYING).as_str(), attempts(&failed).len()), ("False Cancelled", 2), "{failed:#}");
    drop(operator);
    audited(&world, recording).await?;
    world.close().await
}
