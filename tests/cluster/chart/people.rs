//! A person with only one of the roles for people can do what the role's name says, and nothing else. The authorizer
//! and real requests both prove it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{World, manifests, wfe};

const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const RESOURCES: [&str; 9] = [
    "workflowexecutions",
    "workflowexecutions/status",
    "workflowexecutions/cancellation",
    "workflowexecutions/clearance",
    "workflowexecutions/recovery",
    "workflowexecutions/target",
    "workflowschedules",
    "workflowschedules/status",
    "workflowschedules/child",
];

const VIEW: &[&str] = &[
    "get workflowexecutions",
    "list workflowexecutions",
    "watch workflowexecutions",
    "get workflowschedules",
    "list workflowschedules",
    "watch workflowschedules",
];
const EDIT: &[&str] = &[
    "get workflowexecutions",
    "list workflowexecutions",
    "watch workflowexecutions",
    "create workflowexecutions",
    "patch workflowexecutions",
    "delete workflowexecutions",
    "get workflowschedules",
    "list workflowschedules",
    "watch workflowschedules",
    "create workflowschedules",
    "patch workflowschedules",
    "delete workflowschedules",
];
/// What the administrator of a namespace may also grant to other users.
const ADMIN: &[&str] = &[
    "get workflowexecutions",
    "list workflowexecutions",
    "watch workflowexecutions",
    "create workflowexecutions/target",
    "get workflowschedules",
    "list workflowschedules",
    "watch workflowschedules",
];
const TARGET: &[&str] = &["create workflowexecutions/target"];
const TARGET_ANY: &[&str] = &["create workflowexecutions/target", "create workflowexecutions/recovery"];
const CANCEL: &[&str] =
    &["get workflowexecutions", "patch workflowexecutions", "update workflowexecutions/cancellation"];
const CLEAR: &[&str] = &[
    "get workflowexecutions",
    "patch workflowexecutions",
    "update workflowexecutions/clearance",
    "create workflowexecutions/recovery",
    "get workflowschedules",
    "patch workflowschedules",
];

/// The cluster roles with their permissions on executions and schedules. The subject of each has the same name. The
/// cluster's own roles have no prefix, and ours are aggregated to them.
const ROLES: [(&str, &[&str]); 9] = [
    ("wfe-view", VIEW),
    ("wfe-edit", EDIT),
    ("wfe-target", TARGET),
    ("wfe-target-any", TARGET_ANY),
    ("wfe-cancel", CANCEL),
    ("wfe-clear", CLEAR),
    ("view", VIEW),
    ("edit", VIEW),
    ("admin", ADMIN),
];

/// Checks each role. Requires the execution `first` and the failed execution `broken`.
pub(super) async fn each_role_gives_what_its_name_says(world: &World) -> Result<()> {
    for (role, _) in ROLES {
        let group = "rbac.authorization.k8s.io";
        // The failure was on a node, and its clearance therefore requires the permission in the whole cluster.
        let (kind, namespace) = match role {
            "wfe-clear" => ("ClusterRoleBinding", None),
            _ => ("RoleBinding", Some(world.namespace())),
        };
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": group, "kind": "User", "name": role}],
        });
        manifests::apply(&world.client(), &binding).await?;
    }
    for (role, expected) in ROLES {
        await_rights(world, role, expected).await?;
    }
    who_may_view_changes_nothing(world).await?;
    who_may_edit_asks_and_takes_back(world).await?;
    who_may_clear_vouches_for_what_failed(world).await
}

/// Waits until the cluster's own roles include the permissions of `wfe-edit`, or no longer include them. A value of the
/// chart decides this.
pub(super) async fn edit_is_aggregated(world: &World, aggregated: bool) -> Result<()> {
    await_rights(world, "edit", if aggregated { EDIT } else { VIEW }).await?;
    let admin: BTreeSet<&str> = ADMIN.iter().chain(if aggregated { EDIT } else { &[] }).copied().collect();
    await_rights(world, "admin", &admin.into_iter().collect::<Vec<_>>()).await?;
    await_rights(world, "view", VIEW).await
}

/// Checks that the group `sre` from a value of the chart may read what the person on call reads, and may do no more.
pub(super) async fn the_people_on_call_read_and_change_nothing(world: &World) -> Result<()> {
    let [runs, system] = ["kubernaut-workflows", "kubernaut-system"];
    for (verb, group, resource, namespace, expected) in [
        ("list", "kubernaut.ai", "workflowexecutions", "", true),
        ("get", "", "pods/log", runs, true),
        ("get", "", "pods/log", system, true),
        ("get", "", "pods/log", world.namespace(), false),
        ("patch", "kubernaut.ai", "workflowexecutions", "", false),
        ("list", "", "secrets", runs, false),
        ("create", "", "pods/portforward", system, false),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = serde_json::from_value(json!({"spec": {"user": "jo", "groups": ["sre"], "resourceAttributes": {
            "namespace": namespace, "group": group, "resource": resource, "subresource": subresource, "verb": verb,
        }}}))?;
        let reviews: Api<SubjectAccessReview> = Api::all(world.client());
        let ask = async || anyhow::Ok(reviews.create(&PostParams::default(), &review).await?);
        let is = |answer: &SubjectAccessReview| answer.status.as_ref().is_some_and(|it| it.allowed == expected);
        let what = format!("{verb} {resource}/{subresource} in {namespace:?}: {expected}");
        ask_until(IN_FORCE_WITHIN, &what, ask, is).await?;
    }
    Ok(())
}

