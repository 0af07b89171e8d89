//! Checks each action.

use super::attempts::waiting_entry;
use super::guard::goes_on;
use super::{Check, Violation};
use crate::action::{Action, Change, Decision, Ending, RunChange, Says, Write};
use crate::chain::RunNumber;
use crate::ending::Skip;
use crate::evidence::{Ran, Started};
use crate::execution::{Execution, ExecutionState, Lost, Recorded, RunShown};
use crate::name::{ExecutionId, RunId};
use crate::run::{Owner, Progress, Run};
use crate::target::OwnerRead;
use crate::verdict::Fact;

impl<'a> Check<'a> {
    pub(super) fn run(mut self, decision: &Decision) -> Vec<Violation> {
        for action in &decision.actions {
            match action {
                Action::Create { execution, number, .. } => self.create(execution, *number),
                Action::Write(write) => self.write(write),
                Action::Examine { run } => self.examine(run),
                Action::Ask { execution, failed, .. } => self.ask(execution, failed),
                Action::ReadOwner { owner } => self.read_owner(owner),
                Action::Skip { skipped, skip, fact } => {
                    for (execution, _) in skipped {
                        self.skip(execution, skip, fact);
                    }
                }
                Action::Change(Change { run, facts, to }) => match to {
                    RunChange::Released => self.release(run),
                    RunChange::Cancelled(_) => self.cancel(run),
                    RunChange::AskedAgain(count) => self.ask_again(run, *count),
                    RunChange::Deleted { .. } => {
                        self.delete(run);
                        self.reads_that_nothing_is_left(run, facts);
                    }
                },
                Action::Remove { execution, .. } => self.remove(execution),
                Action::CreateChild { .. } | Action::Record(_) | Action::Triage(_) | Action::Tell(_) => {}
            }
        }
        self.whole(decision);
        self.holds_in_the_wait(decision);
        self.schedules(decision);
        self.places(decision);
        self.steps_of_attempts(decision);
        self.removals(decision);
        self.blocks(decision);
        self.counters(decision);
        self.found
    }

    fn write(&mut self, Write { execution, facts, says, .. }: &Write) {
        match says {
            Says::Running { run, consecutive_failures, .. } => {
                self.commit(execution, run, *consecutive_failures);
                self.reads_what_is_left(execution, run, facts);
            }
            Says::GaveUp { number } => self.give_up(execution, *number),
            Says::Retry { .. } => self.retry(execution, says),
            Says::Ended { ending, .. } => {
                self.finish(execution, ending);
                self.reads_that_its_run_is_gone(execution, facts);
                self.reads_that_it_made_nothing(execution, facts);
            }
            Says::Progress { shown, .. } => self.show_progress(execution, shown),
            Says::Cleared { effective, .. } => self.record_clearance(execution, *effective),
            Says::Blocked(blocked) => self.show_blocked(execution, *blocked),
            Says::Waiting { .. } => {
                let undecided = self.execution(execution).is_none_or(|it| !it.started_once() && !it.is_terminal());
                self.require("16.3", undecided, || format!("says of {execution} that it is Pending"));
            }
            Says::HeldBack { .. } => {
                let found = self.execution(execution);
                let is_due = found.and_then(waiting_entry).is_some_and(|(_, not_before)| not_before <= self.now);
                self.require("11.6", is_due, || format!("says of {execution} that it is held back"));
            }
            Says::Unguarded { kind, counts } => self.show_unguarded(execution, *kind, *counts),
            Says::Freed => {}
        }
    }

    /// Checks that section 6 allows the execution to run.
    fn may_run(&mut self, execution: &ExecutionId, verb: &str) {
        let Some(contender) = self.execution(execution) else { return };
        if contender.started_once() {
            return self.may_begin_another(contender, None, verb);
        }
        let reasons = self.record.forbids(contender);
        self.require("6", reasons.is_empty(), || format!("{verb} {execution}, but {reasons:?}"));
        let ExecutionState::Undecided { unusable, start_before, .. } = &contender.state else {
            return self.require("16.3", false, || format!("{verb} {execution}, which is decided"));
        };
        self.require("6", unusable.is_none(), || format!("{verb} {execution}, whose spec is unusable"));
        let is_late = start_before.is_some_and(|start_before| start_before < self.now);
        self.require("3.1", !is_late, || format!("{verb} {execution} after its startBefore"));
        // The status must record an ignored cancellation before the commit. Otherwise later readers could not tell
        // which came first.
        let is_said = contender.cancellation.as_ref().is_none_or(|it| it.unguarded.is_some());
        let is_settled = is_said && goes_on(contender, self.target.guard);
        self.require("3.1", is_settled, || format!("{verb} {execution}, which is cancelled"));
        let is_paused = contender.paused.is_some() || self.policy.paused_by.is_some();
        self.require("14", !is_paused, || format!("{verb} {execution}, which is paused"));
        self.require("6", !contender.deleting, || format!("{verb} {execution}, which is on its way out"));
        let strange = self.target.residue.values().any(|left| !left.owner.is(execution));
        self.require("16.1", !strange, || format!("{verb} {execution} while the target drains"));
    }

