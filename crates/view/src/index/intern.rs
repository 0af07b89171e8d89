//! Stores one copy of each value that many records share: tens of thousands of executions run a few hundred workflows.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::fingerprint::{Fingerprint, Origin};
use wfe_core::schedule::Schedule;

use super::Index;

/// How many values are stored before unused ones are removed.
const FEW: usize = 64;

/// A value that is cheap to clone and counts the references to it.
pub(super) trait Shared: Clone + Eq + Hash {
    /// Returns the number of references.
    fn holders(&self) -> usize;
}

impl Shared for Arc<Origin> {
    fn holders(&self) -> usize {
        Self::strong_count(self)
    }
}

impl Shared for Fingerprint {
    fn holders(&self) -> usize {
        self.holders()
    }
}

/// Stores one copy of each value. Values without any other reference are dropped when the number of values has doubled
/// since the last sweep, and is at least [`FEW`].
#[derive(Debug)]
pub(super) struct Interner<T> {
    all: HashSet<T>,
    sweep_at: usize,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), sweep_at: FEW }
    }
}

impl<T: Shared> Interner<T> {
    /// Returns the shared copy of a value.
    pub(super) fn share(&mut self, one: &T) -> T {
        if let Some(known) = self.all.get(one) {
            return known.clone();
        }
        if self.all.len() >= self.sweep_at {
            self.all.retain(|known| known.holders() > 1);
            self.sweep_at = FEW.max(self.all.len() * 2);
            self.all.shrink_to(self.sweep_at);
        }
        self.all.insert(one.clone());
        one.clone()
    }
}

impl Index {
    /// Replaces values of an execution with shared copies.
    pub(super) fn intern_execution(&mut self, execution: &mut Execution) {
        execution.origin = self.origins.share(&execution.origin);
        if execution.workflow_id == execution.origin.workflow_id {
            execution.workflow_id = Arc::clone(&execution.origin.workflow_id);
        }
        if let ExecutionState::Failed(failed) = &mut execution.state {
            self.intern_fingerprint(&mut failed.fingerprint);
        }
    }

    /// Replaces values of a schedule with shared copies.
    pub(super) fn intern_schedule(&mut self, schedule: &mut Schedule) {
        schedule.origin = self.origins.share(&schedule.origin);
        if schedule.workflow_id == schedule.origin.workflow_id {
            schedule.workflow_id = Arc::clone(&schedule.origin.workflow_id);
        }
        if let Some(last) = &mut schedule.status.last_run {
            self.intern_fingerprint(&mut last.fingerprint);
        }
    }

    fn intern_fingerprint(&mut self, fingerprint: &mut Option<Fingerprint>) {
        if let Some(one) = fingerprint {
            *one = self.fingerprints.share(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_one_copy_and_what_nobody_holds_is_dropped() {
        let mut interner = Interner::default();
        let origin = |number: usize| Arc::new(Origin::new(&number.to_string(), "1", "registry.example/w"));
        let held: Vec<_> = (0..100).map(|number| interner.share(&origin(number))).collect();
        for (number, one) in held.iter().enumerate() {
            assert!(Arc::ptr_eq(&interner.share(&origin(number)), one));
        }
        for number in 100..10_000 {
            interner.share(&origin(number));
        }
        assert!(interner.all.len() <= held.len() * 2 + 1, "{} are kept, of {} held", interner.all.len(), held.len());
        assert!(held.iter().all(|one| interner.all.contains(one)));
        drop(held);
        for number in 0..1000 {
            interner.share(&origin(number));
        }
        assert!(interner.all.len() <= FEW, "{} are kept, and none is held", interner.all.len());
    }
}
