//! Writes of this process that the watch has not delivered yet. No wait lasts for ever: an object that no watch
//! delivers is read live.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use chrono::TimeDelta;
use wfe_core::Time;
use wfe_core::name::{Uid, Version};
use wfe_core::uid_map::UidMap;

use super::Kind;

/// How long a write may stay unseen before the object is read live, and how long until it is read again. A watch
/// delivers within milliseconds; one that starts with a list, within seconds.
pub const READ_AFTER: TimeDelta = TimeDelta::seconds(30);

/// The object of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The watch that delivers it.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Uid,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Execution => write!(f, "WorkflowExecution {}/{}", self.namespace, self.name),
            Kind::Run => write!(f, "PipelineRun {}", self.name),
            Kind::Schedule => write!(f, "WorkflowSchedule {}/{}", self.namespace, self.name),
            kind => write!(f, "{} {}", kind.label(), self.name), // nothing else is written
        }
    }
}

/// A write of this process that the view must contain before the next decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// This object, in this version or a later one.
    Version {
        /// The object.
        object: Written,
        /// The version that the write returned.
        version: Version,
    },
    /// This object is gone.
    Absence {
        /// The object.
        object: Written,
    },
}

/// The result of reading an object live whose write is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// It is gone, or another object has its name.
    Gone,
    /// It exists, and its watch will deliver it.
    There,
}

impl Expected {
    /// Returns the object that was written.
    #[must_use]
    pub fn object(&self) -> &Written {
        match self {
            Self::Version { object, .. } | Self::Absence { object } => object,
        }
    }

    /// Returns the watch that will deliver it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.object().kind
    }

    /// Returns whether this expectation implies the other, for the same object.
    fn outlasts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absence { .. }, _) => true,
            (Self::Version { version, .. }, Self::Version { version: other, .. }) => at_least(version, other),
            (Self::Version { .. }, Self::Absence { .. }) => false,
        }
    }
}

/// The expectations of one target, by object. Limited by the actions of one decision, because the next decision waits
/// until it is empty: thousands in a storm.
#[derive(Debug, Default)]
pub(super) struct Expectations(UidMap<Awaited>);

#[derive(Debug)]
struct Awaited {
    expected: Expected,
    /// The number of the last list that had begun.
    epoch: u64,
    /// When it is read live if no watch has delivered it by then.
    read_at: Time,
}

impl Expectations {
    /// Adds an expectation, with the number of the last list that had begun.
    pub(super) fn add(&mut self, expected: Expected, epoch: u64, now: Time) {
        let uid = expected.object().uid.clone();
        if self.0.get(&uid).is_none_or(|known| !known.expected.outlasts(&expected)) {
            self.0.insert(uid, Awaited { expected, epoch, read_at: now + READ_AFTER });
        }
    }

    /// Returns whether the next decision must wait. While schedules cannot be seen, none of them is decided on, and
    /// nothing that their watch would deliver is awaited.
    pub(super) fn holds(&self, blind_to_schedules: bool) -> bool {
        self.0.values().any(|awaited| !blind_to_schedules || awaited.expected.kind() != Kind::Schedule)
    }

    pub(super) fn contains(&self, object: &Uid) -> bool {
        self.0.get(object).is_some()
    }

    /// Returns which object is read live first, and when.
    pub(super) fn next(&self) -> Option<(&Expected, Time)> {
        let next = self.0.values().min_by_key(|awaited| awaited.read_at)?;
        Some((&next.expected, next.read_at))
    }

    /// Returns the objects to read live now, and sets the time of the next read.
    pub(super) fn take_overdue(&mut self, now: Time) -> Vec<Expected> {
        let mut overdue = Vec::new();
        for awaited in self.0.values_mut().filter(|awaited| awaited.read_at <= now) {
            awaited.read_at = now + READ_AFTER;
            overdue.push(awaited.expected.clone());
        }
        overdue
    }

    /// Removes what a live read has answered: every expectation of an object that is gone, and the wait for an absence
    /// that does not come because a finalizer holds the object. Other existing objects are still awaited.
    pub(super) fn read(&mut self, expected: &Expected, live: Live) {
        if live != Live::There || matches!(expected, Expected::Absence { .. }) {
            self.0.remove(&expected.object().uid);
        }
    }

    /// Takes in that the watch has delivered an object.
    pub(super) fn seen(&mut self, kind: Kind, uid: &Uid, version: &Version) {
        let is_it = |expected: &Expected| {
            let Expected::Version { object, version: awaited } = expected else { return false };
            object.kind == kind && at_least(version, awaited)
        };
        if self.0.get(uid).is_some_and(|awaited| is_it(&awaited.expected)) {
            self.0.remove(uid);
        }
    }

    /// Takes in that the watch has delivered a deletion: it ends every wait for that object.
    pub(super) fn gone(&mut self, kind: Kind, uid: &Uid) {
        if self.0.get(uid).is_some_and(|awaited| awaited.expected.kind() == kind) {
            self.0.remove(uid);
        }
    }

    /// Takes in that a list is complete. A wait from before it began is over if the list lacks the object, which was
    /// deleted then.
    pub(super) fn listed(&mut self, kind: Kind, epoch: u64, seen: &HashSet<Uid>) {
        self.0.retain(|uid, it| it.expected.kind() != kind || it.epoch >= epoch || seen.contains(uid));
    }
}

/// Compares two resource versions of one resource. They are decimal numbers that grow with every write (Kubernetes
/// guarantees that since 1.35, and every release before did it). If one is not a number, any delivery of the object
/// counts as late enough.
pub(super) fn at_least(seen: &Version, awaited: &Version) -> bool {
    match (seen.as_str().parse::<u128>(), awaited.as_str().parse::<u128>()) {
        (Ok(seen), Ok(awaited)) => seen >= awaited,
        _ => true,
    }
}
