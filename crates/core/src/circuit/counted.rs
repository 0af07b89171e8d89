//! The failures that may open a circuit: for each fingerprint, the targets that failed with it within the window.
//!
//! The cost of one event does not grow with the number of past failures (section 13.5). Failures are indexed by
//! fingerprint, by the subject that a success refutes, and by age.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::Time;
use crate::chain::ChainName;
use crate::fingerprint::Fingerprint;

/// How many fingerprints are counted at once. A user who invents workflows could cause any number of fingerprints.
/// Beyond the limit, the fingerprint whose last failure is oldest is forgotten.
pub(super) const MOST_COUNTED: usize = 1_000;

/// The targets that failed with each fingerprint whose circuit is closed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    failures: HashMap<Fingerprint, Failures>,
    /// The fingerprints that a success with this subject refutes.
    by_subject: HashMap<Arc<str>, BTreeSet<Fingerprint>>,
    /// The last failure of each fingerprint, oldest first.
    by_age: BTreeSet<(Time, Fingerprint)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Failures {
    subject: Arc<str>,
    /// The newest failure of each target.
    of: BTreeMap<ChainName, Time>,
    newest: Time,
}

impl Counted {
    /// Counts a failure, and returns how many targets have failed with its fingerprint within the window.
    pub(super) fn add(
        &mut self,
        fingerprint: &Fingerprint,
        subject: &Arc<str>,
        target: ChainName,
        at: Time,
        begins: Time,
    ) -> usize {
        let mut known = self.remove(fingerprint).unwrap_or_else(|| Failures {
            subject: Arc::clone(subject),
            of: BTreeMap::new(),
            newest: at,
        });
        if self.failures.len() >= MOST_COUNTED
            && let Some((_, oldest)) = self.by_age.first().cloned()
        {
            self.remove(&oldest);
        }
        known.newest = at;
        known.of.insert(target, at);
        known.of.retain(|_, at| *at >= begins);
        let agreed = known.of.len();
        self.insert(fingerprint.clone(), known);
        agreed
    }

    /// Forgets a fingerprint.
    pub(super) fn forget(&mut self, fingerprint: &Fingerprint) {
        self.remove(fingerprint);
    }

    /// Forgets the fingerprints that had no failure since a time.
    pub(super) fn forget_before(&mut self, begins: Time) {
        while let Some((_, oldest)) = self.by_age.first().filter(|(newest, _)| *newest < begins).cloned() {
            self.remove(&oldest);
        }
    }

    /// Records a success that began at a time: it refutes earlier failures with this fingerprint.
    pub(super) fn refute(&mut self, fingerprint: &Fingerprint, began: Time) {
        let Some(mut known) = self.remove(fingerprint) else { return };
        known.of.retain(|_, at| *at >= began);
        if !known.of.is_empty() {
            self.insert(fingerprint.clone(), known);
        }
    }

    /// Records a success that refutes earlier failures with any fingerprint of a subject.
    pub(super) fn refute_all(&mut self, subject: &str, began: Time) {
        for fingerprint in self.by_subject.get(subject).cloned().into_iter().flatten() {
            self.refute(&fingerprint, began);
        }
    }

    fn insert(&mut self, fingerprint: Fingerprint, failures: Failures) {
        self.by_subject.entry(Arc::clone(&failures.subject)).or_default().insert(fingerprint.clone());
        self.by_age.insert((failures.newest, fingerprint.clone()));
        self.failures.insert(fingerprint, failures);
    }

    fn remove(&mut self, fingerprint: &Fingerprint) -> Option<Failures> {
        let failures = self.failures.remove(fingerprint)?;
        self.by_age.remove(&(failures.newest, fingerprint.clone()));
        if let Some(alike) = self.by_subject.get_mut(&failures.subject) {
            alike.remove(fingerprint);
            if alike.is_empty() {
                self.by_subject.remove(&failures.subject);
            }
        }
        Some(failures)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.failures.len()
    }
}
