//! Objects that other clients change: with a finalizer, without their labels, or without the annotation that a policy
//! removes. The harm is limited to the object itself.

use anyhow::Result;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{Outcome, Pipeline, World, look, wfe};

use crate::expect::{condition, text};
use crate::history::short;

/// A finalizer that only the test removes.
const HOLD: &str = "test.kubernaut.ai/hold";

async fn change_run(world: &World, name: &str, patch: &Value) -> Result<()> {
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    runs.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn change_wfe(world: &World, name: &str, patch: &Value) -> Result<()> {
    let wfes = world.api(&wfe::resource(), world.namespace());
    wfes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn finalizers(all: &[&str]) -> Value {
    json!({"metadata": {"finalizers": all}})
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

#[tokio::test]
async fn a_finished_run_that_somebody_holds_is_deleted_once_and_the_next_execution_runs() -> Result<()> {
    let world = World::new("held-run").await?;
    let image = short(&world).await?;
    let first = world.operator().start().await?;
    world.wfe("first").target("node/one").image(&image).create().await?;
    let done = world.await_phase("first", "Completed").await?;
    let run = text(&done["status"]["pipelineRunRef"]["name"]).to_owned();
    change_run(&world, &run, &finalizers(&[HOLD])).await?;
    assert!(first.terminate().await?.success());

    let operator = world.operator().arg("--pipelinerun-retention", "1s").start().await?;
    world.await_run("it is on its way out", is_deleting).await?;
    world.wfe("second").target("node/one").workflow("other").image(&image).create().await?;
    world.await_phase("second", "Completed").await?;
    let audit = world.audit().await?;
    let deletes = audit.iter().filter(|entry| entry.verb == "delete" && entry.name == run);
    assert_eq!(deletes.count(), 1, "deleted once");
    change_run(&world, &run, &finalizers(&[])).await?;
    assert!(operator.ready().await);
    world.close().await
}

#[tokio::test]
async fn executions_that_are_being_deleted_and_held_run_to_their_end_or_never_start() -> Result<()> {
    let world = World::new("held-wfe").await?;
    let image = short(&world).await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().start().await?;
    let guard = |wfe: &mut Value| wfe["metadata"]["finalizers"] = json!([HOLD]);
    world.wfe("runs").target("node/one").image(&held).patch(guard).create().await?;
    world.await_running_step().await?;
    world.delete_wfe("runs").await?;
    // The deleted execution locks its target while it exists, and ends as if it had not been deleted.
    world.wfe("rival").target("node/one").image(&image).create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert_eq!(rival["status"]["skipDetails"]["reason"], "ResourceBusy", "{rival:#}");
    world.set_outcome("", "ok").await?;
    let ended = world.await_phase("runs", "Completed").await?;
    assert!(is_deleting(&ended), "{ended:#}");
    assert!(operator.terminate().await?.success());

    // An execution that was deleted before the operator saw it never starts. Its condition says that it waits for its
    // deletion.
    world.wfe("undecided").target("node/two").image(&image).patch(guard).create().await?;
    world.delete_wfe("undecided").await?;
    let _operator = world.operator().start().await?;
    world.wfe("next").target("node/two").image(&image).create().await?;
    world.await_phase("next", "Completed").await?;
    let waits = |wfe: &Value| condition(wfe, "Waiting") == "True Deleting";
    let undecided = world.await_wfe("undecided", "waits", waits).await?;
    assert_eq!(undecided["status"]["phase"], "Pending", "{undecided:#}");
    assert_eq!(world.runs().await?.len(), 2, "of those that ran");
    for name in ["runs", "undecided"] {
        change_wfe(&world, name, &finalizers(&[])).await?;
    }
    world.close().await
}

#[tokio::test]
async fn what_loses_our_label_is_seen_as_before() -> Result<()> {
    let world = World::new("label-lost").await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    world.wfe("seen").target("node/one").image(&held).create().await?;
    world.await_running_step().await?;
    let running = world.get_wfe("seen").await?;
    let run = text(&running["status"]["pipelineRunRef"]["name"]).to_owned();
    change_run(&world, &run, &json!({"metadata": {"labels": {"kubernaut.ai/workflow-execution": null}}})).await?;
    world.wfe("rival").target("node/one").image(&held).create().await?;
    let rival = world.await_phase("rival", "Skipped").await?;
    assert_eq!(rival["status"]["skipDetails"]["reason"], "ResourceBusy", "{rival:#}");
    world.set_outcome("", "ok").await?;
    world.await_phase("seen", "Completed").await?;
    let audit = world.audit().await?;
    let operator = world.operator_user();
    let mut reads = audit.iter().filter(|entry| entry.user == operator && entry.resource == "pipelineruns");
    assert!(reads.all(|entry| entry.verb != "get" || entry.name == run), "nothing else is read by name");
    world.close().await
}

#[tokio::test]
async fn a_run_that_comes_back_without_our_annotation_is_deleted_and_its_execution_fails() -> Result<()> {
    let world = World::new("stripped").await?;
    strip_annotation(&world).await?;
    let _operator = world.operator().start().await?;
    world.wfe("stripped").target("node/one").create().await?;
    let failed = world.await_phase("stripped", "Failed").await?;
    let details = &failed["status"]["failureDetails"];
    assert_eq!((&details["reason"], &details["wasExecutionFailure"]), (&json!("ConfigurationError"), &json!(false)));
    for words in ["kubernaut.ai/workflow-execution-uid", "webhook"] {
        assert!(text(&details["message"]).contains(words), "{details:#}");
    }
    world.await_runs("the run is gone", std::collections::BTreeMap::is_empty).await?;
    let audit = world.audit().await?;
    let operator = world.operator_user();
    let ours = audit.iter().filter(|entry| entry.user == operator);
    let creates = ours.filter(|entry| entry.verb == "create" && entry.resource == "pipelineruns");
    assert_eq!(creates.count(), 1);
    world.close().await
}

/// Removes the annotation from every run in this world, as a foreign mutating webhook might do.
async fn strip_annotation(world: &World) -> Result<()> {
    let name = world.namespace();
    let path = "/metadata/annotations/kubernaut.ai~1workflow-execution-uid";
    let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": world.execution_namespace()}});
    let rules = json!([{"apiGroups": ["tekton.dev"], "apiVersions": ["v1"], "operations": ["CREATE"],
                        "resources": ["pipelineruns"]}]);
    world
        .apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {"namespaceSelector": namespaces, "resourceRules": rules},
                "mutations": [{
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": format!("[JSONPatch{{op: 'remove', path: '{path}'}}]")},
                }],
            },
        }))
        .await?;
    world
        .apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name},
        }))
        .await?;
    await_stripped(world, path).await
}

/// Waits until the policy is in force: until it removes the annotation in a dry run of a create.
async fn await_stripped(world: &World, path: &str) -> Result<()> {
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    let probe: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {"name": "probe", "annotations": {"kubernaut.ai/workflow-execution-uid": "u", "other": "o"}},
        "spec": {"status": "PipelineRunPending", "pipelineRef": {"name": "probe"}},
    }))?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let ask = async || anyhow::Ok(runs.create(&dry, &probe).await);
    let is_stripped = |made: &DynamicObject| serde_json::to_value(made).is_ok_and(|it| it.pointer(path).is_none());
    ask_until(std::time::Duration::from_secs(30), "the policy is in force", ask, |answer| {
        answer.as_ref().is_ok_and(is_stripped)
    })
    .await
    .map(drop)
}
