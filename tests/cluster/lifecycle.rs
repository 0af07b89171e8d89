//! One workflow on real Tekton: the PipelineRun, the status, the events, the metrics, and the output of kubectl.

use anyhow::Result;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use wfe_testkit::{Operator, Outcome, Pipeline, World, repository};

use crate::audited::audited;
use crate::expect::{as_sent, condition, fields, first_run, text, unwritten};

#[tokio::test]
async fn a_workflow_runs_from_no_phase_over_running_to_completed() -> Result<()> {
    let world = World::new("lifecycle").await?;
    let bundle = world
        .push_pipeline(
            "two-tasks",
            &Pipeline::new().param("DRY_RUN").task("check", Outcome::Ok).task("apply", Outcome::Ok),
        )
        .await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    let wfe = world.wfe("restart-1").image(&bundle).parameter("DRY_RUN", "no").timeout("10m").create().await?;
    assert_eq!(wfe.data["status"], unwritten());
    let waits = wait_as_the_page_says(&world, "restart-1", true);
    let (done, ()) = futures::try_join!(world.await_phase("restart-1", "Completed"), waits)?;
    world.await_event("restart-1", "WorkflowCompleted").await?;

    let seen = audited(&world, recording).await?;
    let mut phases: Vec<&str> = seen
        .iter()
        .filter(|change| change.kind == "WorkflowExecution")
        .map(|c| text(&c.object["status"]["phase"]))
        .collect();
    // The phases may repeat: progress is also written, if the workflow takes longer than five seconds.
    phases.dedup();
    assert_eq!(phases, ["", "Running", "Completed"]);
    check_running(seen.iter().map(|change| &change.object).find(|object| object["status"]["phase"] == "Running"));
    check_run(&world, &done, &bundle).await?;
    check_completed(&world, &done).await?;
    check_events(&world, "restart-1", &["PipelineRunCreated", "WorkflowCompleted"]).await?;
    check_metrics(&operator).await?;
    check_table(&world).await?;
    assert!(operator.terminate().await?.success(), "SIGTERM ends it with 0");
    world.close().await
}

fn check_running(running: Option<&Value>) {
    let Some(running) = running else { panic!("no Running was seen") };
    assert_eq!(condition(running, "TargetLocked"), "True Held");
    assert_eq!(condition(running, "Succeeded"), "Unknown Running");
    assert_eq!(condition(running, "Reconciling"), "True Running");
    let expected = [
        "conditions",
        "consecutiveFailures",
        "observedGeneration",
        "phase",
        "pipelineRunRef",
        "runSequence",
        "startTime",
        "summary",
        "target",
    ];
    assert!(fields(running).iter().eq(expected.iter()), "{running:#}");
    assert_eq!(running["status"]["runSequence"], 1);
    assert_eq!(running["status"]["target"], "payment/deployment/payment-api");
}

async fn check_run(world: &World, wfe: &Value, bundle: &str) -> Result<()> {
    let audit = world.audit().await?;
    let creates: Vec<_> =
        audit.iter().filter(|entry| entry.verb == "create" && entry.resource == "pipelineruns").collect();
    let [create] = &creates[..] else { panic!("{} creates", creates.len()) };
    let params = json!([
        {"name": "DRY_RUN", "value": "no"},
        {"name": "TARGET_RESOURCE", "value": "payment/deployment/payment-api"},
    ]);
    let expected = first_run(wfe, &world.execution_namespace(), bundle, &params);
    assert_eq!(as_sent(&create.request), expected);
    assert_eq!(as_sent(&create.response), expected);

    let runs = world.runs().await?;
    let [run] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert_eq!(run["spec"]["status"], Value::Null, "released");
    assert_eq!(run["metadata"]["uid"], wfe["status"]["pipelineRunRef"]["uid"]);
    assert_eq!(run["metadata"]["name"], wfe["status"]["pipelineRunRef"]["name"]);
    Ok(())
}

