//! Records what this process has done to a target and learned about it, other than from the watches.

use std::time::Duration;

use chrono::TimeDelta;
use wfe_core::Time;
use wfe_core::action::{Action, Change, Decision, RunChange, Says, TriageDoes, TriageStep, Write};
use wfe_core::chain::RunNumber;
use wfe_core::execution::{Execution, ExecutionState, Lost};
use wfe_core::findings::Findings;
use wfe_core::findings::Wait;
use wfe_core::guard::Guard;
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::reason::Refusal;
use wfe_core::retry::Answers;
use wfe_core::schedule::RefusedChild;
use wfe_core::target::Elsewhere;
use wfe_core::tries::Trouble;
use wfe_core::uid_map::SmallMap;

use super::keep::{self, mark_gone, name_runs};
use super::{Entry, Index, Key};

impl Index {
    /// Records that the API server refused to create a run. `attempt` is the attempt that a Running execution waited
    /// for. If the execution is on another attempt by now, the refusal is ignored, because it would use up that
    /// attempt.
    pub(super) fn refuse(&mut self, key: &Key, execution: &Uid, attempt: Option<u32>, refusal: Refusal) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
            && is_created_for(execution)
            && attempt == execution.next_attempt().map(|next| next.attempt)
        {
            execution.remember().refusal = Some(refusal);
        }
    }

    /// Forgets this process's own tries, because another process has led since. They begin anew, as after a restart.
    /// The view stays, and so do this process's writes that no watch has delivered yet.
    pub fn forget_tries(&mut self) {
        self.targets.values_mut().for_each(|entry| keep::forget_tries(&mut entry.target));
        self.forget_turns();
    }

    /// Records that a run number of the chain is taken by an object that the watch does not deliver.
    pub(super) fn number_taken(&mut self, key: &Key, number: RunNumber) {
        if let Some(entry) = self.targets.get_mut(key) {
            let taken = &mut entry.target.memory.highest_taken;
            *taken = number.max(*taken);
        }
    }

    /// Records that a live read found an owner gone. A uid is never reused, so this stays true.
    pub(super) fn owner_gone(&mut self, key: &Key, owner: &ExecutionId) {
        if let Some(entry) = self.targets.get_mut(key) {
            mark_gone(&mut entry.target, &owner.uid);
        }
    }

    /// Records the live read of an execution that no watch delivers. It is kept while a run of the execution exists.
    pub(super) fn owner_read(&mut self, key: &Key, owner: &Uid, read: Elsewhere) {
        if let Some(Entry { target, .. }) = self.targets.get_mut(key).map(Box::as_mut)
            && keep::owns_a_run(target, owner)
        {
            target.memory.unwatched_owners.insert(owner.clone(), read);
        }
    }

    /// Records the state of the policies that guard clearances and cancellations. Returns whether it has changed.
    pub fn guard(&mut self, guard: Guard) -> bool {
        let is_new = self.guard != guard;
        self.guard = guard;
        if is_new {
            self.targets.values_mut().for_each(|entry| entry.target.guard = guard);
        }
        is_new
    }

    /// Records the answers of a retry policy's conditions about an attempt, unless the execution is on another attempt
    /// by now.
    pub(super) fn answered(&mut self, key: &Key, execution: &Uid, attempt: u32, answers: Answers) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
            && execution.retry.as_ref().is_some_and(|retry| retry.current() == attempt)
        {
            execution.remember().answers = Some(Box::new(answers));
        }
    }

    /// Records that this process has no write to a target in flight, and finds the runs that statuses have lost.
    pub fn settle(&mut self, key: &Key) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.vanished = SmallMap::default();
            name_runs(&mut entry.target);
        }
    }

    /// Records the actions that are about to be carried out, because their outcome may stay unknown.
    pub fn begun(&mut self, key: &Key, actions: &[Action], now: Time) {
        for action in actions {
            match action {
                Action::Create { execution, .. } => self.tried(key, &execution.uid, now),
                Action::Write(Write { execution, says: Says::Progress { wait, .. }, .. }) => {
                    self.showed_progress(key, &execution.uid, *wait, now);
                }
                Action::Change(Change { run, to: RunChange::Cancelled(_) | RunChange::AskedAgain(_), .. }) => {
                    self.cancel_asked(key, &run.uid, now);
                }
                Action::Change(Change { run, to: RunChange::Released, .. }) => self.release_tried(key, &run.uid, now),
                Action::CreateChild { schedule, slot, .. } => self.schedule_tried(key, &schedule.uid, *slot),
                Action::Triage(TriageStep { schedule, does: TriageDoes::Gather(_), .. }) => {
                    self.begin_triage(key, &schedule.uid, now);
                }
                _ => {}
            }
        }
    }

    /// Records the first try to create an execution's run. The start of the tries is set back by the duration of
    /// earlier tries, which the status shows. The time between those tries and this one does not count.
    pub(super) fn tried(&mut self, key: &Key, execution: &Uid, now: Time) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
            && is_created_for(execution)
        {
            let before = execution.waiting_shown.as_ref().map_or(Duration::ZERO, |shown| shown.tried);
            let first = TimeDelta::from_std(before).ok().and_then(|before| now.checked_sub_signed(before));
            execution.remember().first_try.get_or_insert(first.unwrap_or(now));
        }
    }

    /// Records the first try to release a run.
    pub(super) fn release_tried(&mut self, key: &Key, run: &Uid, now: Time) {
        if let Some(run) = self.targets.get_mut(key).and_then(|entry| entry.target.runs.get_mut(run)) {
            run.memory.release_tried.get_or_insert(now);
        }
    }

    /// Records the try to create a schedule's child for a slot, because the answer may be lost.
    pub(super) fn schedule_tried(&mut self, key: &Key, schedule: &Uid, slot: Time) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(schedule) = entry.target.schedules.get_mut(schedule)
        {
            schedule.memory.create_tried = Some(slot);
        }
    }

    /// Records that the API server permanently refused to create a child of a schedule.
    pub(super) fn child_refused(&mut self, key: &Key, schedule: &Uid, refused: RefusedChild) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(schedule) = entry.target.schedules.get_mut(schedule)
            && Some(refused.slot) > schedule.used_up_to()
        {
            schedule.memory.create_tried.take_if(|tried| *tried == refused.slot);
            schedule.memory.create_refused = Some(Box::new(refused));
        }
    }

    /// Records that a run was deleted because it could not be released.
    pub(super) fn unreleased(&mut self, key: &Key, run: &Uid) {
        if let Some(Entry { target, .. }) = self.targets.get_mut(key).map(Box::as_mut)
            && let Some(trouble) = &target.memory.trouble
            && let Some(owner) = target.executions.values_mut().find(|it| it.is_running_on(run))
        {
            owner.remember().lost_proof = Some(Lost::Unreleased(Trouble::clone(trouble)));
        }
    }

    /// Records which executions wait according to a decision, so that the status can show a long wait. Ends the tries
    /// that the decision does not continue.
    pub fn waits(&mut self, key: &Key, decision: &Decision, now: Time) {
        self.waits_on(key, decision, now);
        if let Some(entry) = self.targets.get_mut(key) {
            keep::end_other_tries(&mut entry.target, decision);
            entry.note_bare(now);
        }
    }

    /// Records which executions wait until a watch delivers a write of this process. Tries do not end, because nothing
    /// was decided about them.
    pub fn waits_on(&mut self, key: &Key, decision: &Decision, now: Time) {
        let Some(entry) = self.targets.get_mut(key) else { return };
        for (id, _) in &decision.waiting {
            if let Some(execution) = entry.target.executions.get_mut(&id.uid) {
                execution.remember().waits_since.get_or_insert(now);
            }
        }
    }

    /// Records what prevents this process from carrying out decisions on a target; `None` if nothing prevents it any
    /// more.
    pub fn trouble(&mut self, key: &Key, trouble: Option<Trouble>) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.memory.trouble = trouble.map(Box::new);
        }
    }

    /// Records the result of examining a run, and whether nothing unfinished was left of it.
    pub(super) fn looked(&mut self, key: &Key, run: &Uid, findings: Findings, is_bare: bool, now: Time) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.looked(run, findings, is_bare, now);
        }
    }

    /// Records that Tekton was asked to cancel a run, for the first time or again.
    pub(super) fn cancel_asked(&mut self, key: &Key, run: &Uid, now: Time) {
        let run = self.targets.get_mut(key).and_then(|entry| entry.target.runs.get_mut(run));
        if let Some(run) = run {
            run.stop.get_or_insert_default().asked_at = Some(now);
        }
    }

    /// Records that an event announced that Tekton does not react to the request to stop a run.
    pub(super) fn cancel_told(&mut self, key: &Key, run: &Uid) {
        let run = self.targets.get_mut(key).and_then(|entry| entry.target.runs.get_mut(run));
        if let Some(stop) = run.and_then(|run| run.stop.as_mut()) {
            stop.told = true;
        }
    }

    /// Records that an event announced that steps of a run ran a second time.
    pub(super) fn replay_told(&mut self, key: &Key, run: &Uid) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.replay_told(run);
        }
    }

    /// Records when the progress of an execution was last written to its status, and what its run waited for then.
    pub(super) fn showed_progress(&mut self, key: &Key, execution: &Uid, wait: Option<Wait>, now: Time) {
        if let Some(entry) = self.targets.get_mut(key)
            && let Some(execution) = entry.target.executions.get_mut(execution)
        {
            let memory = execution.remember();
            memory.progress_shown_at = Some(now);
            if let Some(wait) = wait {
                memory.waits_shown.retain(|(said, _)| *said != wait);
                memory.waits_shown.push((wait, now));
            }
        }
    }

    /// Records that an event announced that a target drains for too long.
    pub(super) fn drain_warned(&mut self, key: &Key) {
        if let Some(entry) = self.targets.get_mut(key) {
            entry.target.drain_warned = true;
        }
    }
}

/// Returns whether a run may be created for an execution: it is undecided, or waits for its next attempt.
fn is_created_for(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Undecided { .. }) || execution.next_attempt().is_some()
}
