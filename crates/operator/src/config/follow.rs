//! Follows the `ConfigMap`: each version that can be used is in force at once, one that cannot changes nothing.
//!
//! What is in force survives a watch that breaks: the last good version stays until another one is seen, or that there
//! is none any more.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;
use tokio::time::Instant;
use wfe_core::backoff::Backoff;

use super::{Document, Flags, InForce, Page, Place, Refused};
use crate::cli::RunArgs;
use crate::client::{CallError, Cluster, Verb};
use crate::events::{Announcement, Events};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::telemetry::LogLevel;

/// How long one watch request lasts, in seconds: no longer does a connection that died silently go unnoticed.
const WATCH_SECONDS: u32 = 120;
/// How fast a read or a watch that failed is tried again.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(10), 6);
/// How long a watch must have gone without failing before the next failure counts as the first.
const CALM: Duration = Duration::from_secs(30);
/// How long an API server must go on denying the first read before that is believed: its caches of roles and bindings
/// take a second or two to fill.
const STANDS_BY: Duration = Duration::from_secs(5);

impl Place {
    /// Returns where the flags say that it is.
    #[must_use]
    pub fn of(args: &RunArgs) -> Self {
        Self { namespace: args.namespace.clone(), name: args.config_map.clone() }
    }

    fn field(&self) -> String {
        format!("metadata.name={}", self.name)
    }
}

/// Reads the `ConfigMap` as it is now; `None` where there is none.
///
/// # Errors
/// Whatever the request brought instead of an answer.
pub(super) async fn read(cluster: &Cluster, place: &Place) -> Result<Option<Document>, CallError> {
    // A list, as it takes the same right as the watch.
    let params = ListParams::default().fields(&place.field());
    let found = cluster.call(Verb::List, "configmaps", cluster.config_maps_in(&place.namespace).list(&params)).await?;
    Ok(found.items.into_iter().next().map(Document::of))
}

/// Reads the `ConfigMap` before anything is decided, and waits for an API server that does not answer.
///
/// # Errors
/// When the operator may not read it: to go on would be to run by other values than somebody has set.
pub async fn read_first(cluster: &Cluster, place: &Place, health: &Health) -> anyhow::Result<Option<Document>> {
    let begun = Instant::now();
    for attempt in 1.. {
        let error = match read(cluster, place).await {
            Ok(found) => {
                health.awaits(None);
                return Ok(found);
            }
            Err(error) => error,
        };
        if error.lacks_right() && begun.elapsed() >= STANDS_BY {
            return Err(error).with_context(|| format!("cannot read {place}, and does not start without what it says"));
        }
        let wait = RETRY.after(attempt).max(error.retry_after().unwrap_or_default());
        health.awaits(Some(format!("cannot read {place}: {error}")));
        if attempt > 1 {
            tracing::warn!(%error, retry_in = ?wait, "cannot read {place}");
        }
        tokio::time::sleep(wait).await;
    }
    Ok(None) // not before four thousand million tries
}

/// Follows the `ConfigMap` of one operator.
pub struct Follower {
    flags: Flags,
    place: Place,
    /// What is in force, as the engine sees it.
    in_force: watch::Sender<Arc<InForce>>,
    /// What was in force at the start.
    start: Arc<InForce>,
    /// The uid and the version that were looked at last; none where there was no object.
    newest: Option<(String, String)>,
    is_refused: bool,
    page: Page,
    metrics: Metrics,
    log_level: LogLevel,
}