async fn check_completed(world: &World, wfe: &Value) -> Result<()> {
    let status = &wfe["status"];
    assert_eq!(condition(wfe, "TargetLocked"), "False Free");
    assert_eq!(condition(wfe, "Succeeded"), "True Completed");
    assert_eq!(status["pipelineRunStatus"]["status"], "True");
    assert_eq!(status["pipelineRunStatus"]["reason"], "Succeeded");
    assert_eq!(status["observedGeneration"], wfe["metadata"]["generation"]);
    for condition in status["conditions"].as_array().into_iter().flatten() {
        assert_eq!(condition["observedGeneration"], wfe["metadata"]["generation"], "{condition:#}");
    }
    assert_eq!(status["failureDetails"], Value::Null);
    assert_eq!(status["nextStep"]["action"], "Nothing");
    assert_eq!([condition(wfe, "Reconciling"), condition(wfe, "Stalled")], ["", ""]);
    let run = &world.runs().await?[0];
    assert_eq!(status["completionTime"], run["status"]["completionTime"]);
    assert!(text(&status["duration"]).ends_with('s'), "{status:#}");
    Ok(())
}

/// Runs the commands in docs/operations.md that wait for an execution. If the execution does not succeed, only those
/// commands are run that end nevertheless.
async fn wait_as_the_page_says(world: &World, name: &str, succeeds: bool) -> Result<()> {
    let page = std::fs::read_to_string(repository().join("docs/operations.md"))?;
    let lines = page.lines().filter_map(|line| line.strip_prefix("kubectl wait wfe/payment-restart "));
    let commands: Vec<String> = lines.map(|line| line.replace('\'', "")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let waits = commands.iter().filter(|command| succeeds || !command.contains("condition=Succeeded "));
    let waits = waits.map(async |command| {
        let execution = format!("wfe/{name}");
        let words = command.split_whitespace().take_while(|word| *word != "#");
        let words: Vec<&str> =
            ["wait", &execution, "--namespace", world.namespace()].into_iter().chain(words).collect();
        world.control_plane().kubectl(&words).await.map(drop)
    });
    futures::future::try_join_all(waits).await.map(drop)
}

async fn check_events(world: &World, about: &str, reasons: &[&str]) -> Result<()> {
    let events = world.events().await?;
    let mut of_it: Vec<&Value> = events.iter().filter(|event| event["regarding"]["name"] == about).collect();
    of_it.sort_by_key(|event| text(&event["eventTime"]).to_owned());
    let mut seen: Vec<&str> = of_it.iter().map(|event| text(&event["reason"])).collect();
    let mut expected = reasons.to_vec();
    assert_eq!(seen.first(), expected.first(), "the first event");
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    for event in of_it {
        let uid = text(&event["regarding"]["uid"]);
        let name = format!("{about}.{uid}.{}", text(&event["reason"]).to_lowercase());
        assert_eq!(text(&event["metadata"]["name"]), name);
        assert!(!text(&event["note"]).is_empty());
    }
    Ok(())
}

async fn check_metrics(operator: &Operator) -> Result<()> {
    let metrics = operator.metrics().await?;
    let completed = [("outcome", "Completed")];
    assert!((metrics.value("workflowexecution_total", &completed) - 1.0).abs() < f64::EPSILON);
    assert!((metrics.value("workflowexecution_duration_seconds_count", &completed) - 1.0).abs() < f64::EPSILON);
    assert!((metrics.value("workflowexecution_pipelinerun_creation_total", &[]) - 1.0).abs() < f64::EPSILON);
    assert!(metrics.value("workflowexecution_total", &[("outcome", "Failed")]).abs() < f64::EPSILON);
    assert!(metrics.has("workflowexecution_build_info", &[]));
    assert!(metrics.has("process_resident_memory_bytes", &[]));
    Ok(())
}

async fn check_table(world: &World) -> Result<()> {
    let table = world.control_plane().kubectl(&["get", "wfe", "-n", world.namespace()]).await?;
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "PHASE", "WHY", "BLOCKS", "TARGET", "AGE"], "{table}");
    assert_eq!(lines[1][..3], ["restart-1", "Completed", "took"], "{table}");
    assert_eq!(lines[1][4], "payment/deployment/payment-api", "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "wider than a terminal:\n{table}");
    let wide = world.control_plane().kubectl(&["get", "wfe", "-n", world.namespace(), "-o", "wide"]).await?;
    assert!(wide.contains("PIPELINERUN") && wide.contains("wfe-cf0cc089293b1165-1"), "{wide}");
    Ok(())
}

