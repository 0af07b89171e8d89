//! A bundle that does not exist, with a Tekton that can report this.

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{ControlPlane, Options, World};

use super::{WAITS, assert_charged, assert_skipped};
use crate::expect::text;

/// Makes Tekton able to report failed resolutions. Its own CRD requires a result in every status, so the API server
/// refuses the status of a failed resolution.
async fn let_resolutions_fail(control_plane: &ControlPlane) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(control_plane.client().await?);
    let name = "resolutionrequests.resolution.tekton.dev";
    let mut crd = serde_json::to_value(crds.get(name).await?)?;
    for version in crd["spec"]["versions"].as_array_mut().context("no versions")? {
        let status = version.pointer_mut("/schema/openAPIV3Schema/properties/status").context("no status")?;
        status["required"] = json!([]);
    }
    let patch = Patch::Merge(json!({"spec": {"versions": crd["spec"]["versions"]}}));
    crds.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn a_bundle_that_does_not_exist_is_a_failure_before_anything_ran() -> Result<()> {
    let control_plane = ControlPlane::start(Options { pods: false, ..Options::default() }).await?;
    let_resolutions_fail(&control_plane).await?;
    let world = World::on(&control_plane, "no-bundle").await?;
    let _operator = world.operator().start().await?;
    let missing = format!("{}/no/such/bundle:1", control_plane.registry());
    world.wfe("lost").image(&missing).create().await?;
    let lost = world.await_phase("lost", "Failed").await?;
    assert_eq!(lost["status"]["pipelineRunStatus"]["reason"], "CouldntGetPipeline", "{lost:#}");
    assert_charged(&lost, 1, WAITS[0])?;
    world.wfe("next").workflow("other").image(&missing).create().await?;
    let details = assert_skipped(&world, "next", "RecentlyRemediated", "lost").await?;
    assert!(text(&details["message"]).contains("backoff"), "{details:#}");
    assert_ne!(details["recentRemediation"]["cooldownRemaining"], Value::Null);
    world.close().await
}
