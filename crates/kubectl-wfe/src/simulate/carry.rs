//! Carries decisions out: each action changes the world as the operator's performer and the API server would.
//!
//! Facts that the operator reads live are not read: the view of a play is never behind.

use anyhow::Result;
use chrono::SubsecRound;
use wfe_condition::Variables;
use wfe_core::action::TriageStep;
use wfe_core::action::{
    Action, Announce, AttemptFacts, Change, Ending, Gather, Record, RunChange, Says, TriageDoes, Write,
};
use wfe_core::blocks::Blocked;
use wfe_core::ending::{Failure, Skip};
use wfe_core::execution::{Execution, ExecutionState, FailedState, Recorded, RunShown, WaitingShown};
use wfe_core::name::{ExecutionId, RunId, ScheduleId};
use wfe_core::retry::{Answers, Attempt};
use wfe_core::schedule::{Heard, child_name};
use wfe_core::target::{Elsewhere, OwnerRead};
use wfe_core::triage::{Every, Evidence, FailureSeen, Gathered};
use wfe_core::{Time, duration};
use wfe_view::index::{Delivery, EndPhase, EndShown, Key, Learned};

use super::play::{InProgress, Play};

/// Why an analyst of the kind Pipeline has no verdict here.
const NOT_PLAYED: &str = "simulate does not play an analyst that is a Pipeline";

