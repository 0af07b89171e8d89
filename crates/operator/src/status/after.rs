//! Status changes after the end. Only conditions and the record of a clearance may change then.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{ClearanceStatus, WorkflowExecutionStatus, conditions, limits};
use wfe_core::Time;
use wfe_core::blocks::Blocked;
use wfe_core::execution::Clearance;
use wfe_core::target::TargetName;
use wfe_tekton::api_time;
use wfe_view::observe::is_of_one_that_goes_on;

use super::guard::count_clearance;
use super::{Subject, amended, condition, lock_after_the_end};

/// Renders that the target has drained after the end. Only conditions of a terminal status may change. Conditions that
/// apply only before the end are removed: another program may have written the end and left them.
pub(super) fn freed(subject: &Subject, mut conditions: Vec<Condition>, now: Time) -> WorkflowExecutionStatus {
    let was_locked = is_locked(&conditions);
    conditions.retain(|condition| condition.type_ == conditions::TARGET_LOCKED || !is_of_one_that_goes_on(condition));
    if was_locked {
        return amended(conditions, lock_after_the_end(subject, now, false));
    }
    WorkflowExecutionStatus { conditions, ..WorkflowExecutionStatus::default() }
}

/// Returns whether a status shows that its execution holds its target.
#[must_use]
pub fn is_locked(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| condition.type_ == conditions::TARGET_LOCKED && condition.status == "True")
}

/// Renders whether an execution that failed blocks its target.
pub(super) fn blocked(
    target: Option<&TargetName>,
    subject: &Subject,
    conditions: Vec<Condition>,
    blocked: Blocked,
    now: Time,
) -> WorkflowExecutionStatus {
    amended(conditions, blocked_condition(subject, now, blocked, target))
}

/// Renders the effect of a clearance, after the end.
pub(super) fn cleared(
    target: Option<&TargetName>,
    subject: &Subject,
    conditions: Vec<Condition>,
    clearance: &Clearance,
    effective: bool,
    now: Time,
) -> WorkflowExecutionStatus {
    let conditions = count_clearance(subject, conditions, now);
    if !effective {
        let note = "nothing was blocked by this execution or an earlier one, so this clearance changes nothing";
        let type_ = conditions::CLEARANCE_INEFFECTIVE;
        return WorkflowExecutionStatus {
            observed_generation: Some(subject.generation),
            ..amended(conditions, condition(subject, now, type_, "True", conditions::NOTHING_BLOCKED, note))
        };
    }
    let blocked = conditions.iter().any(|condition| condition.type_ == conditions::BLOCKED);
    let status = if blocked {
        amended(conditions, blocked_condition(subject, now, Blocked::Cleared, target))
    } else {
        WorkflowExecutionStatus { conditions, ..WorkflowExecutionStatus::default() }
    };
    WorkflowExecutionStatus {
        clearance: Some(ClearanceStatus {
            cleared_by: limits::cut(&clearance.cleared_by, limits::USER),
            cleared_at: api_time(now),
            reason: limits::cut(&clearance.reason, limits::CLEARANCE_REASON),
        }),
        observed_generation: Some(subject.generation),
        ..status
    }
}

pub(super) fn blocked_condition(
    subject: &Subject,
    at: Time,
    blocked: Blocked,
    target: Option<&TargetName>,
) -> Condition {
    let status = if matches!(blocked, Blocked::Yes(_)) { "True" } else { "False" };
    condition(
        subject,
        at,
        conditions::BLOCKED,
        status,
        blocked.reason(),
        &blocked.message(target.map_or("the target", TargetName::as_str)),
    )
}
