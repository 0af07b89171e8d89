//! The watches. A watch converts each arriving object to a small record, and delivers the record.
//!
//! [`stream`] requests lists and changes, and starts again if it missed something. A list counts as complete only when
//! the watch after it is accepted: a user with permission to list but not to watch would see no changes.

mod page;
pub(crate) mod stream;

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval};
use wfe_core::backoff::Backoff;
use wfe_core::name::Uid;
use wfe_view::error_chain::with_causes;
use wfe_view::index::{Delivery, Kind};
use wfe_view::partial::PartialObject;
use wfe_view::read::read;

use crate::cluster::crds::Crds;
use crate::cluster::staleness::Staleness;
use crate::health::Health;
use crate::metrics::Metrics;
use stream::Source;

/// How long a watch must work without a failure before the next failure counts as the first: longer than the longest
/// wait between two retries.
const CALM: Duration = Duration::from_secs(30);
/// How often a watch checks whether it has been silent for too long.
const SILENCE_CHECK: Duration = Duration::from_secs(1);
/// The delays before a broken watch is retried: short after the first failure, then up to ten seconds.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(10), 6);
/// The delays before the watch of schedules is retried: their CRD may not be installed for days. Shorter than [`CALM`].
const RETRY_SCHEDULES: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(20), 7);

/// One watch.
#[derive(Clone)]
pub struct Watch {
    /// The kind of object.
    pub kind: Kind,
    /// The resource that is watched.
    pub api: Api<PartialObject>,
    /// The namespace of all runs.
    pub execution_namespace: String,
    /// How long the watch may be silent before it starts again.
    pub max_staleness: Duration,
    /// Where the watch reports that it works or fails.
    pub health: Health,
    /// Where the watch records that it delivered something.
    pub staleness: Staleness,
    /// Checks whether the CRD has the fields that are read.
    pub crds: Crds,
    /// Counts objects that could not be read.
    pub metrics: Metrics,
}

impl Watch {
    /// Follows the resource until the receiver is dropped.
    pub async fn follow(self, deliveries: mpsc::Sender<Delivery>) {
        let mut failures = Failures::default();
        // Each new turn begins with a list, which is a live read.
        while let Turn::Silent = self.follow_once(&deliveries, &mut failures).await {
            tracing::warn!(resource = self.kind.label(), silent_for = ?self.max_staleness, "watch silent, begun anew");
        }
    }

    async fn follow_once(&self, deliveries: &mpsc::Sender<Delivery>, failures: &mut Failures) -> Turn {
        let crds = Some((self.crds.clone(), self.kind));
        let source = Source { api: self.api.clone(), fields: None, read: PartialObject::from_bytes, crds };
        let mut events = stream::events(source).boxed();
        let mut check = interval(SILENCE_CHECK);
        let mut accepted = self.staleness.acceptance(self.kind);
        let mut listed = false;
        // Each turn has its own time limit. The staleness of the view is measured from the last delivery.
        let begun = Instant::now();
        loop {
            let event = tokio::select! {
                // A fixed order, so that a simulation can repeat a watch exactly.
                biased;
                event = events.try_next() => event,
                _ = accepted.changed() => {
                    self.health.watch_delivered(self.kind);
                    if std::mem::take(&mut listed) && deliveries.send(Delivery::ListEnds(self.kind)).await.is_err() {
                        return Turn::Over; // the engine has stopped
                    }
                    continue;
                }
                _ = check.tick() => {
                    let silence = self.staleness.silence(self.kind);
                    if silence.min(begun.elapsed()) > self.max_staleness {
                        return Turn::Silent;
                    }
                    // Bookmarks produce no event here. If the watch was heard after its last failure, it works again.
                    if failures.last.is_some_and(|failed| self.staleness.is_heard_since(self.kind, failed)) {
                        self.health.watch_delivered(self.kind);
                    }
                    continue;
                }
            };
            match event {
                Ok(Some(event)) => {
                    // This event is announced before any request is sent, so it proves nothing about the API server.
                    if !matches!(event, Event::Init) {
                        self.health.watch_delivered(self.kind);
                        self.staleness.heard(self.kind);
                    }
                    if matches!(event, Event::InitDone) {
                        accepted.mark_unchanged();
                    }
                    // A change may arrive before the acceptance of its watch is seen. A new list replaces the last
                    // list.
                    let was_listed = std::mem::replace(&mut listed, matches!(event, Event::InitDone));
                    if was_listed
                        && !matches!(event, Event::Init)
                        && deliveries.send(Delivery::ListEnds(self.kind)).await.is_err()
                    {
                        return Turn::Over;
                    }
                    let Some(delivery) = self.delivery(event) else { continue };
                    if deliveries.send(delivery).await.is_err() {
                        return Turn::Over; // the engine has stopped
                    }
                }
                Ok(None) => return Turn::Over, // the stream never ends
                Err(error) => {
                    // If the watch was accepted before it failed, the list before it is complete.
                    let is_complete = accepted.has_changed().unwrap_or(false) && std::mem::take(&mut listed);
                    if is_complete && deliveries.send(Delivery::ListEnds(self.kind)).await.is_err() {
                        return Turn::Over;
                    }
                    self.wait_after(&error, failures).await;
                }
            }
        }
    }

