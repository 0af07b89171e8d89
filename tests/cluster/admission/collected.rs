//! Which executions the garbage collector may delete, and which users may remove the last finalizer of an execution
//! that blocks its target.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, Request};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use wfe_api::WorkflowExecution;
use wfe_testkit::awaits::ask_until;

use super::deletion::{BEFORE, GONE_WITHIN, IN_FORCE_WITHIN, POLICY, bind, blocked, failed};
use super::objects::{entering, expect, good_but, report, says};
use super::people::Stage;

const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// The collector's user in a cluster whose controllers have no separate credentials.
const MANAGER: &str = "system:kube-controller-manager";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";
/// A time after the end of the test.
const AFTER: &str = "2099-01-01T00:00:00Z";
const HELD: &str = "test.kubernaut.ai/held";
/// How long the collector may take. It discovers new kinds twice a minute.
const COLLECTED_WITHIN: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Creates an execution with finalizers. The execution is deleted while it runs, and then fails with these conditions.
async fn held(stage: &Stage, name: &str, finalizers: &[&str], conditions: Value) -> Result<()> {
    let mut object = good_but("/metadata/name", json!(name))?;
    object["metadata"]["finalizers"] = json!(finalizers);
    object["spec"]["targetResource"] = json!(format!("{}/deployment/api", stage.namespaced.namespace));
    let api = &stage.namespaced.api;
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    stage.namespaced.must(name, entering("Running")).await?;
    api.delete(name, &DeleteParams::default()).await?;
    let mut status = entering("Failed");
    status["conditions"] = conditions;
    stage.namespaced.must(name, status).await
}

/// Creates a stage and a user who may write and delete executions. Waits until the policy and the roles are in force.
/// The execution `own` blocks its target.
async fn set() -> Result<(Stage, String)> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let writer = format!("writer-{own}");
    bind(&stage, &writer, "wfe-edit", &own).await?;
    // In a cluster without separate credentials for its controllers, this user has similar permissions.
    bind(&stage, MANAGER, "wfe-edit", &own).await?;
    failed(&stage, "own", &format!("{own}/deployment/api"), true).await?;
    // RBAC allows the collector everything. The policy therefore refuses the collector by its name.
    stage.await_right(COLLECTOR, "update", "clearance", "own").await?;
    let begun = Instant::now();
    for user in [&writer, COLLECTOR, MANAGER] {
        let (left, what) = (IN_FORCE_WITHIN.saturating_sub(begun.elapsed()), format!("the policy refuses {user}"));
        ask_until(left, &what, async || stage.delete_dry_as(user, "own").await, says(POLICY)).await?;
    }
    Ok((stage, writer))
}

#[tokio::test]
async fn the_garbage_collector_ends_no_block_while_the_namespace_stays() -> Result<()> {
    let (stage, _) = set().await?;
    let own = stage.namespaced.namespace.clone();
    failed(&stage, "harmless", "node/worker-1", false).await?;
    failed(&stage, "node", "node/worker-1", true).await?;
    held(&stage, "held", &[HELD], blocked(true, AFTER)).await?;
    let removed = json!({"metadata": {"finalizers": null}});
    let right = format!("update workflowexecutions/clearance (group kubernaut.ai) in namespace {own}");
    let words = [POLICY, "the garbage collector may not delete", "metadata.ownerReferences", &right, "wfe-clear"];
    let last = [POLICY, "the garbage collector may not remove the last finalizer", &right, "wfe-clear"];
    let mut failures = Vec::new();
    for user in [COLLECTOR, MANAGER] {
        for name in ["own", "node", "held"] {
            expect(&mut failures, &format!("{user} deletes {name}"), &words, stage.delete_dry_as(user, name).await?);
        }
        expect(&mut failures, "the last finalizer", &last, stage.dry_patch_as(user, "held", removed.clone()).await?);
        expect(&mut failures, &format!("{user}, harmless"), &[], stage.delete_dry_as(user, "harmless").await?);
    }
    report(&failures)?;

    let namespaces: Api<Namespace> = Api::all(stage.client().clone());
    namespaces.delete(&own, &DeleteParams::default()).await?;
    let begun = Instant::now();
    // For a moment, the API server may still see the old state of the namespace.
    let ask = async || stage.delete_dry_as(COLLECTOR, "held").await;
    ask_until(GONE_WITHIN, "the collector may delete while the namespace goes", ask, Option::is_none).await?;
    expect(&mut failures, "the namespace goes", &[], stage.dry_patch_as(COLLECTOR, "held", removed.clone()).await?);
    report(&failures)?;
    let patch = Patch::Merge(removed);
    stage.namespaced.api.patch("held", &PatchParams::default(), &patch).await?;
    let left = GONE_WITHIN.saturating_sub(begun.elapsed());
    let ask = async || anyhow::Ok(namespaces.get_opt(&own).await?);
    ask_until(left, "the namespace is gone", ask, Option::is_none).await.map(drop)
}

