//! The true history, which nobody in the cluster remembers: by it every write is judged.

use super::{Cluster, Made};
use crate::claim::Claim;
use crate::object::{ExecutionId, Phase, Run, RunUid};

impl Cluster {
    /// Returns whether a run holds the target: it is committed or released, and unfinished.
    pub(crate) fn holds(&self, uid: RunUid) -> bool {
        self.runs.get(usize::from(uid.0)).is_some_and(|created| {
            created.object.is_some_and(|run| run.is_unfinished()) && (created.committed || created.released)
        })
    }

    /// Keeps who has met a run that is about to end.
    pub(super) fn note_end(&mut self, uid: RunUid) {
        if self.holds(uid) {
            self.note_met(uid);
        }
    }

    pub(super) fn note_met(&mut self, uid: RunUid) {
        self.runs[usize::from(uid.0)].met |= self.existing().fold(0, |met, execution| met | execution.id.bit());
    }

    /// Keeps who has met an execution that is about to be Running no more.
    pub(crate) fn note_hold(&mut self, id: ExecutionId) {
        if self.terms.attempts > 1 && self.is_running(id) {
            let met = self.existing().fold(0, |met, execution| met | execution.id.bit());
            self.executions[usize::from(id.uid)].met |= met;
        }
    }

    /// Keeps that something of an execution may have run. A run that somebody has released, and that it never committed
    /// to, is none of its attempts.
    pub(super) fn note_ran(&mut self, run: Run) {
        if !self.runs[usize::from(run.uid.0)].committed {
            return;
        }
        let owner = run.owner.and_then(|owner| self.executions.get_mut(usize::from(owner.uid)));
        if let Some(made) = owner.filter(|_| self.terms.attempts > 1) {
            made.ran = true;
        }
    }

    /// Forgets of the true history what can change no judgement any more, so that equal futures are equal states.
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

    /// Judges what the objects say, after any step.
    pub fn judge(&mut self) {
        // An attempt may be proven not to have started. Where there is one only, all of them count as started.
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
