//! Renders a decision into the status of a `WorkflowExecution`: the fields that change, and all conditions.

mod after;
mod attempts;
mod end;
mod guard;
mod schedule;
mod short;

use std::sync::Arc;

use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::conditions::SUCCEEDED;
use wfe_api::{ConditionStatus, Phase, PipelineRunRef, PipelineRunStatus, WorkflowExecutionStatus, conditions, limits};
use wfe_core::action::{Ending, Says};
use wfe_core::awaiting::Awaiting;
use wfe_core::chain::RunNumber;
use wfe_core::evidence::{Proof, Started};
use wfe_core::execution::RunShown;
use wfe_core::findings::TaskCount;
use wfe_core::guard::Unguarded;
use wfe_core::name::RunId;
use wfe_core::retry::Retry;
use wfe_core::target::TargetName;
use wfe_core::waiting::Waiting;
use wfe_core::{Time, tries};
use wfe_tekton::{Redaction, api_time, word_of};

use after::{blocked, blocked_condition, cleared, freed};
use attempts::{Retried, retried};
use end::{ended, lock_after_the_end};
use guard::{keep_unguarded, unguarded};

pub use after::is_locked;
pub(crate) use attempts::delay_text;
pub use end::{redact, skipped};
pub use schedule::schedule;
pub(crate) use short::renewed;

/// The fields of an execution that are needed to render its status.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec.workflowRef.workflowId`.
    pub workflow_id: Box<str>,
    /// Whether the execution is Running, and therefore holds the target.
    pub is_running: bool,
    /// When the execution committed to its run, if it is Running.
    pub started_at: Option<Time>,
    /// The run that the execution is committed to, if it is Running.
    pub run: Option<RunId>,
    /// The number of that run, if the status lost the name of the run.
    pub found_run: Option<RunNumber>,
    /// The recorded proof that a step of the execution ran, if the execution is Running.
    pub proof: Option<Box<Proof>>,
    /// The retry policy with its attempts, if the execution has one and has not ended.
    pub retry: Option<Box<Retry>>,
    /// Whether the status shows the number of a run that the execution gave up.
    pub gave_up: bool,
    /// Whether the execution is an analyst of a triage, which never blocks its target.
    pub analyses: bool,
    /// The condition `Unguarded` of the cancellation, if there is one.
    pub unguarded: Option<Unguarded>,
    /// The names of parameters that the pipeline of the run does not declare.
    pub undeclared: Box<[Box<str>]>,
    /// The redaction for texts about the execution, until everything about it is announced.
    pub redaction: Option<Arc<Redaction>>,
}

impl Subject {
    /// Returns whether the execution is Running and waits for its next attempt.
    #[must_use]
    pub fn waits(&self) -> bool {
        let last = self.retry.as_ref().and_then(|retry| retry.attempts.last());
        self.is_running && last.is_some_and(|last| last.started_at.is_none() && last.end.is_none())
    }
}

/// Renders a write. `kept` are the present conditions, if the write keeps conditions.
#[must_use]
pub fn render(
    target: Option<&TargetName>,
    subject: &Subject,
    says: &Says,
    kept: Vec<Condition>,
    execution_namespace: &str,
    now: Time,
) -> WorkflowExecutionStatus {
    let mut status = match says {
        Says::Running { run, number, consecutive_failures } => {
            render_running(target, subject, run, *number, *consecutive_failures, execution_namespace, now)
        }
        Says::GaveUp { number } => given_up(target, subject, *number, now),
        Says::Retry { attempt, of, end, proof, delay, not_before, run: _ } => {
            let (attempt, of, delay, not_before) = (*attempt, *of, *delay, *not_before);
            let what = Retried { attempt, of, end, proof: proof.as_ref(), delay, not_before };
            retried(target, subject, &what, now)
        }
        Says::Ended { ending, draining } => ended(target, subject, ending, *draining),
        Says::Progress { run, shown, doing, wait, started_at } => {
            let doing = match wait {
                Some(wait) => word_of(*wait),
                None => doing,
            };
            going(target, subject, run, shown, doing, *started_at, now)
        }
        Says::Waiting { waiting: what, tried } => render_waiting(target, subject, what, *tried, now),
        Says::HeldBack { waiting } => attempts::held_back(subject, kept, waiting, now),
        Says::Freed => freed(subject, kept, now),
        Says::Cleared { clearance, effective } => cleared(target, subject, kept, clearance, *effective, now),
        Says::Blocked(what) => blocked(target, subject, kept, *what, now),
        Says::Unguarded { kind, counts } => unguarded(subject, kept, *kind, *counts, now),
    };
    if status.pipeline_run_ref.is_none() {
        name_found_run(subject, &mut status, execution_namespace);
    }
    let has_counted = matches!(says, Says::Ended { ending: Ending::Failed(failure), .. } if failure.cancelled);
    short::add(subject, says, keep_unguarded(subject, status, has_counted.then_some(now)))
}

