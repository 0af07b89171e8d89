//! A person cancels an execution before anything ran. The cancellation does not count as a failure of the target, and
//! the status shows its reason (section 7).

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World, wfe};

use crate::audited::audited;
use crate::clearing::await_free;
use crate::expect::condition;

pub(crate) async fn cancel(world: &World, name: &str) -> Result<()> {
    let patch = json!({"spec": {"cancellation": {"reason": "wrong cluster", "requestedBy": "jo@example.com"}}});
    world.api(&wfe::resource(), world.namespace()).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

fn check_uncounted(wfe: &Value) {
    let status = &wfe["status"];
    assert_eq!(condition(wfe, "Succeeded"), "False Cancelled", "{wfe:#}");
    assert_eq!(status["failureDetails"]["reason"], "Unknown", "one of the seven");
    assert_eq!(status["failureDetails"]["wasExecutionFailure"], false, "{wfe:#}");
    assert_eq!((&status["consecutiveFailures"], &status["nextAllowedExecution"]), (&json!(0), &Value::Null), "{wfe:#}");
}

#[tokio::test]
async fn a_cancellation_before_anything_ran_is_no_failure_of_its_target() -> Result<()> {
    let world = World::new("cancelled").await?;
    let works = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let waits =
        world.push_pipeline("waiting", &Pipeline::new().task("apply", Outcome::Waiting("ContainerCreating"))).await?;
    let recording = world.record_all().await?;
    // One execution more than the failures that exhaust the target.
    let early: Vec<String> = (0..6).map(|nth| format!("early-{nth}")).collect();
    for name in &early {
        world.wfe(name).image(&works).create().await?;
        cancel(&world, name).await?;
    }
    let _operator = world.operator().start().await?;
    for name in &early {
        check_uncounted(&world.await_phase(name, "Failed").await?);
    }
    // The same applies to an execution that had its turn, but that had not started anything.
    world.wfe("waits").image(&waits).create().await?;
    world.await_pod("waits", |pod| pod["status"]["phase"] == "Pending").await?;
    world.await_phase("waits", "Running").await?;
    cancel(&world, "waits").await?;
    check_uncounted(&world.await_phase("waits", "Failed").await?);
    await_free(&world, "waits").await?;

    world.wfe("next").image(&works).create().await?;
    world.await_phase("next", "Completed").await?;
    let table = world.control_plane().kubectl(&["get", "wfe", "--namespace", world.namespace()]).await?;
    let shown = table.lines().filter(|line| line.contains(" Cancelled ")).count();
    assert_eq!(shown, early.len() + 1, "{table}");
    audited(&world, recording).await?;
    world.close().await
}
