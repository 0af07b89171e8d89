//! Rule 1: the target is not free.
//!
//! If a run of another execution is committed or released, and unfinished or not drained, the contender is skipped. The
//! contender waits for a run that may still be withdrawn, or that is done while the status of its owner is late. A skip
//! is final, so it needs a fact that lasts.

use super::Contender;
use crate::Time;
use crate::ending::{Conflict, Skip};
use crate::execution::{Execution, ExecutionState};
use crate::explain::Finding;
use crate::name::ExecutionId;
use crate::residue::Residue;
use crate::retry::NextAttempt;
use crate::run::{CancelReason, Owner, Presence, Run};
use crate::target::{OwnerRead, Target};
use crate::verdict::Fact;
use crate::verdict::Verdict;
use crate::waiting::Waiting;

/// Skips an execution whose target is not free, or makes it wait.
pub(super) fn rule(contender: &Contender<'_>) -> Finding {
    Finding::of(taken(contender), "the target is free")
}

fn taken(contender: &Contender<'_>) -> Option<Verdict> {
    if let Some(verdict) = contender.running.iter().find_map(|other| holds(contender, other)) {
        return Some(verdict);
    }
    let is_rival = |run: &&Run| counts_against(contender, run) && !is_over(contender.target, run);
    let mut rivals: Vec<&Run> = contender.target.runs.values().filter(is_rival).collect();
    // Several runs can be unfinished only while leftovers are being deleted. All contenders then name the same run.
    rivals.sort_by_key(|run| run.number);

    let unfinished = || rivals.iter().copied().filter(|run| run.is_unfinished());
    if let Some(verdict) = unfinished().find_map(|run| busy(contender.target, run, contender.now)) {
        return Some(verdict);
    }
    if unfinished().next().is_some() {
        return Some(Verdict::Wait(Waiting::RivalUndecided));
    }
    let owner_late = rivals.iter().any(|run| contender.target.owner_of(run).is_some_and(|owner| !owner.is_terminal()));
    if let Some(verdict) = rivals.iter().find_map(|run| elsewhere(contender.target, run)) {
        return Some(verdict);
    }
    let run_missing = || contender.running.iter().any(|other| is_running_on_nothing(contender, other));
    if owner_late || run_missing() {
        return Some(Verdict::Wait(Waiting::OwnerLate));
    }
    let left = contender.target.residue.values().filter(|residue| !residue.owner.is(&contender.execution.id));
    left.min_by_key(|residue| (residue.created, &residue.id.uid)).map(draining)
}

/// Returns whether a run no longer holds the target: it is finished, and its owner is known to have ended. Most runs of
/// a long history are over.
fn is_over(target: &Target, run: &Run) -> bool {
    !run.is_unfinished() && target.owner_of(run).is_some_and(Execution::is_terminal)
}

/// Returns whether a run counts against a contender: it belongs to another execution and, at the look, precedes the
/// contender's own run. A run without an owner, or one that never starts, counts only if an execution is committed to
/// it.
fn counts_against(contender: &Contender<'_>, run: &Run) -> bool {
    if run.never_starts() && contender.target.committed_to(run).is_none() {
        return false;
    }
    let of_another = match &run.owner {
        Owner::Execution { .. } => !run.is_owned_by(&contender.execution.id),
        Owner::Nobody => contender.target.committed_to(run).is_some(),
    };
    of_another && contender.run.is_none_or(|mine| run.precedes(mine))
}

