//! Which users may delete an execution that blocks a target. They need the permission to clear the target.

use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::core::Request;
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::manifests;

use super::objects::{Refusal, entering, expect, good_but, refusal, report, says};
use super::people::{Stage, expect_no_warnings};

pub(super) const POLICY: &str = "deletion.workflowexecutions.kubernaut.ai";
const CLEARANCE: &str = "clearance.workflowexecutions.kubernaut.ai";
pub(super) const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);
pub(super) const GONE_WITHIN: Duration = Duration::from_mins(1);
/// A time before the beginning of the test.
pub(super) const BEFORE: &str = "2020-01-02T03:04:05Z";

/// Creates a failed execution, which blocks its target or not.
pub(super) async fn failed(stage: &Stage, name: &str, target: &str, blocks: bool) -> Result<()> {
    let mut object = good_but("/metadata/name", json!(name))?;
    object["spec"]["targetResource"] = json!(target);
    stage.namespaced.api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let mut status = entering("Failed");
    status["conditions"] = blocked(blocks, BEFORE);
    stage.namespaced.must(name, status).await
}

/// Returns a condition `Blocked` that became True or False at this time.
pub(super) fn blocked(blocks: bool, since: &str) -> Value {
    let status = if blocks { "True" } else { "False" };
    json!([{
        "type": "Blocked", "status": status, "reason": "PreviousExecutionFailed", "message": "look at it",
        "lastTransitionTime": since,
    }])
}

/// Binds a shipped role to a user in one namespace.
pub(super) async fn bind(stage: &Stage, user: &str, role: &str, namespace: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": format!("{role}-{user}"), "namespace": namespace},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
    });
    manifests::apply(stage.client(), &binding).await?;
    Ok(())
}

#[tokio::test]
async fn what_blocks_is_deleted_or_cleared_by_who_may_clear_here_and_at_the_target() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let (writer, here, both) = (format!("writer-{own}"), format!("here-{own}"), format!("both-{own}"));
    for user in [&writer, &here, &both] {
        bind(&stage, user, "wfe-edit", &own).await?;
    }
    for user in [&here, &both] {
        bind(&stage, user, "wfe-clear", &own).await?;
    }
    bind(&stage, &both, "wfe-clear", "payment").await?;
    let targets = [("own", format!("{own}/deployment/api")), ("theirs", "payment/deployment/api".to_owned())];
    for (name, target) in &targets {
        failed(&stage, name, target, true).await?;
    }
    failed(&stage, "node", "node/worker-1", true).await?;
    failed(&stage, "harmless", "node/worker-1", false).await?;
    // When this binding and this policy are in force, all others are too.
    let ask = async || {
        let denied = stage.delete_dry_as(&writer, "own").await?;
        anyhow::Ok((denied, stage.delete_dry_as(&both, "theirs").await?))
    };
    let is = |(denied, given): &(Refusal, Refusal)| says(POLICY)(denied) && given.is_none();
    ask_until(IN_FORCE_WITHIN, "policies and roles are in force", ask, is).await?;
    let in_own = format!("update workflowexecutions/clearance (group kubernaut.ai) in namespace {own}");
    let in_payment = "update workflowexecutions/clearance (group kubernaut.ai) in namespace payment";
    let everywhere = "update workflowexecutions/clearance (group kubernaut.ai) in the whole cluster";
    let rows: &[(&str, &str, Option<&str>)] = &[
        (&writer, "own", Some(&in_own)),
        (&writer, "theirs", Some(&in_own)),
        (&here, "own", None),
        (&here, "theirs", Some(in_payment)),
        (&here, "node", Some(everywhere)),
        (&both, "theirs", None),
        (&both, "node", Some(everywhere)),
    ];
    let mut failures = Vec::new();
    for (user, name, right) in rows {
        let words: Vec<&str> = right.iter().flat_map(|right| [POLICY, *right, "wfe-clear"]).collect();
        expect(&mut failures, &format!("{user} deletes {name}"), &words, stage.delete_dry_as(user, name).await?);
        let words: Vec<&str> = right.iter().flat_map(|right| [CLEARANCE, *right, "wfe-clear"]).collect();
        let cleared = json!({"spec": {"clearance": {"reason": "looked", "clearedBy": user}}});
        expect(&mut failures, &format!("{user} clears {name}"), &words, stage.dry_patch_as(user, name, cleared).await?);
    }
    expect(&mut failures, "blocks nothing", &[], stage.delete_dry_as(&writer, "harmless").await?);
    report(&failures)
}

/// The API server checks each object of a collection, although the request names no object.
#[tokio::test]
async fn a_collection_with_what_blocks_is_deleted_by_who_may_clear() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let (writer, clears) = (format!("writer-{own}"), format!("clears-{own}"));
    let collection = json!({"resources": ["workflowexecutions"], "verbs": ["deletecollection"]});
    stage.grant("collections", collection, &[&writer, &clears]).await?;
    bind(&stage, &clears, "wfe-clear", &own).await?;
    failed(&stage, "harmless", "node/worker-1", false).await?;
    failed(&stage, "blocks", &format!("{own}/deployment/api"), true).await?;
    let ask = async || stage.delete_all_dry_as(&writer).await;
    ask_until(IN_FORCE_WITHIN, "the policy is in force", ask, says(POLICY)).await?;
    let refused = stage.delete_all_dry_as(&writer).await?;
    let mut failures = Vec::new();
    let words = [
        POLICY,
        "may not delete WorkflowExecution blocks, which blocks",
        "update workflowexecutions/clearance (group kubernaut.ai)",
        "wfe-clear",
    ];
    expect(&mut failures, "without the right to clear", &words, refused);
    let ask = async || stage.delete_all_dry_as(&clears).await;
    let granted = ask_until(IN_FORCE_WITHIN, "who may clear deletes the collection", ask, Option::is_none).await?;
    expect(&mut failures, "with the right to clear", &[], granted);
    report(&failures)
}

/// The namespace controller deletes everything in a namespace, although it has no permission to clear.
#[tokio::test]
async fn a_namespace_with_what_blocks_goes_away() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let (writer, closer) = (format!("writer-{own}"), format!("closer-{own}"));
    bind(&stage, &writer, "wfe-edit", &own).await?;
    failed(&stage, "own", &format!("{own}/deployment/api"), true).await?;
    failed(&stage, "node", "node/worker-1", true).await?;
    let ask = async || stage.delete_dry_as(&writer, "own").await;
    ask_until(IN_FORCE_WITHIN, "the policy is in force", ask, says(POLICY)).await?;
    let (group, name) = ("rbac.authorization.k8s.io", &closer);
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [own], "verbs": ["delete"]}],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": closer}],
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
    });
    for object in [role, binding] {
        manifests::apply(stage.client(), &object).await?;
    }
    let namespaces: Api<Namespace> = Api::all(stage.client().clone());
    let begun = Instant::now();
    let ask = async || -> Result<_> {
        let mut request = Request::new("/api/v1/namespaces").delete(&own, &DeleteParams::default())?;
        request.headers_mut().insert("Impersonate-User", closer.parse()?);
        refusal(stage.client().request::<Value>(request).await)
    };
    ask_until(GONE_WITHIN, "the closer may delete the namespace", ask, Option::is_none).await?;
    let left = GONE_WITHIN.saturating_sub(begun.elapsed());
    let ask = async || anyhow::Ok(namespaces.get_opt(&own).await?);
    ask_until(left, "the namespace is gone", ask, Option::is_none).await.map(drop)
}

#[tokio::test]
async fn the_policy_on_deletions_fits_the_kind() -> Result<()> {
    expect_no_warnings("deletion").await
}
