//! The lock of a target on a real cluster, with deletions, remains of runs and slow ends (section 5).

use anyhow::Result;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, look, wfe};

use crate::audited::audited;
use crate::expect::{condition, text};

const TARGET: &str = "payment/deployment/payment-api";

#[tokio::test]
async fn an_execution_made_again_under_the_same_name_inherits_nothing() -> Result<()> {
    let world = World::new("again").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("same").image(&held).create().await?;
    let first = world.await_phase("same", "Running").await?;
    world.await_running_step().await?;
    world.delete_wfe("same").await?;
    world.wfe("same").image(&bundle).create().await?;
    // The run belongs to the first execution. The second one, of the same name, is skipped or runs later, but never
    // adopts the run.
    let second = world.await_terminal("same").await?;
    assert_ne!(second["metadata"]["uid"], first["metadata"]["uid"]);
    match text(&second["status"]["phase"]) {
        "Skipped" => assert_eq!(second["status"]["skipDetails"]["reason"], "ResourceBusy"),
        "Completed" => assert_ne!(second["status"]["pipelineRunRef"]["uid"], first["status"]["pipelineRunRef"]["uid"]),
        other => panic!("{other}: {second:#}"),
    }
    let done = |run: &Value| run["status"]["completionTime"].is_string();
    for run in world.await_runs("all runs done", |runs| runs.values().all(done)).await?.values() {
        let of_first = run["metadata"]["uid"] == first["status"]["pipelineRunRef"]["uid"];
        assert_eq!(of_first, run["status"]["conditions"][0]["reason"] == "Cancelled", "{run:#}");
    }
    world.close().await
}

#[tokio::test]
async fn deleting_a_skipped_or_finished_execution_leaves_the_runs_of_others_alone() -> Result<()> {
    let world = World::new("bystander").await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let short = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("finished").image(&short).create().await?;
    world.await_phase("finished", "Completed").await?;
    world.wfe("holder").workflow("other").image(&held).create().await?;
    world.await_phase("holder", "Running").await?;
    world.wfe("skipped").image(&held).create().await?;
    world.await_phase("skipped", "Skipped").await?;
    world.delete_wfe("skipped").await?;
    world.delete_wfe("finished").await?;
    world
        .await_pod("of the holder is running", |pod| {
            pod["status"]["phase"] == "Running" && pod["metadata"]["labels"]["kubernaut.ai/run-sequence"] == "2"
        })
        .await?;
    world.set_outcome("kubernaut.ai/run-sequence=2", "ok").await?;
    world.await_phase("holder", "Completed").await?;
    assert_eq!(world.runs().await?.len(), 2, "the finished one's run is kept too");
    world.close().await
}

#[tokio::test]
async fn a_target_is_not_free_before_the_last_pod_of_a_deleted_execution_is_gone() -> Result<()> {
    let world = World::new("drain").await?;
    let slow = Pipeline::new().task("apply", Outcome::Hold).terminating_slowly();
    let slow = world.push_pipeline("slow", &slow).await?;
    let short = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;
    world.wfe("deleted").image(&slow).create().await?;
    world.await_running_step().await?;
    world.delete_wfe("deleted").await?;
    world.await_run("is cancelled", |run| run["status"]["conditions"][0]["reason"] == "Cancelled").await?;
    world.await_pod("is terminating", |pod| pod["metadata"]["deletionTimestamp"].is_string()).await?;
    world.wfe("rival").image(&short).create().await?;
    let rival = world.await_terminal("rival").await?;
    let details = &rival["status"]["skipDetails"];
    assert_eq!(
        (&rival["status"]["phase"], &details["reason"]),
        (&json!("Skipped"), &json!("ResourceBusy")),
        "{rival:#}"
    );
    assert!(text(&details["message"]).contains("still stopping"), "{details:#}");
    assert_eq!(details["conflictingWorkflow"]["name"], "deleted");
    world.let_pods_go("").await?;
    world.await_pods("no pods", std::collections::BTreeMap::is_empty).await?;
    world.wfe("next").image(&short).create().await?;
    world.await_phase("next", "Completed").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn an_execution_that_is_cancelled_ends_at_once_and_its_status_says_when_the_target_is_free() -> Result<()> {
    let world = World::new("cancelled").await?;
    let slow = Pipeline::new().task("apply", Outcome::Hold).terminating_slowly();
    let slow = world.push_pipeline("slow", &slow).await?;
    let _operator = world.operator().start().await?;
    world.wfe("stopped").image(&slow).create().await?;
    world.await_running_step().await?;
    cancel(&world, "stopped").await?;
    let wfe = world.await_phase("stopped", "Failed").await?;
    assert_eq!(text(&wfe["status"]["failureReason"]), "cancelled by jo@example.com: wrong cluster");
    assert_eq!(condition(&wfe, "TargetLocked"), "True Draining");
    let run = world.await_run("is there", |_| true).await?;
    assert_eq!(run["metadata"]["annotations"]["kubernaut.ai/cancel-reason"], "CancellationRequested");
    world.let_pods_go("").await?;
    world.await_wfe("stopped", "has drained", |wfe| condition(wfe, "TargetLocked") == "False Free").await?;
    world.await_event("stopped", "LockReleased").await?;
    world.close().await
}

async fn cancel(world: &World, name: &str) -> Result<()> {
    let patch = json!({"spec": {"cancellation": {"reason": "wrong cluster", "requestedBy": "jo@example.com"}}});
    world.api(&wfe::resource(), world.namespace()).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_tekton_never_resolves_ends_at_the_start_deadline() -> Result<()> {
    let world = World::new("unresolved").await?;
    let _operator = world.operator().arg("--start-deadline", "5s").start().await?;
    let missing = format!("{}/no/such/bundle:1", world.control_plane().registry());
    world.wfe("lost").image(&missing).create().await?;
    let wfe = world.await_phase("lost", "Failed").await?;
    assert!(text(&wfe["status"]["failureReason"]).contains("within 5s"), "{wfe:#}");
    assert_eq!(wfe["status"]["failureDetails"]["wasExecutionFailure"], false, "no task was ever made: {wfe:#}");
    assert_eq!(wfe["status"]["consecutiveFailures"], 1, "{wfe:#}");
    let run = world.await_run("is there", |_| true).await?;
    assert_eq!(run["metadata"]["annotations"]["kubernaut.ai/cancel-reason"], "StartDeadlineExceeded");
    world.close().await
}

#[tokio::test]
async fn an_execution_that_is_decided_too_late_does_not_run() -> Result<()> {
    let world = World::new("too-late").await?;
    let _operator = world.operator().start().await?;
    let stale = world.wfe("restored").patch(|wfe| wfe["spec"]["startBefore"] = json!("2026-01-01T00:00:00Z"));
    stale.create().await?;
    let wfe = world.await_phase("restored", "Failed").await?;
    let details = &wfe["status"]["failureDetails"];
    assert_eq!((&details["reason"], &details["wasExecutionFailure"]), (&json!("DeadlineExceeded"), &json!(false)));
    assert_eq!(world.runs().await?.len(), 0);
    world.close().await
}

/// Pauses a world's namespace for a reason. `null` ends the pause.
pub(crate) async fn pause(world: &World, why: Value) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"kubernaut.ai/paused": why}}});
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(world.client());
    namespaces.patch(world.namespace(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test]
async fn a_foreign_run_under_a_name_of_the_chain_is_left_alone_and_reported() -> Result<()> {
    let world = World::new("foreign").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    for (number, labels) in [(1, json!({"kubernaut.ai/workflow-execution": "nobody"})), (2, json!({}))] {
        let foreign: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun",
            "metadata": {"name": format!("wfe-cf0cc089293b1165-{number}"), "labels": labels},
            "spec": {"status": "PipelineRunPending", "pipelineRef": {"name": "x"}},
        }))?;
        runs.create(&PostParams::default(), &foreign).await?;
    }
    let operator = world.operator().start().await?;
    world.wfe("ours").target(TARGET).image(&bundle).create().await?;
    let wfe = world.await_phase("ours", "Completed").await?;
    assert_eq!(wfe["status"]["runSequence"], 3, "both names are taken");
    let foreign = operator.metrics().await?.value("workflowexecution_foreign_pipelineruns_total", &[]);
    assert!((foreign - 2.0).abs() < f64::EPSILON, "both are seen and reported, whatever their labels: {foreign}");
    for run in world.runs().await?.iter().filter(|run| run["metadata"]["name"] != "wfe-cf0cc089293b1165-3") {
        assert_eq!(run["spec"]["status"], "PipelineRunPending", "{run:#}");
        assert_eq!(run["metadata"]["annotations"], Value::Null, "{run:#}");
    }
    world.close().await
}

