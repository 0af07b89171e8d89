//! The fake API server as a synchronous value, without a clock, a runtime or a client.
//!
//! The server follows those rules of kube-apiserver that the operator relies on: versions, conflicts, preconditions,
//! subresources, deletion, selectors, pages, watches. It does not implement authentication, authorization, admission
//! and garbage collection. It answers server-side apply with 415, because the operator does not use it.

mod answer;
mod audit;
mod cause;
mod crd;
mod delete;
mod kind;
mod list;
mod metadata;
mod patch;
mod schema;
mod select;
mod store;
mod target;
mod watch;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;
use wfe_core::Time;

pub use answer::Answer;
pub use audit::{Entry, USER};
pub use kind::Kind;
pub use store::Change;
pub use watch::Watch;

use answer::{bad_request, method_not_allowed, no_resource, not_found, page_not_found, too_large};
use kind::kinds;
use store::Store;
use target::{Part, Query, Target};

/// The largest request body, which is the limit of kube-apiserver.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// The path of CRDs, which are only read by name.
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

/// The reply to a request: an answer, or a watch with events to fetch.
#[derive(Debug)]
pub enum Reply {
    /// The answer.
    Answer(Answer),
    /// An accepted watch: [`Server::events`] returns its events.
    Watch(Watch),
}

/// The objects of a cluster, and the rules by which requests change them.
#[derive(Debug)]
pub struct Server {
    kinds: &'static [Kind],
    store: Store,
    /// The uids of objects that have lost `managedFields`: see [`Schema::is_typed`](schema::Schema::is_typed).
    unmanaged: BTreeSet<String>,
    /// The uids of objects that were neither written nor marked as deleted since their creation. The default values in
    /// their status are not stored yet.
    undefaulted: BTreeSet<String>,
    /// The fields of `WorkflowExecutions` that the CRD lacks at present, such as `status.phase`.
    dropped: Vec<String>,
    /// How often the CRD was changed. Watches from before a change end.
    crd_changes: u64,
    /// Watches that began before this change of the CRD have ended.
    ended_before: u64,
    /// The audit log, if it is kept.
    audit_log: Option<Vec<Entry>>,
}

