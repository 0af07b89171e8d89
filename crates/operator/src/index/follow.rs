//! What is followed of runs while they go on, and kept with them until their execution has ended.

use std::collections::HashSet;

use wfe_core::Time;
use wfe_core::execution::Execution;
use wfe_core::findings::Findings;
use wfe_core::name::Uid;
use wfe_core::run::{Look, Owner, Progress, Run, Seen};
use wfe_core::target::Target;
use wfe_tekton::{Evidence, Sighting};

use super::Entry;

impl Entry {
    /// Returns what was seen of a run.
    #[must_use]
    pub fn evidence(&self, run: &Uid) -> Evidence {
        self.evidence.get(run).cloned().unwrap_or_default()
    }

    /// Takes in what a task or pod shows, and says whether that is news for decisions. While lists are under way, the run
    /// may be still to come; else it is one that nobody asks for: a pipeline in a pipeline, or one that is gone.
    pub(super) fn see(&mut self, sighting: &Sighting, is_deleted: bool, is_listing: bool) -> bool {
        let known = self.target.runs.get(&sighting.run);
        if known.map_or(!is_listing, |run| is_over(&self.target, run)) {
            return false;
        }
        let evidence = self.evidence.get_or_insert_with(&sighting.run, Evidence::default);
        if is_deleted {
            evidence.see_deleted(sighting);
        } else {
            evidence.see(sighting);
        }
        let seen = evidence.seen();
        let Some(run) = self.target.runs.get_mut(&sighting.run) else { return false };
        let seen = Seen { replay_told: run.seen.replay_told, ..seen };
        let is_news = seen != run.seen;
        run.seen = seen;
        is_news
    }

    /// Gives a new version of a run what was seen of it.
    pub(super) fn follow(&mut self, run: &mut Run, is_listing: bool) {
        if is_over(&self.target, run) {
            self.evidence.remove(&run.id.uid);
            forget(run);
            return;
        }
        let known = self.target.runs.get(&run.id.uid);
        let evidence = self.evidence.get_or_insert_with(&run.id.uid, Evidence::default);
        // Who did not see it released did not see what came after.
        if !run.is_pending() && known.is_none_or(|known| is_listing && known.is_pending()) {
            evidence.interrupt();
        }
        evidence.see_doing(&run.doing);
        run.seen = Seen { replay_told: known.is_some_and(|known| known.seen.replay_told), ..evidence.seen() };
        run.look = known.and_then(|known| known.look.clone());
    }

    /// Takes in that versions of tasks or pods may have gone unseen.
    pub(super) fn interrupt(&mut self) {
        for (uid, evidence) in self.evidence.iter_mut() {
            if self.target.runs.get(uid).is_none_or(|run| !run.is_pending()) {
                evidence.interrupt();
            }
        }
    }

    /// Takes in that a run is gone. What proves that something of it ran is kept for its execution.
    pub(super) fn lose(&mut self, run: Run) {
        self.evidence.remove(&run.id.uid);
        let owner = self.target.executions.values_mut().find(|execution| execution.is_running(&run.id));
        if let (Some(owner), Some(proof)) = (owner, run.seen.proof) {
            owner.lost_proof = Some(Box::new(proof));
        }
    }

    /// Forgets what nobody needs any more: what was seen of runs whose execution has ended, or that are not there.
    pub(super) fn forget(&mut self) {
        let over: HashSet<Uid> = {
            let over = self.target.runs.values().filter(|run| is_over(&self.target, run));
            over.map(|run| run.id.uid.clone()).collect()
        };
        self.target.runs.values_mut().filter(|run| over.contains(&run.id.uid)).for_each(forget);
        let runs = &self.target.runs;
        self.evidence.retain(|uid, _| runs.contains_key(uid) && !over.contains(uid));
    }

    pub(super) fn looked(&mut self, run: &Uid, findings: Findings, at: Time) {
        if let Some(run) = self.target.runs.get_mut(run) {
            run.look = Some(Box::new(Look { at, findings }));
        }
    }

    pub(super) fn replay_told(&mut self, run: &Uid) {
        if let Some(run) = self.target.runs.get_mut(run) {
            run.seen.replay_told = true;
        }
    }
}

/// Tells whether the execution of a run has ended.
fn is_over(target: &Target, run: &Run) -> bool {
    match &run.owner {
        Owner::Execution { id, .. } => target.executions.get(&id.uid).is_some_and(Execution::is_terminal),
        Owner::Nobody => false,
    }
}

/// The status of its execution says now what Tekton said of a run and what was seen of it.
fn forget(run: &mut Run) {
    (run.seen, run.look) = (Seen::default(), None);
    if let Progress::Done(outcome) = &mut run.progress {
        (outcome.reason, outcome.message) = Default::default();
    }
}
