//! The proof that a step ran, the progress of a run, and the information that is lost when an operator is killed.

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, look, rights};

use crate::expect::{condition, text};

const STEP: TimeDelta = TimeDelta::seconds(5);

/// Returns the message of an execution's condition `Started`.
fn proof(wfe: &Value) -> String {
    let conditions = wfe["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let started = conditions.iter().find(|condition| condition["type"] == "Started").cloned().unwrap_or_default();
    text(&started["message"]).to_owned()
}

/// Cancels the only run as a person would, and waits until its pods are gone.
async fn cancel_the_run(world: &World) -> Result<()> {
    let runs = world.runs().await?;
    let [run] = &runs[..] else { anyhow::bail!("not one run: {runs:#?}") };
    // Tekton would never delete the pod of a task that is cancelled before its status names the pod.
    let names_pod = |task: &Value| task["status"]["podName"].as_str().is_some_and(|name| !name.is_empty());
    world.await_all(&look::task_runs(), "each TaskRun names its pod", |all| all.values().all(names_pod)).await?;
    let patch = Patch::Merge(json!({"spec": {"status": "Cancelled"}}));
    let api = world.api(&look::pipeline_runs(), &world.execution_namespace());
    api.patch(text(&run["metadata"]["name"]), &PatchParams::default(), &patch).await?;
    let is_done = |object: &Value| object["status"]["conditions"][0]["status"] == "False";
    world.await_all(&look::task_runs(), "all TaskRuns have ended", |all| all.values().all(is_done)).await?;
    world.await_all(&look::pods(), "no pod", std::collections::BTreeMap::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn the_proof_that_a_step_ran_outlives_the_operator_that_saw_it() -> Result<()> {
    let world = World::new("proof").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().start().await?;
    world.wfe("seen").image(&bundle).create().await?;
    let seen = |wfe: &Value| condition(wfe, "Started") == "True StepRunning";
    let before = world.await_wfe("seen", "says that a step runs", seen).await?;
    operator.kill().await?;
    cancel_the_run(&world).await?;

    let _operator = world.operator().start().await?;
    let wfe = world.await_phase("seen", "Failed").await?;
    assert_eq!((condition(&wfe, "Started"), proof(&wfe)), ("True StepRunning".to_owned(), proof(&before)));
    let details = &wfe["status"]["failureDetails"];
    assert_eq!((&details["wasExecutionFailure"], &details["exitCode"]), (&json!(true), &Value::Null), "{details:#}");
    assert_eq!((text(&details["failedTaskName"]), &details["failedTaskIndex"]), ("apply", &json!(0)));
    assert!(text(&details["message"]).contains("cancelled by somebody else"), "{details:#}");
    world.close().await
}

#[tokio::test]
async fn what_only_a_killed_operator_has_seen_is_unknown() -> Result<()> {
    for (name, outcome, phase) in
        [("ran", Outcome::Hold, "Running"), ("waited", Outcome::Waiting("ContainerCreating"), "Pending")]
    {
        let world = World::new(name).await?;
        let bundle = world.push_pipeline(name, &Pipeline::new().task("apply", outcome)).await?;
        let operator = world.operator().start().await?;
        world.wfe("unseen").image(&bundle).create().await?;
        world.await_phase("unseen", "Running").await?;
        // Without this permission, the operator cannot record what it sees.
        let rights = rights::shipped()?;
        let write = rights.iter().find(|right| right.to_string() == "patch kubernaut.ai/workflowexecutions/status");
        let write = write.context("no right to write a status")?;
        world.take_away(write).await?;
        world.await_pod("has its containers", |pod| pod["status"]["phase"] == phase).await?;
        operator.kill().await?;
        assert_eq!(condition(&world.get_wfe("unseen").await?, "Started"), "");
        cancel_the_run(&world).await?;
        world.give_back(write).await?;

        let _operator = world.operator().start().await?;
        let wfe = world.await_phase("unseen", "Failed").await?;
        let started = condition(&wfe, "Started");
        assert!(["Unknown NotFollowed", "Unknown Ambiguous"].contains(&&*started), "{name}: {started}");
        assert_eq!(wfe["status"]["failureDetails"]["wasExecutionFailure"], true, "{name}: {wfe:#}");
        world.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn how_far_a_run_is_is_written_when_it_changes_and_not_more_often_than_every_five_seconds() -> Result<()> {
    let world = World::new("progress").await?;
    let short = |pipeline: Pipeline, name: &str| pipeline.task(name, Outcome::Ok).lasting("100ms");
    let pipeline = ["a", "b", "c"].into_iter().fold(Pipeline::new(), short);
    let pipeline = ["e", "f"].into_iter().fold(pipeline.task("d", Outcome::Hold), short);
    let bundle = world.push_pipeline("long", &pipeline).await?;
    let operator = world.operator().start().await?;
    world.wfe("long").image(&bundle).create().await?;
    let tasks = |wfe: &Value| {
        let run = &wfe["status"]["pipelineRunStatus"];
        (run["completedTasks"].as_u64(), run["totalTasks"].as_u64())
    };
    let at_d = world.await_wfe("long", "has done three tasks", |wfe| tasks(wfe) == (Some(3), Some(6))).await?;
    assert_eq!(condition(&at_d, "Started"), "True StepRunning", "{at_d:#}");
    assert_eq!(
        (condition(&at_d, "TargetLocked"), condition(&at_d, "Succeeded")),
        ("True Held".into(), "Unknown Running".into())
    );
    assert_eq!(at_d["status"]["pipelineRunStatus"]["status"], "Unknown");
    world.set_outcome("", "ok").await?;
    let wfe = world.await_phase("long", "Completed").await?;
    assert_eq!((tasks(&wfe), condition(&wfe, "Started")), ((Some(6), Some(6)), condition(&at_d, "Started")));
    assert_eq!(proof(&wfe), proof(&at_d), "the first proof stays");
    drop(operator);

    let audit = world.audit().await?;
    let writes = audit.iter().filter(|entry| entry.user == world.operator_user() && entry.subresource == "status");
    let mut times: Vec<DateTime<chrono::FixedOffset>> = Vec::new();
    for write in writes.filter(|entry| entry.request["status"]["pipelineRunStatus"]["status"] == "Unknown") {
        times.push(DateTime::parse_from_rfc3339(&write.received_at)?);
    }
    times.sort();
    let early = times.windows(2).find(|pair| pair[1] - pair[0] < STEP - TimeDelta::milliseconds(500));
    assert!(early.is_none() && !times.is_empty(), "writes of progress at {times:?}");
    world.close().await
}
