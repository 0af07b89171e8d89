//! Checks the changes of runs (sections 5 and 16).

use super::Check;
use super::attempts::waiting_entry;
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
        self.require("5", fits, || format!("released {run}"));
    }

    pub(super) fn delete(&mut self, run: &RunId) {
        let Some(found) = self.target.runs.get(&run.uid) else { return };
        self.require("16.7", found.owner != Owner::Nobody, || format!("deleted {run}, which is a stranger's"));
        // Another operator may be committing to the run now, unless the status of its owner rules that out.
        let may_commit = self.target.executions.values().any(|it| {
            let may_be_tried_again = matches!(it.state, ExecutionState::Running { .. }) && it.retry.is_some();
            found.is_owned_by(&it.id)
                && (may_be_tried_again || matches!(it.state, ExecutionState::Undecided { .. }))
                && !it.deleting
                && self.highest_tried(it).is_none_or(|highest| highest < found.number)
        });
        let needed = matches!(found.progress, Progress::Released)
            || found.is_pending() && (self.is_committed(found) && !self.is_release_overdue(found) || may_commit);
        self.require("5", !needed, || format!("deleted {run}, which is needed"));
        self.require("5", !found.deleting, || format!("deleted {run} a second time"));
    }

    /// Requires that a live read finds nothing left of a finished run before the run is deleted. Otherwise a pod that
    /// still runs would have no owner.
    pub(super) fn reads_that_nothing_is_left(&mut self, run: &RunId, facts: &[Fact]) {
        let is_done = self.target.runs.get(&run.uid).is_some_and(|run| matches!(run.progress, Progress::Done(_)));
        let is_read = facts.iter().any(|fact| matches!(fact, Fact::NothingLeft(it) if it == run));
        self.require("5", !is_done || is_read, || format!("deleted {run} and did not read what is left of it"));
    }

    pub(super) fn give_up(&mut self, execution: &ExecutionId, number: u64) {
        let Some(found) = self.execution(execution) else { return };
        let undecided = matches!(found.state, ExecutionState::Undecided { .. });
        let own = self.target.runs.values().filter(|run| run.is_owned_by(execution)).map(|run| run.number).max();
        let fits = undecided && own == Some(number) && found.run_sequence.is_none_or(|before| before < number);
        self.require("5", fits, || format!("{execution} gives {number} up, and has {own:?}"));
    }

    /// Requires a live search for the run if an execution is Running and its status names no run. Such a status is
    /// damaged, and the run may exist.
    pub(super) fn looks_for_its_run(&mut self, execution: &Execution, facts: &[Fact]) {
        let is_unnamed = matches!(execution.state, ExecutionState::Running { run: None, .. });
        let looks = facts.iter().any(|fact| matches!(fact, Fact::NoRunOf(it) if *it == execution.id));
        self.require("9", !is_unnamed || looks, || {
            format!("{} names no run, and ends without a look whether it has one", execution.id)
        });
    }

    pub(super) fn cancel(&mut self, run: &RunId) {
        let Some(found) = self.target.runs.get(&run.uid) else { return };
        self.require("5", found.is_unfinished() && !found.cancelled, || format!("cancelled {run} for nothing"));
        let owner_known = matches!(&found.owner, Owner::Execution { id, .. } if self.execution(id).is_some());
        let allowed = self.is_committed(found) || !owner_known;
        self.require("16.7", allowed, || format!("cancelled {run} of somebody else"));
    }

    /// Checks that an unanswered cancel is repeated at most every ten minutes. It is not repeated for a run that is
    /// being deleted, because Tekton ignores such a run.
    pub(super) fn ask_again(&mut self, run: &RunId, count: u32) {
        let Some(found) = self.target.runs.get(&run.uid) else { return };
        let goes_on = matches!(found.progress, Progress::Released) && !found.deleting;
        let asked = found.stop.as_deref().filter(|_| goes_on);
        self.require("5", asked.is_some(), || format!("asks again to cancel {run}, which is not to be"));
        let Some(stop) = asked else { return };
        let is_late = stop.since.is_some_and(|since| self.now - since >= chrono::TimeDelta::minutes(1));
        let is_due = stop.asked_at.is_none_or(|at| self.now - at >= chrono::TimeDelta::minutes(10));
        self.require("5", is_late && is_due && count > stop.asked.max(1), || format!("asks too early to cancel {run}"));
        let owner_known = matches!(&found.owner, Owner::Execution { id, .. } if self.execution(id).is_some());
        self.require("16.7", self.is_committed(found) || !owner_known, || format!("cancelled {run} of somebody else"));
    }

    /// Checks that an examined run has failed, or is being deleted while it runs and has had no visible task or pod for
    /// half a minute.
    pub(super) fn examine(&mut self, run: &RunId) {
        let half_a_minute = chrono::TimeDelta::seconds(30);
        let fits = self.target.runs.get(&run.uid).is_some_and(|run| match &run.progress {
            Progress::Done(outcome) => !outcome.succeeded && self.is_committed(run),
            Progress::Pending => false,
            Progress::Released => {
                let uid = |owner: &Owner| owner.execution().map(|id| id.uid.clone());
                let of_run = |owner: &Owner| run.owner == Owner::Nobody || uid(owner) == uid(&run.owner);
                let is_bare = !self.target.residue.values().any(|left| of_run(&left.owner));
                let times = run.stop.iter().flat_map(|stop| [stop.deleted_at, stop.bare_since]);
                let lasts = run.stop.as_ref().is_some_and(|stop| stop.bare_since.is_some())
                    && times.flatten().all(|time| self.now - time >= half_a_minute);
                run.deleting && is_bare && lasts && !run.memory.seen.is_over
            }
        });
        self.require("9", fits, || format!("looked at {run} for nothing"));
    }

    /// Checks that no failure is written before its run was examined. If another examination may find more, the last
    /// answered one must have come at least 45 seconds after the first answered one.
    pub(super) fn has_been_read(&mut self, execution: &ExecutionId, run: Option<&Run>) {
        let failed = run.filter(|run| matches!(&run.progress, Progress::Done(outcome) if !outcome.succeeded));
        let Some(run) = failed.filter(|_| !self.waits_for_another(execution)) else { return };
        let Some(look) = run.memory.diagnosed.as_deref() else {
            return self.require("9", false, || format!("{execution} ends, and nobody has read {}", run.id));
        };
        let is_proven = run.memory.seen.proof.is_some() || run.memory.seen.opaque.is_some();
        let shown = self.execution(execution).is_some_and(|it| it.run_shown.proof.is_some());
        let waited = look.at - look.since >= chrono::TimeDelta::seconds(45);
        let may_say_more = look.findings.may_change() && !is_proven && !shown && !waited;
        self.require("9", !may_say_more, || format!("{execution} ends, and another look may find more of {}", run.id));
    }

    fn waits_for_another(&self, execution: &ExecutionId) -> bool {
        self.execution(execution).and_then(waiting_entry).is_some()
    }

    /// Returns whether the release of a run has been refused for the whole start deadline. A permission that the
    /// operator itself lacks is not counted.
    fn is_release_overdue(&self, run: &Run) -> bool {
        let tried = run.memory.release_tried.and_then(|first| (self.now - first).to_std().ok());
        let is_nobodys_fault_but_ours = self.target.memory.trouble.as_ref().is_none_or(|it| it.own().is_some());
        !is_nobodys_fault_but_ours && tried.is_some_and(|tried| tried >= self.policy.start_deadline)
    }
}
