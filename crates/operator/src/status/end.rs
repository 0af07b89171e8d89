//! Renders the status of an execution that has ended.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{
    ConditionStatus, ConflictingWorkflow, FailureDetails, Outcome as ApiOutcome, Phase, RecentRemediation, SkipDetails,
    SkipReason, WorkflowExecutionStatus, conditions, limits,
};
use wfe_core::action::Ending;
use wfe_core::blocks::Blocked;
use wfe_core::ending::{Conflict, Failure, Skip, undeclared};
use wfe_core::retry::Stop;
use wfe_core::target::TargetName;
use wfe_core::{Time, duration};
use wfe_tekton::{Redaction, api_time};

use super::{
    Subject, attempts, base_status, blocked_condition, condition, counter, keep_unguarded, run_status, short,
    started_condition,
};

/// Renders the end of an execution.
pub(super) fn ended(
    target: Option<&TargetName>,
    subject: &Subject,
    ending: &Ending,
    draining: bool,
) -> WorkflowExecutionStatus {
    let (at, started) = match ending {
        Ending::Completed(success) => (success.completed_at, &success.started),
        Ending::Failed(failure) => (failure.failed_at, &failure.started),
    };
    let mut status = match ending {
        Ending::Completed(success) => WorkflowExecutionStatus {
            phase: Some(Phase::Completed),
            completion_time: Some(api_time(success.completed_at)),
            duration: Some(duration::format(success.ran_for)),
            pipeline_run_status: Some(run_status(
                ConditionStatus::True,
                &success.outcome.reason,
                &success.outcome.message,
                success.tasks,
            )),
            consecutive_failures: Some(0),
            conditions: vec![condition(
                subject,
                success.completed_at,
                conditions::SUCCEEDED,
                "True",
                conditions::COMPLETED,
                &completed(subject),
            )],
            ..base_status(target, subject)
        },
        Ending::Failed(failure) => failed(target, subject, failure),
    };
    if subject.is_running {
        status.conditions.insert(0, lock_after_the_end(subject, at, draining));
    }
    status.conditions.push(started_condition(subject, at, started));
    if let Ending::Failed(failure) = ending
        && let Some(reason) = failure.blocks().filter(|_| !subject.analyses)
        && let Some(target) = target
    {
        status.conditions.push(blocked_condition(subject, at, Blocked::Yes(reason), Some(target)));
    }
    attempts::finish(&mut status, subject, ending, at);
    status
}

fn completed(subject: &Subject) -> String {
    let undeclared = undeclared(&subject.undeclared).map(|words| format!("; note that {words}"));
    format!("the workflow completed{}", undeclared.unwrap_or_default())
}

pub(super) fn lock_after_the_end(subject: &Subject, at: Time, draining: bool) -> Condition {
    if draining {
        let note = "the run has ended, but tasks or pods of it are still stopping; until then the target is not free";
        condition(subject, at, conditions::TARGET_LOCKED, "True", conditions::DRAINING, note)
    } else {
        let note = "the run has ended and the target is free";
        condition(subject, at, conditions::TARGET_LOCKED, "False", conditions::FREE, note)
    }
}