impl Play<'_> {
    /// Carries one action out.
    pub(super) fn carry_out(&mut self, key: &Key, action: Action) -> Result<()> {
        #[cfg(test)]
        if let Some(mirror) = &mut self.mirror {
            mirror.follow(&self.index, key, &action, self.now);
        }
        match action {
            Action::Create { execution, number, at_most } => self.create_run(key, &execution.uid, number, at_most),
            Action::Write(write) => self.write(key, write),
            Action::Skip { skipped, skip, .. } => {
                self.skip(key, &skipped.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), &skip);
            }
            Action::Change(Change { run, to, .. }) => match to {
                RunChange::Released => self.release(key, &run),
                RunChange::Cancelled(why) => self.cancel_run(key, &run, why),
                RunChange::AskedAgain(_) => {} // Tekton answers at once
                RunChange::Deleted { .. } => self.delete_run(key, &run),
            },
            Action::Remove { execution, .. } => {
                self.failures.remove(&execution.uid);
                self.index.apply(Delivery::ExecutionDeleted(execution.uid), self.now);
            }
            Action::Examine { run } => {
                if let Some(in_progress) = self.runs.get(&run.uid) {
                    let findings = Box::new(in_progress.findings());
                    self.index.learn(key, Learned::Looked(run.uid, findings, true), self.now);
                }
            }
            Action::Ask { execution, run, failed } => self.ask(key, &execution, run.as_ref(), &failed),
            Action::CreateChild { schedule, slot, start_before, .. } => {
                self.create_child(&schedule, slot, start_before)?;
            }
            Action::Record(record) => self.record(record),
            Action::Triage(step) => self.triage(key, step),
            Action::Tell(Announce::DrainSlow { holder, .. }) => {
                self.index.learn(key, Learned::DrainWarned, self.now);
                self.story.drains_long(self.now, key, &holder);
            }
            Action::Tell(Announce::CancelUnanswered { unanswered, .. }) => {
                self.index.learn(key, Learned::CancelAnnounced(unanswered.run.uid), self.now);
            }
            Action::Tell(Announce::Replay { run, .. }) => {
                self.index.learn(key, Learned::ReplayAnnounced(run.uid), self.now);
            }
            // In a play, an owner in a namespace that the operator does not watch has ended by the first read.
            Action::ReadOwner { owner } => {
                let read = Box::new(Elsewhere { at: self.now, found: OwnerRead::Over });
                self.index.learn(key, Learned::OwnerRead(owner.uid, read), self.now);
            }
            Action::Tell(Announce::HintIgnored { .. }) => {}
        }
        Ok(())
    }

    /// Changes an execution as its new status says.
    fn write(&mut self, key: &Key, write: Write) {
        let Write { execution: id, says, .. } = write;
        let now = self.now.trunc_subsecs(0); // a status has whole seconds
        let mut end = None;
        if let Some(execution) = self.execution(key, &id.uid).cloned() {
            self.story.says(self.now, key, &execution, &says, &self.policy);
            if let Says::Ended { ending, .. } = &says
                && execution.child.is_some()
            {
                end = Some(end_shown(ending));
                if let Ending::Failed(failure) = ending {
                    self.failures.insert(id.uid.clone(), failure_seen(&id, failure));
                }
            }
        }
        self.update(key, &id.uid, end, |execution| show(execution, says, now));
    }

    /// Skips executions, the oldest first. No decision depends on a skipped execution, so it is removed at once, unless
    /// its schedule has to see its end.
    fn skip(&mut self, key: &Key, skipped: &[ExecutionId], skip: &Skip) {
        let at = self.now.trunc_subsecs(0);
        for id in skipped {
            let Some(execution) = self.execution(key, &id.uid).cloned() else { continue };
            self.story.skipped(self.now, key, &execution, skip);
            if execution.child.is_some() {
                self.update(key, &id.uid, None, |it| {
                    it.state = ExecutionState::Skipped { completed_at: Some(at) };
                    (it.run_sequence, it.retry, it.waiting_shown) = (None, None, None);
                });
            }
        }
        // The newest first, because a removal from the front of a long list is slower.
        for id in skipped.iter().rev() {
            if self.execution(key, &id.uid).is_some_and(|it| it.child.is_none()) {
                self.open.remove(&id.to_string());
                self.index.apply(Delivery::ExecutionDeleted(id.uid.clone()), self.now);
            }
        }
    }

    /// Asks the conditions of a retry policy.
    fn ask(&mut self, key: &Key, id: &ExecutionId, run: Option<&RunId>, failed: &AttemptFacts) {
        let Some(policy) = self.execution(key, &id.uid).and_then(|it| Some(it.retry.as_ref()?.policy.clone())) else {
            return;
        };
        let task = failed.task.as_ref();
        let variables = Variables {
            attempt: failed.attempt,
            max_attempts: failed.of,
            reason: failed.reason.as_str().to_owned(),
            error: failed.message.to_string(),
            exit_code: task.and_then(|task| task.exit_code),
            was_execution_failure: failed.was_execution_failure,
            node_id: task.map(|task| task.name.to_string()).unwrap_or_default(),
            execution_id: id.uid.to_string(),
            result: run.and_then(|run| self.runs.get(&run.uid)).map(InProgress::results).unwrap_or_default(),
        };
        let ask = |condition: Option<Box<str>>| {
            Some(wfe_condition::ask(&condition?, &variables).map_err(|error| error.to_string().into()))
        };
        let answers = Answers { stop_when: ask(policy.stop_when), retry_when: ask(policy.retry_when) };
        let (execution, attempt) = (id.uid.clone(), failed.attempt);
        self.index.learn(key, Learned::Answered { execution, attempt, answers: Box::new(answers) }, self.now);
    }

    fn create_child(&mut self, schedule: &ScheduleId, slot: Time, start_before: Time) -> Result<()> {
        let Some(planned) = self.schedules.get(&schedule.uid) else { return Ok(()) };
        let mut record = planned.child.clone();
        if let Some(child) = &mut record.execution.child {
            child.slot = slot;
        }
        record.execution.state = ExecutionState::Undecided { unusable: None, start_before: Some(start_before) };
        let adjusted = planned.record.schedule.status.adjust.as_ref().and_then(|adjust| adjust.timeout);
        record.execution.timeout = adjusted.or(record.execution.timeout);
        self.create(record, &child_name(&schedule.name, slot))
    }

    /// Writes the status of a schedule.
    fn record(&mut self, record: Record) {
        let Some(planned) = self.schedules.get_mut(&record.schedule.uid) else { return };
        self.story.schedule(self.now, &record, &planned.record.schedule.status);
        planned.record.schedule.status = *record.status;
        self.index.apply(Delivery::Schedule(Box::new(planned.record.clone())), self.now);
    }

    /// Takes a step of a triage. The built-in analyst is played; one that is a Pipeline has no verdict.
    fn triage(&mut self, key: &Key, step: TriageStep) {
        let TriageStep { schedule, of, does } = step;
        match does {
            TriageDoes::Gather(gather) => {
                if let Some(evidence) = self.gather(&schedule, *gather) {
                    let gathered = Gathered { of, evidence, text: "".into(), digest: "".into() };
                    let gathered = Box::new(gathered);
                    self.index.learn(key, Learned::Gathered(schedule.uid, gathered), self.now);
                }
            }
            TriageDoes::Analyse(_) | TriageDoes::ReadVerdict(_) => {
                let heard = Box::new(Heard { of, said: Err(NOT_PLAYED.into()) });
                self.index.learn(key, Learned::Heard(schedule.uid, heard), self.now);
            }
        }
    }

    fn gather(&self, schedule: &ScheduleId, gather: Gather) -> Option<Evidence> {
        let planned = self.schedules.get(&schedule.uid)?;
        let known = &planned.record.schedule;
        let adjusted = known.status.adjust.as_ref();
        let interval = adjusted.and_then(|adjust| adjust.interval).map(duration::format);
        let is_cron = matches!(known.plan.as_ref().map(|plan| &plan.every), Ok(wfe_core::schedule::Every::Cron(_)));
        let every = interval.unwrap_or_else(|| planned.every.clone()).into();
        let timeout = adjusted.and_then(|adjust| adjust.timeout).or(planned.child.execution.timeout);
        let seen = gather.children.iter().filter_map(|(_, uid)| self.failures.get(uid).cloned());
        Some(Evidence {
            subject: schedule.to_string().into(),
            target: gather.target,
            workflow_id: (*known.workflow_id).into(),
            version: known.origin.version.clone(),
            every: if is_cron { Every::Cron(every) } else { Every::Interval(every) },
            failure_count: gather.failure_count,
            last_success: gather.last_success,
            open_circuits: gather.open_circuits,
            timeout: timeout.unwrap_or(gather.default_timeout),
            failures: gather.refused.into_iter().chain(seen).take(wfe_core::triage::MOST_FAILURES).collect(),
        })
    }
}

