//! If the API server refuses to create a run, the execution fails before anything ran, or it waits (section 9).

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{ControlPlane, Operator, Options, World, WorldOptions, look};
use wfe_tests::quota_of_none;

use crate::expect::{condition, text, unwritten};

/// Checks the status that every failure after a refused create must have.
pub(crate) fn check_refused(wfe: &Value, reason: &str, word: &str) {
    let status = &wfe["status"];
    let details = &status["failureDetails"];
    assert_eq!(details["reason"], reason, "{details:#}");
    assert_eq!((&details["wasExecutionFailure"], &details["requiresManualReview"]), (&json!(false), &json!(false)));
    assert!(text(&details["message"]).contains(word), "{details:#}");
    assert!(text(&details["naturalLanguageSummary"]).contains("Nothing of the workflow ran."), "{details:#}");
    assert_eq!(status["runSequence"], 1, "the number that was tried");
    for absent in ["startTime", "duration", "pipelineRunRef"] {
        assert_eq!(status[absent], Value::Null, "{absent}");
    }
    assert_eq!(condition(wfe, "Succeeded"), format!("False {reason}"));
    assert_eq!(condition(wfe, "TargetLocked"), "", "it never held the target");
}

#[tokio::test]
async fn a_quota_on_pipelineruns_is_resource_exhausted() -> Result<()> {
    let world = World::new("quota").await?;
    quota_of_none(&world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await?;
    let operator = world.operator().start().await?;
    world.wfe("too-many").create().await?;
    let wfe = world.await_phase("too-many", "Failed").await?;
    check_refused(&wfe, "ResourceExhausted", "exceeded quota");
    world.await_event("too-many", "WorkflowFailed").await?;
    let failed = operator.metrics().await?.value("workflowexecution_total", &[("outcome", "Failed")]);
    assert!((failed - 1.0).abs() < f64::EPSILON, "{failed}");
    world.close().await
}

#[tokio::test]
async fn a_namespace_that_is_being_deleted_is_a_configuration_error() -> Result<()> {
    let world = World::new("terminating").await?;
    let _operator = world.operator().start().await?;
    // The finalizers keep the namespace in the phase Terminating, with the operator's permissions in it.
    hold(&world, json!(["test.kubernaut.ai/hold"])).await?;
    let namespaces: Api<Namespace> = Api::all(world.client());
    namespaces.delete(&world.execution_namespace(), &DeleteParams::background()).await?;
    world.wfe("too-late").create().await?;
    let wfe = world.await_phase("too-late", "Failed").await;
    hold(&world, Value::Null).await?;
    check_refused(&wfe?, "ConfigurationError", "terminated");
    world.close().await
}

/// Sets the finalizers of the objects that grant the operator its permissions in the execution namespace.
async fn hold(world: &World, finalizers: Value) -> Result<()> {
    let patch = json!({"metadata": {"finalizers": finalizers}});
    let namespace = world.execution_namespace();
    patch_all::<ServiceAccount>(Api::namespaced(world.client(), &namespace), &patch).await?;
    patch_all::<Role>(Api::namespaced(world.client(), &namespace), &patch).await?;
    patch_all::<RoleBinding>(Api::namespaced(world.client(), &namespace), &patch).await
}

async fn patch_all<K>(api: Api<K>, patch: &Value) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    for object in api.list(&ListParams::default()).await? {
        api.patch(&object.meta().name.clone().unwrap_or_default(), &PatchParams::default(), &Patch::Merge(patch))
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_namespace_is_a_configuration_error() -> Result<()> {
    let world = nowhere("no-namespace").await?;
    // The shipped Role would be in the namespace that does not exist. In this test, its rules apply in every namespace.
    let role = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/rbac/execution_role.yaml");
    let role: Role = wfe_testkit::manifests::read(&role)?
        .into_iter()
        .find_map(|object| serde_json::from_value(object).ok())
        .context("the shipped Role")?;
    let name = world.execution_namespace();
    let (roles, bindings) = (Api::<ClusterRole>::all(world.client()), Api::<ClusterRoleBinding>::all(world.client()));
    let everywhere = ClusterRole {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        rules: role.rules,
        aggregation_rule: None,
    };
    roles.create(&PostParams::default(), &everywhere).await?;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": world.operator_user()}],
    });
    bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;

    let _operator = world.operator().start().await?;
    world.wfe("nowhere").create().await?;
    let wfe = world.await_phase("nowhere", "Failed").await;
    bindings.delete(&name, &DeleteParams::default()).await?;
    roles.delete(&name, &DeleteParams::default()).await?;
    check_refused(&wfe?, "ConfigurationError", "not found");
    world.close().await
}

#[tokio::test]
async fn without_the_namespace_and_its_role_an_execution_waits_and_the_operator_says_what_to_do() -> Result<()> {
    let world = nowhere("no-role").await?;
    let operator = world.operator().spawn().await?;
    world.wfe("patient").create().await?;
    let said = await_unready(&operator, "pipelineruns").await;
    assert!(said.contains("make the execution namespace and give the operator the Role"), "{said}");
    assert_eq!(world.get_wfe("patient").await?["status"], unwritten());
    world.close().await
}

/// Creates a world without an execution namespace.
async fn nowhere(name: &str) -> Result<World> {
    let options = WorldOptions { no_execution_namespace: true, ..WorldOptions::default() };
    World::with(ControlPlane::shared().await?, name, options).await
}

/// Waits until `/readyz` names the resource that the operator cannot watch, and returns the answer.
pub(crate) async fn await_unready(operator: &Operator, resource: &str) -> String {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let said = match operator.get("health", "/readyz").await {
            Ok((503, said)) if said.contains(&format!("cannot watch {resource}")) => return said,
            other => format!("{other:?}"),
        };
        assert!(tokio::time::Instant::now() < deadline, "not unready for {resource}: {said}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn without_tekton_an_execution_waits_and_the_operator_is_not_ready() -> Result<()> {
    let control_plane = ControlPlane::start(Options { crd: true, ..Options::BARE }).await?;
    let world = World::on(&control_plane, "no-tekton").await?;
    let operator = world.operator().spawn().await?;
    world.wfe("patient").create().await?;
    let said = await_unready(&operator, "pipelineruns").await;
    assert!(said.contains("install Tekton"), "{said}");
    assert_eq!(world.get_wfe("patient").await?["status"], unwritten());
    assert_eq!(operator.get("health", "/healthz").await?.0, 200, "it lives, and waits");
    world.close().await
}
