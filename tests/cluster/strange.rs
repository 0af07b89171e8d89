//! Long and unusual names, from the object to its pods and back. The labels are legal, and the operator finds every
//! object again.

use anyhow::Result;
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, World};

use crate::audited::audited;
use crate::clearing::await_free;
use crate::expect::text;

/// The names of an execution and its target.
struct Names {
    execution: String,
    workflow: String,
    target: String,
    canonical: String,
}

fn names() -> [Names; 3] {
    let long = "x".repeat(253);
    [
        Names {
            execution: "n".repeat(240),
            workflow: "w".repeat(253),
            target: format!("{}/Deployments.apps/{long}", "p".repeat(63)),
            canonical: format!("{}/deployment/{long}", "p".repeat(63)),
        },
        // The target begins with the same characters as another one. Only a hash distinguishes their labels.
        Names {
            execution: "1.a-b.c".to_owned(),
            workflow: "W\u{f6}rk / flow: 50% \u{1f980}\n".to_owned(),
            target: format!("{}/deploy/{}y", "p".repeat(63), "x".repeat(252)),
            canonical: format!("{}/deployment/{}y", "p".repeat(63), "x".repeat(252)),
        },
        Names {
            execution: "colons".to_owned(),
            workflow: "-._".to_owned(),
            target: "ClusterRoles/system:Kube@Node_1.x".to_owned(),
            canonical: "clusterrole/system:Kube@Node_1.x".to_owned(),
        },
    ]
}

#[tokio::test]
async fn long_and_strange_names_run_and_are_found_again_by_the_next_operator() -> Result<()> {
    let world = World::new("strange").await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let short = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let recording = world.record_all().await?;
    let operator = world.operator().start().await?;
    let all = names();
    for Names { execution, workflow, target, .. } in &all {
        world.wfe(execution).workflow(workflow).target(target).image(&held).create().await?;
    }
    world.await_pods("every run has its pod", |pods| pods.len() == all.len()).await?;
    for it in &all {
        let running = world.await_phase(&it.execution, "Running").await?;
        assert_eq!(running["status"]["target"], it.canonical.as_str());
        let run = world.await_run("is the execution's", |run| is_of(run, &running)).await?;
        check_marks(&world, &run, it);
    }

    // The next operator recognizes the runs only by their labels and annotations.
    operator.kill().await?;
    let _operator = world.operator().start().await?;
    for (nth, it) in all.iter().enumerate() {
        let rival = format!("rival-{nth}");
        world.wfe(&rival).target(&it.canonical).image(&short).create().await?;
        let rival = world.await_phase(&rival, "Skipped").await?;
        let conflict = &rival["status"]["skipDetails"]["conflictingWorkflow"];
        assert_eq!((&conflict["namespace"], &conflict["name"]), (&json!(world.namespace()), &json!(it.execution)));
        assert_eq!((&conflict["workflowId"], &conflict["targetResource"]), (&json!(it.workflow), &json!(it.canonical)));
    }
    world.set_outcome("", "ok").await?;
    for (nth, it) in all.iter().enumerate() {
        world.await_phase(&it.execution, "Completed").await?;
        await_free(&world, &it.execution).await?;
        // Before the next run on this target, the operator looks for remains of the first run by its label.
        let next = format!("next-{nth}");
        world.wfe(&next).workflow("another").target(&it.target).image(&short).create().await?;
        assert_eq!(world.await_phase(&next, "Completed").await?["status"]["runSequence"], 2);
    }
    audited(&world, recording).await?;
    world.close().await
}

fn is_of(run: &Value, wfe: &Value) -> bool {
    run["metadata"]["uid"] == wfe["status"]["pipelineRunRef"]["uid"]
}

/// The annotations contain the complete names, and the parameter contains the canonical target. The labels are legal,
/// because the API server has accepted them.
fn check_marks(world: &World, run: &Value, names: &Names) {
    let annotations = &run["metadata"]["annotations"];
    assert_eq!(annotations["kubernaut.ai/target-resource"], names.canonical.as_str());
    assert_eq!(annotations["kubernaut.ai/workflow-id"], names.workflow.as_str());
    let whole = format!("{}/{}", world.namespace(), names.execution);
    assert_eq!(annotations["kubernaut.ai/workflow-execution"], whole.as_str());
    let parameter = json!({"name": "TARGET_RESOURCE", "value": names.canonical});
    assert!(run["spec"]["params"].as_array().is_some_and(|params| params.contains(&parameter)), "{run:#}");
    for label in ["target-resource", "workflow-id", "workflow-execution"] {
        let value = text(&run["metadata"]["labels"][format!("kubernaut.ai/{label}")]);
        assert!((1..=63).contains(&value.len()), "{label}: {value}");
    }
}
