//! Prepares the actions of a decision. Each task owns the records that its requests need, because the view may change
//! while the task is carried out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use wfe_core::Time;
use wfe_core::action::{Action, Announce, AttemptFacts, Change, Mark, Record, TriageStep, Write};
use wfe_core::chain::RunNumber;
use wfe_core::ending::Skip;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::{ExecutionId, RunId, ScheduleId, Uid, Version};
use wfe_core::reason::{FailureReason, Refusal};
use wfe_core::schedule::{Schedule, ScheduleStatus};
use wfe_core::target::TargetName;
use wfe_core::verdict::Fact;
use wfe_tekton::{Defaults, Evidence, RunRequest};
use wfe_view::index::{Entry, Key};

use super::children::changed;
use super::{ChildCreation, Learned, PerformError, Result, Shown};
use crate::status::Subject;

/// The tasks of one decision.
#[derive(Debug)]
pub struct Work {
    /// The target of the decision.
    pub key: Key,
    /// What the tasks share.
    pub common: Common,
    /// The tasks with their marks. A task that could not be prepared has already failed.
    pub tasks: Vec<(Mark, Result<Task>)>,
}

/// The values that the tasks of a decision share.
#[derive(Debug)]
pub struct Common {
    /// The name of the target, if it can be read.
    pub target: Option<TargetName>,
    /// The defaults of the configuration at the time of the decision.
    pub defaults: Defaults,
    /// The uids of executions that no watch delivers, and that skips name as holders of the target.
    pub strangers: BTreeSet<Uid>,
    /// The time of the decision.
    pub now: Time,
}

impl Common {
    /// Returns the target in the form of log lines.
    pub(super) fn shown(&self) -> Shown<'_> {
        Shown(self.target.as_ref())
    }
}

/// One action, with the records that it needs.
#[derive(Debug)]
pub enum Task {
    /// Creates a run.
    Create(Creation),
    /// Writes the status of an execution.
    Write(Box<Write>, Subject),
    /// Skips executions.
    Skip {
        /// The executions.
        skipped: Vec<(ExecutionId, Version, Subject)>,
        /// Why they are skipped.
        skip: Arc<Skip>,
        /// The fact that the skip depends on.
        fact: Fact,
    },
    /// Changes a run.
    Change(Change),
    /// Removes an execution.
    Remove(ExecutionId, Version),
    /// Examines a failed run, with the evidence about it.
    Examine(RunId, Box<Evidence>),
    /// Evaluates the conditions of a retry policy for a failed attempt.
    Ask(Question),
    /// Reads an execution that no watch delivers.
    ReadOwner(ExecutionId),
    /// Creates the child of a schedule.
    CreateChild(ChildCreation),
    /// Writes the status of a schedule; the second value is its present status.
    Record(Box<Record>, Box<ScheduleStatus>),
    /// Carries out a step of the triage of a schedule.
    Triage(Box<TriageStep>),
    /// Announces something. The number of the attempt is set from the second attempt on.
    Tell(Announce, Option<u32>),
}

/// A run that is to be created.
#[derive(Debug)]
pub struct Creation {
    /// The execution that the run is for.
    pub execution: ExecutionId,
    /// The number of the run.
    pub number: RunNumber,
    /// What the execution requests to run.
    pub request: Arc<RunRequest>,
    /// The version of the execution that the decision saw, if the execution had a run before.
    pub had_run: Option<Version>,
    /// The limit of the run's time-out, if the retry policy leaves less time than the spec.
    pub at_most: Option<Duration>,
    /// The attempt that the execution waits for, if the execution is Running.
    pub attempt: Option<u32>,
}

impl Creation {
    /// Returns the result that the API server permanently refused to create the run.
    pub(super) fn refused(&self, reason: FailureReason, message: &str) -> Learned {
        let refusal = Refusal { reason, message: message.into(), number: self.number };
        Learned::Refused { execution: self.execution.uid.clone(), attempt: self.attempt, refusal }
    }
}

/// The conditions of a retry policy that are to be evaluated for an attempt.
#[derive(Debug)]
pub struct Question {
    /// The execution with the policy.
    pub execution: ExecutionId,
    /// The run of the attempt; `None` if its creation was refused.
    pub run: Option<RunId>,
    /// The facts about the attempt.
    pub failed: Box<AttemptFacts>,
    /// `stopWhen`, if the policy sets it.
    pub stop_when: Option<Box<str>>,
    /// `retryWhen`, if the policy sets it.
    pub retry_when: Option<Box<str>>,
}

impl Work {
    /// Prepares the actions of a decision from an entry of the view.
    #[must_use]
    pub fn prepare(key: Key, entry: &Entry, actions: Vec<Action>, defaults: &Defaults, now: Time) -> Self {
        let strangers = actions.iter().filter_map(|action| match action {
            Action::Skip { fact: Fact::Holds(holder), .. } => Some(&holder.uid),
            _ => None,
        });
        let strangers = strangers.filter(|holder| entry.target.executions.get(holder).is_none()).cloned().collect();
        let common = Common { target: entry.target.name.clone(), defaults: defaults.clone(), strangers, now };
        let tasks = actions.into_iter().map(|action| (action.mark(), prepare(entry, action))).collect();
        Self { key, common, tasks }
    }
}