#[tokio::test]
async fn a_finished_run_is_deleted_after_its_retention_and_the_numbers_go_on() -> Result<()> {
    let world = World::new("retention").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().arg("--pipelinerun-retention", "1s").start().await?;
    world.wfe("first").image(&bundle).create().await?;
    world.await_phase("first", "Completed").await?;
    world.await_runs("none", std::collections::BTreeMap::is_empty).await?;
    world.wfe("second").workflow("other").image(&bundle).create().await?;
    let second = world.await_phase("second", "Completed").await?;
    assert_eq!(second["status"]["runSequence"], 2);
    world.close().await
}

#[tokio::test]
async fn an_operator_with_another_execution_namespace_refuses_to_start_while_a_run_is_elsewhere() -> Result<()> {
    let world = World::new("elsewhere").await?;
    world.wfe("holder").create().await?;
    let run = json!({"name": "wfe-cf0cc089293b1165-1", "uid": "u", "namespace": "some-other-namespace"});
    let elsewhere = json!({"status": {"phase": "Running", "pipelineRunRef": run}});
    world
        .api(&wfe::resource(), world.namespace())
        .patch_status("holder", &PatchParams::default(), &Patch::Merge(&elsewhere))
        .await?;
    let mut refused = world.operator().spawn().await?;
    assert!(!refused.wait().await?.success());
    let log = std::fs::read_to_string(refused.log_path())?;
    assert!(log.contains("--execution-namespace") && log.contains("holder"), "{log}");
    world.close().await
}

#[tokio::test]
async fn a_status_written_by_hand_harms_only_its_own_execution() -> Result<()> {
    let world = World::new("by-hand").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    world.wfe("running-on-nothing").image(&bundle).create().await?;
    world.wfe("running-on-a-ghost").target("node/n1").image(&bundle).create().await?;
    let executions = world.api(&wfe::resource(), world.namespace());
    let ghost = json!({"name": "wfe-cf0cc089293b1165-7", "uid": "ghost", "namespace": world.execution_namespace()});
    for (name, status) in [
        ("running-on-nothing", json!({"phase": "Running"})),
        ("running-on-a-ghost", json!({"phase": "Running", "pipelineRunRef": ghost})),
    ] {
        let patch = json!({"status": status});
        executions.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    let _operator = world.operator().start().await?;
    for name in ["running-on-nothing", "running-on-a-ghost"] {
        let wfe = world.await_phase(name, "Failed").await?;
        assert_eq!(wfe["status"]["failureDetails"]["wasExecutionFailure"], true, "it may have run: {wfe:#}");
    }
    world.wfe("good").target("node/n2").image(&bundle).create().await?;
    world.await_phase("good", "Completed").await?;
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    runs.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default()).await?;
    world.close().await
}
