//! What a status says of the policies that guard what a person sets, and of what none has guarded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{Phase, WorkflowExecutionStatus, conditions};
use wfe_core::Time;
use wfe_core::guard::{GuardMark, WordKind};

use super::after::amended;
use super::{Subject, condition};

/// Renders which policies are in force, and nothing else.
pub(super) fn guarded(mark: GuardMark) -> WorkflowExecutionStatus {
    WorkflowExecutionStatus { guard: Some(mark.to_string()), ..WorkflowExecutionStatus::default() }
}

/// Renders that what a person has set does not count. Before the start this may be the first that a status says.
pub(super) fn unguarded(subject: &Subject, kept: Vec<Condition>, kind: WordKind, now: Time) -> WorkflowExecutionStatus {
    let phase = (kind == WordKind::Cancellation && !subject.is_running).then_some(Phase::Pending);
    WorkflowExecutionStatus {
        phase,
        observed_generation: Some(subject.generation),
        ..amended(kept, unguarded_condition(subject, kind, now))
    }
}

/// Keeps what is said of the cancellation where conditions are written whole: what is not said any more would be looked
/// into again.
pub(super) fn keep_unguarded(subject: &Subject, mut status: WorkflowExecutionStatus) -> WorkflowExecutionStatus {
    let is_said = status.conditions.iter().any(|condition| condition.type_ == conditions::UNGUARDED);
    if let Some(since) = subject.unguarded.filter(|_| !is_said && !status.conditions.is_empty()) {
        status.conditions.push(unguarded_condition(subject, WordKind::Cancellation, since));
    }
    status
}

fn unguarded_condition(subject: &Subject, kind: WordKind, at: Time) -> Condition {
    condition(subject, at, conditions::UNGUARDED, "True", kind.reason(), kind.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_count_is_said_until_the_end() {
        let at = |second| Time::from_timestamp(second, 0).unwrap();
        let fresh = unguarded(&Subject::default(), Vec::new(), WordKind::Cancellation, at(5));
        assert_eq!((fresh.phase, fresh.conditions.len()), (Some(Phase::Pending), 1));
        let running = Subject { is_running: true, ..Subject::default() };
        assert_eq!(unguarded(&running, Vec::new(), WordKind::Cancellation, at(5)).phase, None);
        let ended = unguarded(&Subject::default(), fresh.conditions.clone(), WordKind::Clearance, at(9));
        assert_eq!((ended.phase, ended.conditions.len()), (None, 1), "one condition tells of what can act now");
        assert_eq!(ended.conditions[0].reason, conditions::CLEARANCE_UNGUARDED);
        // Conditions that are written whole keep it, as it was.
        let said = Subject { unguarded: Some(at(5)), ..running };
        let held = condition(&said, at(7), conditions::TARGET_LOCKED, "True", conditions::HELD, "");
        let written = amended(Vec::new(), held);
        let kept = keep_unguarded(&said, written.clone());
        assert_eq!(kept.conditions[1], unguarded_condition(&said, WordKind::Cancellation, at(5)));
        assert_eq!(keep_unguarded(&said, kept.clone()), kept, "once");
        assert_eq!(keep_unguarded(&Subject::default(), written.clone()), written);
        assert!(keep_unguarded(&said, guarded(GuardMark::new(7))).conditions.is_empty(), "they stay as they are");
    }
}
