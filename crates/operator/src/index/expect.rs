//! What this process has written and the watch has not delivered yet.

use std::collections::HashSet;

use wfe_core::by_uid::ByUid;
use wfe_core::name::{Uid, Version};

use super::Kind;

/// One write of this process that the view must hold before the next decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// This object in this version or a later one.
    Version {
        /// Of which watch.
        kind: Kind,
        /// Which object.
        uid: Uid,
        /// The version that the write returned.
        version: Version,
    },
    /// This object no more.
    Absence {
        /// Of which watch.
        kind: Kind,
        /// Which object.
        uid: Uid,
    },
}

impl Expected {
    /// Returns the watch that will deliver it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Version { kind, .. } | Self::Absence { kind, .. } => *kind,
        }
    }

    /// Tells whether who waits for this waits for the other one, too, of the same object.
    fn outlasts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absence { .. }, _) => true,
            (Self::Version { version, .. }, Self::Version { version: other, .. }) => at_least(version, other),
            (Self::Version { .. }, Self::Absence { .. }) => false,
        }
    }

    fn uid(&self) -> &Uid {
        match self {
            Self::Version { uid, .. } | Self::Absence { uid, .. } => uid,
        }
    }
}

/// What one target waits for, by object. Bounded by the actions of one decision, as there is no next one until it is
/// empty: in a storm, thousands.
#[derive(Debug, Default)]
pub(super) struct Expectations(ByUid<(Expected, u64)>);

impl Expectations {
    /// Adds one, with the number of the last list that had begun.
    pub(super) fn add(&mut self, expected: Expected, epoch: u64) {
        let uid = expected.uid().clone();
        if self.0.get(&uid).is_none_or(|(known, _)| !known.outlasts(&expected)) {
            self.0.insert(uid, (expected, epoch));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The watch has delivered an object.
    pub(super) fn seen(&mut self, kind: Kind, uid: &Uid, version: &Version) {
        let is_it = |expected: &Expected| matches!(expected, Expected::Version { kind: k, version: awaited, .. } if *k == kind && at_least(version, awaited));
        if self.0.get(uid).is_some_and(|(expected, _)| is_it(expected)) {
            self.0.remove(uid);
        }
    }

    /// The watch has delivered a deletion, which ends every wait for that object.
    pub(super) fn gone(&mut self, kind: Kind, uid: &Uid) {
        if self.0.get(uid).is_some_and(|(expected, _)| expected.kind() == kind) {
            self.0.remove(uid);
        }
    }

    /// A list is complete. A wait from before it began is over when the object is not in it: then it was deleted.
    pub(super) fn listed(&mut self, kind: Kind, epoch: u64, seen: &HashSet<Uid>) {
        self.0.retain(|uid, (expected, since)| expected.kind() != kind || *since >= epoch || seen.contains(uid));
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
