//! Collects evidence about runs while they run, and keeps it until their execution has ended.

use std::collections::HashSet;

use wfe_core::Time;
use wfe_core::evidence::{Absence, Started};
use wfe_core::execution::{Execution, ExecutionState, Lost};
use wfe_core::findings::Findings;
use wfe_core::name::Uid;
use wfe_core::run::{Look, Owner, Progress, Run};
use wfe_core::target::Target;
use wfe_tekton::{Evidence, Sighting};

use super::Entry;

/// The limit, for each target, of runs that have evidence although no watch has delivered them yet. One run is created
/// at a time, and each rival operator may add one.
pub(super) const MAX_STRANGERS: usize = 4;

impl Entry {
    /// Returns the evidence about a run.
    #[must_use]
    pub fn evidence(&self, run: &Uid) -> Evidence {
        self.evidence.get(run).cloned().unwrap_or_default()
    }

    /// Adds the evidence of a task or pod, and returns whether decisions need it. The run may be delivered later,
    /// because lists are in progress, or because the watch of runs is behind that of pods. The evidence collected until
    /// then may have gaps.
    pub(super) fn see(&mut self, sighting: &Sighting, is_deleted: bool, is_listing: bool) -> bool {
        let run = &sighting.run;
        match self.target.runs.get(run) {
            Some(known) if is_over(&self.target, known) => return false,
            None if !is_listing && !self.may_come(run) => return false,
            _ => {}
        }
        let is_stranger = !is_listing && !self.target.runs.contains_key(run);
        if is_stranger && !self.evidence.contains_key(run) && self.strangers() >= MAX_STRANGERS {
            return false; // `follow` takes into account that evidence may be missing
        }
        let evidence = self.evidence.get_or_insert_with(run, Evidence::default);
        if is_stranger {
            evidence.interrupt();
        }
        if is_deleted {
            evidence.observe_deletion(sighting);
        } else {
            evidence.observe(sighting);
        }
        let seen = evidence.seen();
        let Some(run) = self.target.runs.get_mut(&sighting.run) else { return false };
        let seen = seen.after(&run.memory.seen);
        let is_news = seen != run.memory.seen;
        run.memory.seen = seen;
        is_news
    }

    /// Returns whether a missing run may still be delivered: an execution has not had its turn, waits for its next
    /// attempt, or is Running on that run. Any other run is gone, or belongs to a pipeline in a pipeline.
    fn may_come(&self, run: &Uid) -> bool {
        self.target.executions.values().any(|execution| match &execution.state {
            ExecutionState::Undecided { .. } => true,
            ExecutionState::Running { run: Some(committed), .. } if committed.uid == *run => true,
            _ => execution.next_attempt().is_some(),
        })
    }

    /// Counts the runs with evidence that were not delivered yet.
    fn strangers(&self) -> usize {
        self.evidence.iter().filter(|(uid, _)| !self.target.runs.contains_key(uid)).count()
    }

    /// Adds the collected evidence to a new version of a run.
    pub(super) fn follow(&mut self, run: &mut Run, is_listing: bool) {
        if is_over(&self.target, run) {
            self.evidence.remove(&run.id.uid);
            forget(run);
            return;
        }
        let known = self.target.runs.get(&run.id.uid);
        // If the limit of missing runs is reached, evidence about this run may have been dropped.
        let is_overlooked = !self.evidence.contains_key(&run.id.uid) && self.strangers() >= MAX_STRANGERS;
        let evidence = self.evidence.get_or_insert_with(&run.id.uid, Evidence::default);
        if is_overlooked {
            evidence.interrupt();
        }
        // A watch that missed the release has missed everything after it.
        if !run.is_pending() && known.is_none_or(|known| is_listing && known.is_pending()) {
            evidence.interrupt();
        }
        evidence.observe_reason(&run.doing);
        run.memory.seen = evidence.seen().after(&run.memory.seen);
    }

    /// Records that versions of tasks or pods may have been missed.
    pub(super) fn interrupt(&mut self) {
        for (uid, evidence) in self.evidence.iter_mut() {
            if self.target.runs.get(uid).is_none_or(|run| !run.is_pending()) {
                evidence.interrupt();
            }
        }
    }

