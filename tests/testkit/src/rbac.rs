//! The shipped RBAC (`config/rbac/*.yaml`), bound in the namespaces of one test.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::assets::repository;
use crate::awaits::ask_until;
use crate::manifests;
use crate::rights::{self, Right};

/// The shipped name of the operator's service account.
pub(crate) const OPERATOR: &str = "wfe-operator";

/// The shipped namespace of the operator.
pub(crate) const SYSTEM: &str = "kubernaut-system";

/// The roles that are always bound for the whole cluster. Namespaces, admission policies and CRDs are cluster-scoped.
/// Targets, and executions that the operator reads by name, may be in any namespace.
const EVERYWHERE: [&str; 5] = [
    "wfe-operator-crds",
    "wfe-operator-namespaces",
    "wfe-operator-owners",
    "wfe-operator-policies",
    "wfe-operator-targets",
];

/// The one `ConfigMap` that the operator may read.
const CONFIG_MAP: &str = "workflowexecution-config";

const IN_FORCE_WITHIN: Duration = Duration::from_secs(10);

/// The namespaces of the shipped objects in a world.
#[derive(Debug, Clone)]
pub(crate) struct Places<'a> {
    pub(crate) world: &'a str,
    pub(crate) watched: &'a str,
    /// `None` if the namespace must not exist. Nothing is then bound in it.
    pub(crate) execution: Option<&'a str>,
    pub(crate) system: &'a str,
    pub(crate) all_namespaces: bool,
}

impl<'a> Places<'a> {
    /// Returns the namespace for a role or its binding: the namespace of the operator, or the execution namespace.
    fn of_role(&self, object: &Value) -> Option<&'a str> {
        if object["metadata"]["namespace"] == SYSTEM { Some(self.system) } else { self.execution }
    }
}

/// Returns the operator's RBAC for one world, as a checkout of the repository contains it.
pub(crate) fn shipped_to(checkout: &Path, places: &Places<'_>) -> Result<Vec<Value>> {
    let shipped = manifests::read(&checkout.join("config/rbac"))?;
    for kind in ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] {
        ensure!(shipped.iter().any(|object| object["kind"] == kind), "config/rbac holds no {kind}");
    }
    let to_world = |object: Value| {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        retarget(object, &kind, places)
    };
    Ok(shipped.into_iter().filter_map(to_world).collect())
}

/// Waits until the API server's authorizer has seen the bindings. Otherwise it could refuse an operator at its start.
pub(crate) async fn await_in_force(client: &Client, user: &str, places: &Places<'_>) -> Result<()> {
    // One right from each binding.
    let mut rights = vec![
        (Some(places.watched), "kubernaut.ai", "workflowexecutions", None),
        (None, "", "namespaces", None),
        (Some(places.system), "", "configmaps", Some(CONFIG_MAP)),
    ];
    rights.extend(places.execution.map(|namespace| (Some(namespace), "tekton.dev", "pipelineruns", None)));
    for (namespace, group, resource, name) in rights {
        let right = Right { verb: "watch".to_owned(), group: group.to_owned(), resource: resource.to_owned() };
        await_review(client, user, (namespace, name), &right, true).await?;
    }
    let (verb, group, resource) = ("get".to_owned(), "kubernaut.ai".to_owned(), "workflowexecutions".to_owned());
    await_review(client, user, (None, None), &Right { verb, group, resource }, true).await?;
    let right =
        Right { verb: "create".to_owned(), group: "coordination.k8s.io".to_owned(), resource: "leases".to_owned() };
    await_review(client, user, (Some(places.system), None), &right, true).await
}

/// Applies each shipped role that contains this right, with the right (`given`) or without it. Waits until the change
/// is in force.
pub(crate) async fn set(client: &Client, user: &str, places: &Places<'_>, right: &Right, given: bool) -> Result<()> {
    let mut found = false;
    for object in manifests::read(&repository().join("config/rbac"))? {
        if !rights::rights_of(&object).contains(right) {
            continue;
        }
        found = true;
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let namespace = match (kind.as_str(), object["metadata"]["name"].as_str()) {
            ("Role", _) => places.of_role(&object),
            (_, Some(name)) if EVERYWHERE.contains(&name) => None,
            _ if places.all_namespaces => None,
            _ => Some(places.watched),
        };
        let name = rights::name_of(&object, right);
        let object = if given { object } else { rights::without(object, right) };
        let Some(object) = retarget(object, &kind, places) else { continue };
        manifests::apply(client, &object).await?;
        await_review(client, user, (namespace, name.as_deref()), right, given).await?;
    }
    ensure!(found, "config/rbac does not give: {right}");
    Ok(())
}

/// Waits until the API server's authorizer grants or denies a right to a user. The right applies to one namespace (or
/// to all), and to the object of this name (or to all objects).
pub(crate) async fn await_review(
    client: &Client,
    user: &str,
    (namespace, name): (Option<&str>, Option<&str>),
    right: &Right,
    allowed: bool,
) -> Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
        "user": user,
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": {
            "namespace": namespace,
            "name": name,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "name": name,
            "verb": right.verb,
        },
    }}))?;
    let what = format!("{right}: {user} in {}: allowed = {allowed}", namespace.unwrap_or("the cluster"));
    let ask = async || anyhow::Ok(reviews.create(&PostParams::default(), &review).await?);
    let is = |answer: &SubjectAccessReview| answer.status.as_ref().is_some_and(|status| status.allowed == allowed);
    ask_until(IN_FORCE_WITHIN, &what, ask, is).await.map(drop)
}

fn is_everywhere(role: &Value) -> bool {
    EVERYWHERE.iter().any(|name| role == name)
}

/// Moves a shipped object into the world. A cluster-wide binding becomes a binding for the watched namespace, unless
/// the operator watches all namespaces or the role is always bound for the whole cluster.
fn retarget(mut object: Value, kind: &str, places: &Places<'_>) -> Option<Value> {
    let cluster_name = |name: &Value| json!(format!("{}-{}", name.as_str().unwrap_or_default(), places.world));
    match kind {
        "ServiceAccount" => object["metadata"]["namespace"] = json!(places.system),
        "Role" => object["metadata"]["namespace"] = json!(places.of_role(&object)?),
        "RoleBinding" => {
            object["metadata"]["namespace"] = json!(places.of_role(&object)?);
            // Another world may share the execution namespace.
            object["metadata"]["name"] = cluster_name(&object["metadata"]["name"]);
        }
        "ClusterRole" => object["metadata"]["name"] = cluster_name(&object["metadata"]["name"]),
        "ClusterRoleBinding" if places.all_namespaces || is_everywhere(&object["roleRef"]["name"]) => {
            object["metadata"]["name"] = cluster_name(&object["metadata"]["name"]);
        }
        "ClusterRoleBinding" => {
            object["kind"] = json!("RoleBinding");
            object["metadata"]["namespace"] = json!(places.watched);
        }
        _ => (),
    }
    if object["roleRef"]["kind"] == "ClusterRole" {
        object["roleRef"]["name"] = cluster_name(&object["roleRef"]["name"]);
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        subject["namespace"] = json!(places.system);
    }
    Some(object)
}