    async fn wait_after(&self, error: &watcher::Error, failures: &mut Failures) {
        // A successful list between two failures does not count as recovery: a watch that always expires at once would
        // list all the time.
        let recovered = failures.last.is_none_or(|last| last.elapsed() > CALM);
        failures.count = if recovered { 1 } else { failures.count.saturating_add(1) };
        failures.last = Some(Instant::now());
        let advice = advice(self.kind, error);
        let error = said(error);
        self.health.watch_failed(self.kind, format!("{error}; {advice}"));
        let wait = if self.kind == Kind::Schedule { RETRY_SCHEDULES } else { RETRY }.after(failures.count);
        // The first failure is often an expired watch, so an error is logged only if it repeats.
        if failures.count > 1 && self.health.is_news(self.kind, &error) {
            tracing::warn!(resource = self.kind.label(), %error, "watch failed, and is begun again and again: {advice}");
        } else {
            tracing::debug!(resource = self.kind.label(), %error, retry_in = ?wait, "watch interrupted");
        }
        tokio::time::sleep(wait).await;
    }

    /// Converts an event of the watch to a delivery; `None` for an object that the operator ignores.
    fn delivery(&self, event: Event<PartialObject>) -> Option<Delivery> {
        let kind = self.kind;
        let (object, is_change, deleted) = match event {
            Event::Init => return Some(Delivery::ListBegins(kind)),
            Event::InitDone => return None, // delivered when a watch follows the list
            Event::InitApply(object) => (object, false, false),
            Event::Apply(object) => (object, true, false),
            Event::Delete(object) => (object, true, true),
        };
        let PartialObject { object, is_cut } = object;
        if is_cut {
            self.metrics.object_cut(kind);
            let meta = &object.metadata;
            let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
            tracing::warn!(
                resource = kind.label(),
                namespace,
                name,
                "a part of this object cannot be read; the rest counts"
            );
        }
        let uid = Uid::new(object.metadata.uid.as_deref()?);
        if !deleted {
            // An object that lost our labels counts as deleted. In a list such an object is skipped, and the end of the
            // list has the same effect.
            let strayed = || is_change.then(|| gone(kind, uid, None));
            return read(kind, &object, &self.execution_namespace).or_else(strayed);
        }
        let last = match kind {
            Kind::Execution | Kind::Namespace | Kind::Schedule => None,
            Kind::Run | Kind::TaskRun | Kind::CustomRun | Kind::Pod => read(kind, &object, &self.execution_namespace),
        };
        Some(gone(kind, uid, last))
    }
}

/// Makes the delivery of a deleted object, with its last version if that was read.
fn gone(kind: Kind, uid: Uid, last: Option<Delivery>) -> Delivery {
    match (kind, last) {
        (Kind::Execution, _) => Delivery::ExecutionDeleted(uid),
        (Kind::Run, Some(Delivery::Run(_, last))) => Delivery::RunDeleted(uid, Some(last)),
        (Kind::Run, _) => Delivery::RunDeleted(uid, None),
        (Kind::Namespace, _) => Delivery::NamespaceDeleted(uid),
        (Kind::Schedule, _) => Delivery::ScheduleDeleted(uid),
        (Kind::TaskRun | Kind::CustomRun | Kind::Pod, Some(Delivery::Descendant(_, last))) => {
            Delivery::DescendantDeleted(kind, uid, Some(last))
        }
        (Kind::TaskRun | Kind::CustomRun | Kind::Pod, _) => Delivery::DescendantDeleted(kind, uid, None),
    }
}

/// How often in a row a watch has failed.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

/// How a turn of a watch ended.
enum Turn {
    /// The receiver was dropped.
    Over,
    /// The watch was silent for too long.
    Silent,
}

/// Returns the answer of the API server to a failed request, if there was one.
fn answer(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

/// Describes a failure in the API server's words if there are any, because kube's text repeats the whole answer.
fn said(error: &watcher::Error) -> String {
    let message = answer(error).map(|status| status.message.trim()).filter(|message| !message.is_empty());
    message.map_or_else(|| with_causes(error), str::to_owned)
}

/// Returns advice about a failing watch.
fn advice(kind: Kind, error: &watcher::Error) -> &'static str {
    let (watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause)) = error else {
        return advice_on(kind, error);
    };
    if stream::is_unfit(cause) { "it is tried again" } else { advice_on(kind, error) }
}

fn advice_on(kind: Kind, error: &watcher::Error) -> &'static str {
    let code = answer(error).map_or(0, |status| status.code);
    match (code, kind) {
        (404, Kind::Execution | Kind::Schedule) => "install the CRD: wfe-operator crd | kubectl apply -f -",
        (404, Kind::Run | Kind::TaskRun | Kind::CustomRun) => "install Tekton Pipelines in this cluster",
        (401, _) => "the credentials are not accepted: check KUBECONFIG, or the pod's service account",
        (403, Kind::Execution | Kind::Schedule) => "give the operator the ClusterRole of config/rbac",
        (403, Kind::Namespace) => "give the operator the ClusterRole for namespaces of config/rbac",
        (403, _) => "make the execution namespace and give the operator the Role of config/rbac in it",
        (0, _) => "check that the API server can be reached",
        _ => "it is tried again",
    }
}

#[cfg(test)]
mod tests;
