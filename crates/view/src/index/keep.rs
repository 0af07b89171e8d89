//! Decides which remembered facts survive when a newer version of an object is delivered, and what is known about the
//! owners of runs.

use wfe_core::Time;
use wfe_core::action::{Action, Change, Decision, RunChange, Says, Unneeded, Write};
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::run::{Owner, Presence, Run};
use wfe_core::target::Target;
use wfe_core::uid_map::{SmallMap, UidMap};
use wfe_core::waiting::Waiting;

use super::Kind;
use super::expect::{self, Expected};

/// Returns whether a watch has already delivered a write whose answer arrives only now. Even the deletion of the object
/// may have been delivered, so deleted executions and runs are recorded. A missing schedule was deleted or has another
/// target now, because this process creates no schedules.
pub(super) fn already_seen(target: &Target, vanished: &SmallMap<()>, expected: &Expected) -> bool {
    let object = expected.object();
    let is_there = match object.kind {
        Kind::Execution => target.executions.contains_key(&object.uid),
        Kind::Schedule => target.schedules.get(&object.uid).is_some(),
        _ => target.runs.contains_key(&object.uid),
    };
    match (expected, object.kind) {
        (Expected::Absence { .. }, _) => !is_there,
        (Expected::Version { version, .. }, Kind::Execution) => {
            let known = target.executions.get(&object.uid);
            vanished.get(&object.uid).is_some()
                || known.is_some_and(|execution| expect::at_least(&execution.version, version))
        }
        (Expected::Version { version, .. }, Kind::Schedule) => {
            let known = target.schedules.get(&object.uid);
            known.is_none_or(|schedule| expect::at_least(&schedule.version, version))
        }
        (Expected::Version { version, .. }, Kind::Run) => {
            let known = target.runs.get(&object.uid);
            vanished.get(&object.uid).is_some() || known.is_some_and(|run| expect::at_least(&run.version, version))
        }
        (Expected::Version { .. }, _) => true, // other kinds are never written
    }
}

/// Forgets the outcome of earlier tries to create or release a run, or to create a child. One fact stays: a create of a
/// child whose answer was lost may have succeeded, even if another process has led since.
pub(super) fn forget_tries(target: &mut Target) {
    target.memory.trouble = None;
    let remembered = target.executions.values_mut().filter_map(|execution| execution.memory.as_mut());
    remembered.for_each(|memory| memory.forget_tries());
    for run in target.runs.values_mut() {
        // The time allowed for examining a failed run begins anew, and so do requests to cancel a run: Tekton may have
        // been down.
        (run.memory.release_tried, run.memory.diagnosed) = (None, None);
        if let Some(stop) = &mut run.stop {
            stop.asked_at = None;
        }
    }
    target.schedules.values_mut().for_each(|schedule| schedule.memory.create_refused = None);
}

/// Ends the tries that a decision does not continue: only time in which this process tries counts. A try also continues
/// after a decision to give it up, because the write of that decision may fail.
pub(super) fn end_other_tries(target: &mut Target, decision: &Decision) {
    let is_ours = target.memory.trouble.as_ref().is_some_and(|trouble| !trouble.has_deadline());
    let is_created = |uid: &Uid| {
        let waits = |(id, it): &(ExecutionId, Waiting)| id.uid == *uid && matches!(it, Waiting::TektonUnavailable(_));
        let creates = |it: &Action| match it {
            Action::Create { execution, .. } | Action::Write(Write { execution, says: Says::Ended { .. }, .. }) => {
                execution.uid == *uid
            }
            _ => false,
        };
        decision.actions.iter().any(creates) || decision.waiting.iter().any(waits)
    };
    for execution in target.executions.values_mut() {
        if let Some(memory) = execution.memory.as_mut().filter(|memory| memory.first_try.is_some())
            && (is_ours || !is_created(&execution.id.uid))
        {
            memory.first_try = None;
        }
    }
    let is_released = |uid: &Uid| {
        decision.actions.iter().any(|it| match it {
            Action::Change(Change { run, to, .. }) => {
                let goes_on = matches!(to, RunChange::Released | RunChange::Deleted { why: Unneeded::Unreleased, .. });
                goes_on && run.uid == *uid
            }
            _ => false,
        })
    };
    for run in target.runs.values_mut().filter(|run| run.memory.release_tried.is_some()) {
        if is_ours || !is_released(&run.id.uid) {
            run.memory.release_tried = None;
        }
    }
}

