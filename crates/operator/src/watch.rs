//! The two watches: they read each object once, at the edge, and send the small record on.
//!
//! Lists are paged (500 objects at a time); disconnects, expired versions and restarts are kube's watcher's business.
//! A watch that brings nothing is renewed after two minutes, so that a connection that died silently is noticed.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;
use wfe_core::backoff::Backoff;
use wfe_core::name::Uid;
use wfe_core::run::Order;

use crate::health::Health;
use crate::index::{Delivery, Kind};
use crate::observe::observe_execution;

/// How long one watch request lasts, in seconds. kube gives a silent connection five seconds more before it is renewed:
/// below the three minutes after which a view counts as stale (SPEC section 5, 10).
const WATCH_SECONDS: u32 = 120;
/// How many objects a page of a list holds: a few megabytes at the most, as the API server's own clients do.
const PAGE: u32 = 500;
/// How fast a broken watch is tried again: at once for a hiccup, never more often than every ten seconds for long.
const RETRY: Backoff = Backoff { base: Duration::from_millis(200), max: Duration::from_secs(10), max_exponent: 6 };

/// Follows one resource until the receiver is gone.
pub async fn follow(kind: Kind, api: Api<DynamicObject>, deliveries: mpsc::Sender<Delivery>, health: Health) {
    let mut config = watcher::Config::default().page_size(PAGE).timeout(WATCH_SECONDS);
    if kind == Kind::Run {
        config = config.labels(wfe_api::labels::LABEL_WORKFLOW_EXECUTION);
    }
    let mut events = watcher::watcher(api, config).boxed();
    let mut failures: u32 = 0;
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                // The beginning of a list is announced before anything has been asked.
                if !matches!(event, Event::Init) {
                    failures = 0;
                    health.watch_delivered(kind);
                }
                let Some(delivery) = delivery(kind, event) else { continue };
                if deliveries.send(delivery).await.is_err() {
                    return; // the engine has stopped
                }
            }
            Ok(None) => return, // kube's watcher never ends
            Err(error) => {
                failures = failures.saturating_add(1);
                let advice = advice(kind, &error);
                health.watch_failed(kind, format!("{error}; {advice}"));
                let wait = RETRY.after(failures);
                // The first failure is often an expired watch: worth a line only when it goes on.
                if failures > 1 {
                    tracing::warn!(resource = kind.label(), %error, retry_in = ?wait, "watch failed: {advice}");
                } else {
                    tracing::debug!(resource = kind.label(), %error, "watch interrupted");
                }
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Says what a person can do about a watch that fails.
fn advice(kind: Kind, error: &watcher::Error) -> &'static str {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    match (code, kind) {
        (404, Kind::Execution) => "install the CRD: wfe-operator crd | kubectl apply -f -",
        (404, Kind::Run) => "install Tekton Pipelines in this cluster",
        (401, _) => "the credentials are not accepted: check KUBECONFIG, or the pod's service account",
        (403, Kind::Execution) => "give the operator the ClusterRole of config/rbac",
        (403, Kind::Run) => "make the execution namespace and give the operator the Role of config/rbac in it",
        (0, _) => "check that the API server can be reached",
        _ => "it is tried again",
    }
}

/// Reads what the watch brought; `None` for an object that is not ours to know.
fn delivery(kind: Kind, event: Event<DynamicObject>) -> Option<Delivery> {
    match (event, kind) {
        (Event::Init, _) => Some(Delivery::ListBegins(kind)),
        (Event::InitDone, _) => Some(Delivery::ListEnds(kind)),
        (Event::InitApply(object) | Event::Apply(object), Kind::Execution) => {
            observe_execution(&object).map(|record| Delivery::Execution(Box::new(record)))
        }
        (Event::InitApply(object) | Event::Apply(object), Kind::Run) => {
            // The index gives the order: it alone knows what came before.
            let (chain, run) = wfe_tekton::observe_run(&object.metadata, &object.data, Order(0))?;
            Some(Delivery::Run(chain, Box::new(run)))
        }
        (Event::Delete(object), Kind::Execution) => {
            Some(Delivery::ExecutionDeleted(Uid::new(object.metadata.uid.as_deref()?)))
        }
        (Event::Delete(object), Kind::Run) => Some(Delivery::RunDeleted(Uid::new(object.metadata.uid.as_deref()?))),
    }
}
