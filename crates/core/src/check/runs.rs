//! What becomes of a run that may not (SPEC sections 5 and 16).

use super::actions::Check;
use super::guard::goes_on;
use crate::execution::{Execution, ExecutionState};
use crate::name::{ExecutionId, RunId};
use crate::run::{Owner, Progress, Run};
use crate::verdict::Fact;

impl Check<'_> {
    pub(super) fn release(&mut self, run: &RunId) {
        let found = self.target.runs.get(&run.uid);
        let fits = found.is_some_and(|found| {
            let mut executions = self.target.executions.values();
            let committed = executions.any(|it| {
                matches!(&it.state, ExecutionState::Running { run: Some(it), .. } if it.uid == run.uid)
                    && goes_on(it, self.target.guard)
                    && (found.owner.is(&it.id) || found.owner == Owner::Nobody)
            });
            found.is_pending() && committed
        });
        self.expect("5", fits, || format!("released {run}"));
    }

    pub(super) fn delete(&mut self, run: &RunId) {
        let Some(found) = self.target.runs.get(&run.uid) else { return };
        self.expect("16.7", found.owner != Owner::Nobody, || format!("deleted {run}, which is a stranger's"));
        // Another operator may be committing to it now, unless its owner's status says that it never will.
        let may_commit = self.target.executions.values().any(|it| {
            let may_be_tried_again = matches!(it.state, ExecutionState::Running { .. }) && it.retry.is_some();
            found.is_owned_by(&it.id)
                && (may_be_tried_again || matches!(it.state, ExecutionState::Undecided { .. }))
                && !it.deleting
                && self.highest_tried(it).is_none_or(|highest| highest < found.number)
        });
        let needed = matches!(found.progress, Progress::Released)
            || found.is_pending() && (self.is_committed(found) && !self.is_release_overdue(found) || may_commit);
        self.expect("5", !needed, || format!("deleted {run}, which is needed"));
        self.expect("5", !found.deleting, || format!("deleted {run} a second time"));
    }

    /// A finished run takes with it what it made: what still runs of that would be nobody's.
    pub(super) fn reads_that_nothing_is_left(&mut self, run: &RunId, facts: &[Fact]) {
        let is_done = self.target.runs.get(&run.uid).is_some_and(|run| matches!(run.progress, Progress::Done(_)));
        let is_read = facts.iter().any(|fact| matches!(fact, Fact::NothingLeft(it) if it == run));
        self.expect("5", !is_done || is_read, || format!("deleted {run} and did not read what is left of it"));
    }

    pub(super) fn give_up(&mut self, execution: &ExecutionId, number: u64) {
        let Some(found) = self.execution(execution) else { return };
        let undecided = matches!(found.state, ExecutionState::Undecided { .. });
        let own = self.target.runs.values().filter(|run| run.is_owned_by(execution)).map(|run| run.number).max();
        let fits = undecided && own == Some(number) && found.run_sequence.is_none_or(|before| before < number);
        self.expect("5", fits, || format!("{execution} gives {number} up, and has {own:?}"));
    }

    /// A status that says Running and names no run is damage: the run may be there.
    pub(super) fn looks_for_its_run(&mut self, execution: &Execution, facts: &[Fact]) {
        let is_unnamed = matches!(execution.state, ExecutionState::Running { run: None, .. });
        let looks = facts.iter().any(|fact| matches!(fact, Fact::NoRunOf(it) if *it == execution.id));
        self.expect("9", !is_unnamed || looks, || {
            format!("{} names no run, and ends without a look whether it has one", execution.id)
        });
    }

    pub(super) fn cancel(&mut self, run: &RunId) {
        let Some(found) = self.target.runs.get(&run.uid) else { return };
        self.expect("5", found.is_unfinished() && !found.cancelled, || format!("cancelled {run} for nothing"));
        let owner_known = matches!(&found.owner, Owner::Execution { id, .. } if self.execution(id).is_some());
        let allowed = self.is_committed(found) || !owner_known;
        self.expect("16.7", allowed, || format!("cancelled {run} of somebody else"));
    }

    /// Tells whether the release of a run has been refused for as long as the start deadline, by anything but a right
    /// that the operator itself lacks.
    fn is_release_overdue(&self, run: &Run) -> bool {
        let tried = run.memory.release_tried.and_then(|first| (self.now - first).to_std().ok());
        let is_nobodys_fault_but_ours = self.target.memory.trouble.as_ref().is_none_or(|it| it.own().is_some());
        !is_nobodys_fault_but_ours && tried.is_some_and(|tried| tried >= self.policy.start_deadline)
    }
}
