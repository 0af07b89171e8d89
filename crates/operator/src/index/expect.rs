//! What this process has written and the watch has not delivered yet.

use std::collections::HashSet;

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

    fn uid(&self) -> &Uid {
        match self {
            Self::Version { uid, .. } | Self::Absence { uid, .. } => uid,
        }
    }
}

/// What one target waits for. Bounded by the actions of one decision, as there is no next one until it is empty.
#[derive(Debug, Default)]
pub(super) struct Expectations(Vec<(Expected, u64)>);

impl Expectations {
    /// Adds one, with the number of the last list that had begun.
    pub(super) fn add(&mut self, expected: Expected, epoch: u64) {
        self.0.push((expected, epoch));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The watch has delivered an object.
    pub(super) fn seen(&mut self, kind: Kind, uid: &Uid, version: &Version) {
        self.0.retain(|(expected, _)| match expected {
            Expected::Version { kind: k, uid: u, version: awaited } => {
                *k != kind || u != uid || !at_least(version, awaited)
            }
            Expected::Absence { .. } => true,
        });
    }

    /// The watch has delivered a deletion, which ends every wait for that object.
    pub(super) fn gone(&mut self, kind: Kind, uid: &Uid) {
        self.0.retain(|(expected, _)| expected.kind() != kind || expected.uid() != uid);
    }

    /// A list is complete. A wait from before it began is over when the object is not in it: then it was deleted.
    pub(super) fn listed(&mut self, kind: Kind, epoch: u64, seen: &HashSet<Uid>) {
        self.0.retain(|(expected, since)| expected.kind() != kind || *since >= epoch || seen.contains(expected.uid()));
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
