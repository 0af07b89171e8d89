//! The example programs in docs/remediation-orchestrator.md, run as processes with exactly the permissions of their
//! sample.
//!
//! The Rust program is always tested. The programs in Go and Python (`clients/`) are tested only with `WFE_TEST_ALL=1`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Output, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::process::Command;
use wfe_testkit::{Outcome, Pipeline, World, clients, manifests, process, repository};

use crate::audited::audited;
use crate::expect::text;
use crate::faults::all;

const RIGHTS: &str = "config/samples/remediation-orchestrator.yaml";

/// The language of an example program. All programs have the same arguments and the same output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Rust,
    Go,
    Python,
}

/// Prepares a program for `payment/deployment/payment-api`, with these workflows (`ID=IMAGE`) and requests.
fn orchestrator(language: Language, kubeconfig: &Path, workflows: &[String], requests: &[String]) -> Result<Command> {
    let mut command = match language {
        Language::Rust => {
            let program = process::workspace_binary("examples/remediation_orchestrator");
            process::command(program.context("examples are built by `cargo build --workspace --examples`")?)?
        }
        Language::Go => process::command(clients()?.join("orchestrator"))?,
        Language::Python => {
            let mut command = process::command(clients()?.join("python/bin/python"))?;
            command.arg("-B").arg(repository().join("clients/python/orchestrator.py"));
            command
        }
    };
    command.args(["--target-namespace", "payment", "--target-kind", "Deployment", "--target-name", "payment-api"]);
    for workflow in workflows {
        command.args(["--workflow", workflow]);
    }
    command.args(["--give-up-after", "1"]).args(requests).env("KUBECONFIG", kubeconfig);
    let mut command = Command::from(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Returns the output of the program, which must have ended with this exit code.
fn said(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}{errors}");
    said
}

fn names(requests: &[&str]) -> Vec<String> {
    requests.iter().map(|&request| request.to_owned()).collect()
}

#[tokio::test]
async fn an_alternative_recovers_what_failed_half_way() -> Result<()> {
    recovery(Language::Rust).await
}

async fn recovery(language: Language) -> Result<()> {
    let world = World::new("recovery").await?;
    let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let sound = world.push_pipeline("sound", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let kubeconfig = world.grant(&repository().join(RIGHTS)).await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;

    let workflows = [format!("restart={broken}"), format!("scale={sound}")];
    let mut program = orchestrator(language, &kubeconfig, &workflows, &names(&["request"]))?;
    let said = said(&program.output().await?, 0);

    let failed = world.get_wfe("request-1").await?;
    assert_eq!(failed["status"]["phase"], "Failed", "{said}");
    let details = &failed["status"]["failureDetails"];
    assert_eq!(details["wasExecutionFailure"], true, "{said}");
    let recovery = world.get_wfe("request-2").await?;
    assert_eq!(recovery["status"]["phase"], "Completed", "{said}");
    assert_eq!(recovery["spec"]["recoveryOf"], "request-1");
    assert_eq!(recovery["spec"]["workflowRef"]["workflowId"], "scale");
    assert_eq!(recovery["spec"]["targetResource"], "payment/Deployment/payment-api");
    assert_eq!(world.wfes().await?.len(), 2, "{said}");

    // Only the Rust program prints the input of an AIAnalysis.
    if language == Language::Rust {
        check_previous_executions(&said, details)?;
    }
    world.await_event("request-2", "WorkflowCompleted").await?;
    // After a restart, the program finds the existing executions and creates no more.
    let mut program = orchestrator(language, &kubeconfig, &workflows, &names(&["request"]))?;
    let again = self::said(&program.output().await?, 0);
    assert!(again.contains("request: found request-2") && !again.contains("created"), "{again}");
    assert_eq!(world.wfes().await?.len(), 2, "{again}");
    audited(&world, recording).await?;
    check_rights(&world).await?;
    world.close().await
}

/// The program prints the failure in the format that an `AIAnalysis` reads.
fn check_previous_executions(said: &str, details: &Value) -> Result<()> {
    let told = said.lines().find_map(|line| line.strip_prefix("request: previousExecutions: "));
    let told: Value = serde_json::from_str(told.with_context(|| format!("nothing is told to an analysis: {said}"))?)?;
    assert_eq!(
        told,
        json!([{
            "workflowExecutionRef": "request-1",
            "failure": {
                "failedStepIndex": details["failedTaskIndex"],
                "failedStepName": details["failedTaskName"],
                "reason": details["reason"],
                "message": details["message"],
                "exitCode": 1,
                "failedAt": details["failedAt"],
                "executionTime": details["executionTimeBeforeFailure"],
            },
            "naturalLanguageSummary": details["naturalLanguageSummary"],
        }])
    );
    Ok(())
}

/// The sample grants exactly what the program requests.
async fn check_rights(world: &World) -> Result<()> {
    let user = format!("system:serviceaccount:{}:remediation-orchestrator", world.namespace());
    let audit = world.audit().await?;
    let asked: BTreeSet<(&str, &str)> =
        audit.iter().filter(|entry| entry.user == user).map(|it| (it.resource.as_str(), it.verb.as_str())).collect();
    assert_eq!(asked, ["create", "list", "watch"].map(|verb| ("workflowexecutions", verb)).into());
    let granted = manifests::read(&repository().join(RIGHTS))?;
    let rules: Vec<&Value> = granted.iter().map(|object| &object["rules"]).filter(|rules| !rules.is_null()).collect();
    let rule = |resource: &str, verbs: &[&str]| json!({"apiGroups": ["kubernaut.ai"], "resources": [resource], "verbs": verbs});
    // Only the authorizer checks the permission for recoveries. No client requests that resource.
    let recovers = rule("workflowexecutions/recovery", &["create"]);
    assert_eq!(rules, [&json!([rule("workflowexecutions", &["create", "list", "watch"]), recovers])]);
    Ok(())
}

#[tokio::test]
async fn a_person_is_called_when_no_workflow_is_left() -> Result<()> {
    no_way_out(Language::Rust).await
}

async fn no_way_out(language: Language) -> Result<()> {
    let world = World::new("no-way-out").await?;
    let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let kubeconfig = world.grant(&repository().join(RIGHTS)).await?;
    let _operator = world.operator().start().await?;
    let mut program = orchestrator(language, &kubeconfig, &[format!("restart={broken}")], &names(&["request"]))?;
    let said = said(&program.output().await?, 1);
    assert!(said.contains("request: no workflow is left to try, a person must act"), "{said}");
    assert_eq!(world.wfes().await?.len(), 1, "{said}");
    world.close().await
}

#[tokio::test]
async fn in_a_storm_all_wait_for_the_winner() -> Result<()> {
    storm(Language::Rust).await
}

async fn storm(language: Language) -> Result<()> {
    let world = World::new("ro-storm").await?;
    let bundle = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let kubeconfig = world.grant(&repository().join(RIGHTS)).await?;
    let recording = world.record_all().await?;
    let _operator = world.operator().start().await?;

    let requests: Vec<String> = (0..5).map(|n| format!("alert-{n}")).collect();
    let mut program = orchestrator(language, &kubeconfig, &[format!("restart={bundle}")], &requests)?;
    let running = program.spawn()?;
    let decided = world
        .await_wfes("five, one Running and four Skipped", |wfes| {
            let count = |phase: &str| wfes.values().filter(|wfe| wfe["status"]["phase"] == phase).count();
            count("Running") == 1 && count("Skipped") == 4
        })
        .await?;
    let winner = decided.values().find(|wfe| wfe["status"]["phase"] == "Running").context("no winner")?;
    let winner = text(&winner["metadata"]["name"]).to_owned();
    world.await_running_step().await?;
    world.set_outcome("", "ok").await?;

    let said = said(&running.wait_with_output().await?, 0);
    assert_eq!(said.matches(" was skipped: ").count(), 4, "{said}");
    assert_eq!(said.matches(&format!(": {winner} has done what ")).count(), 4, "{said}");
    assert_eq!(said.matches(&format!(": {winner} completed")).count(), 1, "{said}");
    assert_eq!(world.wfes().await?.len(), 5, "nobody asked twice: {said}");
    world.await_event(&winner, "WorkflowCompleted").await?;
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn the_program_in_go_recovers_what_failed_half_way() -> Result<()> {
    if all() { recovery(Language::Go).await } else { Ok(()) }
}

#[tokio::test]
async fn the_program_in_go_calls_a_person_when_no_workflow_is_left() -> Result<()> {
    if all() { no_way_out(Language::Go).await } else { Ok(()) }
}

#[tokio::test]
async fn the_program_in_go_waits_for_the_winner_of_a_storm() -> Result<()> {
    if all() { storm(Language::Go).await } else { Ok(()) }
}

#[tokio::test]
async fn the_program_in_python_recovers_what_failed_half_way() -> Result<()> {
    if all() { recovery(Language::Python).await } else { Ok(()) }
}

#[tokio::test]
async fn the_program_in_python_calls_a_person_when_no_workflow_is_left() -> Result<()> {
    if all() { no_way_out(Language::Python).await } else { Ok(()) }
}

#[tokio::test]
async fn the_program_in_python_waits_for_the_winner_of_a_storm() -> Result<()> {
    if all() { storm(Language::Python).await } else { Ok(()) }
}
