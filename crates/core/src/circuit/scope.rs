//! The scope of a circuit: the namespaces whose schedules it holds.
//!
//! A failure is evidence about its own namespace. Whoever may create executions in one namespace can let any number of
//! them fail, so their failures alone hold nobody else (ADR 15).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::Time;

/// How many namespaces must have failed alike for a circuit to hold all of them. So many independent parties saw the
/// failure that its cause is one which everybody shares: the same number as targets by default (`outage-targets`). It
/// also limits what is kept of a circuit to five names of at most 63 characters each.
const ENOUGH: usize = 5;

/// The namespaces that a circuit holds: those whose own executions have failed with it, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The namespaces that failed first, and since when each is held. With [`ENOUGH`] of them, all others are held too,
    /// since the last of these times.
    failed: BTreeMap<Arc<str>, Time>,
}

impl Scope {
    /// Makes the scope of a circuit that these namespaces have opened at a time.
    #[must_use]
    pub fn of(namespaces: impl IntoIterator<Item = Arc<str>>, at: Time) -> Self {
        // Sorted first: which names are kept must not depend on the order in which a map lists them.
        let namespaces: BTreeSet<_> = namespaces.into_iter().collect();
        Self { failed: namespaces.into_iter().take(ENOUGH).map(|namespace| (namespace, at)).collect() }
    }

    /// Adds a namespace in which something failed at a time.
    pub(super) fn add(&mut self, namespace: &Arc<str>, at: Time) {
        if !self.has(namespace) {
            self.failed.insert(namespace.clone(), at);
        }
    }

    /// Tells whether it has a namespace.
    #[must_use]
    pub fn has(&self, namespace: &str) -> bool {
        self.since(namespace).is_some()
    }

    /// Returns since when it has a namespace.
    #[must_use]
    pub fn since(&self, namespace: &str) -> Option<Time> {
        let of_all = || self.failed.values().max().filter(|_| self.is_everybody());
        self.failed.get(namespace).or_else(of_all).copied()
    }

    /// Returns its namespaces in order. None where it has all.
    #[must_use]
    pub fn namespaces(&self) -> Option<Vec<&str>> {
        (!self.is_everybody()).then(|| self.failed.keys().map(|namespace| &**namespace).collect())
    }

    fn is_everybody(&self) -> bool {
        self.failed.len() >= ENOUGH
    }
}

/// Writes it so that it completes "the schedules of ...".
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespaces().as_deref() {
            None => f.write_str("all namespaces"),
            Some([one]) => write!(f, "namespace {one}"),
            Some(some) => write!(f, "namespaces {}", some.join(", ")),
        }
    }
}
