//! An operator that starts before its CRD, and a CRD that is installed before its operator: schedules wait, and
//! executions do not. Also an operator of an earlier commit (`tests/upgrade/build`), which does not know schedules.
//! Only with `WFE_TEST_ALL=1`.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use wfe_testkit::{ControlPlane, Operator, Options, Outcome, World, previous, repository};

use super::{await_children, await_failures, await_outcome, await_schedule, create, hurry};
use crate::expect::text;
use crate::faults::all;
use crate::history::short;
use crate::retries::{end, undecided, unpullable};

async fn apply_crd(control_plane: &ControlPlane, file: &str) -> Result<()> {
    let file = repository().join("crds").join(file);
    control_plane.kubectl(&["apply", "--server-side", "--filename", &file.to_string_lossy()]).await?;
    Ok(())
}

/// Waits until the API server serves a kind.
async fn await_kind(control_plane: &ControlPlane, name: &str) -> Result<()> {
    let crd = format!("crd/{name}.kubernaut.ai");
    control_plane.kubectl(&["wait", &crd, "--for=condition=Established", "--timeout=60s"]).await.map(drop)
}

#[tokio::test]
async fn without_the_kind_of_schedules_an_operator_works_and_takes_it_up_when_it_comes() -> Result<()> {
    if !all() {
        return Ok(()); // the test needs a control plane of its own
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

    // The CRD is deleted, and its schedules with it. All executions stay.
    control_plane.kubectl(&["delete", "crd", "workflowschedules.kubernaut.ai"]).await?;
    world.wfe("after").target("node/after").image(&bundle).create().await?;
    world.await_phase("after", "Completed").await?;
    assert!(operator.ready().await, "executions need no schedules");
    assert_eq!(world.wfes().await?.len(), 3);
    world.close().await
}

/// Starts the earlier operator, which has no leader election.
async fn operator_of(world: &World, previous: &Path) -> Result<Operator> {
    let operator = world.operator().program(&previous.join("wfe-operator"));
    operator.without("--namespace").without("--leader-elect").start().await
}

/// After a downgrade, running children end and no more are created. The current operator then continues from there.
#[tokio::test]
async fn an_operator_without_schedules_ends_what_they_have_begun_and_leaves_them_alone() -> Result<()> {
    if !all() {
        return Ok(());
    }
    let previous = previous()?;
    let world = World::new("schedule-downgrade").await?;
    let (works, held, broken) = (short(&world).await?, undecided(&world).await?, unpullable(&world).await?);
    let hourly = json!({"interval": "1h", "minInterval": "1s"});

    // With the CRD but without its operator, no schedule is planned, and executions run as before.
    let operator = operator_of(&world, &previous).await?;
    for (name, bundle) in [("runs", &held), ("fails", &broken)] {
        create(&world, name, &format!("node/{name}"), bundle, &hourly).await?;
    }
    world.wfe("before").target("node/before").image(&works).create().await?;
    world.await_phase("before", "Completed").await?;
    let unplanned = await_schedule(&world, "runs", "is there", |_| true).await?;
    assert!(unplanned["status"].is_null(), "{unplanned:#}");
    ensure!(operator.terminate().await?.success(), "the operator of then did not end well");

    let operator = world.operator().start().await?;
    for failures in 1..=2 {
        hurry(&world, "fails").await?;
        await_failures(&world, "fails", failures).await?;
    }
    hurry(&world, "runs").await?;
    let child = text(&await_children(&world, "runs", 1).await?[0]["metadata"]["name"]).to_owned();
    world.await_phase(&child, "Running").await?;
    ensure!(operator.terminate().await?.success(), "the operator of now did not end well");

    let operator = operator_of(&world, &previous).await?;
    hurry(&world, "fails").await?;
    end(&world, &child, 1, Outcome::Ok).await?;
    world.await_phase(&child, "Completed").await?;
    world.wfe("beside").target("node/beside").image(&works).create().await?;
    world.await_phase("beside", "Completed").await?;
    await_children(&world, "fails", 2).await?;
    let left = await_schedule(&world, "runs", "is there", |_| true).await?;
    assert!(left["status"]["lastRun"]["outcome"].is_null(), "somebody recorded it: {left:#}");
    ensure!(operator.terminate().await?.success(), "the operator of then did not end well");

    let _operator = world.operator().start().await?;
    await_outcome(&world, "runs", "Completed").await?;
    await_failures(&world, "fails", 3).await?;
    await_children(&world, "runs", 1).await?;
    await_children(&world, "fails", 3).await?;
    world.close().await
}
