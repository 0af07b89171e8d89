//! Reads owners of finished runs if the owners live in namespaces that this process does not watch (section 11.4). If
//! such an owner waits for its next attempt, it holds the target, and only a live read shows that.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision};
use crate::moment::after;
use crate::name::{ExecutionId, Uid};
use crate::run::{Owner, Presence, Progress};
use crate::target::{OwnerRead, Target};

/// How soon an owner that has not ended is read again.
const AGAIN: Duration = Duration::from_secs(10);

/// Requests the reads, if an execution wants the target.
pub(super) fn read(target: &Target, now: Time, decision: &mut Decision) {
    let wants = target.executions.values().any(|it| it.is_undecided() || it.next_attempt().is_some());
    if !wants {
        return;
    }
    let mut owners: BTreeMap<&Uid, &ExecutionId> = BTreeMap::new();
    for run in target.runs.values().filter(|run| run.memory.seen.is_over || matches!(run.progress, Progress::Done(_))) {
        if let Owner::Execution { id, presence: Presence::Unwatched, .. } = &run.owner
            && target.owner_of(run).is_none()
        {
            owners.insert(&id.uid, id);
        }
    }
    for (uid, owner) in owners {
        match target.memory.unwatched_owners.get(uid) {
            Some(read) if read.found == OwnerRead::Over => {}
            Some(read) if now < after(read.at, AGAIN) => decision.wake_at(after(read.at, AGAIN)),
            _ => decision.actions.push(Action::ReadOwner { owner: owner.clone() }),
        }
    }
}