    fn create(&mut self, execution: &ExecutionId, number: u64) {
        self.may_run(execution, "created a run for");
        let highest = self.target.runs.values().map(|run| run.number).max();
        let known = self.target.executions.values().filter_map(|it| it.run_sequence).max();
        self.require("5", highest.max(known).is_none_or(|highest| highest < number), || {
            format!("number {number} again")
        });
        // A pending run of an earlier attempt cannot be committed to any more.
        let again = self.execution(execution).is_some_and(Execution::started_once);
        let is_left = |run: &Run| again && run.is_pending() && run.is_owned_by(execution);
        let mut runs = self.target.runs.values().filter(|run| run.owner != Owner::Nobody && !is_left(run));
        let unfinished = runs.any(Run::is_unfinished);
        self.require("5", !unfinished, || format!("created a run for {execution} beside an unfinished one"));
    }

    fn commit(&mut self, execution: &ExecutionId, run: &RunId, shown: u32) {
        let Some(own) = self.owned(run, execution) else {
            return self.require("5", false, || format!("{execution} commits to {run}, which is not its own"));
        };
        // A run that another party has released runs already, whatever the rules require. The status must then show the
        // run.
        if own.is_pending() {
            match self.execution(execution).filter(|it| it.started_once()) {
                Some(again) => {
                    self.may_begin_another(again, Some(own.number), "commits");
                    self.is_first(execution, own);
                }
                None => self.may_run(execution, "commits"),
            }
            self.require("9", !own.deleting, || format!("{execution} commits to {run}, which is on its way out"));
            let order = own.order;
            let mut others = self.target.runs.values().filter(|it| it.owner != Owner::Nobody);
            let earlier = others.any(|it| it.is_unfinished() && !it.is_owned_by(execution) && it.order <= order);
            self.require("16.1", !earlier, || format!("{execution} commits after an unfinished run"));
            let given_up = self.execution(execution).and_then(|it| self.highest_tried(it));
            self.require("5", given_up.is_none_or(|given_up| given_up < own.number), || {
                format!("{execution} commits to {run}, which it has given up")
            });
        }
        let row = self.record.counted(self.now).len();
        self.require("7", usize::try_from(shown).is_ok_and(|it| it == row), || {
            format!("{execution} shows {shown}, not {row}")
        });
    }

    /// Requires that a live read finds nothing left of an earlier run.
    fn reads_what_is_left(&mut self, execution: &ExecutionId, run: &RunId, facts: &[Fact]) {
        let own = self.target.runs.get(&run.uid);
        let is_first = own.is_none_or(|run| run.number == 1);
        // A later attempt also requires that nothing of an earlier attempt is left, unless its own run has been
        // released already.
        let again = self.execution(execution).is_some_and(Execution::started_once) && own.is_some_and(Run::is_pending);
        let is_read = facts.iter().any(|fact| match fact {
            Fact::Drained(it) => !again && it == execution,
            Fact::DrainedOfAll(it) => again && it == execution,
            _ => false,
        });
        self.require("5", is_first || is_read, || format!("{execution} commits and does not read what is left"));
    }

    /// Requires a live read which shows that the run is gone. The view lacks the run, but the watch may be behind.
    fn reads_that_its_run_is_gone(&mut self, execution: &ExecutionId, facts: &[Fact]) {
        let Some(ExecutionState::Running { run: Some(run), .. }) = self.execution(execution).map(|it| &it.state) else {
            return;
        };
        let is_there = self.target.runs.contains_key(&run.uid);
        let is_read = facts.iter().any(|fact| matches!(fact, Fact::RunGone(_, it) if it == run));
        self.require("5", is_there || is_read, || format!("{execution} ends and does not read that {run} is gone"));
    }

