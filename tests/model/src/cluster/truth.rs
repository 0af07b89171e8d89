//! The true history, by which every write is judged. No part of a real cluster remembers this history.

use super::{Cluster, Made};
use crate::claim::Claim;
use crate::object::{ExecutionId, Phase, Run, RunUid};

impl Cluster {
    /// Returns whether a run holds the target. It does if it is unfinished, and was committed or released.
    pub(crate) fn holds(&self, uid: RunUid) -> bool {
        self.runs.get(usize::from(uid.0)).is_some_and(|created| {
            created.object.is_some_and(|run| run.is_unfinished()) && (created.committed || created.released)
        })
    }

    /// Records which executions exist when a run is about to end that holds the target.
    pub(super) fn note_end(&mut self, uid: RunUid) {
        if self.holds(uid) {
            self.note_met(uid);
        }
    }

    pub(super) fn note_met(&mut self, uid: RunUid) {
        self.runs[usize::from(uid.0)].met |= self.existing().fold(0, |met, execution| met | execution.id.bit());
    }

    /// Records which executions exist when an execution is about to stop being Running.
    pub(crate) fn note_hold(&mut self, id: ExecutionId) {
        if self.terms.attempts > 1 && self.is_running(id) {
            let met = self.existing().fold(0, |met, execution| met | execution.id.bit());
            self.executions[usize::from(id.uid)].met |= met;
        }
    }

    /// Records that something of an execution may have run. A released run to which its owner has not committed belongs
    /// to no attempt.
    pub(super) fn note_ran(&mut self, run: Run) {
        if !self.runs[usize::from(run.uid.0)].committed {
            return;
        }
        let owner = run.owner.and_then(|owner| self.executions.get_mut(usize::from(owner.uid)));
        if let Some(made) = owner.filter(|_| self.terms.attempts > 1) {
            made.ran = true;
        }
    }

    /// Removes history that cannot affect a judgement any more, so that states with equal futures become equal.
    pub fn forget(&mut self) {
        let undecided =
            self.existing().filter(|found| found.phase == Phase::Undecided).fold(0, |all, found| all | found.id.bit());
        for created in &mut self.runs {
            created.met &= undecided;
        }
        for made in &mut self.executions {
            made.met &= undecided;
        }
    }

    pub(crate) fn breaks(&mut self, claim: Claim) {
        if self.terms.judged.has(claim) {
            self.broken.get_or_insert(claim);
        }
    }

    /// Judges the claims about the objects after a step.
    pub fn judge(&mut self) {
        // With several attempts, it may be proven that an attempt has not started. With only one, every released run
        // counts as started.
        let several = self.terms.attempts > 1;
        let lies = |made: &Made| {
            let ran = if several { made.ran } else { made.released != 0 };
            made.object.is_some_and(|object| match object.phase {
                Phase::Skipped => made.released != 0,
                phase => ran && phase.says_nothing_ran(),
            })
        };
        if self.executions.iter().any(lies) {
            self.breaks(Claim::NothingRan);
        }
    }
}
