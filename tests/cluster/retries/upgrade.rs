//! An upgrade from the operator of an earlier commit (`tests/upgrade/build`), which does not know retries, to the
//! current operator, and back. The CRD is upgraded first, so that executions may have a policy while the earlier
//! operator still runs. Only with `WFE_TEST_ALL=1`.

use std::path::Path;

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Operator, Outcome, World, previous, wfe};

use super::{RETRYING, attempts, await_wait, end, fails, undecided, with_retry};
use crate::expect::{condition, text};
use crate::faults::{all, short};

/// Returns a policy that retries even if something ran. If an attempt began under the earlier operator, the current
/// operator cannot tell whether anything of it ran.
fn whatever_ran() -> Value {
    json!({"retryExecutionFailures": true, "maxDelay": "1s"})
}

/// Starts the earlier operator, which has no leader election.
async fn operator_of(world: &World, previous: &Path) -> Result<Operator> {
    let operator = world.operator().program(&previous.join("wfe-operator"));
    operator.without("--namespace").without("--leader-elect").start().await
}

async fn create(world: &World, name: &str, bundle: &str, policy: &Value) -> Result<()> {
    with_retry(world.wfe(name).target(&format!("node/{name}")).workflow(name).image(bundle), policy).create().await?;
    Ok(())
}

/// Checks that the first attempt, which began under the earlier operator, is recorded in the usual way.
async fn is_tried_again(world: &World, name: &str) -> Result<()> {
    let waits = await_wait(world, name, 2).await?;
    let (first, status) = (&attempts(&waits)[0], &waits["status"]);
    ensure!(first["pipelineRun"] == status["pipelineRunRef"]["name"], "{waits:#}");
    ensure!(first["startTime"] == status["startTime"] && first["completionTime"].is_string(), "{waits:#}");
    let rival = format!("rival-of-{name}");
    world.wfe(&rival).target(&format!("node/{name}")).workflow(&rival).create().await?;
    let skipped = world.await_terminal(&rival).await?;
    ensure!(skipped["status"]["skipDetails"]["reason"] == "ResourceBusy", "{skipped:#}");
    end(world, name, 2, Outcome::Ok).await?;
    let done = world.await_terminal(name).await?;
    ensure!(text(&done["status"]["phase"]) == "Completed", "{done:#}");
    ensure!((attempts(&done).len(), &done["status"]["runSequence"]) == (2, &json!(2)), "{done:#}");
    Ok(())
}

#[tokio::test]
async fn what_began_under_an_operator_without_retries_is_tried_again_by_one_with_them() -> Result<()> {
    if !all() {
        return Ok(());
    }
    let previous = previous()?;
    let world = World::new("retry-upgrade").await?;
    let (bundle, short) = (undecided(&world).await?, short(&world).await?);
    let recording = world.record_all().await?;
    let operator = operator_of(&world, &previous).await?;
    for name in ["fails-later", "fails-unseen", "unnumbered"] {
        create(&world, name, &bundle, &whatever_ran()).await?;
        world.await_phase(name, "Running").await?;
    }
    create(&world, "failed", &bundle, &whatever_ran()).await?;
    end(&world, "failed", 1, Outcome::ImagePull).await?;
    let failed = world.await_phase("failed", "Failed").await?;
    ensure!(operator.terminate().await?.success(), "the operator of then did not end well");

    let running = world.get_wfe("unnumbered").await?;
    assert!(running["status"]["attempts"].is_null(), "it knows attempts: {running:#}");
    let unnumbered = Patch::Merge(json!({"status": {"runSequence": null}}));
    let executions = world.api(&wfe::resource(), world.namespace());
    executions.patch_status("unnumbered", &PatchParams::default(), &unnumbered).await?;
    end(&world, "fails-unseen", 1, Outcome::ImagePull).await?;
    let is_done = |run: &Value| run["status"]["conditions"][0]["status"] == "False";
    let of = |wfe: &str, run: &Value| run["metadata"]["labels"]["kubernaut.ai/workflow-execution"] == wfe;
    world.await_run("of fails-unseen has failed", |run| of("fails-unseen", run) && is_done(run)).await?;
    create(&world, "undecided", &bundle, &whatever_ran()).await?;

    let operator = world.operator().start().await?;
    is_tried_again(&world, "fails-unseen").await?;
    for name in ["fails-later", "unnumbered", "undecided"] {
        end(&world, name, 1, Outcome::ImagePull).await?;
        is_tried_again(&world, name).await?;
    }
    let still = world.get_wfe("failed").await?;
    assert_eq!(still["status"]["failureDetails"], failed["status"]["failureDetails"], "{still:#}");
    assert!(still["status"]["attempts"].is_null() && condition(&still, RETRYING).is_empty(), "{still:#}");
    let (_, report) = wfe_tests::audit(&world, recording).await?;
    // The only violation: the earlier operator has ended an execution without recording its attempt.
    let found: Vec<(&str, &str)> = report.violations.iter().map(|it| (it.rule, &*it.target)).collect();
    assert_eq!((found, report.gaps.len()), (vec![("second-run", "node/failed")], 0), "{report:#?}");

    // After the downgrade, a waiting execution ends with the result of its last run, and releases its target.
    create(&world, "back", &bundle, &json!({"initialDelay": "1h", "maxDuration": "12h"})).await?;
    fails(&world, "back", 1, 2).await?;
    ensure!(operator.terminate().await?.success(), "the operator of now did not end well");
    let _operator_of_then = operator_of(&world, &previous).await?;
    let back = world.await_phase("back", "Failed").await?;
    assert_eq!(back["status"]["runSequence"], 1, "{back:#}");
    world.wfe("after").target("node/after").image(&short).create().await?;
    world.await_phase("after", "Completed").await?;
    world.close().await
}