    /// Requires that a live read finds no run from an earlier create: the answer to the create may have been lost, and
    /// the watch may be behind.
    fn reads_that_it_made_nothing(&mut self, execution: &ExecutionId, facts: &[Fact]) {
        let Some(found) = self.execution(execution) else { return };
        self.looks_for_its_run(found, facts);
        let is_usable = matches!(found.state, ExecutionState::Undecided { unusable: None, .. });
        let named = match &found.state {
            ExecutionState::Running { run: Some(run), .. } => Some(&run.uid),
            _ => None,
        };
        let last = named.and_then(|uid| self.target.runs.get(uid));
        let last = last.filter(|run| run.owner == Owner::Nobody || run.is_owned_by(execution));
        let is_over = last.is_none_or(|run| matches!(run.progress, Progress::Done(_)));
        let tries_again = named.is_some() && is_over && waiting_entry(found).is_some();
        let may_have_made_one = (is_usable || tries_again) && found.recall().refusal.is_none();
        let mut own = self.target.runs.values().filter(|run| run.is_owned_by(execution));
        let is_there = own.any(|run| Some(&run.id.uid) != named);
        let is_read = facts.iter().any(|fact| matches!(fact, Fact::NothingMade(it, _) if it == execution));
        self.require("5", !may_have_made_one || is_there || is_read, || {
            format!("{execution} ends and does not read that it has made no run")
        });
    }

    fn finish(&mut self, execution: &ExecutionId, ending: &Ending) {
        let Some(found) = self.execution(execution) else { return };
        self.require("16.3", !found.is_terminal(), || format!("{execution} ended twice"));
        let run = match &found.state {
            ExecutionState::Running { run: Some(run), .. } => {
                self.target.runs.get(&run.uid).filter(|run| run.owner.is(execution) || run.owner == Owner::Nobody)
            }
            _ => None,
        };
        match ending {
            Ending::Completed(_) => {
                let succeeded = run.is_some_and(|run| matches!(&run.progress, Progress::Done(it) if it.succeeded));
                self.require("9", succeeded, || format!("{execution} completed without a run that succeeded"));
            }
            Ending::Failed(failure) => {
                self.has_been_read(execution, run);
                let is_gone_unstarted = match &found.recall().lost_proof {
                    Some(Lost::Unreleased(_)) => true,
                    Some(Lost::Vanished(Started::NotStarted(_))) => found.run_shown.proof.is_none(),
                    _ => false,
                };
                // A proof from an earlier attempt applies only to that attempt.
                let waits = waiting_entry(found).is_some() && started_on(found).is_some();
                let waits = waits && run.is_none_or(|run| matches!(run.progress, Progress::Done(_)));
                let earlier = found.retry.iter().flat_map(|retry| retry.ended()).all(|(_, end)| end.started == Ran::No);
                let is_proven = earlier && (waits || run.map_or(is_gone_unstarted, |run| has_not_started(found, run)));
                let ran = found.started_once() && !is_proven;
                let fits = failure.was_execution_failure() == ran;
                self.require("9", fits, || format!("{execution} is told to have run or not: {failure:?}"));
            }
        }
    }

    fn show_progress(&mut self, execution: &ExecutionId, shown: &RunShown) {
        let Some(found) = self.execution(execution) else { return };
        let keeps_proof = found.run_shown.proof.as_ref().is_none_or(|proof| shown.proof.as_ref() == Some(proof));
        let fits = found.started_once() && keeps_proof && *shown != found.run_shown;
        self.require("9", fits, || format!("{execution} shows {shown:?} after {:?}", found.run_shown));
        let is_early =
            found.recall().progress_shown_at.is_some_and(|last| self.now - last < chrono::TimeDelta::seconds(5));
        self.require("9", !is_early, || format!("{execution} shows its run again too early"));
    }

    fn skip(&mut self, execution: &ExecutionId, skip: &Skip, fact: &Fact) {
        let Some(contender) = self.execution(execution) else { return };
        let undecided = matches!(contender.state, ExecutionState::Undecided { .. }) && !contender.deleting;
        self.require("16.3", undecided, || format!("skipped {execution}, which is decided"));
        let ran = self.target.runs.values().any(|run| run.is_owned_by(execution) && !run.is_pending());
        self.require("16.2", !ran, || format!("skipped {execution}, which has a run that may run"));
        let holds = match (skip, fact) {
            (Skip::ResourceBusy(_), Fact::Unfinished(run)) => {
                self.target.runs.get(&run.uid).is_some_and(|run| run.is_unfinished() && !run.is_owned_by(execution))
            }
            (Skip::ResourceBusy(_), Fact::Holds(holder)) => match self.execution(holder) {
                Some(found) => holder != execution && waiting_entry(found).is_some(),
                None => matches!(
                    self.target.memory.unwatched_owners.get(&holder.uid).map(|read| &read.found),
                    Some(OwnerRead::Waits { .. })
                ),
            },
            (Skip::ResourceBusy(_), Fact::Draining(left)) => self.target.residue.contains_key(&left.uid),
            (Skip::ResourceBusy(_), Fact::Stands(_))
            | (
                _,
                Fact::Unfinished(_)
                | Fact::Draining(_)
                | Fact::Holds(_)
                | Fact::OwnerGone(_)
                | Fact::RunGone(..)
                | Fact::NothingLeft(_)
                | Fact::NoRunOf(_)
                | Fact::NothingMade(..)
                | Fact::Drained(_)
                | Fact::DrainedOfAll(_),
            ) => false,
            (_, Fact::Stands(id)) => {
                self.knows_all_clearances(execution);
                let reasons = self.record.forbids(contender);
                reasons.iter().any(|(reason, by)| *reason == skip.reason() && by.iter().any(|it| it.id == *id))
            }
        };
        self.require("16.5", holds, || format!("skipped {execution} for {skip:?} on {fact:?}"));
        let named = skip.remediation().map(|it| &it.execution);
        let fits = named.is_none_or(|named| matches!(fact, Fact::Stands(id) if id == named));
        self.require("16.5", fits, || format!("{skip:?} names another execution than {fact:?}"));
    }

