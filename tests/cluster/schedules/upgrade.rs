//! An operator before its CRD and a CRD before its operator: schedules wait, and nobody else does.

use anyhow::Result;
use serde_json::json;
use wfe_testkit::{ControlPlane, Options, World, repository};

use super::{await_outcome, await_schedule, create, hurry};
use crate::faults::all;
use crate::history::short;

async fn apply_crd(control_plane: &ControlPlane, file: &str) -> Result<()> {
    let file = repository().join("crds").join(file);
    control_plane.kubectl(&["apply", "--server-side", "--filename", &file.to_string_lossy()]).await?;
    Ok(())
}

/// Waits until a kind is served.
async fn await_kind(control_plane: &ControlPlane, name: &str) -> Result<()> {
    let crd = format!("crd/{name}.kubernaut.ai");
    control_plane.kubectl(&["wait", &crd, "--for=condition=Established", "--timeout=60s"]).await.map(drop)
}

#[tokio::test]
async fn without_the_kind_of_schedules_an_operator_works_and_takes_it_up_when_it_comes() -> Result<()> {
    if !all() {
        return Ok(()); // it takes a control plane of its own
    }
    let control_plane = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
    apply_crd(&control_plane, "kubernaut.ai_workflowexecutions.yaml").await?;
    await_kind(&control_plane, "workflowexecutions").await?;
    let world = World::on(&control_plane, "before-crd").await?;
    let bundle = short(&world).await?;
    let operator = world.operator().start().await?;
    world.wfe("before").target("node/before").image(&bundle).create().await?;
    world.await_phase("before", "Completed").await?;

    apply_crd(&control_plane, "kubernaut.ai_workflowschedules.yaml").await?;
    await_kind(&control_plane, "workflowschedules").await?;
    create(&world, "first", "node/first", &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    await_schedule(&world, "first", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    hurry(&world, "first").await?;
    await_outcome(&world, "first", "Completed").await?;

    // And away again: the schedules are gone, their children and all others stay.
    control_plane.kubectl(&["delete", "crd", "workflowschedules.kubernaut.ai"]).await?;
    world.wfe("after").target("node/after").image(&bundle).create().await?;
    world.await_phase("after", "Completed").await?;
    assert!(operator.ready().await, "executions need no schedules");
    assert_eq!(world.wfes().await?.len(), 3);
    world.close().await
}
