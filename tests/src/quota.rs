//! A quota that allows no objects.

use anyhow::Result;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::json;
use wfe_testkit::World;
use wfe_testkit::awaits::{DEADLINE, ask_until};

/// Sets a quota of zero, and waits until admission enforces it, which happens later than the quota's status says.
pub async fn quota_of_none(world: &World, what: &str, resource: &ApiResource) -> Result<()> {
    let namespace = world.execution_namespace();
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client(), &namespace);
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {what: "0"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    let counts = |quota: Option<&ResourceQuota>| quota.is_some_and(|quota| quota.status.is_some());
    kube::runtime::wait::await_condition(quotas, "none", counts).await?;

    let probe = DynamicObject::new("probe", resource)
        .data(json!({"spec": {"containers": [{"name": "probe", "image": "test.invalid/probe"}]}}));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let api = world.api(resource, &namespace);
    let is = |answer: &kube::Result<_>| matches!(answer, Err(kube::Error::Api(refusal)) if refusal.code == 403);
    ask_until(DEADLINE, "the quota is enforced", async || Ok(api.create(&dry_run, &probe).await), is).await.map(drop)
}
