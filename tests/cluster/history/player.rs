//! Ends runs in Tekton's place, at times that the test chooses.
//!
//! Tekton's controller must not run: after a conflict, it would read the run again and overwrite the status. These
//! tests therefore share a control plane without this controller.

use anyhow::Result;
use chrono::{DateTime, Utc};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use wfe_testkit::{ControlPlane, Options, World, look};

use super::past::time;
use crate::expect::text;

/// The control plane without Tekton's controller. It ends with this process.
static STAGE: OnceCell<ControlPlane> = OnceCell::const_new();

/// Creates a world whose runs do nothing until the test ends them.
pub(super) async fn stage(name: &str) -> Result<World> {
    let start = async || {
        let control_plane = ControlPlane::start(Options { pods: false, ..Options::default() }).await?;
        control_plane.component("tekton-controller").stop().await?;
        anyhow::Ok(control_plane)
    };
    World::on(STAGE.get_or_try_init(start).await?, name).await
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The run succeeds.
    Completed,
    /// The bundle cannot be fetched, so that no task of the run starts.
    NothingRan,
}

/// Ends the run of an execution with this `completionTime` after the run was released. Returns the execution while it
/// was running.
pub(super) async fn end_run(world: &World, name: &str, how: End, completed_at: DateTime<Utc>) -> Result<Value> {
    let wfe = world.await_phase(name, "Running").await?;
    let run = text(&wfe["status"]["pipelineRunRef"]["name"]);
    let is_released = |seen: &Value| seen["metadata"]["name"] == *run && seen["spec"]["status"].is_null();
    world.await_run(&format!("{run} is released"), is_released).await?;
    let (status, reason, message) = match how {
        End::Completed => ("True", "Succeeded", "Tasks Completed: 1 (Failed: 0, Cancelled 0), Skipped: 0"),
        End::NothingRan => ("False", "CouldntGetPipeline", "Error retrieving pipeline: no such bundle"),
    };
    let at = time(completed_at);
    let condition = json!({
        "type": "Succeeded", "status": status, "reason": reason, "message": message, "lastTransitionTime": at,
    });
    let patch = Patch::Merge(json!({"status": {"completionTime": at, "conditions": [condition]}}));
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    runs.patch_status(run, &PatchParams::default(), &patch).await?;
    Ok(wfe)
}
