//! Which users may change the owners of executions and schedules. The garbage collector deletes objects whose owners no
//! longer exist.

use anyhow::Result;
use kube::Resource as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, Request};
use serde_json::{Value, json};
use wfe_api::{WorkflowExecution, WorkflowSchedule};
use wfe_testkit::awaits::ask_until;

use super::deletion::{IN_FORCE_WITHIN, bind};
use super::objects::{Refusal, expect, good, good_but, refusal, report, says};
use super::people::{Stage, expect_no_warnings};

const POLICY: &str = "owner.workflowexecutions.kubernaut.ai";

/// Tries to merge a patch into the metadata as this user, as a dry run.
async fn patch_as(stage: &Stage, user: &str, kind: &ApiResource, metadata: &Value) -> Result<Refusal> {
    let url = DynamicObject::url_path(kind, Some(&stage.namespaced.namespace));
    let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": metadata}));
    let mut request = Request::new(url).patch("nightly", &dry_run, &patch)?;
    request.headers_mut().insert("Impersonate-User", user.parse()?);
    refusal(stage.client().request::<DynamicObject>(request).await)
}

fn owners(names: &[&str]) -> Value {
    let owner = |name| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": format!("uid-{name}")});
    json!({"ownerReferences": names.iter().map(owner).collect::<Vec<_>>()})
}

#[tokio::test]
async fn owners_are_changed_by_who_may_delete_the_object() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let own = stage.namespaced.namespace.clone();
    let (patcher, deleter) = (format!("patcher-{own}"), format!("deleter-{own}"));
    let rule = json!({"resources": ["workflowexecutions", "workflowschedules"], "verbs": ["get", "patch"]});
    stage.grant("patches", rule, &[&patcher]).await?;
    bind(&stage, &deleter, "wfe-edit", &own).await?;
    let target = json!(format!("{own}/deployment/api"));
    let kinds = [
        ("workflowexecutions", ApiResource::erase::<WorkflowExecution>(&())),
        ("workflowschedules", ApiResource::erase::<WorkflowSchedule>(&())),
    ];
    let execution = good_but("/metadata/name", json!("nightly"))?;
    let schedule = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "metadata": {"name": "nightly"},
        "spec": {"interval": "1h", "suspend": true, "template": {"spec": {
            "workflowRef": good()["spec"]["workflowRef"], "targetResource": target,
        }}},
    });
    let mut failures = Vec::new();
    for ((plural, kind), object) in kinds.iter().zip([execution, schedule]) {
        // The owner exists, so the collector does not delete the object.
        let api: Api<DynamicObject> = Api::namespaced_with(stage.client().clone(), &own, kind);
        let maps = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(stage.client().clone(), &own);
        let map = json!({"metadata": {"name": plural}});
        let map = maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?;
        let mut owned = object.clone();
        owned["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": plural, "uid": map.metadata.uid}]);
        api.create(&PostParams::default(), &serde_json::from_value(owned.clone())?).await?;

        let added = owners(&["gone"]);
        let ask = async || {
            let denied = patch_as(&stage, &patcher, kind, &added).await?;
            anyhow::Ok((denied, patch_as(&stage, &deleter, kind, &added).await?))
        };
        let is = |(denied, given): &(Refusal, Refusal)| says(POLICY)(denied) && given.is_none();
        ask_until(IN_FORCE_WITHIN, "policy and roles are in force", ask, is).await?;
        let right = format!("ask for the right to delete {plural} (group kubernaut.ai) in namespace {own}");
        let refused = [POLICY, "metadata.ownerReferences: ", &patcher, &right, "wfe-edit"];
        let same = json!({"ownerReferences": owned["metadata"]["ownerReferences"]});
        let mut holding = same.clone();
        holding["ownerReferences"][0]["controller"] = json!(true);
        let rows: &[(&str, &Value, &[&str])] = &[
            (&patcher, &added, &refused),
            (&patcher, &owners(&["gone", "too"]), &refused),
            (&patcher, &json!({"ownerReferences": null}), &refused),
            (&patcher, &holding, &refused),
            (&patcher, &json!({"labels": {"a": "b"}}), &[]),
            (&patcher, &same, &[]),
            (&deleter, &added, &[]),
            (&deleter, &json!({"ownerReferences": null}), &[]),
        ];
        for (user, metadata, words) in rows {
            let answer = patch_as(&stage, user, kind, metadata).await?;
            expect(&mut failures, &format!("{plural}: {user}, {metadata}"), words, answer);
        }
    }
    report(&failures)
}

#[tokio::test]
async fn the_policy_on_owners_fits_the_kinds() -> Result<()> {
    expect_no_warnings("owner").await
}