/// Adds the name of the run to a status that lost it. Without the name, the API server would refuse the status.
fn name_found_run(subject: &Subject, status: &mut WorkflowExecutionStatus, execution_namespace: &str) {
    let (Some(number), Some(run)) = (subject.found_run, &subject.run) else { return };
    status.pipeline_run_ref = Some(run_ref(run, execution_namespace));
    status.run_sequence = status.run_sequence.or(i64::try_from(number).ok());
    status.start_time = status.start_time.take().or_else(|| subject.started_at.map(api_time));
}

fn run_ref(run: &RunId, execution_namespace: &str) -> PipelineRunRef {
    PipelineRunRef { name: run.name.to_string(), uid: run.uid.to_string(), namespace: execution_namespace.to_owned() }
}

/// Renders phase Running: the execution commits to a run.
fn render_running(
    target: Option<&TargetName>,
    subject: &Subject,
    run: &RunId,
    number: RunNumber,
    consecutive_failures: u32,
    execution_namespace: &str,
    now: Time,
) -> WorkflowExecutionStatus {
    let since = subject.started_at.unwrap_or(now);
    let mut conditions = while_running(subject, run, since);
    conditions.extend(proof_condition(subject, now));
    conditions.extend(attempts::runs(subject, Some(now)));
    WorkflowExecutionStatus {
        phase: Some(Phase::Running),
        // A later attempt does not change the start time.
        start_time: (!subject.is_running).then(|| api_time(now)),
        pipeline_run_ref: Some(run_ref(run, execution_namespace)),
        run_sequence: i64::try_from(number).ok(),
        consecutive_failures: Some(counter(consecutive_failures)),
        attempts: subject.retry.as_ref().map(|retry| attempts::begun(retry, run, now)).unwrap_or_default(),
        conditions,
        ..base_status(target, subject)
    }
}

/// Renders the progress of the run of an execution.
fn going(
    target: Option<&TargetName>,
    subject: &Subject,
    run: &RunId,
    shown: &RunShown,
    doing: &str,
    since: Time,
    now: Time,
) -> WorkflowExecutionStatus {
    let mut conditions = while_running(subject, run, since);
    let awaits = shown.awaits.as_deref();
    if let Some((succeeded, awaits)) = conditions.iter_mut().find(|it| it.type_ == SUCCEEDED).zip(awaits) {
        (succeeded.reason, succeeded.message) = (awaits.reason.to_string(), awaits.message.to_string());
    }
    if let Some(proof) = &shown.proof {
        conditions.push(started_condition(subject, now, &Started::Started(*proof.clone())));
    }
    conditions.extend(attempts::runs(subject, None));
    // Only a failed run is being examined.
    let has_failed = awaits.is_some_and(|awaits| &*awaits.reason == Awaiting::EXAMINING);
    let status = if has_failed { ConditionStatus::False } else { ConditionStatus::Unknown };
    let run_status = run_status(status, doing, "", shown.tasks);
    WorkflowExecutionStatus { pipeline_run_status: Some(run_status), conditions, ..base_status(target, subject) }
}

