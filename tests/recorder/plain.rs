//! A plain PipelineRun, as the operator would render it, and how it ends.

use anyhow::Result;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{World, look};
use wfe_tests::outcomes::{End, Play};

/// The name of an execution's first run on `node/worker-node-1`.
pub(crate) const NAME: &str = "wfe-ac45b7d6911e97a5-1";

/// Creates a run that is not pending.
pub(crate) async fn start(world: &World, play: &Play, image: &str) -> Result<()> {
    let pipeline = play.timeout.unwrap_or("30m0s");
    let run: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {
            "name": NAME,
            "labels": {
                "app.kubernetes.io/managed-by": "wfe-operator",
                "kubernaut.ai/run-sequence": "1",
                "kubernaut.ai/source-namespace": "ops",
                "kubernaut.ai/target-resource": "node__worker-node-1",
                "kubernaut.ai/workflow-execution": play.name,
                "kubernaut.ai/workflow-id": "restart",
            },
            "annotations": {
                "kubernaut.ai/target-resource": "node/worker-node-1",
                "kubernaut.ai/workflow-execution": format!("ops/{}", play.name),
                "kubernaut.ai/workflow-execution-uid": "11111111-1111-1111-1111-111111111111",
                "kubernaut.ai/workflow-id": "restart",
            },
        },
        "spec": {
            "pipelineRef": {"resolver": "bundles", "params": [
                {"name": "bundle", "value": image},
                {"name": "name", "value": "workflow"},
                {"name": "kind", "value": "pipeline"},
            ]},
            "params": [{"name": "TARGET_RESOURCE", "value": "node/worker-node-1"}],
            "taskRunTemplate": {"serviceAccountName": play.service_account.unwrap_or("kubernaut-workflow-runner")},
            "timeouts": play.plain_timeouts.clone().unwrap_or(json!({"pipeline": pipeline})),
        },
    }))?;
    world.api(&look::pipeline_runs(), &world.execution_namespace()).create(&PostParams::default(), &run).await?;
    Ok(())
}

/// Waits until the run has ended in this way.
pub(crate) async fn await_end(world: &World, end: End) -> Result<()> {
    let condition = |run: &Value| run["status"]["conditions"][0].clone();
    match end {
        End::Done | End::Leaves => {
            let done = |run: &Value| run["metadata"]["name"] == NAME && condition(run)["status"] != "Unknown";
            let known = |run: &Value| condition(run).is_object();
            world.await_run("is done", |run| known(run) && done(run)).await?;
        }
        End::Gone => {
            world.await_runs("no run", std::collections::BTreeMap::is_empty).await?;
        }
        End::Stuck => {
            world.await_run("waits for its bundle", |run| condition(run)["reason"] == "ResolvingPipelineRef").await?;
        }
        End::Refused => (),
    }
    Ok(())
}
