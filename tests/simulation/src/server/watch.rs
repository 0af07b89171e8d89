//! Watches: the changes after a revision, bookmarks, and the end of a watch.

use chrono::TimeDelta;
use serde_json::{Value, json};
use wfe_core::Time;

use super::Server;
use super::answer::{Answer, bad_request, expired};
use super::select::Selector;
use super::store::Change;
use super::target::{Query, Target};

/// How long a watch without a time-out lasts, which is half of kube-apiserver's minimum.
const DEFAULT_SECONDS: u64 = 900;
/// The longest duration of a watch, which is longer than a test lasts in virtual time.
const MAX_SECONDS: u64 = 86_400;
/// How often the real server sends a bookmark to a watch that requests bookmarks.
const BOOKMARK_EVERY: TimeDelta = TimeDelta::seconds(60);

/// A watch: its selector and its progress.
#[derive(Clone, Debug)]
pub struct Watch {
    target: Target,
    selector: Selector,
    /// The revision up to which changes were delivered.
    revision: u64,
    /// Whether all existing objects are delivered first.
    initial: bool,
    bookmarks: bool,
    next_bookmark: Time,
    until: Time,
    over: bool,
    /// How many times the CRD had been changed when the watch began.
    crd_changes: u64,
}

impl Watch {
    /// Returns the time at which the watch sends a bookmark or ends, even without a change.
    #[must_use]
    pub fn wake(&self) -> Time {
        if self.bookmarks { self.next_bookmark.min(self.until) } else { self.until }
    }

    /// Returns whether the watch has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }
}

impl Server {
    pub(super) fn watch(&self, target: &Target, query: &Query, now: Time) -> Result<Watch, Answer> {
        let version = query.text("resourceVersion").unwrap_or("0");
        let version: u64 = version.parse().map_err(|_| bad_request("invalid resource version"))?;
        let seconds = query.number("timeoutSeconds").filter(|seconds| *seconds > 0);
        let seconds = seconds.unwrap_or(DEFAULT_SECONDS).min(MAX_SECONDS);
        Ok(Watch {
            target: target.clone(),
            selector: Selector::parse(query)?,
            revision: if version == 0 { self.store.revision() } else { version },
            initial: version == 0,
            bookmarks: query.is_true("allowWatchBookmarks"),
            next_bookmark: now + BOOKMARK_EVERY,
            until: now + TimeDelta::seconds(i64::try_from(seconds).unwrap_or(i64::MAX)),
            over: false,
            crd_changes: self.crd_changes,
        })
    }

    /// Returns the events that are due by now, in order. None follow after the end of the watch.
    pub fn events(&self, watch: &mut Watch, now: Time) -> Vec<Value> {
        if watch.over {
            return Vec::new();
        }
        if self.kinds[watch.target.kind].plural == "workflowexecutions" && watch.crd_changes < self.ended_before {
            watch.over = true;
            return Vec::new();
        }
        let prefix = watch.target.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let mut events = Vec::new();
        if std::mem::take(&mut watch.initial) {
            let all = self.store.all_at(watch.target.kind, watch.revision);
            let selected =
                all.iter().filter(|(path, object)| path.starts_with(&prefix) && watch.selector.selects(object));
            events.extend(
                selected.map(|(_, object)| json!({"type": "ADDED", "object": self.shown(watch.target.kind, object)})),
            );
        }
        if watch.revision < self.store.compacted() {
            watch.over = true;
            let (asked, oldest) = (watch.revision, self.store.compacted());
            let status = expired(&format!("too old resource version: {asked} ({oldest})")).body;
            events.push(json!({"type": "ERROR", "object": status}));
            return events;
        }
        for change in self.store.changes_after(watch.revision) {
            if change.key.kind == watch.target.kind && change.key.path.starts_with(&prefix) {
                events.extend(event(&watch.selector, change).map(|mut event| {
                    event["object"] = self.shown(watch.target.kind, &event["object"]);
                    event
                }));
            }
        }
        watch.revision = watch.revision.max(self.store.revision());
        watch.over = now >= watch.until;
        if watch.bookmarks && now >= watch.wake() {
            watch.next_bookmark = now + BOOKMARK_EVERY;
            let kind = self.kind(&watch.target);
            let metadata = json!({"resourceVersion": watch.revision.to_string(), "creationTimestamp": null});
            let object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
            events.push(json!({"type": "BOOKMARK", "object": object}));
        }
        events
    }
}

/// Returns the event for a change in a watch with this selector. An object that is no longer selected counts as
/// deleted.
fn event(selector: &Selector, change: &Change) -> Option<Value> {
    let was = change.was.as_deref().filter(|was| selector.selects(was));
    let is = change.is.as_deref().filter(|is| selector.selects(is));
    match (was, is) {
        (None, Some(is)) => Some(json!({"type": "ADDED", "object": is})),
        (Some(_), Some(is)) => Some(json!({"type": "MODIFIED", "object": is})),
        (Some(was), None) => {
            let mut last = was.clone();
            last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
            Some(json!({"type": "DELETED", "object": last}))
        }
        (None, None) => None,
    }
}
