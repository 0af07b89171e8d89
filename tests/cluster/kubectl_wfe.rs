//! `kubectl wfe` on a target that a failure has blocked: what it says beforehand, that it clears, and what it says then.

use anyhow::{Result, ensure};
use tokio::process::Command;
use wfe_testkit::process::workspace_binary;
use wfe_testkit::{Outcome, Pipeline, World};

use crate::expect::condition;

const TARGET: &str = "payment/deployment/payment-api";

#[tokio::test]
async fn a_person_asks_why_a_target_is_blocked_and_clears_it() -> Result<()> {
    let world = World::new("kubectl-wfe").await?;
    let fails = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit1)).await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("broken").image(&fails).create().await?;
    world.await_phase("broken", "Failed").await?;
    world.await_wfe("broken", "has let the target go", |wfe| condition(wfe, "TargetLocked") == "False Free").await?;

    let before = kubectl_wfe(&world, &["explain", TARGET, "--workflow", "scale"]).await?;
    assert!(before.contains("would be skipped, PreviousExecutionFailed"), "{before}");
    assert!(before.contains("decided by   rule 2 previous execution failed"), "{before}");
    let ended = kubectl_wfe(&world, &["explain", "broken"]).await?;
    assert!(ended.contains("is Failed"), "{ended}");

    let cleared = kubectl_wfe(&world, &["clear", TARGET, "--yes", "--reason", "disk replaced"]).await?;
    assert!(cleared.contains(&format!("Cleared {}/broken as ", world.namespace())), "{cleared}");
    let is_recorded = |wfe: &serde_json::Value| wfe["status"]["clearance"]["reason"] == "disk replaced";
    world.await_wfe("broken", "says that it was cleared", is_recorded).await?;
    let again = kubectl_wfe(&world, &["clear", TARGET, "--yes", "--reason", "once more"]).await?;
    assert!(again.contains("there is no block to clear"), "{again}");

    let after = kubectl_wfe(&world, &["explain", TARGET, "--workflow", "scale"]).await?;
    assert!(after.contains("would run now"), "{after}");
    world.wfe("freed").workflow("scale").image(&works).create().await?;
    world.await_phase("freed", "Completed").await?;
    world.close().await
}

async fn kubectl_wfe(world: &World, words: &[&str]) -> Result<String> {
    let output = Command::new(workspace_binary("kubectl-wfe")?)
        .args(words)
        .args(["--namespace", world.namespace(), "--watch-namespace", world.namespace()])
        .args(["--execution-namespace", &world.execution_namespace()])
        .env("KUBECONFIG", world.control_plane().kubeconfig())
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(said)
}