fn failed(target: Option<&TargetName>, subject: &Subject, failure: &Failure) -> WorkflowExecutionStatus {
    let task = failure.task.as_ref();
    let message = limits::cut(&failure.message, limits::MESSAGE);
    // Other programs forward the summary, so it quotes no parameter value.
    let mut told = failure.clone();
    if let Some(redaction) = &subject.redaction {
        redact(&mut told, redaction);
    }
    WorkflowExecutionStatus {
        phase: Some(Phase::Failed),
        completion_time: Some(api_time(failure.failed_at)),
        duration: subject.is_running.then(|| duration::format(failure.ran_for)),
        run_sequence: failure.number.and_then(|number| i64::try_from(number).ok()),
        // A failure without a target counts for no target.
        consecutive_failures: target.map(|_| counter(failure.charge.consecutive_failures)),
        // Time alone never unblocks a target whose retries are exhausted.
        next_allowed_execution: target
            .and(failure.charge.next_allowed_execution)
            .filter(|_| !failure.charge.exhausts)
            .map(api_time),
        pipeline_run_status: failure
            .outcome
            .as_ref()
            .map(|outcome| run_status(ConditionStatus::False, &outcome.reason, &outcome.message, failure.tasks)),
        failure_reason: Some(message.clone()),
        failure_details: Some(FailureDetails {
            failed_task_index: task.and_then(|task| i32::try_from(task.index).ok()).unwrap_or(0),
            failed_task_name: task.map_or_else(String::new, |task| limits::cut(&task.name, limits::NAME)),
            failed_step_name: task.and_then(|task| task.step.as_deref()).map(|step| limits::cut(step, limits::NAME)),
            reason: failure.reason,
            message: message.clone(),
            exit_code: task.and_then(|task| task.exit_code),
            failed_at: api_time(failure.failed_at),
            execution_time_before_failure: duration::format(failure.ran_for),
            natural_language_summary: limits::cut(
                &told.summary(&subject.workflow_id, target.map(TargetName::as_str), &subject.undeclared),
                limits::SUMMARY,
            ),
            was_execution_failure: failure.was_execution_failure(),
            requires_manual_review: failure.was_execution_failure(),
            fingerprint: failure.fingerprint.as_ref().map(|it| it.as_str().to_owned()),
            shared_outage: failure.shared_outage.then_some(true),
        }),
        conditions: vec![condition(
            subject,
            failure.failed_at,
            conditions::SUCCEEDED,
            "False",
            failure.shown_reason(),
            &message,
        )],
        ..base_status(target, subject)
    }
}

/// Removes parameter values from the texts of a failure that other programs wrote.
pub fn redact(failure: &mut Failure, redaction: &Redaction) {
    failure.message = redaction.apply(&failure.message).into();
    let Some(tried) = &mut failure.tried else { return };
    if let Some(end) = &mut tried.end {
        end.message = redaction.apply(&end.message).into();
    }
    if let Stop::ConditionError(words) = &mut tried.stop {
        *words = redaction.apply(words).into();
    }
}

/// Renders a skip, which has no start, no duration and no run.
#[must_use]
pub fn skipped(target: Option<&TargetName>, subject: &Subject, skip: &Skip, now: Time) -> WorkflowExecutionStatus {
    let target_text = target.map(TargetName::as_str).unwrap_or_default();
    let message = skip.message(target_text);
    let status = WorkflowExecutionStatus {
        phase: Some(Phase::Skipped),
        completion_time: Some(api_time(now)),
        conditions: vec![condition(subject, now, conditions::SUCCEEDED, "False", skip.reason(), &message)],
        skip_details: Some(SkipDetails {
            reason: skip_reason(skip),
            message: limits::cut(&message, limits::MESSAGE),
            skipped_at: api_time(now),
            conflicting_workflow: conflict_of(skip).map(|conflict| ConflictingWorkflow {
                namespace: Some(limits::cut(&conflict.holder.namespace, limits::NAMESPACE)),
                name: limits::cut(&conflict.holder.name, limits::NAME),
                workflow_id: limits::cut(&conflict.workflow_id, limits::NAME),
                started_at: Some(api_time(conflict.started_at)),
                target_resource: target_text.to_owned(),
            }),
            recent_remediation: skip.remediation().map(|past| RecentRemediation {
                namespace: Some(limits::cut(&past.execution.namespace, limits::NAMESPACE)),
                name: limits::cut(&past.execution.name, limits::NAME),
                workflow_id: limits::cut(&past.workflow_id, limits::NAME),
                completed_at: api_time(past.completed_at),
                outcome: if past.completed { ApiOutcome::Completed } else { ApiOutcome::Failed },
                target_resource: target_text.to_owned(),
                cooldown_remaining: skip.remaining(now).map(duration::format),
            }),
        }),
        ..base_status(target, subject)
    };
    short::add_to_skip(keep_unguarded(subject, status, None))
}

fn conflict_of(skip: &Skip) -> Option<&Conflict> {
    match skip {
        Skip::ResourceBusy(conflict) => Some(conflict),
        _ => None,
    }
}

fn skip_reason(skip: &Skip) -> SkipReason {
    match skip {
        Skip::ResourceBusy(_) => SkipReason::ResourceBusy,
        Skip::PreviousExecutionFailed { .. } => SkipReason::PreviousExecutionFailed,
        Skip::ExhaustedRetries { .. } => SkipReason::ExhaustedRetries,
        Skip::Backoff { .. } | Skip::Cooldown { .. } => SkipReason::RecentlyRemediated,
    }
}
