//! Follows the `ConfigMap`. A valid version takes effect at once; an invalid version changes nothing.
//!
//! A broken watch does not change the settings in force. The last valid version stays until the operator sees another
//! version, or sees that the `ConfigMap` is gone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::Uri;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use wfe_core::backoff::Backoff;
use wfe_settings::config::{Document, Flags, InForce, Place, Refused};
use wfe_view::call::CallError;

use super::Page;
use crate::cluster::client::Cluster;
use crate::cluster::watch::stream::{self, Source};
use crate::events::{ConfigVersion, Events, NewEvent};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::process::telemetry::LogLevel;
use crate::verb::Verb;

/// The time-out of the first read of the `ConfigMap`.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// The delays before a failed read or watch is retried.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(10), 6);
/// How long a watch must work without a failure before the next failure counts as the first.
const CALM: Duration = Duration::from_secs(30);
/// How long the first read must be denied before the operator gives up: the API server's caches of roles and bindings
/// take a second or two to fill.
const STANDS_BY: Duration = Duration::from_secs(5);

/// Returns the field selector of the one `ConfigMap`.
fn field(place: &Place) -> String {
    format!("metadata.name={}", place.name)
}

/// Reads the `ConfigMap` once; `None` if it does not exist.
///
/// # Errors
/// The error of the request.
pub(super) async fn read(cluster: &Cluster, place: &Place) -> Result<Option<Document>, CallError> {
    // A list, because it needs the same permission as the later watch.
    let params = ListParams::default().fields(&field(place));
    let found = cluster.call(Verb::List, "configmaps", cluster.config_maps_in(&place.namespace).list(&params)).await?;
    Ok(found.items.into_iter().next().map(Document::of))
}

/// The versions of the `ConfigMap`, from a list and the watch after it.
pub struct Versions {
    events: BoxStream<'static, watcher::Result<Event<ConfigMap>>>,
    /// The `ConfigMap` found so far in a list in progress.
    listed: Option<Document>,
}

impl Versions {
    fn new(cluster: &Cluster, place: &Place) -> Self {
        let (api, fields) = (cluster.config_maps_in(&place.namespace), Some(field(place)));
        let source = Source { api, fields, read: |bytes| serde_json::from_slice(bytes), crds: None };
        Self { events: stream::events(source).boxed(), listed: None }
    }

    /// Waits for the next version of the `ConfigMap`; `None` if it is gone. After an error, the next call resumes at
    /// the same version.
    async fn next(&mut self) -> Result<Option<Document>, CallError> {
        while let Some(event) = self.events.next().await {
            match event.map_err(call_error)? {
                Event::Init => self.listed = None,
                Event::InitApply(object) => self.listed = Some(Document::of(object)),
                Event::InitDone => return Ok(self.listed.take()),
                Event::Apply(object) => return Ok(Some(Document::of(object))),
                Event::Delete(_) => return Ok(None),
            }
        }
        std::future::pending().await // the stream never ends
    }
}

/// Reads the `ConfigMap` before the first decision, and waits if the API server does not answer. Returns the first
/// version, and the source of later ones. `server` is the address of the API server, for the log.
///
/// # Errors
/// If the operator has no permission to read the `ConfigMap`. Starting without it would ignore the settings in it.
pub async fn read_first(
    cluster: &Cluster,
    server: &Uri,
    place: &Place,
    health: &Health,
) -> anyhow::Result<(Option<Document>, Versions)> {
    let begun = Instant::now();
    let (mut attempt, mut logged) = (0_u32, String::new());
    loop {
        attempt = attempt.saturating_add(1);
        let mut versions = Versions::new(cluster, place);
        let error = match timeout(ANSWERS_WITHIN, versions.next()).await {
            Ok(Ok(first)) => {
                health.awaits(None);
                return Ok((first, versions));
            }
            Ok(Err(error)) => error,
            Err(_) => CallError::TimedOut(ANSWERS_WITHIN),
        };
        if error.lacks_right() && begun.elapsed() >= STANDS_BY {
            return Err(error).with_context(|| format!("cannot read {place}, and does not start without it"));
        }
        let wait = RETRY.after(attempt).max(error.retry_after().unwrap_or_default());
        let advice = match &error {
            CallError::TimedOut(_) | CallError::Transport(_) => {
                format!("; check that the API server {server} can be reached")
            }
            CallError::Refused(_) | CallError::NotLeading => String::new(),
        };
        let awaited = format!("cannot read {place}: {error}{advice}");
        // The first failure often lasts only a moment, so a failure is logged only if it repeats, and only once.
        if attempt > 1 && logged != awaited {
            tracing::warn!(%error, "cannot read {place}, which is tried again and again{advice}");
            logged.clone_from(&awaited);
        }
        health.awaits(Some(awaited));
        tokio::time::sleep(wait).await;
    }
}

