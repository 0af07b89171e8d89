//! Changes to a released Tekton, which some plays need.

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use wfe_testkit::{ControlPlane, manifests};

/// Repairs two things in a released Tekton: its `ResolutionRequest` can report a failure, and a pipeline can be a task
/// of another pipeline. No other test may use the control plane.
pub async fn repair(control_plane: &ControlPlane) -> Result<()> {
    let client = control_plane.client().await?;
    let crds: Api<DynamicObject> =
        Api::all_with(client.clone(), &manifests::resource("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    let name = "resolutionrequests.resolution.tekton.dev";
    let mut crd = crds.get(name).await?;
    let versions = crd.data["spec"]["versions"].as_array_mut().context("a CRD without versions")?;
    for version in versions {
        // The released schema also requires `refSource` and `source`, which a failed request lacks. The API server then
        // refuses the status of the request, and the run waits for ever.
        version["schema"]["openAPIV3Schema"]["properties"]["status"]["required"] = json!(["data"]);
    }
    crd.metadata.managed_fields = None;
    crds.replace(name, &PostParams::default(), &crd).await?;

    let flags: Api<DynamicObject> =
        Api::namespaced_with(client, "tekton-pipelines", &manifests::resource("v1", "ConfigMap"));
    let alpha = json!({"data": {"enable-api-fields": "alpha"}});
    flags.patch("feature-flags", &PatchParams::default(), &Patch::Merge(alpha)).await?;
    // A restart makes sure that the controller has read the flags.
    control_plane.component("tekton-controller").restart().await
}
