//! Renders the condition `Unguarded` of a clearance or cancellation that no policy guarded when the operator saw it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{Phase, WorkflowExecutionStatus, conditions};
use wfe_core::Time;
use wfe_core::guard::{Directive, Unguarded};

use super::{Subject, amended, condition};

/// Renders whether the clearance or cancellation counts now. For a cancellation before the start, this may be the first
/// status.
pub(super) fn unguarded(
    subject: &Subject,
    kept: Vec<Condition>,
    kind: Directive,
    counts: bool,
    now: Time,
) -> WorkflowExecutionStatus {
    let phase = (kind == Directive::Cancellation && !subject.is_running).then_some(Phase::Pending);
    WorkflowExecutionStatus {
        phase,
        observed_generation: Some(subject.generation),
        ..amended(kept, unguarded_condition(subject, kind, counts, now))
    }
}

/// Keeps the condition of the cancellation when the list of conditions is replaced as a whole. `counted` is when the
/// cancellation ended the execution, if it did.
pub(super) fn keep_unguarded(
    subject: &Subject,
    mut status: WorkflowExecutionStatus,
    counted: Option<Time>,
) -> WorkflowExecutionStatus {
    let is_said = status.conditions.iter().any(|condition| condition.type_ == conditions::UNGUARDED);
    let Some(Unguarded { since, counts }) = subject.unguarded.filter(|_| !is_said && !status.conditions.is_empty())
    else {
        return status;
    };
    let (counts, since) = match counted.filter(|_| !counts) {
        Some(now) => (true, now),
        None => (counts, since),
    };
    status.conditions.push(unguarded_condition(subject, Directive::Cancellation, counts, since));
    status
}

/// Records that a clearance counts, if the conditions show so far that it does not.
pub(super) fn count_clearance(subject: &Subject, mut kept: Vec<Condition>, now: Time) -> Vec<Condition> {
    let ignored = Directive::Clearance.reason(false);
    let is_it = |condition: &&mut Condition| condition.type_ == conditions::UNGUARDED && condition.reason == ignored;
    if let Some(condition) = kept.iter_mut().find(is_it) {
        *condition = unguarded_condition(subject, Directive::Clearance, true, now);
    }
    kept
}

fn unguarded_condition(subject: &Subject, kind: Directive, counts: bool, at: Time) -> Condition {
    let status = if counts { "False" } else { "True" };
    condition(subject, at, conditions::UNGUARDED, status, kind.reason(counts), kind.message(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn one_condition_says_what_can_act_now() {
        let fresh = unguarded(&Subject::default(), Vec::new(), Directive::Cancellation, false, at(5));
        assert_eq!((fresh.phase, fresh.conditions.len()), (Some(Phase::Pending), 1));
        let running = Subject { is_running: true, ..Subject::default() };
        assert_eq!(unguarded(&running, Vec::new(), Directive::Cancellation, false, at(5)).phase, None);
        let ended = unguarded(&Subject::default(), fresh.conditions, Directive::Clearance, false, at(9));
        let shown = |it: &Condition| (it.status.clone(), it.reason.clone());
        let of = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
        assert_eq!(
            ended.conditions.iter().map(shown).collect::<Vec<_>>(),
            [of("True", conditions::CLEARANCE_UNGUARDED)]
        );
        let counts = count_clearance(&Subject::default(), ended.conditions, at(12));
        assert_eq!(counts.iter().map(shown).collect::<Vec<_>>(), [of("False", conditions::CLEARANCE_COUNTS)]);
        assert_eq!(count_clearance(&Subject::default(), counts.clone(), at(15)), counts, "once");
        assert_eq!(count_clearance(&Subject::default(), Vec::new(), at(15)), []);
    }

    #[test]
    fn the_record_of_a_cancellation_stays_where_conditions_are_written_whole() {
        let said = |counts| Subject {
            is_running: true,
            unguarded: Some(Unguarded { since: at(5), counts }),
            ..Subject::default()
        };
        let held = condition(&said(false), at(7), conditions::TARGET_LOCKED, "True", conditions::HELD, "");
        let written = amended(Vec::new(), held);
        let is = |counts, since| unguarded_condition(&said(false), Directive::Cancellation, counts, since);
        for (counts, counted, expected) in [
            (false, None, is(false, at(5))),
            (false, Some(at(9)), is(true, at(9))),
            (true, None, is(true, at(5))),
            (true, Some(at(9)), is(true, at(5))),
        ] {
            let kept = keep_unguarded(&said(counts), written.clone(), counted);
            assert_eq!(kept.conditions[1], expected, "{counts}, {counted:?}");
            assert_eq!(keep_unguarded(&said(counts), kept.clone(), counted), kept, "once");
        }
        assert_eq!(keep_unguarded(&Subject::default(), written.clone(), Some(at(9))), written);
        let silent = WorkflowExecutionStatus::default();
        assert!(keep_unguarded(&said(false), silent, None).conditions.is_empty(), "they stay as they are");
    }
}