/// Returns a skip or a wait for an unfinished run that will not be withdrawn, because it is committed or released.
fn busy(target: &Target, run: &Run, now: Time) -> Option<Verdict> {
    let committed = target.committed_to(run);
    if run.is_pending() && committed.is_none() {
        return None;
    }
    let (holder, workflow_id) = match (&run.owner, committed) {
        (Owner::Execution { id, workflow_id, .. }, _) => (id, &**workflow_id),
        (Owner::Nobody, Some(execution)) => (&execution.id, &*execution.workflow_id),
        (Owner::Nobody, None) => return None,
    };
    let started_at = match committed.map(|owner| &owner.state) {
        Some(ExecutionState::Running { started_at: Some(started_at), .. }) => *started_at,
        _ => run.created,
    };
    if run.is_leaving() && target.is_bare(run) {
        // The run is over in a moment, so the target is not busy for long enough to justify a skip.
        return Some(Verdict::Wait(Waiting::Leaving(run.id.clone())));
    }
    let conflict = Conflict {
        holder: holder.clone(),
        workflow_id: workflow_id.into(),
        started_at,
        deleted: target.owner_of(run).is_none() && is_deleted(run),
        draining: false,
        next: None,
        unanswered: run.unanswered(None, now).map(Box::new),
    };
    Some(Verdict::Skip { skip: Skip::ResourceBusy(conflict), fact: Fact::Unfinished(run.id.clone()) })
}

/// Returns whether the owner of a run is known to be deleted.
fn is_deleted(run: &Run) -> bool {
    run.cancel_reason == Some(CancelReason::OwnerDeleted)
        || matches!(run.owner, Owner::Execution { presence: Presence::Gone, .. })
}

/// Returns whether another execution is Running without a run of its own. It ends soon, and holds the target until
/// then.
fn is_running_on_nothing(contender: &Contender<'_>, other: &Execution) -> bool {
    match &other.state {
        ExecutionState::Running { run, .. } => {
            other.id.uid != contender.execution.id.uid
                && run.as_ref().is_none_or(|run| contender.target.own_run_named(&other.id, run).is_none())
        }
        _ => false,
    }
}

/// Returns a skip if another execution waits for its next attempt: it holds the target, even if its next run is already
/// pending. A contender with a pending run is skipped, too: otherwise each would wait for the other.
fn holds(contender: &Contender<'_>, other: &Execution) -> Option<Verdict> {
    if other.id.uid == contender.execution.id.uid {
        return None;
    }
    let next = other.next_attempt()?;
    let started_at = match other.state {
        ExecutionState::Running { started_at: Some(started_at), .. } => started_at,
        _ => other.created,
    };
    Some(waits(&other.id, &other.workflow_id, started_at, next))
}

fn waits(holder: &ExecutionId, workflow_id: &str, started_at: Time, next: NextAttempt) -> Verdict {
    let (id, workflow_id, next) = (holder.clone(), workflow_id.into(), Some(Box::new(next)));
    let conflict =
        Conflict { holder: id, workflow_id, started_at, deleted: false, draining: false, next, unanswered: None };
    Verdict::Skip { skip: Skip::ResourceBusy(conflict), fact: Fact::Holds(holder.clone()) }
}

/// Returns the verdict for the finished run of an execution that no watch delivers. The run frees the target when that
/// execution has ended.
fn elsewhere(target: &Target, run: &Run) -> Option<Verdict> {
    let Owner::Execution { id, workflow_id, presence: Presence::Unwatched } = &run.owner else { return None };
    if target.owner_of(run).is_some() {
        return None;
    }
    match target.memory.unwatched_owners.get(&id.uid).map(|read| &read.found) {
        Some(OwnerRead::Over) => None,
        Some(OwnerRead::Waits { started_at, next }) => Some(waits(id, workflow_id, *started_at, next.clone())),
        Some(OwnerRead::Late) | None => Some(Verdict::Wait(Waiting::OwnerLate)),
    }
}

/// Returns the verdict for a task or pod that is left after every run is done and its owner has ended.
fn draining(residue: &Residue) -> Verdict {
    let Owner::Execution { id, workflow_id, .. } = &residue.owner else {
        return Verdict::Wait(Waiting::Draining);
    };
    let (holder, workflow_id, started_at) = (id.clone(), workflow_id.clone(), residue.created);
    let conflict =
        Conflict { holder, workflow_id, started_at, deleted: false, draining: true, next: None, unanswered: None };
    Verdict::Skip { skip: Skip::ResourceBusy(conflict), fact: Fact::Draining(residue.id.clone()) }
}