impl Server {
    /// Creates an empty server. All generated values, such as uids, depend only on the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            kinds: kinds(),
            store: Store::new(seed),
            unmanaged: BTreeSet::new(),
            undefaulted: BTreeSet::new(),
            dropped: Vec::new(),
            crd_changes: 0,
            ended_before: 0,
            audit_log: None,
        }
    }

    /// Answers a request at this time.
    pub fn handle(&mut self, request: &Request<Bytes>, now: Time) -> Reply {
        self.store.now = now;
        let reply = self.route(request, now).unwrap_or_else(Reply::Answer);
        self.audit(request, &reply, now);
        reply
    }

    fn route(&mut self, request: &Request<Bytes>, now: Time) -> Result<Reply, Answer> {
        if request.body().len() > MAX_BODY {
            return Err(too_large(MAX_BODY));
        }
        if let Some(name) = request.uri().path().strip_prefix(CRDS) {
            return crd::named(name, &self.dropped).map(Reply::Answer);
        }
        let target = Target::parse(self.kinds, request.uri().path()).ok_or_else(page_not_found)?;
        if target.part == Part::Missing {
            return Err(no_resource());
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let answer = match (request.method(), &target.name) {
            (&Method::GET, None) if query.is_true("watch") => {
                return self.watch(&target, &query, now).map(Reply::Watch);
            }
            (&Method::GET, None) => self.list(&target, &query)?,
            (&Method::GET, Some(name)) => self.get(&target, name)?,
            (&Method::POST, None) => self.create(&target, &body(request)?, now)?,
            (&Method::PUT, Some(name)) => self.replace(&target, name, body(request)?, now)?,
            (&Method::PATCH, Some(name)) => self.patch(&target, name, media_type(request), request.body(), now)?,
            (&Method::DELETE, Some(name)) => self.delete(&target, name, &query, request.body(), now)?,
            _ => return Err(method_not_allowed()),
        };
        Ok(Reply::Answer(answer))
    }

    fn get(&self, target: &Target, name: &str) -> Result<Answer, Answer> {
        let object = self.store.get(&target.key(name)).ok_or_else(|| not_found(self.kind(target), name))?;
        Ok(Answer::ok(self.shown(target.kind, object)))
    }

    /// Removes these fields from the CRD of executions. Requests notice the change at once. Earlier watches deliver the
    /// changed objects until [`end_watches_of_old_crds`](Self::end_watches_of_old_crds).
    pub fn drop_fields(&mut self, fields: &[String]) {
        self.dropped = fields.to_vec();
        self.crd_changes += 1;
    }

    /// Ends the watches that began before the last change of the CRD.
    pub fn end_watches_of_old_crds(&mut self) {
        self.ended_before = self.crd_changes;
    }

    /// Returns an object as the API server shows it, without the fields that the CRD lacks.
    fn shown(&self, kind: usize, object: &Value) -> Value {
        let mut shown = object.clone();
        if self.drops_of(kind) {
            crd::drop(&mut shown, &self.dropped);
        }
        shown
    }

    fn drops_of(&self, kind: usize) -> bool {
        !self.dropped.is_empty() && self.kinds[kind].plural == "workflowexecutions"
    }

    fn kind(&self, target: &Target) -> &Kind {
        &self.kinds[target.kind]
    }

    /// Returns the revision of the newest change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Returns the changes that are not compacted yet, oldest first.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.store.changes()
    }

    /// Keeps all further changes, even after a compaction, and all further requests.
    pub fn keep_records(&mut self) {
        self.store.keep_archive();
        self.audit_log.get_or_insert_default();
    }

    /// Returns the kept changes, oldest first, each with the kind of its object. Without
    /// [`keep_records`](Self::keep_records) there are none.
    pub fn archive(&self) -> impl Iterator<Item = (&Kind, &Change)> {
        self.store.archive().iter().map(|change| (&self.kinds[change.key.kind], change))
    }

    /// Returns the revision of the newest kept change to an object of any kind except this one, or 0.
    #[must_use]
    pub fn newest_change_but_of(&self, plural: &str) -> u64 {
        let newest = self.store.archive().iter().rev().find(|change| self.kinds[change.key.kind].plural != plural);
        newest.map_or(0, |change| change.revision)
    }

    /// Returns the changes after a revision, oldest first. `None` if some of them are compacted, or if the revision is
    /// in the future.
    #[must_use]
    pub fn changes_after(&self, revision: u64) -> Option<impl Iterator<Item = &Change>> {
        let is_known = (self.store.compacted()..=self.store.revision()).contains(&revision);
        is_known.then(|| self.store.changes_after(revision))
    }

    /// Returns all objects, by kind, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.store.objects()
    }

    /// Returns the kind of an object; `None` if the server does not know the kind.
    #[must_use]
    pub fn kind_of(&self, object: &Value) -> Option<&Kind> {
        self.kinds.iter().find(|kind| object["kind"] == kind.kind && object["apiVersion"] == kind.api_version())
    }

    /// Forgets all changes so far, as etcd does every few minutes. Earlier lists and watches expire.
    pub fn compact(&mut self) {
        self.store.compact(self.store.revision());
    }
}

fn media_type(request: &Request<Bytes>) -> &str {
    let header = request.headers().get(http::header::CONTENT_TYPE);
    header.and_then(|value| value.to_str().ok()).unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

fn body(request: &Request<Bytes>) -> Result<Value, Answer> {
    let object: Value = serde_json::from_slice(request.body())
        .map_err(|error| bad_request(&format!("the body of the request is not JSON: {error}")))?;
    if object.is_object() { Ok(object) } else { Err(bad_request("the body of the request is no object")) }
}