/// Waits until a user has these permissions, and no others.
async fn await_rights(world: &World, user: &str, expected: &[&str]) -> Result<()> {
    let expected: BTreeSet<String> = expected.iter().map(|right| (*right).to_owned()).collect();
    let what = format!("{user} may {expected:?} and nothing else");
    ask_until(IN_FORCE_WITHIN, &what, async || rights(world, user).await, |given| *given == expected).await.map(drop)
}

/// Asks the authorizer for a user's permissions on executions and schedules.
async fn rights(world: &World, user: &str) -> Result<BTreeSet<String>> {
    let reviews: Api<SubjectAccessReview> = Api::all(world.client());
    let mut rights = BTreeSet::new();
    for right in RESOURCES {
        let (resource, subresource) = right.split_once('/').unwrap_or((right, ""));
        for verb in VERBS {
            let review = serde_json::from_value(json!({"spec": {"user": user, "resourceAttributes": {
                "namespace": world.namespace(), "group": "kubernaut.ai", "resource": resource,
                "subresource": subresource, "verb": verb,
            }}}))?;
            let answer = reviews.create(&PostParams::default(), &review).await?;
            if answer.status.is_some_and(|status| status.allowed) {
                rights.insert(format!("{verb} {right}"));
            }
        }
    }
    Ok(rights)
}

async fn who_may_view_changes_nothing(world: &World) -> Result<()> {
    let api = executions_as(world, "wfe-view").await?;
    ensure!(!api.list(&ListParams::default()).await?.items.is_empty(), "sees nothing");
    api.get("first").await?;
    let another = serde_json::from_value(world.wfe("another").json())?;
    refused("create", api.create(&PostParams::default(), &another).await)?;
    refused("patch", patch(&api, "first", json!({"metadata": {"labels": {"seen": "yes"}}})).await)?;
    refused("delete", api.delete("first", &DeleteParams::default()).await)
}

async fn who_may_edit_asks_and_takes_back(world: &World) -> Result<()> {
    let api = executions_as(world, "wfe-edit").await?;
    let elsewhere = serde_json::from_value(world.wfe("elsewhere").target("node/theirs").json())?;
    refused("workflowexecutions/target", api.create(&PostParams::default(), &elsewhere).await)?;
    let own = format!("{}/deployment/theirs", world.namespace());
    let theirs = serde_json::from_value(world.wfe("theirs").target(&own).json())?;
    api.create(&PostParams::default(), &theirs).await?;
    let recovery = world.wfe("recovery").target(&own).patch(|wfe| wfe["spec"]["recoveryOf"] = json!("broken"));
    let recovery = serde_json::from_value(recovery.json())?;
    refused("workflowexecutions/recovery", api.create(&PostParams::default(), &recovery).await)?;
    patch(&api, "theirs", json!({"metadata": {"labels": {"ticket": "1"}}})).await?;
    let cancellation = json!({"spec": {"cancellation": {"reason": "why", "requestedBy": "wfe-edit"}}});
    refused("may not cancel this WorkflowExecution", patch(&api, "theirs", cancellation).await)?;
    refused("may not clear this WorkflowExecution", patch(&api, "broken", clearance("wfe-edit")).await)?;
    let status = Patch::Merge(json!({"status": {"phase": "Skipped"}}));
    refused("workflowexecutions/status", api.patch_status("theirs", &PatchParams::default(), &status).await)?;
    api.delete("theirs", &DeleteParams::default()).await?;
    Ok(())
}

async fn who_may_clear_vouches_for_what_failed(world: &World) -> Result<()> {
    let api = executions_as(world, "wfe-clear").await?;
    refused("list", api.list(&ListParams::default()).await)?;
    let another = serde_json::from_value(world.wfe("another").json())?;
    refused("create", api.create(&PostParams::default(), &another).await)?;
    refused("delete", api.delete("broken", &DeleteParams::default()).await)?;
    refused("must be your own user name", patch(&api, "broken", clearance("somebody")).await)?;
    refused("may be set only on an execution that is Failed", patch(&api, "first", clearance("wfe-clear")).await)?;
    patch(&api, "broken", clearance("wfe-clear")).await?;
    assert_eq!(api.get("broken").await?.data["spec"]["clearance"]["clearedBy"], "wfe-clear");
    Ok(())
}

fn clearance(by: &str) -> Value {
    json!({"spec": {"clearance": {"reason": "looked", "clearedBy": by}}})
}

async fn patch(api: &Api<DynamicObject>, name: &str, patch: Value) -> kube::Result<DynamicObject> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Checks that the API server refused a request with these words.
pub(super) fn refused<T>(words: &str, answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) && status.message.contains(words) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("was not refused: {words}"),
    }
}

/// Returns an API for the world's executions that impersonates this user.
async fn executions_as(world: &World, user: &str) -> Result<Api<DynamicObject>> {
    let mut kubeconfig = Kubeconfig::read_from(world.control_plane().kubeconfig())?;
    for one in &mut kubeconfig.auth_infos {
        one.auth_info.get_or_insert_default().impersonate = Some(user.to_owned());
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Api::namespaced_with(Client::try_from(config)?, world.namespace(), &wfe::resource()))
}
