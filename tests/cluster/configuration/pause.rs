//! A pause of the whole operator while executions are in every phase.

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{Operator, Outcome, Pipeline, World};

use super::{await_in_force, set, short};
use crate::expect::{condition, text};

#[tokio::test]
async fn nothing_new_starts_what_runs_ends_what_ended_stays_and_all_goes_on_after_it() -> Result<()> {
    let world = World::new("config-pause").await?;
    let bundle = short(&world).await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(3))).await?;
    let operator = world.operator().start().await?;
    world.wfe("completed").target("node/a").image(&bundle).create().await?;
    world.wfe("failed").target("node/b").image(&broken).create().await?;
    world.await_phase("completed", "Completed").await?;
    world.await_phase("failed", "Failed").await?;
    world.wfe("running").target("node/c").image(&held).create().await?;
    world.await_running_step().await?;
    world.wfe("skipped").target("node/c").image(&held).create().await?;
    world.await_phase("skipped", "Skipped").await?;
    // This execution already waits because its namespace is paused.
    annotate(&world, json!("upgrade, ask jo")).await?;
    world.wfe("pending").target("node/d").image(&bundle).create().await?;
    let pending = world.await_wfe("pending", "waits", is_paused).await?;
    assert_eq!(pending["status"]["phase"], "Pending");
    let before = [world.get_wfe("completed").await?, world.get_wfe("failed").await?, world.get_wfe("skipped").await?];

    let version = set(&world, &[("paused", "true")]).await?;
    await_in_force(&operator, &version).await?;
    annotate(&world, Value::Null).await?;
    let by = format!("everything is paused by ConfigMap {}/{}", world.system_namespace(), super::NAME);
    await_readyz(&operator, &format!("ok; leading; {by}\n")).await?;
    operator.await_value("workflowexecution_paused", 1.0).await?;
    for line in ["everything is paused: nothing new starts", "namespace paused: nothing new starts for it"] {
        operator.await_line(line, |seen| seen["fields"]["message"] == line).await?;
    }
    let runs = world.runs().await?.len();
    world.wfe("undecided").target("node/e").image(&bundle).create().await?;
    world.wfe("rival").target("node/c").image(&held).create().await?;
    world.set_outcome("", "ok").await?;
    world.await_phase("running", "Completed").await?;
    world.await_event("running", "WorkflowCompleted").await?;
    for name in ["undecided", "rival"] {
        let waits = world.await_wfe(name, "says that it waits", is_paused).await?;
        assert_eq!(waits["status"]["phase"], "Pending");
        assert_eq!(condition(&waits, "Succeeded"), "Unknown Paused", "the REASON column: {waits:#}");
        let conditions = waits["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let whom = format!("ConfigMap {}/{} says paused: true", world.system_namespace(), super::NAME);
        assert!(conditions.iter().any(|it| text(&it["message"]).contains(&whom)), "{whom} is missing in {waits:#}");
    }
    assert_eq!(world.get_wfe("pending").await?["status"]["phase"], "Pending");
    assert_eq!(world.runs().await?.len(), runs, "nothing new was created");
    let after = [world.get_wfe("completed").await?, world.get_wfe("failed").await?, world.get_wfe("skipped").await?];
    assert_eq!(before, after);

    let version = set(&world, &[("paused", "false")]).await?;
    await_in_force(&operator, &version).await?;
    for line in ["the pause of everything has ended", "the pause of the namespace has ended"] {
        operator.await_line(line, |seen| seen["fields"]["message"] == line).await?;
    }
    await_readyz(&operator, "ok; leading\n").await?;
    for name in ["undecided", "pending"] {
        world.await_phase(name, "Completed").await?;
    }
    // The rival has the workflow that has just completed on this target.
    assert_eq!(world.await_terminal("rival").await?["status"]["skipDetails"]["reason"], "RecentlyRemediated");
    world.close().await
}

#[tokio::test]
async fn a_pause_of_the_namespace_of_the_target_holds_executions_of_other_namespaces_back() -> Result<()> {
    let world = World::new("target-pause").await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    let elsewhere = world.system_namespace();
    annotate_namespace(&world, &elsewhere, json!("migration, ask jo")).await?;
    world.wfe("waits").target(&format!("{elsewhere}/deployment/api")).image(&bundle).create().await?;
    world.wfe("runs").target("node/other").image(&bundle).create().await?;
    world.await_phase("runs", "Completed").await?;
    let waits = world.await_wfe("waits", "says that it waits", is_paused).await?;
    let conditions = waits["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let why = format!("namespace {elsewhere} is paused: migration, ask jo; the pause ends when");
    assert!(conditions.iter().any(|it| text(&it["message"]).starts_with(&why)), "{why} is missing in {waits:#}");
    annotate_namespace(&world, &elsewhere, Value::Null).await?;
    world.await_phase("waits", "Completed").await?;
    world.close().await
}

/// Waits until the answer of `/readyz` contains this text.
async fn await_readyz(operator: &Operator, wanted: &str) -> Result<()> {
    let ask = async || operator.get("health", "/readyz").await;
    ask_until(DEADLINE, &format!("/readyz says {wanted:?}"), ask, |(_, said)| said == wanted).await.map(drop)
}

/// Returns whether an execution waits because of a pause.
pub(crate) fn is_paused(wfe: &Value) -> bool {
    condition(wfe, "Waiting") == "True Paused"
}

/// Pauses a world's namespace for a reason. Null ends the pause.
pub(crate) async fn annotate(world: &World, why: Value) -> Result<()> {
    annotate_namespace(world, world.namespace(), why).await
}

pub(crate) async fn annotate_namespace(world: &World, namespace: &str, why: Value) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"kubernaut.ai/paused": why}}});
    let namespaces: Api<Namespace> = Api::all(world.client());
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
