//! Plays one outcome with an operator of its own.

use anyhow::{Context as _, Result};
use kube::api::DeleteParams;
use serde_json::Value;
use wfe_testkit::{ControlPlane, World, look};
use wfe_tests::outcomes::{End, Play};

use super::row::Row;
use super::seen::Seen;
use crate::expect::condition;

/// The name of the first run on the target that all plays use.
pub(super) const RUN: &str = "wfe-ac45b7d6911e97a5-1";
const TARGET: &str = "node/worker-node-1";
/// The parameter that all plays have.
pub(super) const TOKEN: &str = "TOKEN";
/// The value of that parameter, which no object may reveal.
pub(super) const SECRET: &str = "s3cr3t-value-of-a-parameter";

/// Plays an outcome and returns the results.
pub(super) async fn play(control_plane: &ControlPlane, row: &Row, play: &Play) -> Result<Seen> {
    let world = World::on(control_plane, play.name).await?;
    let image = play.prepare(&world).await?;
    let recording = world.record_all().await?;
    let mut operator = world.operator();
    if let Some(deadline) = row.start_deadline {
        operator = operator.arg("--start-deadline", deadline);
    }
    let operator = operator.start().await?;
    let mut wfe = world.wfe(play.name).target(TARGET).image(&image).parameter(TOKEN, SECRET);
    if let Some(timeout) = play.timeout {
        wfe = wfe.timeout(timeout);
    }
    if let Some(account) = play.service_account {
        wfe = wfe.service_account(account);
    }
    wfe.create().await?;
    play.perform(&world, RUN).await?;
    world.await_terminal(play.name).await?;
    if play.end == End::Leaves {
        // The remains of this run do not end by themselves.
        world
            .api(&look::pods(), &world.execution_namespace())
            .delete_collection(&DeleteParams::default(), &kube::api::ListParams::default())
            .await?;
    }
    let free = |wfe: &Value| matches!(condition(wfe, "TargetLocked").as_str(), "" | "False Free");
    let wfe = world.await_wfe(play.name, "has let go of its target", free).await?;
    let told = if wfe["status"]["phase"] == "Completed" { "WorkflowCompleted" } else { "WorkflowFailed" };
    world.await_event(play.name, told).await?;
    let events = world.events().await?;
    let (changes, report) = wfe_tests::audit(&world, recording).await?;
    let mut seen = Seen::new(&world, play, &wfe, &events, &changes);
    let violations = report.violations.iter().map(|one| format!("invariant {}: {}", one.invariant, one.text));
    seen.broken.extend(violations.chain(report.gaps));
    drop(operator);
    world.close().await.context("the world could not be closed")?;
    Ok(seen)
}