/// This is not a dry run: the collector of this control plane really deletes.
#[tokio::test]
async fn an_execution_that_blocks_outlives_an_owner_that_is_not_there_until_it_is_cleared() -> Result<()> {
    let (stage, _) = set().await?;
    failed(&stage, "harmless", "node/worker-1", false).await?;
    let api = &stage.namespaced.api;
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f"});
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
    for name in ["own", "harmless"] {
        api.patch(name, &PatchParams::default(), &patch).await?;
    }
    let deadline = Instant::now() + COLLECTED_WITHIN;
    loop {
        let audit = stage.namespaced.control_plane.audit().await?;
        let is_refused = audit.iter().any(|entry| {
            (entry.user.as_str(), entry.verb.as_str(), entry.name.as_str(), entry.code)
                == (COLLECTOR, "delete", "own", 403)
                && entry.namespace == stage.namespaced.namespace
        });
        if is_refused && api.get_opt("harmless").await?.is_none() {
            break;
        }
        ensure!(Instant::now() < deadline, "the collector was refused: {is_refused}");
        tokio::time::sleep(PAUSE).await;
    }
    let left = api.get("own").await?;
    ensure!(left.metadata.deletion_timestamp.is_none(), "{left:#?}");
    stage.namespaced.must("own", json!({"conditions": blocked(false, BEFORE)})).await?;
    let ask = async || anyhow::Ok(api.get_opt("own").await?);
    let rest = deadline.duration_since(Instant::now());
    ask_until(rest, "the collector tries again", ask, Option::is_none).await.map(drop)
}

#[tokio::test]
async fn the_last_finalizer_of_what_blocks_is_removed_by_who_may_clear() -> Result<()> {
    let (stage, writer) = set().await?;
    let own = stage.namespaced.namespace.clone();
    let here = format!("here-{own}");
    bind(&stage, &here, "wfe-edit", &own).await?;
    bind(&stage, &here, "wfe-clear", &own).await?;
    held(&stage, "held", &[HELD], blocked(true, AFTER)).await?;
    held(&stage, "twice", &[HELD, "test.kubernaut.ai/too"], blocked(true, AFTER)).await?;
    held(&stage, "harmless", &[HELD], blocked(false, AFTER)).await?;
    // By the times in their conditions, `before` was deleted before it blocked its target, and `since` afterwards.
    held(&stage, "before", &["foregroundDeletion"], blocked(true, AFTER)).await?;
    held(&stage, "since", &["foregroundDeletion"], blocked(true, BEFORE)).await?;
    let none = json!({"metadata": {"finalizers": null}});
    let alive = json!({"metadata": {"finalizers": [HELD]}});
    stage.namespaced.api.patch("own", &PatchParams::default(), &Patch::Merge(&alive)).await?;
    let ask = async || stage.dry_patch_as(&here, "held", none.clone()).await;
    ask_until(IN_FORCE_WITHIN, "who may clear removes the last finalizer", ask, Option::is_none).await?;
    let right = format!("update workflowexecutions/clearance (group kubernaut.ai) in namespace {own}");
    let refused = [POLICY, "may not remove the last finalizer", "is being deleted", &right, "wfe-clear"];
    let rows: &[(&str, &str, Value, &[&str])] = &[
        (&writer, "held", none.clone(), &refused),
        (&writer, "held", json!({"metadata": {"finalizers": []}}), &refused),
        (&writer, "held", json!({"metadata": {"labels": {"a": "b"}}}), &[]),
        (&writer, "twice", none.clone(), &refused),
        (&writer, "twice", alive, &[]),
        (&writer, "since", none.clone(), &refused),
        (&writer, "harmless", none.clone(), &[]),
        (&writer, "own", none.clone(), &[]),
        (&here, "twice", none.clone(), &[]),
        (&here, "before", none.clone(), &[]),
        (COLLECTOR, "before", none.clone(), &refused),
        (COLLECTOR, "since", none.clone(), &[]),
        (MANAGER, "before", none.clone(), &refused),
        (MANAGER, "since", none.clone(), &[]),
    ];
    let mut failures = Vec::new();
    for (user, name, patch, words) in rows {
        let answer = stage.dry_patch_as(user, name, patch.clone()).await?;
        expect(&mut failures, &format!("{user}, {name}: {patch}"), words, answer);
    }
    report(&failures)?;

    // The operator can still write the status. Such a write does not remove a finalizer, even if it contains that
    // change.
    let url = DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(&own));
    let patch =
        Patch::Merge(json!({"metadata": {"finalizers": null}, "status": {"conditions": blocked(true, BEFORE)}}));
    let mut request = Request::new(url).patch_subresource("status", "held", &PatchParams::default(), &patch)?;
    request.headers_mut().insert("Impersonate-User", OPERATOR.parse()?);
    let written: Value = stage.client().request(request).await?;
    assert_eq!(written["metadata"]["finalizers"], json!([HELD]), "{written:#}");
    Ok(())
}