    fn record_clearance(&mut self, execution: &ExecutionId, effective: bool) {
        let Some(found) = self.execution(execution) else { return };
        let fits = self.record.clearance(found) == Some(Recorded::Not) && self.record.lifts(found) == effective;
        self.require("10", fits, || format!("recorded the clearance of {execution} as effective: {effective}"));
    }

    fn remove(&mut self, execution: &ExecutionId) {
        let Some(found) = self.execution(execution) else { return };
        self.require("3.1", found.is_terminal(), || format!("removed {execution}, which is not over"));
        let ttl = self.time_to_live(found).and_then(|ttl| chrono::TimeDelta::from_std(ttl).ok());
        let lasted = found.ended_at().map(|ended_at| self.now - ended_at);
        let due = ttl.zip(lasted).is_some_and(|(ttl, lasted)| lasted >= ttl);
        self.require("3.1", due, || format!("removed {execution} {lasted:?} after its end"));
        let runs = self.target.runs.values().any(|run| run.is_owned_by(execution) && run.is_unfinished());
        let left = self.target.residue.values().any(|left| left.owner.is(execution));
        self.require("3.1", !runs && !left, || format!("removed {execution}, of which something is left"));
        let is_recovered = self.record.is_recovered(found);
        self.require("17", !is_recovered, || format!("removed {execution}, whose recovery is the newest that ran"));
    }

    pub(super) fn execution(&self, id: &ExecutionId) -> Option<&'a Execution> {
        self.target.executions.get(&id.uid)
    }

    /// Returns the highest number that an execution has committed to or given up. An operator without retries wrote no
    /// number into the status; the number is then that of the run in the status.
    pub(super) fn highest_tried(&self, execution: &Execution) -> Option<RunNumber> {
        let committed = started_on(execution).and_then(|run| self.target.runs.get(&run.uid));
        [execution.run_sequence, committed.map(|run| run.number)].into_iter().flatten().max()
    }

    fn owned(&self, run: &RunId, execution: &ExecutionId) -> Option<&'a Run> {
        self.target.runs.get(&run.uid).filter(|run| run.is_owned_by(execution))
    }

    pub(super) fn is_committed(&self, run: &Run) -> bool {
        self.target.executions.values().any(|it| {
            matches!(&it.state, ExecutionState::Running { run: Some(it), .. } if it.uid == run.id.uid)
                && (run.is_owned_by(&it.id) || run.owner == Owner::Nobody)
        })
    }
}

/// Returns whether it is proven that nothing of a run ran, and nothing contradicts the proof. A finished run must have
/// been examined. The deletion of any other run must have begun while it was pending.
fn has_not_started(execution: &Execution, run: &Run) -> bool {
    if run.deleting && run.is_pending() {
        return execution.run_shown.proof.is_none();
    }
    let speaks_against = execution.run_shown.proof.is_some() || run.memory.seen.proof.is_some();
    let is_proven =
        run.memory.diagnosed.as_ref().is_some_and(|look| matches!(look.findings.started, Started::NotStarted(_)));
    is_proven && !speaks_against && !run.is_unfinished()
}

/// Returns the run that an execution has committed to, by its status.
fn started_on(execution: &Execution) -> Option<&RunId> {
    match &execution.state {
        ExecutionState::Running { run, .. } => run.as_ref(),
        _ => None,
    }
}

impl Execution {
    /// Returns whether the status shows that the execution got its turn.
    pub(super) fn started_once(&self) -> bool {
        matches!(self.state, ExecutionState::Running { .. })
    }
}
