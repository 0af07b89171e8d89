//! The places of a target in the limits (section 18).

use super::{OwnerRead, Target};
use crate::execution::{Execution, ExecutionState};
use crate::limit::{LimitSet, Limits};
use crate::run::{Owner, Presence, Run};

impl Target {
    /// Returns the limits that match a workflow on the target. An unknown workflow or target matches every limit, which
    /// allows fewer runs.
    #[must_use]
    pub fn limits_matching(&self, workflow_id: Option<&str>, limits: &Limits) -> LimitSet {
        let matches = |wanted: Option<&str>, is: Option<&str>| wanted.is_none() || is.is_none() || wanted == is;
        let (kind, namespace) = match &self.name {
            // A cluster-scoped object has the namespace "", which no limit can name.
            Some(name) => (Some(name.kind()), Some(name.namespace().unwrap_or_default())),
            None => (None, None),
        };
        limits.matching(|limit| {
            matches(limit.kind.as_deref(), kind)
                && matches(limit.namespace.as_deref(), namespace)
                && matches(limit.workflow_id.as_deref(), workflow_id)
        })
    }

    /// Returns the limits that match an execution. An analysis for a triage matches none.
    #[must_use]
    pub fn limits_of(&self, execution: &Execution, limits: &Limits) -> LimitSet {
        if execution.analyses() {
            return LimitSet::default();
        }
        self.limits_matching(Some(&execution.workflow_id), limits)
    }

    /// Returns whether an execution, or the schedule that created it, has a place.
    #[must_use]
    pub fn has_place(&self, execution: &Execution) -> bool {
        let schedule = execution.child.as_ref().filter(|child| !child.analyses).map(|child| &child.schedule);
        self.places.are_given_to(&execution.id.uid) || schedule.is_some_and(|uid| self.places.are_given_to(uid))
    }

    /// Returns the limits in which the target holds a place. They match what keeps the target busy (section 5.6), or a
    /// pending run whose execution may still commit to it.
    #[must_use]
    pub fn limits_in_use(&self, limits: &Limits) -> LimitSet {
        let running = self.executions.values().filter(|it| matches!(it.state, ExecutionState::Running { .. }));
        let running = running.map(|execution| self.limits_of(execution, limits));
        let runs =
            self.runs.values().filter(|run| self.uses_place(run)).map(|run| self.limits_of_owner(&run.owner, limits));
        let left = self.residue.values().map(|residue| self.limits_of_owner(&residue.owner, limits));
        running.chain(runs).chain(left).fold(LimitSet::default(), LimitSet::union)
    }

    fn limits_of_owner(&self, owner: &Owner, limits: &Limits) -> LimitSet {
        match owner {
            Owner::Execution { id, workflow_id, .. } => match self.executions.get(&id.uid) {
                Some(execution) => self.limits_of(execution, limits),
                None => self.limits_matching(Some(workflow_id), limits),
            },
            Owner::Nobody => self.limits_matching(None, limits),
        }
    }

    fn uses_place(&self, run: &Run) -> bool {
        let Owner::Execution { id, presence, .. } = &run.owner else { return false };
        let owner = self.executions.get(&id.uid);
        if !run.is_unfinished() {
            // The run is finished, but its execution, which no watch delivers, waits for its next attempt.
            let read = self.memory.unwatched_owners.get(&id.uid).map(|read| &read.found);
            return owner.is_none() && !run.never_starts() && matches!(read, Some(OwnerRead::Waits { .. }));
        }
        if !run.is_pending() {
            return true;
        }
        match owner {
            Some(owner) => owner.is_undecided() && !owner.has_given_up(run) || owner.is_running(&run.id),
            None => *presence != Presence::Gone,
        }
    }
}
