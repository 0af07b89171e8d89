//! What stays of a record when a newer one of the same object comes, and what is known of runs' owners.

use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::Uid;
use wfe_core::run::{Owner, Presence, Run};
use wfe_core::target::Target;

use super::Kind;
use super::expect::{self, Expected};

/// The answer to a write can come after the watch has delivered it.
pub(super) fn already_seen(target: &Target, expected: &Expected) -> bool {
    match expected {
        Expected::Version { kind, uid, version } => {
            let seen = match kind {
                Kind::Execution => target.executions.get(uid).map(|execution| &execution.version),
                Kind::Run => target.runs.get(uid).map(|run| &run.version),
                // Nothing else is written.
                Kind::TaskRun | Kind::CustomRun | Kind::Pod | Kind::Namespace => None,
            };
            seen.is_some_and(|seen| expect::at_least(seen, version))
        }
        Expected::Absence { uid } => !target.runs.contains_key(uid),
    }
}

/// What this process knows of an undecided execution beside its object stays while it is undecided.
pub(super) fn keep_memory(execution: &mut Execution, known: &Execution) {
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

pub(super) fn keep_presence(run: &mut Run, known: &Run) {
    if let (Owner::Execution { id, presence, .. }, Owner::Execution { id: known_id, presence: known, .. }) =
        (&mut run.owner, &known.owner)
        && id.uid == known_id.uid
    {
        *presence = *known;
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
