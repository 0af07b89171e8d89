//! Running executions that wait for something other than their workflow. They wait for a start, for the answer to a
//! request to stop, for the remains of a deleted run, or for a permission to read. Each reports what it waits for, and
//! each ends.

use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{ControlPlane, Metrics, Operator, Options, Outcome, Pipeline, World, look, rights};

use crate::cancelled::cancel;
use crate::expect::{condition, text};

/// How long a wait of these tests may take. A cancel counts as unanswered after a minute. The operator searches for
/// tasks and pods of a deleted run after none was visible for half a minute. The rest is reserve.
const WITHIN: Duration = Duration::from_secs(150);
const UNANSWERED: &str = "workflowexecution_cancels_unanswered";
/// A finalizer that only the test removes.
const HOLD: &str = "test.kubernaut.ai/hold";

/// Returns the message of an execution's condition `Succeeded`.
fn said(wfe: &Value) -> String {
    let conditions = wfe["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let succeeded = conditions.iter().find(|condition| condition["type"] == "Succeeded").cloned().unwrap_or_default();
    text(&succeeded["message"]).to_owned()
}

async fn await_reason(world: &World, name: &str, reason: &str) -> Result<Value> {
    let waits = |wfe: &Value| condition(wfe, "Succeeded") == format!("Unknown {reason}");
    world.await_wfe_within(WITHIN, name, &format!("is Running and says {reason}"), waits).await
}

/// Waits until a gauge has exactly this value.
async fn await_gauge(operator: &Operator, name: &str, labels: &[(&str, &str)], value: f64) -> Result<()> {
    let is = |metrics: &Metrics| (metrics.value(name, labels) - value).abs() < f64::EPSILON;
    operator.await_metrics(&format!("{name} of {value}"), is).await
}

async fn hold_run(world: &World, run: &str, finalizers: &[&str]) -> Result<()> {
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    let patch = json!({"metadata": {"finalizers": finalizers}});
    runs.patch(run, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test]
async fn a_cancel_that_tekton_does_not_answer_is_shown_until_tekton_is_back() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let world = World::on(&control_plane, "unanswered").await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().start().await?;
    world.wfe("holder").image(&held).create().await?;
    world.await_running_step().await?;
    control_plane.component("tekton-controller").stop().await?;
    cancel(&world, "holder").await?;
    let waiting = await_reason(&world, "holder", "Cancelling").await?;
    let words = said(&waiting);
    assert!(words.contains("was to stop at") && words.contains("Tekton says Running"), "{words}");
    assert_eq!(waiting["status"]["phase"], "Running", "nobody knows what the run does");
    world.await_event("holder", "CancelUnanswered").await?;
    await_gauge(&operator, UNANSWERED, &[], 1.0).await?;
    world.wfe("rival").workflow("other").image(&held).create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert!(text(&rival["status"]["skipDetails"]["message"]).contains("its run does not stop"), "{rival:#}");
    // A new leader repeats the request, which changes the run.
    operator.kill().await?;
    let operator = world.operator().start().await?;
    let asked = |run: &Value| run["metadata"]["annotations"]["kubernaut.ai/cancel-asked"] == "2";
    world.await_run("it was asked to stop again", asked).await?;

    control_plane.component("tekton-controller").start().await?;
    let ended = world.await_phase("holder", "Failed").await?;
    assert_eq!(condition(&ended, "Succeeded"), "False Cancelled", "{ended:#}");
    await_gauge(&operator, UNANSWERED, &[], 0.0).await?;
    world.close().await
}

#[tokio::test]
async fn a_run_that_is_deleted_and_held_ends_its_execution_once_its_tasks_have_ended() -> Result<()> {
    let world = World::new("held-running").await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().start().await?;
    world.wfe("holder").image(&held).create().await?;
    world.await_running_step().await?;
    let running = world.await_phase("holder", "Running").await?;
    let run = text(&running["status"]["pipelineRunRef"]["name"]).to_owned();
    hold_run(&world, &run, &[HOLD]).await?;
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    runs.delete(&run, &DeleteParams::default()).await?;
    let waiting = await_reason(&world, "holder", "Cancelling").await?;
    let words = said(&waiting);
    assert!(words.contains("is being deleted") && words.contains(HOLD), "{words}");
    // The task of the deleted run is still at work on the target.
    world.wfe("rival").workflow("other").image(&held).create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert_eq!(rival["status"]["skipDetails"]["reason"], "ResourceBusy", "{rival:#}");

    world.set_outcome("", "ok").await?;
    let is_failed = |wfe: &Value| wfe["status"]["phase"] == "Failed";
    let ended = world.await_wfe_within(WITHIN, "holder", "Failed", is_failed).await?;
    assert!(text(&ended["status"]["failureDetails"]["message"]).contains("nothing of it is left"), "{ended:#}");
    assert_eq!(ended["status"]["failureDetails"]["wasExecutionFailure"], true, "a step ran");
    assert_eq!(condition(&ended, "TargetLocked"), "False Free", "{ended:#}");
    let left = runs.get(&run).await?;
    assert!(left.metadata.deletion_timestamp.is_some(), "the finalizer still holds it");
    await_gauge(&operator, UNANSWERED, &[], 0.0).await?;
    hold_run(&world, &run, &[]).await?;
    world.close().await
}

#[tokio::test]
async fn a_status_says_what_its_run_waits_for_until_something_starts() -> Result<()> {
    let world = World::new("starting").await?;
    let waiting = Pipeline::new().task("apply", Outcome::Waiting("ContainerCreating"));
    let bundle = world.push_pipeline("waiting", &waiting).await?;
    let _operator = world.operator().start().await?;
    world.wfe("patient").image(&bundle).create().await?;
    let wfe = await_reason(&world, "patient", "Starting").await?;
    let words = said(&wfe);
    assert!(words.starts_with("waits for ") && words.contains("; cancelled at "), "{words}");
    world.set_outcome("", "ok").await?;
    world.await_phase("patient", "Completed").await?;
    world.close().await
}

#[tokio::test]
async fn a_failed_run_that_cannot_be_read_for_a_minute_is_no_failure_of_its_target() -> Result<()> {
    let world = World::new("unread").await?;
    let bundle = world.push_pipeline("unpulled", &Pipeline::new().task("apply", Outcome::ImagePull)).await?;
    let shipped = rights::shipped()?;
    let right = shipped.iter().find(|right| right.to_string() == "get tekton.dev/pipelineruns").context("the right")?;
    let operator = world.operator().start().await?;
    world.take_away(right).await?;
    world.wfe("patient").image(&bundle).create().await?;
    let wfe = await_reason(&world, "patient", "Examining").await?;
    assert!(said(&wfe).contains(&right.missing()), "{wfe:#}");
    let trouble = ("workflowexecution_operator_trouble_targets", &[("cause", "Examining")]);
    await_gauge(&operator, trouble.0, trouble.1, 1.0).await?;
    // An earlier version recorded an execution failure here after three quarters of a minute.
    let since: DateTime<Utc> = Utc::now();
    let user = world.operator_user();
    let is_late = |at: &str| DateTime::parse_from_rfc3339(at).is_ok_and(|at| at - TimeDelta::seconds(60) > since);
    let ask = async || world.audit().await;
    ask_until(WITHIN, "the operator still tries a minute later", ask, |audit| {
        let mut refused = audit.iter().filter(|entry| entry.user == user && entry.verb == "get" && entry.code == 403);
        refused.any(|entry| entry.resource == "pipelineruns" && is_late(&entry.received_at))
    })
    .await?;
    let wfe = world.get_wfe("patient").await?;
    assert_eq!(wfe["status"]["phase"], "Running", "{wfe:#}");

    world.give_back(right).await?;
    let wfe = world.await_phase("patient", "Failed").await?;
    let details = &wfe["status"]["failureDetails"];
    assert_eq!((&details["reason"], &details["wasExecutionFailure"]), (&json!("ImagePullBackOff"), &json!(false)));
    await_gauge(&operator, trouble.0, trouble.1, 0.0).await?;
    world.close().await
}
