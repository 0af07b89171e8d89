//! Writes of this process that the watch has not delivered yet. If a watch never delivers a write, the object is read
//! live, so no decision waits for ever.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use chrono::TimeDelta;
use wfe_core::Time;
use wfe_core::name::{Uid, Version};
use wfe_core::uid_map::UidMap;

use super::Kind;

/// How long a write may stay undelivered before its object is read live, and the time between two such reads. A watch
/// delivers within milliseconds; a watch that starts with a list, within seconds.
pub const READ_AFTER: TimeDelta = TimeDelta::seconds(30);

/// An object that this process wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The watch that delivers the object.
    pub kind: Kind,
    /// The namespace of the object.
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
    /// The uid of the object.
    pub uid: Uid,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Execution => write!(f, "WorkflowExecution {}/{}", self.namespace, self.name),
            Kind::Run => write!(f, "PipelineRun {}", self.name),
            Kind::Schedule => write!(f, "WorkflowSchedule {}/{}", self.namespace, self.name),
            kind => write!(f, "{} {}", kind.label(), self.name), // other kinds are never written
        }
    }
}

/// A write of this process that the view must contain before the next decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The object exists in this version or a later one.
    Version {
        /// The written object.
        object: Written,
        /// The version that the write returned.
        version: Version,
    },
    /// The object is gone.
    Absence {
        /// The deleted object.
        object: Written,
    },
}

/// The result of a live read of an object whose write is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// The object is gone, or another object has its name.
    Gone,
    /// The object exists, and its watch will deliver it.
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

    /// Returns the watch that will deliver the object.
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

/// The expectations of one target, by object. There are at most as many as one decision has actions, thousands in a
/// storm: the next decision waits until no expectation is left.
#[derive(Debug, Default)]
pub(super) struct Expectations(UidMap<Awaited>);

#[derive(Debug)]
struct Awaited {
    expected: Expected,
    /// The number of the list that had begun last when the write was made.
    epoch: u64,
    /// When the object is read live, unless a watch delivers it before.
    read_at: Time,
}

impl Expectations {
    /// Adds an expectation. `epoch` is the number of the list that had begun last.
    pub(super) fn add(&mut self, expected: Expected, epoch: u64, now: Time) {
        let uid = expected.object().uid.clone();
        if self.0.get(&uid).is_none_or(|known| !known.expected.outlasts(&expected)) {
            self.0.insert(uid, Awaited { expected, epoch, read_at: now + READ_AFTER });
        }
    }

    /// Returns whether the next decision must wait. While schedules cannot be seen, no schedule is decided on, so
    /// nothing from their watch is awaited.
    pub(super) fn holds(&self, blind_to_schedules: bool) -> bool {
        self.0.values().any(|awaited| !blind_to_schedules || awaited.expected.kind() != Kind::Schedule)
    }

    pub(super) fn contains(&self, object: &Uid) -> bool {
        self.0.get(object).is_some()
    }

    /// Returns the object that is read live first, and when.
    pub(super) fn next(&self) -> Option<(&Expected, Time)> {
        let next = self.0.values().min_by_key(|awaited| awaited.read_at)?;
        Some((&next.expected, next.read_at))
    }

    /// Returns the objects that must be read live now, and sets the time of their next read.
    pub(super) fn take_overdue(&mut self, now: Time) -> Vec<Expected> {
        let mut overdue = Vec::new();
        for awaited in self.0.values_mut().filter(|awaited| awaited.read_at <= now) {
            awaited.read_at = now + READ_AFTER;
            overdue.push(awaited.expected.clone());
        }
        overdue
    }

    /// Applies the result of a live read. If the object is gone, nothing more is awaited. If it still exists because a
    /// finalizer keeps it, its absence is no longer awaited; other writes to it still are.
    pub(super) fn read(&mut self, expected: &Expected, live: Live) {
        if live != Live::There || matches!(expected, Expected::Absence { .. }) {
            self.0.remove(&expected.object().uid);
        }
    }

    /// Removes the expectations that the delivery of an object fulfils.
    pub(super) fn seen(&mut self, kind: Kind, uid: &Uid, version: &Version) {
        let is_it = |expected: &Expected| {
            let Expected::Version { object, version: awaited } = expected else { return false };
            object.kind == kind && at_least(version, awaited)
        };
        if self.0.get(uid).is_some_and(|awaited| is_it(&awaited.expected)) {
            self.0.remove(uid);
        }
    }

    /// Removes the expectations for an object, because the watch has delivered its deletion.
    pub(super) fn gone(&mut self, kind: Kind, uid: &Uid) {
        if self.0.get(uid).is_some_and(|awaited| awaited.expected.kind() == kind) {
            self.0.remove(uid);
        }
    }

    /// Removes the expectations from before a completed list began whose objects the list lacks: these objects were
    /// deleted.
    pub(super) fn listed(&mut self, kind: Kind, epoch: u64, seen: &HashSet<Uid>) {
        self.0.retain(|uid, it| it.expected.kind() != kind || it.epoch >= epoch || seen.contains(uid));
    }
}

/// Compares two resource versions of one resource. They are decimal numbers that grow with every write. (Kubernetes
/// guarantees this since 1.35, and every earlier release complies.) If one is not a number, any delivery of the object
/// counts as new enough.
pub(super) fn at_least(seen: &Version, awaited: &Version) -> bool {
    match (seen.as_str().parse::<u128>(), awaited.as_str().parse::<u128>()) {
        (Ok(seen), Ok(awaited)) => seen >= awaited,
        _ => true,
    }
}
