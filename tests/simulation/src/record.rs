//! The record of one play. Every request of a replica goes into a hash, and into a line if lines are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::plan::Millis;

/// The record of a play. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Record(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    hash: Sha256,
    requests: u64,
    decisions: u64,
    /// How many requests were writes, except those of the Lease.
    writes: u64,
    /// One line for each request, if lines are kept.
    lines: Option<Vec<String>>,
    /// How many times each kind of fault affected a request.
    struck: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
    /// The runs with a patch that did not reach the API server, by namespace and name. The value is the HTTP status
    /// that the replica got.
    unpatched: BTreeMap<(String, String), u16>,
    /// The views of the first and of the last decision, by target.
    views: BTreeMap<String, (View, View)>,
    /// When the last decision on each target asks for the next decision.
    wakes: BTreeMap<String, Instant>,
}

/// What a decision on a target has seen: each object with its version.
pub(crate) type View = BTreeSet<String>;

/// How many violations of one play are kept. One is enough to fail, and a few more help to find the cause.
const MAX_VIOLATIONS: usize = 20;

impl Record {
    /// Creates a record that keeps a line for each request, or only their hash.
    #[must_use]
    pub fn new(keep_lines: bool) -> Self {
        let kept = Kept { lines: keep_lines.then(Vec::new), ..Kept::default() };
        Self(Arc::new(Mutex::new(kept)))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request of a replica.
    pub(crate) fn sent(&self, at: Millis, replica: u8, parts: &Parts, body: &Bytes) {
        let mut kept = self.kept();
        kept.requests += 1;
        kept.writes += u64::from(parts.method != http::Method::GET && !parts.uri.path().contains("/leases"));
        let line = format!("{at} {replica} {} {}", parts.method, parts.uri);
        kept.hash.update(line.as_bytes());
        kept.hash.update(b"\n");
        kept.hash.update(body);
        kept.hash.update(b"\n");
        if let Some(lines) = &mut kept.lines {
            lines.push(format!("{line} {}", String::from_utf8_lossy(body)));
        }
    }

    /// Returns the number of writes, except those to the Lease.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.kept().writes
    }

    /// Records a decision on a target, and when the replica asks for the next decision.
    pub(crate) fn decided(&self, target: &str, wake: Option<Instant>) {
        let mut kept = self.kept();
        kept.decisions += 1;
        match wake {
            Some(wake) => drop(kept.wakes.insert(target.to_owned(), wake)),
            None => drop(kept.wakes.remove(target)),
        }
    }

    /// Returns whether a decision on any target is due within this time. If so, something may change without an event.
    pub(crate) fn wakes_within(&self, span: Duration) -> bool {
        let now = Instant::now();
        self.kept().wakes.values().any(|wake| (now..now + span).contains(wake))
    }

    /// Records a patch of a run that did not reach the API server, and is therefore missing in the server's log.
    pub(crate) fn kept_from_server(&self, parts: &Parts, code: u16) {
        let path: Vec<&str> = parts.uri.path().split('/').collect();
        if parts.method == http::Method::PATCH
            && let [.., "namespaces", namespace, "pipelineruns", name] = &*path
        {
            self.kept().unpatched.insert(((*namespace).to_owned(), (*name).to_owned()), code);
        }
    }

    /// Returns the runs with a patch that did not reach the API server, by namespace and name.
    pub(crate) fn unpatched_runs(&self) -> BTreeMap<(String, String), u16> {
        self.kept().unpatched.clone()
    }

    /// Records what a decision has seen.
    pub(crate) fn viewed(&self, target: &str, view: View) {
        let mut kept = self.kept();
        if let Some((_, last)) = kept.views.get_mut(target) {
            *last = view;
        } else {
            kept.views.insert(target.to_owned(), (view.clone(), view));
        }
    }

    /// Returns what the first and the last decision have seen, by target.
    pub(crate) fn views(&self) -> BTreeMap<String, (View, View)> {
        self.kept().views.clone()
    }

    /// Returns the number of decisions.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.kept().decisions
    }

    /// Records that a fault has affected something.
    pub(crate) fn struck(&self, label: &'static str) {
        *self.kept().struck.entry(label).or_default() += 1;
    }

    /// Records a violation.
    pub(crate) fn broken(&self, what: impl Into<String>) {
        let mut kept = self.kept();
        if kept.violations.len() < MAX_VIOLATIONS {
            kept.violations.push(what.into());
        }
    }

    /// Returns the number of requests, and their hash in hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> (u64, String) {
        let kept = self.kept();
        let digest = kept.hash.clone().finalize();
        let hex = digest.iter().take(8).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}"); // writing to a String never fails
            hex
        });
        (kept.requests, hex)
    }

    /// Removes and returns the lines.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.kept().lines.take().unwrap_or_default()
    }

    /// Returns how many times each kind of fault affected something.
    #[must_use]
    pub fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.kept().struck.clone()
    }

    /// Returns the violations.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.kept().violations.clone()
    }
}
