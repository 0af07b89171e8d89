//! Finds the author of each write in the audit log by the resourceVersion or the uid in the answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::Options;
use crate::history::text;
use crate::input::Request;
use crate::report::Moment;

/// The users who have written and deleted objects during a recording.
#[derive(Debug)]
pub(crate) struct Authors<'a> {
    /// Users by the resourceVersion in the answer. The answer to a write without a change contains the current version.
    writers: BTreeMap<u64, BTreeSet<&'a str>>,
    /// Users by the uid of the object that they have deleted.
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

    /// Returns whether, according to the audit log, this write was made only by users other than the operators.
    pub(crate) fn is_strangers(&self, write: Moment) -> bool {
        self.writers.get(&write.resource_version).is_some_and(|users| self.are_strangers(users))
    }

    /// Returns whether, according to the audit log, this write was made only by operators.
    pub(crate) fn is_operators(&self, write: Moment) -> bool {
        let users = self.writers.get(&write.resource_version);
        users.is_some_and(|users| !users.is_empty() && users.iter().all(|user| self.is_operator(user)))
    }

    /// Returns whether, according to the audit log, this object was deleted only by users other than the operators.
    pub(crate) fn is_deleted_by_stranger(&self, uid: &str) -> bool {
        self.deleters.get(uid).is_some_and(|users| self.are_strangers(users))
    }

    fn are_strangers(&self, users: &BTreeSet<&str>) -> bool {
        !self.operators.is_empty() && users.iter().all(|user| !self.is_operator(user))
    }

    /// Lists the entries that the audit log should contain but does not.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let silent = self.silent.iter().map(|user| format!("the audit log has no request of {user}"));
        let bodies = (self.bodiless > 0)
            .then(|| format!("the audit log has no bodies of {} writes of the operator", self.bodiless));
        silent.chain(bodies).collect()
    }
}

/// Returns whether the auditor judges the body of a write to this resource. For an event, name and verb are enough.
fn is_judged_by_body(request: &Request) -> bool {
    matches!(request.resource.as_str(), "workflowexecutions" | "workflowschedules" | "pipelineruns")
}
