//! Renders what was decided into the status of a `WorkflowExecution`: the fields that change, and all conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{
    ConditionStatus, ConflictingWorkflow, FailureDetails, FailureReason as ApiReason, Phase, PipelineRunRef,
    PipelineRunStatus, SkipDetails, SkipReason, WorkflowExecutionStatus, conditions, limits,
};
use wfe_core::action::{Ending, Waiting};
use wfe_core::ending::{Conflict, Failure, FailureReason, Skip};
use wfe_core::name::{ExecutionId, RunId};
use wfe_core::run::Outcome;
use wfe_core::target::{RunNumber, TargetName};
use wfe_core::{Time, duration};
use wfe_tekton::api_time;

/// The execution that a status is about, as far as it is needed here.
#[derive(Clone, Debug)]
pub struct Subject {
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec.workflowRef.workflowId`.
    pub workflow_id: Box<str>,
    /// Whether it is Running, so that it holds the target.
    pub is_running: bool,
    /// The conditions that its status has, where one of them is to change after the end.
    pub conditions: Vec<Condition>,
}

/// Renders phase Running, the commit to a run.
#[must_use]
pub fn running(
    target: Option<&TargetName>,
    subject: &Subject,
    run: &RunId,
    number: RunNumber,
    execution_namespace: &str,
    now: Time,
) -> WorkflowExecutionStatus {
    let note = format!("PipelineRun {run} holds the target");
    WorkflowExecutionStatus {
        phase: Some(Phase::Running),
        start_time: Some(api_time(now)),
        pipeline_run_ref: Some(PipelineRunRef {
            name: run.name.to_string(),
            uid: run.uid.to_string(),
            namespace: execution_namespace.to_owned(),
        }),
        run_sequence: i64::try_from(number).ok(),
        conditions: vec![
            condition(subject, now, conditions::TARGET_LOCKED, "True", conditions::HELD, &note),
            condition(subject, now, conditions::SUCCEEDED, "Unknown", conditions::RUNNING, "the workflow is running"),
        ],
        ..common(target, subject)
    }
}

/// Renders the end of an execution.
#[must_use]
pub fn ended(
    target: Option<&TargetName>,
    subject: &Subject,
    ending: &Ending,
    draining: bool,
) -> WorkflowExecutionStatus {
    let mut status = match ending {
        Ending::Completed(success) => WorkflowExecutionStatus {
            phase: Some(Phase::Completed),
            completion_time: Some(api_time(success.completed_at)),
            duration: Some(duration::format(success.ran_for)),
            pipeline_run_status: Some(run_status(ConditionStatus::True, &success.outcome)),
            conditions: vec![condition(
                subject,
                success.completed_at,
                conditions::SUCCEEDED,
                "True",
                conditions::COMPLETED,
                "the workflow completed",
            )],
            ..common(target, subject)
        },
        Ending::Failed(failure) => failed(target, subject, failure),
    };
    if subject.is_running {
        let at = match ending {
            Ending::Completed(success) => success.completed_at,
            Ending::Failed(failure) => failure.failed_at,
        };
        status.conditions.insert(0, lock_after_the_end(subject, at, draining));
    }
    status
}

fn lock_after_the_end(subject: &Subject, at: Time, draining: bool) -> Condition {
    if draining {
        let note = "the run has ended, but tasks or pods of it are still stopping; until then the target is not free";
        condition(subject, at, conditions::TARGET_LOCKED, "True", conditions::DRAINING, note)
    } else {
        let note = "the run has ended and the target is free";
        condition(subject, at, conditions::TARGET_LOCKED, "False", conditions::FREE, note)
    }
}

/// Renders that the target has drained after the end. Of a terminal status nothing but conditions may change.
#[must_use]
pub fn freed(subject: &Subject, now: Time) -> WorkflowExecutionStatus {
    let others = subject.conditions.iter().filter(|condition| condition.type_ != conditions::TARGET_LOCKED).cloned();
    WorkflowExecutionStatus {
        conditions: std::iter::once(lock_after_the_end(subject, now, false)).chain(others).collect(),
        ..WorkflowExecutionStatus::default()
    }
}

/// Renders what an undecided execution waits for.
#[must_use]
pub fn waiting(
    target: Option<&TargetName>,
    subject: &Subject,
    waiting: &Waiting,
    now: Time,
) -> WorkflowExecutionStatus {
    WorkflowExecutionStatus {
        phase: Some(Phase::Pending),
        conditions: vec![condition(subject, now, conditions::WAITING, "True", waiting.reason(), &waiting.message())],
        ..common(target, subject)
    }
}

/// Renders that an undecided execution will commit to no run up to this number.
#[must_use]
pub fn given_up(
    target: Option<&TargetName>,
    subject: &Subject,
    number: RunNumber,
    now: Time,
) -> WorkflowExecutionStatus {
    let run_sequence = i64::try_from(number).ok();
    WorkflowExecutionStatus { run_sequence, ..waiting(target, subject, &Waiting::Withdrawn, now) }
}

fn failed(target: Option<&TargetName>, subject: &Subject, failure: &Failure) -> WorkflowExecutionStatus {
    WorkflowExecutionStatus {
        phase: Some(Phase::Failed),
        completion_time: Some(api_time(failure.failed_at)),
        duration: subject.is_running.then(|| duration::format(failure.ran_for)),
        run_sequence: failure.number.and_then(|number| i64::try_from(number).ok()),
        pipeline_run_status: failure.outcome.as_ref().map(|outcome| run_status(ConditionStatus::False, outcome)),
        failure_reason: Some(failure.message.to_string()),
        failure_details: Some(FailureDetails {
            // Which task failed is read from Tekton's evidence by a later version; here no task is named.
            failed_task_index: 0,
            failed_task_name: String::new(),
            failed_step_name: None,
            reason: api_reason(failure.reason),
            message: failure.message.to_string(),
            exit_code: None,
            failed_at: api_time(failure.failed_at),
            execution_time_before_failure: duration::format(failure.ran_for),
            natural_language_summary: limits::cut(&failure.summary(&subject.workflow_id), limits::SUMMARY),
            was_execution_failure: failure.was_execution_failure,
            requires_manual_review: failure.was_execution_failure,
        }),
        conditions: vec![condition(
            subject,
            failure.failed_at,
            conditions::SUCCEEDED,
            "False",
            failure.reason.as_str(),
            &failure.message,
        )],
        ..common(target, subject)
    }
}

/// Renders a skip: no start, no duration, no run.
#[must_use]
pub fn skipped(
    target: Option<&TargetName>,
    execution: &ExecutionId,
    subject: &Subject,
    skip: &Skip,
    now: Time,
) -> WorkflowExecutionStatus {
    let target_text = target.map(TargetName::as_str).unwrap_or_default();
    let message = skip.message(target_text);
    let Skip::ResourceBusy(Conflict { holder, workflow_id, started_at, .. }) = skip;
    // Targets are cluster-wide, names are not.
    let same_namespace = holder.namespace == execution.namespace;
    WorkflowExecutionStatus {
        phase: Some(Phase::Skipped),
        completion_time: Some(api_time(now)),
        conditions: vec![condition(subject, now, conditions::SUCCEEDED, "False", skip.reason(), &message)],
        skip_details: Some(SkipDetails {
            reason: SkipReason::ResourceBusy,
            message,
            skipped_at: api_time(now),
            conflicting_workflow: Some(ConflictingWorkflow {
                name: if same_namespace { holder.name.to_string() } else { holder.to_string() },
                workflow_id: workflow_id.to_string(),
                started_at: Some(api_time(*started_at)),
                target_resource: target_text.to_owned(),
            }),
            recent_remediation: None,
        }),
        ..common(target, subject)
    }
}

fn common(target: Option<&TargetName>, subject: &Subject) -> WorkflowExecutionStatus {
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
        message: message.to_owned(),
        last_transition_time: api_time(at),
        observed_generation: Some(subject.generation),
    }
}

fn api_reason(reason: FailureReason) -> ApiReason {
    match reason {
        FailureReason::OomKilled => ApiReason::OomKilled,
        FailureReason::DeadlineExceeded => ApiReason::DeadlineExceeded,
        FailureReason::Forbidden => ApiReason::Forbidden,
        FailureReason::ResourceExhausted => ApiReason::ResourceExhausted,
        FailureReason::ConfigurationError => ApiReason::ConfigurationError,
        FailureReason::ImagePullBackOff => ApiReason::ImagePullBackOff,
        FailureReason::Unknown => ApiReason::Unknown,
    }
}

fn run_status(status: ConditionStatus, outcome: &Outcome) -> PipelineRunStatus {
    PipelineRunStatus {
        status,
        reason: Some(outcome.reason.to_string()),
        message: Some(outcome.message.to_string()),
        completed_tasks: None,
        total_tasks: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_the_seven_reasons_agree() {
        for reason in FailureReason::ALL {
            assert_eq!(api_reason(reason).as_str(), reason.as_str());
        }
    }
}