impl Follower {
    /// Puts the first version in force.
    ///
    /// # Errors
    /// Why it cannot be used: the process is not to start.
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
                .context(format!("{place}, version {}, cannot be used; correct or delete it", document.version)),
            None => anyhow::Error::from(refused).context("the flags cannot be used"),
        });
        let start = Arc::new(begun?);
        let (in_force, _) = watch::channel(Arc::clone(&start));
        let newest = first.map(Document::key);
        let follower = Self { flags, place, in_force, start, newest, is_refused: false, page, metrics, log_level };
        follower.show(&follower.start);
        Ok(follower)
    }

    /// Returns what is in force, now and later.
    #[must_use]
    pub fn in_force(&self) -> watch::Receiver<Arc<InForce>> {
        self.in_force.subscribe()
    }

    /// Follows the `ConfigMap` for as long as the process lives.
    pub async fn follow(mut self, cluster: Cluster, told: Events) {
        let config = watcher::Config::default().fields(&self.place.field()).timeout(WATCH_SECONDS);
        let mut events = watcher::watcher(cluster.config_maps_in(&self.place.namespace), config).boxed();
        let mut listed = None;
        let (mut failures, mut last_failure) = (0_u32, None::<Instant>);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed = None,
                Ok(Event::InitApply(object)) => listed = Some(Document::of(object)),
                Ok(Event::InitDone) => self.take_in(listed.take(), &told),
                Ok(Event::Apply(object)) => self.take_in(Some(Document::of(object)), &told),
                Ok(Event::Delete(_)) => self.take_in(None, &told),
                Err(error) => {
                    failures = if last_failure.is_none_or(|last| last.elapsed() > CALM) { 1 } else { failures + 1 };
                    last_failure = Some(Instant::now());
                    let (error, wait) = (said(&error), RETRY.after(failures));
                    // The first failure is often an expired watch: worth a line only when it goes on.
                    if failures > 1 {
                        tracing::warn!(%error, retry_in = ?wait, "cannot follow {}; what is in force stays", self.place);
                    }
                    self.page.fail(error);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// Takes in what the `ConfigMap` is now.
    fn take_in(&mut self, document: Option<Document>, told: &Events) {
        let key = document.as_ref().map(Document::key);
        if key == self.newest {
            return;
        }
        self.newest = key;
        match self.flags.under(&self.place, document.as_ref()) {
            Ok(next) => self.apply(next, document.as_ref(), told),
            Err(refused) => self.refuse(refused, document.as_ref(), told),
        }
    }

    fn apply(&mut self, mut next: InForce, document: Option<&Document>, told: &Events) {
        next.keep_from(&self.start);
        let changes = next.changes_since(&self.in_force.borrow());
        let was_refused = std::mem::take(&mut self.is_refused);
        let next = Arc::new(next);
        self.show(&next);
        let what = if changes.is_empty() { "no value changes".to_owned() } else { changes.join(", ") };
        let place = &self.place;
        match document {
            Some(_) => tracing::info!(version = next.version, changes = what, "{place} is in force"),
            None => tracing::info!(changes = what, "{place} is gone: the flags are in force"),
        }
        // A label or an annotation of the ConfigMap is worth no event.
        if let Some(document) = document.filter(|_| was_refused || !changes.is_empty() || !next.warnings.is_empty()) {
            let note = [vec![what], next.warnings.clone()].concat().join("; ");
            told.announce(Announcement::config_applied(&document.id(place), format!("in force: {note}")));
        }
        // Last: whoever sees its effect finds the rest told.
        self.in_force.send_replace(next);
    }

    fn refuse(&mut self, refused: Refused, document: Option<&Document>, told: &Events) {
        let in_force = self.in_force.borrow().version.clone();
        let place = &self.place;
        self.is_refused = true;
        self.metrics.config_refused(true);
        tracing::warn!(version = refused.version, in_force, "{place} is refused, nothing changes: {refused}");
        if let Some(document) = document {
            let note = format!("refused, version {in_force} stays in force: {refused}");
            told.announce(Announcement::config_refused(&document.id(place), note));
        }
        self.page.refuse(refused);
    }

    /// Shows what is in force from now on, and logs as it says.
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

impl Document {
    /// Tells two versions apart, also when the object was deleted and made again.
    fn key(&self) -> (String, String) {
        (self.uid.clone(), self.version.clone())
    }
}

/// Says what is wrong, in the API server's words where it has any, and what to do about a right that is missing.
fn said(error: &watcher::Error) -> String {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => CallError::Refused(status.clone()).to_string(),
        other => other.to_string(),
    }
}