/// Follows the `ConfigMap` of one operator.
pub struct Follower {
    flags: Flags,
    place: Place,
    /// The settings in force, as the engine receives them.
    in_force: watch::Sender<Arc<InForce>>,
    /// The settings that were in force at the start.
    start: Arc<InForce>,
    /// The uid and the resource version examined last; `None` without a `ConfigMap`.
    newest: Option<(String, String)>,
    is_refused: bool,
    page: Page,
    metrics: Metrics,
    log_level: LogLevel,
}

impl Follower {
    /// Applies the first version.
    ///
    /// # Errors
    /// Why the version is invalid. The process must not start then.
    pub fn begin(
        flags: Flags,
        place: Place,
        first: Option<&Document>,
        page: Page,
        metrics: Metrics,
        log_level: LogLevel,
    ) -> anyhow::Result<Self> {
        let begun = flags.under(&place, first).map_err(|refused| match first {
            Some(document) => anyhow::Error::from(refused)
                .context(format!("{place}, version {}, cannot be used; correct these keys", document.version)),
            None => anyhow::Error::from(refused).context("the flags cannot be used"),
        });
        let start = Arc::new(begun?);
        let (in_force, _) = watch::channel(Arc::clone(&start));
        let newest = first.map(key);
        let follower = Self { flags, place, in_force, start, newest, is_refused: false, page, metrics, log_level };
        follower.show(&follower.start);
        Ok(follower)
    }

    /// Returns the receiver of the settings in force.
    #[must_use]
    pub fn in_force(&self) -> watch::Receiver<Arc<InForce>> {
        self.in_force.subscribe()
    }

    /// Follows the `ConfigMap` until the process ends.
    pub async fn follow(mut self, mut versions: Versions, told: Events) {
        let (mut failures, mut last_failure) = (0_u32, None::<Instant>);
        loop {
            let error = match versions.next().await {
                Ok(document) => {
                    self.take_in(document.as_ref(), &told);
                    continue;
                }
                Err(error) => error,
            };
            let recovered = last_failure.is_none_or(|last| last.elapsed() > CALM);
            failures = if recovered { 1 } else { failures.saturating_add(1) };
            last_failure = Some(Instant::now());
            let wait = RETRY.after(failures);
            // The first failure is often an expired watch, so a failure is logged only if it repeats.
            if failures > 1 {
                tracing::warn!(%error, retry_in = ?wait, "cannot follow {}; what is in force stays", self.place);
            }
            self.page.fail(error.to_string());
            tokio::time::sleep(wait).await;
        }
    }

    /// Applies or refuses a version of the `ConfigMap`.
    fn take_in(&mut self, document: Option<&Document>, told: &Events) {
        let newest = document.map(key);
        if newest == self.newest {
            return;
        }
        self.newest = newest;
        match self.flags.under(&self.place, document) {
            Ok(next) => self.apply(next, document, told),
            Err(refused) => self.refuse(refused, document, told),
        }
    }

    fn apply(&mut self, mut next: InForce, document: Option<&Document>, told: &Events) {
        next.keep_from(&self.start);
        let changes = next.changes_since(&self.in_force.borrow());
        let was_refused = std::mem::take(&mut self.is_refused);
        let next = Arc::new(next);
        // This comes first: settings that are shown as in force must already be in force.
        self.in_force.send_replace(Arc::clone(&next));
        self.show(&next);
        let what = if changes.is_empty() { "no value changes".to_owned() } else { changes.join(", ") };
        let place = &self.place;
        if document.is_some() {
            tracing::info!(version = next.version, changes = what, "{place} is in force");
        } else {
            tracing::info!(changes = what, "{place} is gone: the flags are in force");
        }
        // A change of only labels or annotations of the ConfigMap creates no event.
        if let Some(document) = document.filter(|_| was_refused || !changes.is_empty() || !next.warnings.is_empty()) {
            let note = [vec![what], next.warnings.clone()].concat().join("; ");
            told.announce(NewEvent::config_applied(&id(document, place), format!("in force: {note}")));
        }
    }

