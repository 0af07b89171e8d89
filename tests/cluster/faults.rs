//! The lock under crashes, lost answers, outages and rivals. A proxy between the operator and the API server injects
//! the faults.
//!
//! `judge` checks the recording and the audit log. `WFE_TEST_ALL=1` runs the long variants.

mod answers;
mod crashes;
pub(crate) mod judge;
mod outages;
mod proxy;
mod rivals;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use serde_json::Value;
use wfe_testkit::proxy::Request;
use wfe_testkit::{Fault, Outcome, Pipeline, Proxy, World};

use crate::expect::{condition, text};

/// Returns whether the long variants are requested.
pub(crate) fn all() -> bool {
    std::env::var_os("WFE_TEST_ALL").is_some_and(|value| value == "1")
}

/// Returns the sign of a write, a text such as `patch workflowexecutions/status Running`.
fn sign(request: &Request) -> String {
    let what = request.what();
    match what.as_str() {
        "patch workflowexecutions/status" => format!("{what} {}", text(&request.body["status"]["phase"])),
        "patch pipelineruns" => {
            let changes = request.body.as_array().into_iter().flatten();
            let paths: Vec<String> = changes
                .filter(|change| change["op"] != "test")
                .map(|change| format!("{} {}", text(&change["op"]), text(&change["path"])))
                .collect();
            format!("{what} {}", paths.join(", "))
        }
        "create events" => format!("{what} {}", request.name.rsplit('.').next().unwrap_or_default()),
        _ => what,
    }
}

pub(crate) const CREATE: &str = "create pipelineruns";
const COMMIT: &str = "patch workflowexecutions/status Running";
const RELEASE: &str = "patch pipelineruns remove /spec/status, add /metadata/annotations/kubernaut.ai~1released-at";
const COMPLETE: &str = "patch workflowexecutions/status Completed";
/// The sign of a write that records progress, and does not change the phase. Only a run of more than five seconds has
/// such a write.
const PROGRESS: &str = "patch workflowexecutions/status ";

/// Plays a WorkflowExecution with a [`lasting`] workflow and without faults, and returns the signs of its writes in
/// order.
async fn writes_of_a_life(world: &World) -> Result<Vec<String>> {
    let proxy = Proxy::start(world.control_plane()).await?;
    let signs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&signs);
    proxy.on(move |request| {
        if request.is_write() {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(sign(request));
        }
        Fault::Pass
    });
    let operator = world.operator().through(&proxy).start().await?;
    let bundle = lasting(world).await?;
    world.wfe("undisturbed").target("node/undisturbed").image(&bundle).create().await?;
    world.await_phase("undisturbed", "Completed").await?;
    world.await_event("undisturbed", "WorkflowCompleted").await?;
    operator.terminate().await?;
    let mut signs = signs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // If the task begins late, the progress is written a second time.
    let mut told = false;
    signs.retain(|sign| *sign != PROGRESS || !std::mem::replace(&mut told, true));
    for known in [CREATE, COMMIT, RELEASE, PROGRESS, COMPLETE] {
        ensure!(signs.iter().filter(|sign| *sign == known).count() == 1, "one {known:?} in {signs:#?}");
    }
    Ok(signs)
}

/// Pushes a pipeline with one task that succeeds after 500 ms.
pub(crate) async fn short(world: &World) -> Result<String> {
    world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await
}

/// Pushes a pipeline with one task that succeeds, and that runs until its progress is written.
async fn lasting(world: &World) -> Result<String> {
    world.push_pipeline("lasting", &Pipeline::new().task("apply", Outcome::Ok).lasting("8s")).await
}

/// Pushes a pipeline with one task that runs until [`finish`] is called.
pub(crate) async fn held(world: &World) -> Result<String> {
    world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold).lasting("100ms")).await
}

const OWNER: &str = "kubernaut.ai/workflow-execution";

/// Waits until the task of a held execution runs.
pub(crate) async fn await_task(world: &World, wfe: &str) -> Result<()> {
    let runs = |pod: &Value| pod["metadata"]["labels"][OWNER] == *wfe && pod["status"]["phase"] == "Running";
    world.await_pod(&format!("of {wfe} runs"), runs).await?;
    Ok(())
}

/// Lets the task of a held execution succeed.
pub(crate) async fn finish(world: &World, wfe: &str) -> Result<()> {
    await_task(world, wfe).await?;
    world.set_outcome(&format!("{OWNER}={wfe}"), "ok").await?;
    Ok(())
}

/// Waits until an execution has completed and its target is free.
pub(crate) async fn await_free(world: &World, wfe: &str) -> Result<Value> {
    let is_free = |wfe: &Value| wfe["status"]["phase"] == "Completed" && condition(wfe, "TargetLocked") == "False Free";
    world.await_wfe(wfe, "has completed and its target is free", is_free).await
}