    /// Removes a deleted run. The proof that something of the run started is kept with its execution.
    pub(super) fn lose(&mut self, run: Run) {
        self.evidence.remove(&run.id.uid);
        let owner = self.target.executions.values_mut().find(|execution| execution.is_running(&run.id));
        if let (Some(owner), Some(proof)) = (owner, run.memory.seen.proof) {
            owner.remember().lost_proof = Some(Lost::Vanished(Started::Started(proof)));
        }
    }

    /// Records that a run was still pending in its last version before its deletion, so nothing ran. Evidence that
    /// something started outweighs this.
    pub(super) fn note_never_released(&mut self, uid: &Uid) {
        let Some(run) = self.target.runs.get(uid) else { return };
        if !run.is_pending() || run.memory.seen.has_started_anything {
            return;
        }
        let owner = self.target.executions.values_mut().find(|execution| execution.is_running(&run.id));
        // If this process deleted the run, the reason is recorded already.
        if let Some(owner) = owner {
            let never = || Lost::Vanished(Started::NotStarted(Absence::NoRun));
            owner.remember().lost_proof.get_or_insert_with(never);
        }
    }

    /// Removes evidence that is no longer needed: about runs whose execution has ended, and about runs that can no
    /// longer be delivered.
    pub(super) fn forget(&mut self) {
        let over: HashSet<Uid> = {
            let over = self.target.runs.values().filter(|run| is_over(&self.target, run));
            over.map(|run| run.id.uid.clone()).collect()
        };
        self.target.runs.values_mut().filter(|run| over.contains(&run.id.uid)).for_each(forget);
        let known: Vec<&Uid> = self.evidence.iter().map(|(uid, _)| uid).collect();
        let is_needed =
            |uid: &Uid| if self.target.runs.contains_key(uid) { !over.contains(uid) } else { self.may_come(uid) };
        let unneeded: HashSet<Uid> = known.into_iter().filter(|uid| !is_needed(uid)).cloned().collect();
        self.evidence.retain(|uid, _| !unneeded.contains(uid));
    }

    pub(super) fn looked(&mut self, run: &Uid, findings: Findings, is_bare: bool, at: Time) {
        if let Some(run) = self.target.runs.get_mut(run) {
            run.memory.seen.is_over |= is_bare && run.is_leaving();
            let since = run.memory.diagnosed.as_ref().map_or(at, |look| look.since);
            run.memory.diagnosed = Some(Box::new(Look { at, since, findings }));
        }
    }

    /// Records for each run in deletion since when no unfinished descendant of the run has been seen.
    pub(super) fn note_bare(&mut self, now: Time) {
        let leaving: Vec<Uid> =
            self.target.runs.values().filter(|run| run.is_leaving()).map(|run| run.id.uid.clone()).collect();
        for uid in leaving {
            let is_bare = self.target.runs.get(&uid).is_some_and(|run| self.target.is_bare(run));
            if let Some(stop) = self.target.runs.get_mut(&uid).and_then(|run| run.stop.as_mut()) {
                stop.bare_since = is_bare.then(|| stop.bare_since.unwrap_or(now));
            }
        }
    }

    pub(super) fn replay_told(&mut self, run: &Uid) {
        if let Some(run) = self.target.runs.get_mut(run) {
            run.memory.seen.replay_told = true;
        }
    }
}

/// Returns whether the execution of a run has ended, or its status records that this run failed and another attempt
/// follows.
fn is_over(target: &Target, run: &Run) -> bool {
    let is_recorded = |owner: &Execution| {
        let attempts = owner.retry.iter().flat_map(|retry| &retry.attempts);
        attempts.filter(|it| it.end.is_some()).any(|it| it.run.as_deref() == Some(&*run.id.name))
    };
    match &run.owner {
        Owner::Execution { id, .. } => {
            target.executions.get(&id.uid).is_some_and(|owner| owner.is_terminal() || is_recorded(owner))
        }
        Owner::Nobody => false,
    }
}

/// Drops what is remembered about a run after the status of its execution contains it.
fn forget(run: &mut Run) {
    run.memory = std::mem::take(&mut run.memory).kept();
    if let Progress::Done(outcome) = &mut run.progress {
        (outcome.reason, outcome.message) = Default::default();
    }
}