#[tokio::test]
async fn a_failed_run_fails_its_execution_as_one_that_executed() -> Result<()> {
    let world = World::new("failed").await?;
    let bundle = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let operator = world.operator().start().await?;
    world.wfe("broken").image(&bundle).create().await?;
    let wfe = world.await_phase("broken", "Failed").await?;
    let details = &wfe["status"]["failureDetails"];
    assert_eq!(details["reason"], "Unknown");
    assert_eq!((&details["wasExecutionFailure"], &details["requiresManualReview"]), (&json!(true), &json!(true)));
    assert_eq!(wfe["status"]["failureReason"], details["message"]);
    assert_eq!(details["failedAt"], wfe["status"]["completionTime"]);
    let summary = text(&details["naturalLanguageSummary"]);
    assert!(
        summary
            .starts_with("Task 'apply' (1 of 1) of workflow 'restart' on payment/deployment/payment-api failed after "),
        "{details:#}"
    );
    assert_eq!(
        (condition(&wfe, "Succeeded").as_str(), condition(&wfe, "TargetLocked").as_str()),
        ("False Unknown", "False Free")
    );
    assert_eq!([condition(&wfe, "Reconciling"), condition(&wfe, "Stalled")], ["", "True Unknown"]);
    assert_eq!(wfe["status"]["nextStep"]["action"], "PickAlternative");
    wait_as_the_page_says(&world, "broken", false).await?;
    world.await_event("broken", "TargetBlocked").await?;
    check_events(&world, "broken", &["PipelineRunCreated", "WorkflowFailed", "TargetBlocked"]).await?;
    drop(operator);
    world.close().await
}

#[tokio::test]
async fn a_run_that_is_deleted_fails_its_execution() -> Result<()> {
    let world = World::new("run-deleted").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("victim").image(&bundle).create().await?;
    world.await_phase("victim", "Running").await?;
    let run = world.await_run("is released", |run| run["spec"]["status"].is_null()).await?;
    let runs = world.api(&wfe_testkit::look::pipeline_runs(), &world.execution_namespace());
    runs.delete(text(&run["metadata"]["name"]), &DeleteParams::background()).await?;
    let wfe = world.await_phase("victim", "Failed").await?;
    assert_eq!(wfe["status"]["failureDetails"]["wasExecutionFailure"], true);
    assert!(text(&wfe["status"]["failureReason"]).contains("was deleted"), "{wfe:#}");
    world.close().await
}

#[tokio::test]
async fn a_deleted_execution_cancels_its_run() -> Result<()> {
    let world = World::new("wfe-deleted").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("gone").image(&bundle).create().await?;
    world.await_running_step().await?;
    world.delete_wfe("gone").await?;
    let run = world.await_run("is cancelled", |run| run["status"]["conditions"][0]["reason"] == "Cancelled").await?;
    assert_eq!(run["metadata"]["annotations"]["kubernaut.ai/cancel-reason"], "WorkflowExecutionDeleted");
    // When the target is free, the run of the next execution gets the next number.
    world.await_pods("no pods", std::collections::BTreeMap::is_empty).await?;
    world.wfe("next").image(&bundle).create().await?;
    let next = world.await_phase("next", "Running").await?;
    assert_eq!(next["status"]["runSequence"], 2);
    world.close().await
}

#[tokio::test]
async fn an_operator_that_was_killed_is_resumed_by_the_next_one() -> Result<()> {
    let world = World::new("resumed").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let first = world.operator().start().await?;
    world.wfe("survivor").image(&bundle).create().await?;
    world.await_run("has a task", |run| run["status"]["childReferences"].is_array()).await?;
    first.kill().await?;
    world.wfe("rival").image(&bundle).create().await?;
    let _second = world.operator().start().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert_eq!(rival["status"]["skipDetails"]["conflictingWorkflow"]["name"], "survivor");
    world.await_running_step().await?;
    world.set_outcome("", "ok").await?;
    world.await_phase("survivor", "Completed").await?;
    assert_eq!(world.runs().await?.len(), 1);
    world.close().await
}
