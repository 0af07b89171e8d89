//! Adds the short forms of a status: a summary for `kubectl get`, the next step for programs, and a condition for tools
//! that wait for any kind of object (kstatus).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{FailureDetails, FailureReason, Phase, StatusView, WorkflowExecutionStatus, conditions, limits};
use wfe_core::action::{Ending, Says};

use super::{Subject, condition};

/// Adds the short forms to a rendered write.
pub(super) fn add(subject: &Subject, says: &Says, mut status: WorkflowExecutionStatus) -> WorkflowExecutionStatus {
    status.summary = summary(says, &status).map(|text| limits::cut(&text, limits::STATUS_SUMMARY));
    status.next_step = StatusView::of_status(&status).recorded_step();
    if !says.keeps_conditions() {
        status.conditions.extend(for_tools(subject, &status));
    }
    status
}

/// Adds the short forms to a rendered skip.
pub(super) fn add_to_skip(mut status: WorkflowExecutionStatus) -> WorkflowExecutionStatus {
    status.summary = status.skip_details.as_ref().map(|details| details.reason.as_str().to_owned());
    status.next_step = StatusView::of_status(&status).recorded_step();
    status
}

/// Adds the next step of an ended execution to a write, if the write changes the step. `was` is the whole status before
/// the write.
pub(crate) fn renewed(was: &WorkflowExecutionStatus, write: WorkflowExecutionStatus) -> WorkflowExecutionStatus {
    let whole = WorkflowExecutionStatus {
        conditions: write.conditions.clone(),
        clearance: write.clearance.clone().or_else(|| was.clearance.clone()),
        ..was.clone()
    };
    let next_step = StatusView::of_status(&whole).recorded_step().filter(|step| was.next_step.as_ref() != Some(step));
    WorkflowExecutionStatus { next_step, ..write }
}

fn summary(says: &Says, status: &WorkflowExecutionStatus) -> Option<String> {
    Some(match says {
        Says::Waiting { waiting, .. } | Says::HeldBack { waiting } => waiting.reason().to_owned(),
        Says::GaveUp { .. } => conditions::WITHDRAWN.to_owned(),
        Says::Running { .. } => "Starting".to_owned(),
        Says::Progress { shown, .. } => match (&shown.awaits, shown.tasks) {
            (Some(awaits), _) => awaits.reason.to_string(),
            (None, Some(tasks)) => {
                format!("Task {}/{}", tasks.completed.saturating_add(1).min(tasks.total), tasks.total)
            }
            (None, None) => conditions::RUNNING.to_owned(),
        },
        Says::Retry { attempt, of, not_before, .. } => {
            format!("Attempt {}/{of} at {}", attempt.saturating_add(1), not_before.format("%H:%M"))
        }
        Says::Ended { ending: Ending::Completed(_), .. } => {
            format!("took {}", status.duration.as_deref().unwrap_or("no time"))
        }
        Says::Ended { ending: Ending::Failed(failure), .. } if failure.cancelled => conditions::CANCELLED.to_owned(),
        Says::Ended { ending: Ending::Failed(_), .. } => failed(status.failure_details.as_ref()?),
        Says::Freed | Says::Cleared { .. } | Says::Blocked(_) | Says::Unguarded { .. } => return None,
    })
}

fn failed(details: &FailureDetails) -> String {
    let task = &details.failed_task_name;
    match (details.reason, details.exit_code) {
        (FailureReason::Unknown, Some(code)) if !task.is_empty() => format!("Exit {code}: {task}"),
        (FailureReason::Unknown, None) if !task.is_empty() => format!("Failed: {task}"),
        (reason, _) => reason.to_string(),
    }
}

/// Returns the condition that shows generic tools that the object is not done, or has failed; `None` if it has
/// completed or was skipped.
fn for_tools(subject: &Subject, status: &WorkflowExecutionStatus) -> Option<Condition> {
    let succeeded = status.conditions.iter().find(|it| it.type_ == conditions::SUCCEEDED)?;
    let type_ = match status.phase {
        Some(Phase::Completed | Phase::Skipped) => return None,
        Some(Phase::Failed) => conditions::STALLED,
        Some(Phase::Pending | Phase::Running) | None => conditions::RECONCILING,
    };
    let message = if type_ == conditions::STALLED { "it did not reach its goal" } else { "it has not ended" };
    let at = succeeded.last_transition_time.clone();
    Some(Condition {
        last_transition_time: at,
        ..condition(subject, wfe_core::Time::default(), type_, "True", &succeeded.reason, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn failed(change: &Value) -> WorkflowExecutionStatus {
        let mut status = json!({
            "phase": "Failed", "completionTime": "2026-01-02T03:04:05Z",
            "failureDetails": {
                "failedTaskIndex": 1, "failedTaskName": "restart-everything-at-once", "reason": "Unknown",
                "message": "m", "exitCode": 137, "failedAt": "2026-01-02T03:04:05Z",
                "executionTimeBeforeFailure": "3s", "naturalLanguageSummary": "s", "wasExecutionFailure": true,
                "requiresManualReview": true,
            },
        });
        for (key, value) in change.as_object().unwrap() {
            status["failureDetails"][key] = value.clone();
        }
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_summary_of_a_failure_is_its_exit_code_and_task_or_its_reason() {
        for (change, said) in [
            (json!({}), "Exit 137: restart-everything-at-once"),
            (json!({"exitCode": null}), "Failed: restart-everything-at-once"),
            (json!({"exitCode": null, "failedTaskName": ""}), "Unknown"),
            (json!({"reason": "OOMKilled"}), "OOMKilled"),
        ] {
            assert_eq!(super::failed(&failed(&change).failure_details.unwrap()), said, "{change}");
        }
    }

    #[test]
    fn a_clearance_renews_the_next_step_and_a_write_that_changes_nothing_does_not() {
        let step = |status: &WorkflowExecutionStatus| {
            let step = status.next_step.clone()?;
            Some((json!(step.action), step.not_before.map(|at| at.0.to_string())))
        };
        let was = failed(&json!({}));
        let was = WorkflowExecutionStatus { next_step: StatusView::of_status(&was).recorded_step(), ..was };
        assert_eq!(step(&was), Some((json!("PickAlternative"), None)));
        let clearance = json!({"clearedBy": "jo", "clearedAt": "2026-01-02T04:00:00Z", "reason": "r"});
        let cleared = WorkflowExecutionStatus {
            clearance: Some(serde_json::from_value(clearance).unwrap()),
            ..WorkflowExecutionStatus::default()
        };
        let renewed = super::renewed(&was, cleared);
        assert_eq!(step(&renewed), Some((json!("RetryAfter"), Some("2026-01-02T04:00:00Z".to_owned()))));
        let freed = super::renewed(&was, WorkflowExecutionStatus::default());
        assert_eq!(freed, WorkflowExecutionStatus::default());
    }
}