/// Changes an execution to what the reader would make of its new status.
fn show(execution: &mut Execution, says: Says, now: Time) {
    match says {
        Says::Running { run, number, .. } => {
            begin_attempt(execution, &run, now);
            let started_at = started_at(execution).or(Some(now));
            execution.state = ExecutionState::Running { run: Some(run), started_at };
            (execution.run_sequence, execution.waiting_shown) = (Some(number), None);
        }
        Says::GaveUp { number } => execution.run_sequence = Some(number),
        Says::Retry { end, proof, delay, not_before, .. } => {
            if let Some(retry) = &mut execution.retry {
                if let Some(last) = retry.attempts.last_mut() {
                    last.end = Some(end);
                }
                let (delay, not_before) = (Some(delay), Some(not_before.trunc_subsecs(0)));
                retry.attempts.push(Attempt { delay, not_before, ..Attempt::default() });
            }
            let proof = execution.run_shown.proof.take().or(proof.map(Box::new));
            execution.run_shown = RunShown { proof, ..RunShown::default() };
        }
        Says::HeldBack { waiting } => execution.waiting_shown = Some(Box::new(waits(waiting.reason(), None))),
        Says::Ended { ending, draining } => end(execution, ending, draining),
        Says::Progress { shown, .. } => execution.run_shown = shown,
        Says::Waiting { waiting, tried } => execution.waiting_shown = Some(Box::new(waits(waiting.reason(), tried))),
        Says::Freed => execution.draining_shown = false,
        Says::Cleared { effective, .. } => {
            if let Some(clearance) = &mut execution.clearance {
                clearance.recorded = if effective { Recorded::Effective } else { Recorded::Ineffective };
            }
        }
        Says::Blocked(blocked) => {
            let is_shown = matches!(blocked, Blocked::Yes(_) | Blocked::Recovered);
            execution.blocked_shown = is_shown.then(|| blocked.reason().into());
        }
        Says::Unguarded { .. } => {} // the policies are in force
    }
}

fn started_at(execution: &Execution) -> Option<Time> {
    match execution.state {
        ExecutionState::Running { started_at, .. } => started_at,
        _ => None,
    }
}

fn begin_attempt(execution: &mut Execution, run: &RunId, now: Time) {
    let Some(retry) = &mut execution.retry else { return };
    if retry.attempts.is_empty() {
        retry.attempts.push(Attempt::default());
    }
    if let Some(last) = retry.attempts.last_mut() {
        (last.run, last.started_at) = (Some(run.name.clone()), Some(now));
    }
}

fn waits(reason: &str, tried: Option<std::time::Duration>) -> WaitingShown {
    WaitingShown { reason: reason.into(), tried: tried.unwrap_or_default() }
}

fn end(execution: &mut Execution, ending: Ending, draining: bool) {
    let was_running = matches!(execution.state, ExecutionState::Running { .. });
    execution.state = match ending {
        Ending::Completed(success) => {
            ExecutionState::Completed { started_at: started_at(execution), completed_at: Some(success.completed_at) }
        }
        Ending::Failed(failure) => {
            execution.blocked_shown = failure.blocks().map(|reason| reason.as_str().into());
            // A number that was given up is not part of the history.
            execution.run_sequence = failure.number.or(execution.run_sequence.filter(|_| was_running));
            ExecutionState::Failed(FailedState {
                reason: failure.reason,
                was_execution_failure: failure.was_execution_failure(),
                cancelled: failure.cancelled,
                failed_at: Some(failure.failed_at),
                completed_at: Some(failure.failed_at),
                next_allowed_execution: failure.charge.next_allowed_execution.filter(|_| !failure.charge.exhausts),
                fingerprint: failure.fingerprint,
                shared_outage: failure.shared_outage,
            })
        }
    };
    execution.draining_shown = was_running && draining;
    (execution.retry, execution.waiting_shown, execution.run_shown) = (None, None, RunShown::default());
}

fn end_shown(ending: &Ending) -> EndShown {
    let (at, phase, reason, message, ran_for) = match ending {
        Ending::Completed(success) => {
            (success.completed_at, EndPhase::Completed, "Completed", "".into(), success.ran_for)
        }
        Ending::Failed(failure) => {
            (failure.failed_at, EndPhase::Failed, failure.shown_reason(), failure.message.clone(), failure.ran_for)
        }
    };
    EndShown { at, phase, reason: reason.into(), message, ran_for: Some(ran_for) }
}

fn failure_seen(id: &ExecutionId, failure: &Failure) -> FailureSeen {
    let task = failure.task.as_ref();
    FailureSeen {
        name: (*id.name).into(),
        failed_at: Some(failure.failed_at),
        reason: Some(failure.reason),
        was_execution_failure: failure.was_execution_failure(),
        task: task.map(|task| task.name.clone()),
        step: task.and_then(|task| task.step.clone()),
        exit_code: task.and_then(|task| task.exit_code),
        ran_for: Some(duration::format(failure.ran_for).into()),
        fingerprint: failure.fingerprint.clone(),
        message: failure.message.clone(),
    }
}