    fn refuse(&mut self, refused: Refused, document: Option<&Document>, told: &Events) {
        let in_force = self.in_force.borrow().version.clone();
        let place = &self.place;
        self.is_refused = true;
        self.metrics.config_refused(true);
        tracing::warn!(version = refused.version, in_force, "{place} is refused, nothing changes: {refused}");
        if let Some(document) = document {
            let note = format!("refused, version {in_force} stays in force: {refused}");
            told.announce(NewEvent::config_refused(&id(document, place), note));
        }
        self.page.refuse(refused);
    }

    /// Shows the settings in force, and sets the log level from them.
    fn show(&self, in_force: &Arc<InForce>) {
        self.metrics.config_in_force(&in_force.version);
        self.metrics.config_refused(false);
        self.log_level.set(&in_force.log_filter);
        self.page.apply(Arc::clone(in_force));
        for warning in &in_force.warnings {
            tracing::warn!(version = in_force.version, "{}: {warning}", self.place);
        }
    }
}

/// Identifies a version. The uid distinguishes a `ConfigMap` that was deleted and created again.
fn key(document: &Document) -> (String, String) {
    (document.uid.clone(), document.version.clone())
}

/// Identifies a version of the `ConfigMap` in events.
fn id(document: &Document, place: &Place) -> ConfigVersion {
    ConfigVersion {
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        uid: document.uid.clone(),
        version: document.version.clone(),
    }
}

fn call_error(error: watcher::Error) -> CallError {
    use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => error.into(),
        WatchError(status) => CallError::Refused(status),
        NoResourceVersion => kube::Error::Service("a list without a resourceVersion".into()).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use http_body_util::Full;
    use kube::client::Body;

    use super::*;
    use crate::cluster::leadership::Leadership;
    use crate::cluster::staleness::Staleness;

    #[tokio::test(start_paused = true)]
    async fn a_watch_of_the_config_map_that_ends_as_soon_as_it_has_begun_has_failed() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let list = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#;
            let body = Full::new(bytes::Bytes::from(if is_watch { "" } else { list }));
            Ok::<_, Infallible>(Response::new(body))
        });
        let (leadership, metrics) = (Leadership::without_election(), Metrics::new().unwrap());
        let cluster = Cluster::over(service, "runs", leadership, metrics, Staleness::default());
        let place = Place { namespace: "system".to_owned(), name: "config".to_owned() };
        let mut versions = Versions::new(&cluster, &place);
        assert!(matches!(versions.next().await, Ok(None)), "there is none");
        for _ in 0..3 {
            assert!(matches!(versions.next().await, Err(CallError::Transport(_))), "whoever follows it waits");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_cannot_be_reached_is_named_with_what_to_do() {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let service =
            tower::service_fn(move |_: Request<Body>| async move { Err::<Response<Full<bytes::Bytes>>, _>(refused()) });
        let (leadership, metrics) = (Leadership::without_election(), Metrics::new().unwrap());
        let cluster = Cluster::over(service, "runs", leadership, metrics, Staleness::default());
        let place = Place { namespace: "system".to_owned(), name: "config".to_owned() };
        let (server, health) = (Uri::from_static("https://127.0.0.1:1"), Health::new());
        let first = timeout(Duration::from_mins(1), read_first(&cluster, &server, &place, &health)).await;
        assert!(first.is_err(), "it is tried again and again");
        let awaited = health.ready().unwrap_err();
        assert!(awaited.contains("system/config") && awaited.contains("connection refused"), "{awaited}");
        assert!(awaited.ends_with("; check that the API server https://127.0.0.1:1/ can be reached"), "{awaited}");
    }
}
