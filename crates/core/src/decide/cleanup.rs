//! Deletes runs that no execution uses: pending runs that no execution can commit to any more, runs of deleted
//! executions, and expired runs. Also reports a target that does not drain.

use std::time::Duration;

use super::cancelling;
use crate::Time;
use crate::action::{Action, Announce, Decision, RunChange, Unneeded};
use crate::chain::RunNumber;
use crate::execution::{Execution, ExecutionState};
use crate::moment::after;
use crate::name::ExecutionId;
use crate::policy::Policy;
use crate::run::{CancelReason, Owner, Presence, Progress, Run, Stays};
use crate::target::Target;
use crate::verdict::Fact;

/// How long the run of a schedule's child is kept after its end, even if the child is gone, so that its logs can be
/// collected (section 12.7).
const AFTER_ITS_CHILD: Duration = Duration::from_mins(1);

/// Requests the deletions and cancellations of the target's runs.
pub(super) fn clear_away(target: &Target, policy: &Policy, now: Time, decision: &mut Decision) {
    let newest_unfinished = target.runs.values().filter(|run| run.is_unfinished()).map(|run| run.number).max();
    for run in target.runs.values() {
        let Owner::Execution { id, presence, .. } = &run.owner else {
            continue; // a run without an owner is never touched
        };
        let unproven = match (target.owner_of(run), presence) {
            (Some(owner), _) => {
                if let Some(why) = unneeded(target, owner, run) {
                    decision.actions.extend(delete(run, why, None));
                } else if owner.is_terminal() {
                    expire(target, policy, run, newest_unfinished, None, now, decision);
                }
                continue;
            }
            (None, Presence::Unwatched) => continue,
            (None, Presence::Gone) => None,
            (None, Presence::Watched) => Some(id.clone()),
        };
        match run.progress {
            Progress::Pending => decision.actions.extend(delete(run, Unneeded::Leftover, unproven)),
            Progress::Released if run.is_unfinished() => {
                if !run.cancelled {
                    let cancelled = RunChange::Cancelled(CancelReason::OwnerDeleted);
                    decision.actions.push(run.change_if(owner_gone(unproven), cancelled));
                }
                // No status can show this; an event, a gauge and the messages to rivals do.
                cancelling::see_to(run, id, None, now, decision);
            }
            Progress::Released => {}
            Progress::Done(_) => expire(target, policy, run, newest_unfinished, unproven, now, decision),
        }
    }
    warn_of_slow_drain(target, policy, now, decision);
}

/// Requests a deletion once. A run that is being deleted disappears when its last finalizer is removed.
fn delete(run: &Run, why: Unneeded, gone: Option<ExecutionId>) -> Option<Action> {
    let mut facts = owner_gone(gone);
    if why == Unneeded::Expired {
        // The watches of tasks and pods may be behind. For tasks that outlive their run, it is unknown how long they
        // drain.
        facts.push(Fact::NothingLeft(run.id.clone()));
    }
    (!run.deleting).then(|| run.change_if(facts, run.deleted(why)))
}

/// Requires a live read of an unknown owner, unless the owner is already proven to be gone.
fn owner_gone(unproven: Option<ExecutionId>) -> Vec<Fact> {
    unproven.map(Fact::OwnerGone).into_iter().collect()
}

/// Returns why a pending run is not needed, if no owner has committed to it or may still do so. An owner that cannot
/// commit in this view cannot do so in a newer one, so no execution loses a run that it needs.
fn unneeded(target: &Target, owner: &Execution, run: &Run) -> Option<Unneeded> {
    if !run.is_pending() || owner.is_running(&run.id) || may_be_next(target, owner, run) {
        None
    } else if !owner.is_undecided() {
        Some(Unneeded::Leftover)
    } else {
        owner.has_given_up(run).then_some(Unneeded::Withdrawn)
    }
}

/// Returns whether a Running execution may still commit to a pending run for its next attempt. That is possible for
/// every run above its last number, because numbers only grow. The operator that commits may have a newer view.
fn may_be_next(target: &Target, owner: &Execution, run: &Run) -> bool {
    let is_running = matches!(owner.state, ExecutionState::Running { .. }) && !owner.deleting;
    is_running && owner.retry.is_some() && target.last_number_of(owner).is_none_or(|last| run.number > last)
}

/// Deletes a finished run when it is older than the retention and drained, and no newer run is unfinished (section
/// 5.3).
fn expire(
    target: &Target,
    policy: &Policy,
    run: &Run,
    newest_unfinished: Option<RunNumber>,
    unproven: Option<ExecutionId>,
    now: Time,
    decision: &mut Decision,
) {
    let Progress::Done(outcome) = &run.progress else { return };
    if run.deleting {
        return; // already requested; the run disappears when its finalizers are removed
    }
    if newest_unfinished.is_some_and(|newest| newest > run.number) || !target.residue.is_empty() {
        return; // the end of that run or of the remains triggers a decision
    }
    let is_left = run.stays == Stays::WithItsExecution && target.owner_of(run).is_none();
    let stays = if is_left { policy.retention.min(AFTER_ITS_CHILD) } else { policy.retention };
    let expires = after(outcome.completed_at.unwrap_or(run.created), stays);
    if expires <= now {
        decision.actions.extend(delete(run, Unneeded::Expired, unproven));
    } else {
        decision.wake_at(expires);
    }
}

/// Reports once that a target has been draining for too long. The target stays locked (section 5.6).
fn warn_of_slow_drain(target: &Target, policy: &Policy, now: Time, decision: &mut Decision) {
    if target.drain_warned || !target.is_draining() {
        return;
    }
    let left = target.residue.values().filter_map(|residue| match &residue.owner {
        Owner::Execution { id, .. } => Some((residue, id)),
        Owner::Nobody => None,
    });
    let Some((residue, holder)) = left.min_by_key(|(residue, _)| (residue.created, &residue.id.uid)) else {
        return;
    };
    let ended = target.runs.values().filter_map(|run| match &run.progress {
        Progress::Done(outcome) => outcome.completed_at,
        _ => None,
    });
    // If a run is deleted, its end is unknown. Its remains had started by then.
    let since = ended.max().unwrap_or(residue.created).max(residue.created);
    let deadline = after(since, policy.drain_deadline);
    if deadline <= now {
        let (holder, residue) = (holder.clone(), residue.id.clone());
        decision.actions.push(Action::Tell(Announce::DrainSlow { holder, residue, since }));
    } else {
        decision.wake_at(deadline);
    }
}
