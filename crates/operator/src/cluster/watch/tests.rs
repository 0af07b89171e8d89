use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;

use super::*;
use crate::cluster::client::Cluster;
use crate::cluster::leadership::Leadership;

const LIST: &str = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#;
const BOOKMARK: &str = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"6\"}}}\n";

/// Returns the shipped CRD with this name, or an empty list.
fn answer(path: &str) -> Bytes {
    let name = path.rsplit('/').next();
    let crd = wfe_api::crds().into_iter().find(|crd| crd.metadata.name.as_deref() == name);
    crd.map_or(Bytes::from(LIST), |crd| serde_json::to_vec(&crd).unwrap().into())
}

/// Counts the watches that are requested within two minutes. Each watch is accepted, delivers `brings`, and ends
/// without an error after `lasts`.
async fn watches_within_two_minutes(kind: Kind, lasts: Duration, brings: &'static str) -> usize {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = answer(request.uri().path());
        counted.fetch_add(usize::from(is_watch), Ordering::Relaxed);
        let body = stream::once(async move {
            if is_watch {
                tokio::time::sleep(lasts).await;
            }
            Ok::<_, Infallible>(Frame::data(if is_watch { Bytes::from(brings) } else { answer }))
        });
        async { Ok::<_, Infallible>(Response::new(StreamBody::new(body))) }
    });
    let (metrics, staleness) = (Metrics::new().unwrap(), Staleness::default());
    let cluster = Cluster::over(service, "runs", Leadership::without_election(), metrics.clone(), staleness.clone());
    let watch = Watch {
        kind,
        api: cluster.watched(kind, None),
        execution_namespace: "runs".to_owned(),
        max_staleness: Duration::from_mins(3),
        health: Health::new(),
        staleness,
        crds: Crds::new(cluster.clone(), Health::new(), metrics.clone()),
        metrics,
    };
    let (sender, mut deliveries) = mpsc::channel(16);
    let taken_in = async { while deliveries.recv().await.is_some() {} };
    let both = async { tokio::join!(watch.follow(sender), taken_in) };
    assert!(tokio::time::timeout(Duration::from_mins(2), both).await.is_err(), "a watch never ends");
    asked.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_as_soon_as_it_has_begun_is_asked_for_again_with_the_backoff_of_a_failure() {
    for kind in Kind::ALL {
        for brings in ["", BOOKMARK] {
            let asked = watches_within_two_minutes(kind, Duration::from_millis(1), brings).await;
            assert!((10..=20).contains(&asked), "{asked} watches of {} in two minutes", kind.label());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_its_own_time_is_asked_for_again_at_once() {
    let asked = watches_within_two_minutes(Kind::Pod, Duration::from_secs(31), "").await;
    assert_eq!(asked, 4, "one in thirty-one seconds, and none waited");
}