fn while_running(subject: &Subject, run: &RunId, since: Time) -> Vec<Condition> {
    let note = format!("PipelineRun {run} holds the target");
    vec![
        held(subject, since, &note),
        condition(subject, since, SUCCEEDED, "Unknown", conditions::RUNNING, "the workflow is running"),
    ]
}

fn held(subject: &Subject, since: Time, note: &str) -> Condition {
    condition(subject, since, conditions::TARGET_LOCKED, "True", conditions::HELD, note)
}

/// Renders the recorded proof again, because the list of conditions is replaced as a whole.
fn proof_condition(subject: &Subject, now: Time) -> Option<Condition> {
    let proof = subject.proof.as_deref()?;
    Some(started_condition(subject, now, &Started::Started(proof.clone())))
}

/// Renders the proof that something ran, with its time; without proof, the present knowledge.
fn started_condition(subject: &Subject, at: Time, started: &Started) -> Condition {
    let at = match started {
        Started::Started(proof) => proof.at.unwrap_or(at),
        Started::NotStarted(_) | Started::Unknown(_) => at,
    };
    condition(subject, at, conditions::STARTED, started.status(), started.reason(), &started.to_string())
}

/// Renders what an undecided execution waits for. `tried` is for how long the operator has tried to create its run;
/// [`tries::read`] reads this duration back from the message.
fn render_waiting(
    target: Option<&TargetName>,
    subject: &Subject,
    waiting: &Waiting,
    tried: Option<std::time::Duration>,
    now: Time,
) -> WorkflowExecutionStatus {
    let (reason, message) = (waiting.reason(), waiting.message());
    let message = tried.map_or(message.clone(), |tried| tries::with_duration(tried, &message));
    let since = tried.and_then(|tried| now.checked_sub_signed(TimeDelta::from_std(tried).ok()?)).unwrap_or(now);
    WorkflowExecutionStatus {
        phase: Some(Phase::Pending),
        // The condition `Succeeded` has the reason, too, because the Reason column of `kubectl get` shows it.
        conditions: [(SUCCEEDED, "Unknown"), (conditions::WAITING, "True")]
            .map(|(type_, status)| condition(subject, since, type_, status, reason, &message))
            .into(),
        ..base_status(target, subject)
    }
}

/// Renders that an undecided execution will not commit to any run up to this number.
fn given_up(target: Option<&TargetName>, subject: &Subject, number: RunNumber, now: Time) -> WorkflowExecutionStatus {
    let run_sequence = i64::try_from(number).ok();
    WorkflowExecutionStatus { run_sequence, ..render_waiting(target, subject, &Waiting::Withdrawn, None, now) }
}

/// Converts to the signed integer of the API.
fn counter(failures: u32) -> i32 {
    i32::try_from(failures).unwrap_or(i32::MAX)
}

fn base_status(target: Option<&TargetName>, subject: &Subject) -> WorkflowExecutionStatus {
    WorkflowExecutionStatus {
        target: target.map(ToString::to_string),
        observed_generation: Some(subject.generation),
        ..WorkflowExecutionStatus::default()
    }
}

fn condition(subject: &Subject, at: Time, type_: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: limits::cut(message, limits::MESSAGE),
        last_transition_time: api_time(at),
        observed_generation: Some(subject.generation),
    }
}

fn run_status(status: ConditionStatus, reason: &str, message: &str, tasks: Option<TaskCount>) -> PipelineRunStatus {
    let text = |text: &str, limit: u32| Some(limits::cut(text, limit)).filter(|text| !text.is_empty());
    PipelineRunStatus {
        status,
        reason: text(reason, limits::REASON),
        message: text(message, limits::MESSAGE),
        completed_tasks: tasks.map(|tasks| tasks.completed.into()),
        total_tasks: tasks.map(|tasks| tasks.total.into()),
    }
}

/// Adds a condition, or replaces the condition of the same type. The others stay unchanged, in their places.
fn amended(mut conditions: Vec<Condition>, new: Condition) -> WorkflowExecutionStatus {
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(known) => *known = new,
        None => conditions.push(new),
    }
    WorkflowExecutionStatus { conditions, ..WorkflowExecutionStatus::default() }
}

#[cfg(test)]
mod tests;
