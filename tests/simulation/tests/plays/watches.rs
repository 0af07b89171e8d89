//! Watches in virtual time: changes, bookmarks, the end of a watch, and the effect of a compaction on lists and
//! watches.

#![allow(clippy::unwrap_used)] // a test reports an error by panicking

use chrono::DateTime;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use wfe_simulation::service::FakeApi;

/// Returns a server with one namespace, and a client. The server's clock is tokio's time.
async fn furnished() -> (FakeApi, Client) {
    let begun = Instant::now();
    let api = FakeApi::new(1, move || DateTime::UNIX_EPOCH + begun.elapsed());
    let client = api.client();
    let namespace = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    (api, client)
}

async fn make(client: &Client, name: &str) {
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<ConfigMap>::namespaced(client.clone(), "a").create(&PostParams::default(), &object).await.unwrap();
}

fn told(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", object.metadata.name.as_deref().unwrap_or_default()),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(status) => format!("error {}", status.code),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_delivers_changes_and_bookmarks_until_its_time_is_over() {
    let (_, client) = furnished().await;
    let begun = Instant::now();
    let params = WatchParams::default().timeout(150);
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), "a");
    let version = config_maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let events = config_maps.watch(&params, &version).await.unwrap();
    let maker = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(70)).await;
        make(&client, "late").await;
    });
    let told: Vec<String> = events.map_ok(|event| told(&event)).try_collect().await.unwrap();
    maker.await.unwrap();
    assert_eq!(told, ["bookmark", "added late", "bookmark", "bookmark"], "the last one ends it");
    assert_eq!(begun.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn what_is_compacted_has_expired() {
    let (api, client) = furnished().await;
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), "a");
    for name in ["b", "c"] {
        make(&client, name).await;
    }
    let page = config_maps.list(&ListParams::default().limit(1)).await.unwrap().metadata;
    make(&client, "d").await;
    api.with(wfe_simulation::server::Server::compact);
    let (version, token) = (page.resource_version.unwrap(), page.continue_.unwrap());
    let rest = config_maps.list(&ListParams::default().limit(1).continue_token(&token)).await;
    assert!(
        matches!(&rest, Err(kube::Error::Api(status)) if status.code == 410 && status.reason == "Expired"),
        "{rest:?}"
    );
    let events = config_maps.watch(&WatchParams::default(), &version).await.unwrap();
    let told: Vec<String> = events.map_ok(|event| told(&event)).try_collect().await.unwrap();
    assert_eq!(told, ["error 410"]);
}

#[tokio::test(start_paused = true)]
async fn kubes_watcher_follows_the_fake_across_a_compaction() {
    let (api, client) = furnished().await;
    make(&client, "first").await;
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), "a");
    let mut events = watcher::watcher(config_maps, watcher::Config::default().timeout(20)).boxed();
    let mut told = Vec::new();
    for (number, name) in ["second", "third"].into_iter().enumerate() {
        // The watcher first reports the existing objects, and then waits for the object that the test creates.
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(5), events.next()).await {
            told.extend(match event {
                Ok(Event::InitApply(object) | Event::Apply(object)) => object.metadata.name,
                Ok(Event::InitDone) => Some("(listed)".to_owned()),
                Ok(_) => None,
                Err(error) => Some(format!("({error})")),
            });
        }
        make(&client, name).await;
        if number == 1 {
            api.with(wfe_simulation::server::Server::compact);
        }
    }
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(5), events.next()).await {
        if let Ok(Event::InitApply(object) | Event::Apply(object)) = event {
            told.extend(object.metadata.name);
        }
    }
    assert_eq!(told[..3], ["first", "(listed)", "second"].map(str::to_owned));
    assert!(told.contains(&"third".to_owned()), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_makes_up_follows_from_its_seed() {
    let uid = |seed| async move {
        let client = FakeApi::new(seed, || DateTime::UNIX_EPOCH).client();
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
        let request = Request::post("/api/v1/namespaces").body(Body::from(body.to_string().into_bytes())).unwrap();
        let answer = client.send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        let made: Value = serde_json::from_slice(&answer).unwrap();
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    assert_eq!(uid(1).await, uid(1).await);
    assert_ne!(uid(1).await, uid(2).await);
}
