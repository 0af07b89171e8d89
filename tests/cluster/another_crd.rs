//! For a few seconds, a CRD with the name of ours but with fewer fields is installed. The API server drops the missing
//! fields.

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{ControlPlane, Options, Outcome, Pipeline, World};

use crate::expect::condition;
use crate::unattended::await_readyz;

const NAME: &str = "workflowexecutions.kubernaut.ai";

/// Returns the spec of our CRD without the fields of runs in statuses, and without the rules that read these fields.
fn anothers(spec: &Value) -> Result<Value> {
    let mut spec = spec.clone();
    let version = spec.pointer_mut("/versions/0").context("a version")?;
    version["schema"] = json!({"openAPIV3Schema": {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "properties": {
                "phase": {"type": "string"},
                "startTime": {"type": "string"},
                "completionTime": {"type": "string"},
                "target": {"type": "string"},
            }},
        },
    }});
    version["selectableFields"] = Value::Null;
    version["additionalPrinterColumns"] = Value::Null;
    Ok(spec)
}

#[tokio::test]
async fn another_crd_for_a_few_seconds_ends_no_live_execution() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let world = World::on(&control_plane, "another-crd").await?;
    let bundle = world.push_pipeline("long", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().replica("only").start().await?;
    world.wfe("live").target("node/live").image(&bundle).create().await?;
    world.await_phase("live", "Running").await?;

    let crds: Api<CustomResourceDefinition> = Api::all(control_plane.client().await?);
    let ours = serde_json::to_value(crds.get(NAME).await?)?["spec"].clone();
    let replace = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        crds.patch(NAME, &PatchParams::default(), &patch).await
    };
    replace(anothers(&ours)?).await?;
    // Another client's write stores the object without the dropped fields.
    let is_pruned = |wfe: &Value| wfe["status"]["pipelineRunRef"].is_null();
    let touch = async || {
        let touched = format!("example.com/touched={}", chrono::Utc::now().timestamp_millis());
        let (namespace, kind) = (world.namespace(), "workflowexecutions.kubernaut.ai");
        control_plane.kubectl(&["annotate", kind, "live", "--overwrite", "--namespace", namespace, &touched]).await?;
        world.get_wfe("live").await
    };
    ask_until(DEADLINE, "the other CRD is in force", touch, is_pruned).await?;
    let names_it = |status: u16, said: &str| status == 503 && said.contains("lacks status.conditions");
    await_readyz(&operator, "the field that is missing", names_it).await?;
    let missing = [("cause", "CrdLacksFields")];
    let is_counted =
        |metrics: &wfe_testkit::Metrics| metrics.value("workflowexecution_operator_trouble_targets", &missing) >= 1.0;
    operator.await_metrics("the trouble is counted", is_counted).await?;
    let has_let_go = |metrics: &wfe_testkit::Metrics| metrics.value("workflowexecution_leader", &[]) < 1.0;
    operator.await_metrics("another version of the operator can lead", has_let_go).await?;

    replace(ours).await?;
    await_readyz(&operator, "readiness", |status, _| status == 200).await?;
    let live = world.get_wfe("live").await?;
    assert_eq!(live["status"]["phase"], "Running", "{live:#}");
    assert_ne!(condition(&live, "TargetLocked"), "False Free", "{live:#}");
    world.set_outcome("", "ok").await?;
    let done = world.await_phase("live", "Completed").await?;
    assert_eq!(condition(&done, "Succeeded"), "True Completed", "{done:#}");
    assert!(world.events().await?.iter().all(|event| event["reason"] != "WorkflowFailed"));
    world.close().await
}
