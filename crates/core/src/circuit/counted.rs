//! The failures that may open a circuit: of each fingerprint the targets that failed with it within the window.
//!
//! What an end costs does not grow with what has failed before (section 13.5): failures are found by their fingerprint,
//! by what a success refutes, and by their age.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::Time;
use crate::chain::ChainName;
use crate::fingerprint::Fingerprint;

/// How many fingerprints are counted at once. Who makes up workflows could bring any number of them; when there are
/// more, the one that failed last the longest ago is forgotten.
pub(super) const MOST_COUNTED: usize = 1_000;

/// The targets that failed with each fingerprint whose circuit is closed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    failures: HashMap<Fingerprint, Failures>,
    /// Which fingerprints are refuted by a success of what.
    by_subject: HashMap<Arc<str>, BTreeSet<Fingerprint>>,
    /// When something failed last with each.
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
    /// Counts a failure, and returns how many targets have failed with its fingerprint since the window began.
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

    /// Forgets the fingerprints that nothing has failed with since a time.
    pub(super) fn forget_before(&mut self, begins: Time) {
        while let Some((_, oldest)) = self.by_age.first().filter(|(newest, _)| *newest < begins).cloned() {
            self.remove(&oldest);
        }
    }

    /// Takes in a success that began at a time: what had failed with the same before that is refuted.
    pub(super) fn refute(&mut self, fingerprint: &Fingerprint, began: Time) {
        let Some(mut known) = self.remove(fingerprint) else { return };
        known.of.retain(|_, at| *at >= began);
        if !known.of.is_empty() {
            self.insert(fingerprint.clone(), known);
        }
    }

    /// Does the same for all fingerprints of a subject.
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
