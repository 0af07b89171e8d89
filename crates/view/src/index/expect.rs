//! What this process has written and the watch has not delivered yet. No wait lasts for ever: what no watch delivers is
//! read live.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use chrono::TimeDelta;
use wfe_core::Time;
use wfe_core::by_uid::ByUid;
use wfe_core::name::{Uid, Version};

use super::Kind;

/// How long a write may stay unseen before the object is read live, and how long after that until it is read again. A
/// watch delivers within milliseconds; one that lists anew, within seconds.
pub const READ_AFTER: TimeDelta = TimeDelta::seconds(30);

/// The object of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Of which watch.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Which object of that name.
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

/// One write of this process that the view must hold before the next decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// This object in this version or a later one.
    Version {
        /// Which object.
        object: Written,
        /// The version that the write returned.
        version: Version,
    },
    /// This object no more.
    Absence {
        /// Which object.
        object: Written,
    },
}

/// What a live read has found of an object whose write is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// It is gone, or another one has its name.
    Gone,
    /// It is there, and its watch will deliver it.
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

    /// Returns whether who waits for this waits for the other one, too, of the same object.
    fn outlasts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absence { .. }, _) => true,
            (Self::Version { version, .. }, Self::Version { version: other, .. }) => at_least(version, other),
            (Self::Version { .. }, Self::Absence { .. }) => false,
        }
    }
}

/// What one target waits for, by object. Bounded by the actions of one decision, as there is no next one until it is
/// empty: in a storm, thousands.
#[derive(Debug, Default)]
pub(super) struct Expectations(ByUid<Awaited>);

#[derive(Debug)]
struct Awaited {
    expected: Expected,
    /// The number of the last list that had begun.
    epoch: u64,
    /// When it is read live, where no watch has delivered it by then.
    read_at: Time,
}

impl Expectations {
    /// Adds one, with the number of the last list that had begun.
    pub(super) fn add(&mut self, expected: Expected, epoch: u64, now: Time) {
        let uid = expected.object().uid.clone();
        if self.0.get(&uid).is_none_or(|known| !known.expected.outlasts(&expected)) {
            self.0.insert(uid, Awaited { expected, epoch, read_at: now + READ_AFTER });
        }
    }

    /// Returns whether the next decision has to wait. Where schedules cannot be seen none of them is decided on, and
    /// nothing is waited for that their watch would deliver.
    pub(super) fn holds(&self, blind_to_schedules: bool) -> bool {
        self.0.values().any(|awaited| !blind_to_schedules || awaited.expected.kind() != Kind::Schedule)
    }

    pub(super) fn contains(&self, object: &Uid) -> bool {
        self.0.get(object).is_some()
    }

    /// Returns what is read live first, and when.
    pub(super) fn next(&self) -> Option<(&Expected, Time)> {
        let next = self.0.values().min_by_key(|awaited| awaited.read_at)?;
        Some((&next.expected, next.read_at))
    }

    /// Returns what is to be read live now, and sets the time of the next read.
    pub(super) fn take_overdue(&mut self, now: Time) -> Vec<Expected> {
        let mut overdue = Vec::new();
        for awaited in self.0.values_mut().filter(|awaited| awaited.read_at <= now) {
            awaited.read_at = now + READ_AFTER;
            overdue.push(awaited.expected.clone());
        }
        overdue
    }

    /// Forgets what a live read has answered: whatever concerns an object that is gone, and the wait for an absence
    /// that does not come, as a finalizer holds the object. What else is there is awaited still.
    pub(super) fn read(&mut self, expected: &Expected, live: Live) {
        if live != Live::There || matches!(expected, Expected::Absence { .. }) {
            self.0.remove(&expected.object().uid);
        }
    }

    /// The watch has delivered an object.
    pub(super) fn seen(&mut self, kind: Kind, uid: &Uid, version: &Version) {
        let is_it = |expected: &Expected| {
            let Expected::Version { object, version: awaited } = expected else { return false };
            object.kind == kind && at_least(version, awaited)
        };
        if self.0.get(uid).is_some_and(|awaited| is_it(&awaited.expected)) {
            self.0.remove(uid);
        }
    }

    /// The watch has delivered a deletion, which ends every wait for that object.
    pub(super) fn gone(&mut self, kind: Kind, uid: &Uid) {
        if self.0.get(uid).is_some_and(|awaited| awaited.expected.kind() == kind) {
            self.0.remove(uid);
        }
    }

    /// A list is complete. A wait from before it began is over when the object is not in it: then it was deleted.
    pub(super) fn listed(&mut self, kind: Kind, epoch: u64, seen: &HashSet<Uid>) {
        self.0.retain(|uid, it| it.expected.kind() != kind || it.epoch >= epoch || seen.contains(uid));
    }
}

/// Compares two resource versions of one resource. They are decimal numbers that grow with every write (Kubernetes
/// guarantees that they can be compared so since 1.35, and every release before did it); where one is not a number,
/// any delivery of the object counts as late enough.
pub(super) fn at_least(seen: &Version, awaited: &Version) -> bool {
    match (seen.as_str().parse::<u128>(), awaited.as_str().parse::<u128>()) {
        (Ok(seen), Ok(awaited)) => seen >= awaited,
        _ => true,
    }
}
