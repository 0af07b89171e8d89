//! What stays of a record when a newer one of the same object comes, and what is known of runs' owners.

use wfe_core::by_uid::ByUid;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::Uid;
use wfe_core::run::{Owner, Presence, Run};
use wfe_core::target::Target;

use super::Kind;
use super::expect::{self, Expected};

/// The answer to a write can come after the watch has delivered it, and even after it has delivered the deletion of what
/// was written: an execution that is not there was deleted, as we make none, and of runs it is known which vanished.
pub(super) fn already_seen(target: &Target, vanished: &ByUid<()>, expected: &Expected) -> bool {
    match expected {
        Expected::Version { kind: Kind::Execution, uid, version } => {
            target.executions.get(uid).is_none_or(|execution| expect::at_least(&execution.version, version))
        }
        Expected::Version { kind: Kind::Run, uid, version } => {
            vanished.contains_key(uid)
                || target.runs.get(uid).is_some_and(|run| expect::at_least(&run.version, version))
        }
        // Nothing else is written.
        Expected::Version { .. } => true,
        Expected::Absence { kind: Kind::Execution, uid } => !target.executions.contains_key(uid),
        Expected::Absence { uid, .. } => !target.runs.contains_key(uid),
    }
}

/// What this process knows of an execution beside its object stays: of an undecided one while it is undecided, of one
/// that runs while it runs.
pub(super) fn keep_memory(execution: &mut Execution, known: &Execution) {
    if matches!(execution.state, ExecutionState::Running { .. }) {
        execution.run_shown_at = known.run_shown_at;
        execution.lost_proof.clone_from(&known.lost_proof);
    }
    if let (
        ExecutionState::Undecided { refusal, first_try, .. },
        ExecutionState::Undecided { refusal: known_refusal, first_try: known_try, .. },
    ) = (&mut execution.state, &known.state)
    {
        refusal.clone_from(known_refusal);
        *first_try = *known_try;
        execution.waits_since = known.waits_since;
    }
}

/// What came of earlier tries to create a run says nothing any more.
pub(super) fn forget_tries(execution: &mut Execution) {
    if let ExecutionState::Undecided { refusal, first_try, .. } = &mut execution.state {
        (*refusal, *first_try) = (None, None);
    }
}

/// The tries to create a run have ended with one. Should it be withdrawn, they begin anew, and with them their time.
pub(super) fn end_tries(execution: &mut Execution) {
    if let ExecutionState::Undecided { first_try, .. } = &mut execution.state {
        *first_try = None;
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

/// Lets an owner share the strings of its execution, where both say the same: there may be tens of thousands of each.
pub(super) fn share_strings(owner: &mut Owner, executions: &ByUid<Execution>) {
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
        *presence = Presence::Elsewhere;
    }
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
