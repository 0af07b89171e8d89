//! The fault proxy in front of the real API server.

use anyhow::Result;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use wfe_testkit::{Fault, Outcome, Pipeline, Proxy, Refusal, World};

#[tokio::test]
async fn an_operator_behind_a_proxy_works_with_its_own_rights() -> Result<()> {
    let world = World::new("proxied").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let operator = world.operator().through(&proxy).start().await?;
    world.wfe("plain").image(&bundle).create().await?;
    world.await_phase("plain", "Completed").await?;
    world.await_event("plain", "WorkflowCompleted").await?;
    operator.terminate().await?;

    let log = proxy.requests();
    assert!(log.iter().all(|passed| passed.answered.is_some_and(|code| code < 300)), "{log:#?}");
    let writes = log.iter().filter(|passed| passed.request.is_write()).count();
    let audit = world.audit().await?;
    let user = world.operator_user();
    assert_eq!(writes, audit.iter().filter(|entry| entry.user == user && entry.is_write()).count());
    world.close().await
}

#[tokio::test]
async fn a_refusal_is_understood_by_kubes_client() -> Result<()> {
    let world = World::new("refusing").await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let mut kubeconfig = Kubeconfig::read_from(world.control_plane().kubeconfig())?;
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(proxy.url());
    }
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(Client::try_from(config)?, world.namespace());
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 0);
    for (refusal, retry_after) in [(Refusal::throttled(7), Some(7)), (Refusal::conflict(), None)] {
        let code = refusal.code;
        proxy.on(move |_| Fault::Refuse(refusal.clone()));
        match pods.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, code);
                assert_eq!(status.details.map(|details| details.retry_after_seconds), retry_after);
            }
            other => panic!("{other:?}"),
        }
    }
    world.close().await
}
