//! The author of each write: from the audit log, by the resourceVersion or the uid of the answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::Options;
use crate::history::text;
use crate::input::Request;
use crate::report::Moment;

/// The writers of a recording.
#[derive(Debug)]
pub(crate) struct Authors<'a> {
    /// By the resourceVersion of what was written. A write that changed nothing answers with the version that was
    /// there.
    writers: BTreeMap<u64, BTreeSet<&'a str>>,
    /// By the uid of what was deleted.
    deleters: BTreeMap<&'a str, BTreeSet<&'a str>>,
    operators: &'a BTreeSet<String>,
    silent: Vec<&'a str>,
    bodiless: usize,
}

impl<'a> Authors<'a> {
    pub(crate) fn read(requests: &'a [Request], options: &'a Options) -> Self {
        let mut authors = Self {
            writers: BTreeMap::new(),
            deleters: BTreeMap::new(),
            operators: &options.operators,
            silent: Vec::new(),
            bodiless: 0,
        };
        for request in requests.iter().filter(|request| request.is_write() && request.succeeded()) {
            if let Some(version) = request.resource_version {
                authors.writers.entry(version).or_default().insert(&request.user);
            }
            if request.verb == "delete" {
                let uid = text(&request.response, "/details/uid").or_else(|| text(&request.response, "/metadata/uid"));
                authors.deleters.entry(uid.unwrap_or_default()).or_default().insert(&request.user);
            }
            if authors.is_operator(&request.user) && is_judged_by_body(request) && !request.has_bodies() {
                authors.bodiless += 1;
            }
        }
        if !requests.is_empty() {
            let seen: BTreeSet<&str> = requests.iter().map(|request| request.user.as_str()).collect();
            authors.silent = options.operators.iter().map(String::as_str).filter(|user| !seen.contains(user)).collect();
        }
        authors
    }

    pub(crate) fn is_operator(&self, user: &str) -> bool {
        self.operators.contains(user)
    }

    /// Returns whether it is known that somebody other than an operator made this write.
    pub(crate) fn is_strangers(&self, write: Moment) -> bool {
        self.writers.get(&write.resource_version).is_some_and(|users| self.are_strangers(users))
    }

    /// Returns whether it is known that an operator, and nobody else, made this write.
    pub(crate) fn is_operators(&self, write: Moment) -> bool {
        let users = self.writers.get(&write.resource_version);
        users.is_some_and(|users| !users.is_empty() && users.iter().all(|user| self.is_operator(user)))
    }

    /// Returns whether it is known that somebody other than an operator deleted this object.
    pub(crate) fn is_deleted_by_stranger(&self, uid: &str) -> bool {
        self.deleters.get(uid).is_some_and(|users| self.are_strangers(users))
    }

    fn are_strangers(&self, users: &BTreeSet<&str>) -> bool {
        !self.operators.is_empty() && users.iter().all(|user| !self.is_operator(user))
    }

    /// Finds what the audit log should hold and does not.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let silent = self.silent.iter().map(|user| format!("the audit log has no request of {user}"));
        let bodies = (self.bodiless > 0)
            .then(|| format!("the audit log has no bodies of {} writes of the operator", self.bodiless));
        silent.chain(bodies).collect()
    }
}

/// What is judged by what was sent: writes of our kinds (an event's name and verb say enough).
fn is_judged_by_body(request: &Request) -> bool {
    matches!(request.resource.as_str(), "workflowexecutions" | "workflowschedules" | "pipelineruns")
}
