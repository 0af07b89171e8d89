//! The shipped RBAC (`config/rbac/*.yaml`), bound for one test: the rules as they are, in the test's own namespaces.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::assets::repository;
use crate::manifests;

/// The operator's service account, as it is shipped.
pub(crate) const OPERATOR: &str = "wfe-operator";

/// The role on namespaces: cluster-scoped objects, so that only a `ClusterRoleBinding` grants it.
const NAMESPACES: &str = "wfe-operator-namespaces";

const IN_FORCE_WITHIN: Duration = Duration::from_secs(10);

/// Where the shipped objects go.
#[derive(Debug, Clone)]
pub(crate) struct Places<'a> {
    pub(crate) world: &'a str,
    pub(crate) watched: &'a str,
    /// None: it is not to exist, so nothing can be bound in it.
    pub(crate) execution: Option<&'a str>,
    pub(crate) system: &'a str,
    pub(crate) all_namespaces: bool,
}

/// Applies the shipped RBAC for one world. Returns the cluster-scoped objects that it made, as `kind/name`.
pub(crate) async fn apply(client: &Client, places: &Places<'_>) -> Result<Vec<String>> {
    let shipped = manifests::read(&repository().join("config/rbac"))?;
    let mut made = Vec::new();
    let mut seen = Vec::new();
    for object in shipped {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        seen.push(kind.clone());
        let Some(object) = retarget(object, &kind, places) else { continue };
        if matches!(object["kind"].as_str(), Some("ClusterRole" | "ClusterRoleBinding")) {
            made.push(format!(
                "{}/{}",
                object["kind"].as_str().unwrap_or_default().to_lowercase(),
                object["metadata"]["name"].as_str().unwrap_or_default()
            ));
        }
        manifests::apply(client, &object).await?;
    }
    for kind in ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] {
        ensure!(seen.iter().any(|one| one == kind), "config/rbac holds no {kind}");
    }
    Ok(made)
}

/// Waits until the API server's authorizer has seen the bindings, so that an operator is not refused at its start.
pub(crate) async fn await_in_force(client: &Client, user: &str, places: &Places<'_>) -> Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    // One right of each binding.
    let mut rights = vec![(Some(places.watched), "kubernaut.ai", "workflowexecutions"), (None, "", "namespaces")];
    rights.extend(places.execution.map(|namespace| (Some(namespace), "tekton.dev", "pipelineruns")));
    let deadline = Instant::now() + IN_FORCE_WITHIN;
    for (namespace, group, resource) in rights {
        let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
            "user": user,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {"namespace": namespace, "group": group, "resource": resource, "verb": "watch"},
        }}))?;
        loop {
            let answer = reviews.create(&PostParams::default(), &review).await?;
            if answer.status.is_some_and(|status| status.allowed) {
                break;
            }
            let place = namespace.unwrap_or("the cluster");
            ensure!(Instant::now() < deadline, "the shipped RBAC does not let {user} watch {resource} in {place}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}

/// Moves a shipped object into the world. A cluster-wide binding becomes one for the watched namespace, unless the
/// operator is to watch all, or the role is the one that only a cluster-wide binding grants.
fn retarget(mut object: Value, kind: &str, places: &Places<'_>) -> Option<Value> {
    let cluster_name = |name: &Value| json!(format!("{}-{}", name.as_str().unwrap_or_default(), places.world));
    match kind {
        "ServiceAccount" => object["metadata"]["namespace"] = json!(places.system),
        "Role" | "RoleBinding" => object["metadata"]["namespace"] = json!(places.execution?),
        "ClusterRole" => object["metadata"]["name"] = cluster_name(&object["metadata"]["name"]),
        "ClusterRoleBinding" if places.all_namespaces || object["roleRef"]["name"] == NAMESPACES => {
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