/// Sets the time at which a run was released: the time on the object if it is not in the future, else the known time,
/// else now.
pub(super) fn keep_release(run: &mut Run, known: Option<&Run>, now: Time) {
    let said = run.released_at.filter(|at| *at <= now);
    run.released_at =
        if run.is_pending() { None } else { said.or_else(|| known.and_then(|known| known.released_at)).or(Some(now)) };
}

/// Keeps what is remembered about a request to stop a run. A person's cancellation has no time, so its time is when
/// this process first saw it.
pub(super) fn keep_stop(run: &mut Run, known: Option<&mut Run>, now: Time) {
    let Some(stop) = &mut run.stop else { return };
    // A time in the future comes from another clock.
    stop.since = stop.since.filter(|at| *at <= now);
    if let Some(known) = known.and_then(|known| known.stop.take()) {
        (stop.asked_at, stop.told, stop.bare_since) = (known.asked_at, known.told, known.bare_since);
        stop.since = stop.since.or(known.since);
    }
    stop.since = stop.since.or(Some(now));
}

/// Ends the tries to create a run, because a run exists. If that run is withdrawn, the tries and their time begin anew.
/// The run of an earlier attempt does not end the tries for the next attempt.
pub(super) fn end_tries(execution: &mut Execution, run: &Run) {
    let is_earlier = execution.next_attempt().is_some() && execution.run_sequence >= Some(run.number);
    if let Some(memory) = execution.memory.as_mut().filter(|_| !is_earlier) {
        memory.first_try = None;
    }
}

/// Finds the run of each Running execution whose status names none. Our CRD allows no such status, so another CRD must
/// have dropped the field. The newest run with the uid of the execution is taken.
pub(super) fn name_runs(target: &mut Target) {
    let (executions, runs) = (&mut target.executions, &target.runs);
    for execution in executions.values_mut().filter(|execution| !execution.elsewhere) {
        let ExecutionState::Running { run: run @ None, started_at } = &mut execution.state else { continue };
        let own = runs.values().filter(|it| it.owner.is(&execution.id));
        let Some(found) = own.max_by_key(|it| (it.is_unfinished(), it.number)) else { continue };
        (*run, *started_at) = (Some(found.id.clone()), started_at.or(found.released_at).or(Some(found.created)));
        execution.remember().found_run = Some(found.number);
    }
}

pub(super) fn keep_presence(run: &mut Run, known: &Run) {
    if let (Owner::Execution { id, presence, .. }, Owner::Execution { id: known_id, presence: known, .. }) =
        (&mut run.owner, &known.owner)
        && id.uid == known_id.uid
    {
        *presence = *known;
    }
}

/// Lets an owner share equal strings with its execution, because there may be tens of thousands of each.
pub(super) fn share_strings(owner: &mut Owner, executions: &UidMap<Execution>) {
    if let Owner::Execution { id, .. } = owner
        && let Some(execution) = executions.get(&id.uid).filter(|execution| execution.id == *id)
    {
        id.clone_from(&execution.id);
    }
}

pub(super) fn place_owner(run: &mut Run, watch_namespace: Option<&str>) {
    if let Owner::Execution { id, presence, .. } = &mut run.owner
        && watch_namespace.is_some_and(|namespace| namespace != &*id.namespace)
    {
        *presence = Presence::Unwatched;
    }
}

/// Returns whether an execution has a run.
pub(super) fn owns_a_run(target: &Target, owner: &Uid) -> bool {
    target.runs.values().any(|run| run.owner.execution().is_some_and(|id| id.uid == *owner))
}

/// Forgets the live reads of executions that have no run any more.
pub(super) fn forget_owners(target: &mut Target) {
    let Target { runs, memory, .. } = target;
    let owns = |owner: &Uid| runs.values().any(|run| run.owner.execution().is_some_and(|id| id.uid == *owner));
    memory.unwatched_owners.retain(owns);
}

pub(super) fn mark_gone(target: &mut Target, owner: &Uid) {
    for run in target.runs.values_mut() {
        if let Owner::Execution { id, presence, .. } = &mut run.owner
            && id.uid == *owner
        {
            *presence = Presence::Gone;
        }
    }
}