/// Copies the records that an action needs from an entry.
///
/// # Errors
/// If an execution no longer exists, so that nothing can be written to it.
fn prepare(entry: &Entry, action: Action) -> Result<Task> {
    Ok(match action {
        Action::Create { execution, number, at_most } => {
            let beside = entry.beside(&execution.uid);
            let request = beside.request.ok_or_else(|| gone(&execution))?;
            let known = known(entry, &execution)?;
            let had_run = beside.had_run || matches!(known.state, ExecutionState::Running { .. });
            let had_run = had_run.then(|| known.version.clone());
            let attempt = known.next_attempt().map(|next| next.attempt);
            Task::Create(Creation { execution, number, request, had_run, at_most, attempt })
        }
        Action::Write(write) => {
            let subject = subject(entry, &write.execution)?;
            Task::Write(Box::new(write), subject)
        }
        Action::Skip { skipped, skip, fact } => {
            let with_subject = |(execution, version)| {
                let subject = subject(entry, &execution)?;
                Ok((execution, version, subject))
            };
            Task::Skip {
                skipped: skipped.into_iter().map(with_subject).collect::<Result<_>>()?,
                skip: Arc::new(skip),
                fact,
            }
        }
        Action::Change(change) => Task::Change(change),
        Action::Remove { execution, version } => Task::Remove(execution, version),
        Action::Examine { run } => {
            let evidence = Box::new(entry.evidence(&run.uid));
            Task::Examine(run, evidence)
        }
        Action::Ask { execution, run, failed } => {
            let policy = known(entry, &execution)?.retry.as_ref().map(|retry| retry.policy.clone());
            let (stop_when, retry_when) = policy.map(|it| (it.stop_when, it.retry_when)).unwrap_or_default();
            Task::Ask(Question { execution, run, failed: Box::new(failed), stop_when, retry_when })
        }
        Action::ReadOwner { owner } => Task::ReadOwner(owner),
        Action::CreateChild { schedule, generation, slot, start_before, not_made } => {
            let version = known_schedule(entry, &schedule)?.version.clone();
            Task::CreateChild(ChildCreation { schedule, generation, version, slot, start_before, not_made })
        }
        Action::Record(record) => {
            let shown = known_schedule(entry, &record.schedule)?.status.clone();
            Task::Record(Box::new(record), Box::new(shown))
        }
        Action::Triage(step) => Task::Triage(Box::new(step)),
        Action::Tell(tell) => {
            let of = match &tell {
                Announce::Replay { execution, .. } | Announce::CancelUnanswered { execution, .. } => {
                    entry.target.executions.get(&execution.uid)
                }
                Announce::DrainSlow { .. } | Announce::HintIgnored { .. } => None,
            };
            let attempt = of.and_then(|of| of.retry.as_ref()).map(|retry| retry.current());
            Task::Tell(tell, attempt.filter(|attempt| *attempt > 1))
        }
    })
}

fn known<'a>(entry: &'a Entry, id: &ExecutionId) -> Result<&'a Execution> {
    entry.target.executions.get(&id.uid).ok_or_else(|| gone(id))
}

fn known_schedule<'a>(entry: &'a Entry, id: &ScheduleId) -> Result<&'a Schedule> {
    entry.target.schedules.get(&id.uid).ok_or_else(|| changed(id))
}

fn gone(execution: &ExecutionId) -> PerformError {
    PerformError::Changed { what: format!("WorkflowExecution {execution}") }
}

/// Returns the fields of an execution that are needed to render its status.
fn subject(entry: &Entry, id: &ExecutionId) -> Result<Subject> {
    let execution = known(entry, id)?;
    let (is_running, run, started_at) = match &execution.state {
        ExecutionState::Running { run, started_at } => (true, run.clone(), *started_at),
        _ => (false, None, None),
    };
    let beside = entry.beside(&id.uid);
    let found = run.as_ref().and_then(|run| entry.target.runs.get(&run.uid));
    Ok(Subject {
        undeclared: found.map(|run| run.undeclared.clone()).unwrap_or_default(),
        generation: beside.generation,
        workflow_id: (*execution.workflow_id).into(),
        is_running,
        started_at,
        run,
        found_run: execution.recall().found_run,
        proof: execution.run_shown.proof.clone(),
        retry: execution.retry.clone(),
        gave_up: execution.is_undecided() && execution.run_sequence.is_some(),
        analyses: execution.analyses(),
        unguarded: execution.cancellation.as_ref().and_then(|cancellation| cancellation.unguarded),
        redaction: beside.redaction,
    })
}
