//! Renders what was decided into the status of a `WorkflowExecution`: the fields that change, and all conditions.

use chrono::TimeDelta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{
    ClearanceStatus, ConditionStatus, ConflictingWorkflow, FailureDetails, FailureReason as ApiReason,
    Outcome as ApiOutcome, Phase, PipelineRunRef, PipelineRunStatus, RecentRemediation, SkipDetails, SkipReason,
    WorkflowExecutionStatus, conditions, limits,
};
use wfe_core::action::Ending;
use wfe_core::chain::RunNumber;
use wfe_core::ending::{Conflict, Failure, Skip};
use wfe_core::evidence::Started;
use wfe_core::execution::{Clearance, RunShown};
use wfe_core::findings::TaskCount;
use wfe_core::name::RunId;
use wfe_core::reason::FailureReason;
use wfe_core::standing::Blocked;
use wfe_core::target::TargetName;
use wfe_core::waiting::Waiting;
use wfe_core::{Time, duration, tries};
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
    /// When it was committed to its run, where it is Running.
    pub started_at: Option<Time>,
    /// Whether its status has the number of a run that it has given up.
    pub gave_up: bool,
}

/// What an execution commits to.
#[derive(Clone, Copy, Debug)]
pub struct Commitment<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Its number.
    pub number: RunNumber,
    /// The counter as the execution inherits it.
    pub consecutive_failures: u32,
}

/// A run that goes on.
#[derive(Clone, Copy, Debug)]
pub struct Going<'a> {
    /// Which one.
    pub run: &'a RunId,
    /// How far it is.
    pub shown: &'a RunShown,
    /// What Tekton says that it is doing.
    pub doing: &'a str,
    /// `startTime`.
    pub since: Time,
}

/// Renders phase Running, the commit to a run.
#[must_use]
pub fn running(
    target: Option<&TargetName>,
    subject: &Subject,
    commitment: Commitment<'_>,
    execution_namespace: &str,
    now: Time,
) -> WorkflowExecutionStatus {
    let Commitment { run, number, consecutive_failures } = commitment;
    WorkflowExecutionStatus {
        phase: Some(Phase::Running),
        start_time: Some(api_time(now)),
        pipeline_run_ref: Some(PipelineRunRef {
            name: run.name.to_string(),
            uid: run.uid.to_string(),
            namespace: execution_namespace.to_owned(),
        }),
        run_sequence: i64::try_from(number).ok(),
        consecutive_failures: Some(counter(consecutive_failures)),
        conditions: while_running(subject, run, now),
        ..common(target, subject)
    }
}

/// Renders how far the run of an execution is.
#[must_use]
pub fn going(target: Option<&TargetName>, subject: &Subject, going: Going<'_>, now: Time) -> WorkflowExecutionStatus {
    let Going { run, shown, doing, since } = going;
    let mut conditions = while_running(subject, run, since);
    if let Some(proof) = &shown.proof {
        conditions.push(started_condition(subject, now, &Started::Started(*proof.clone())));
    }
    let run_status = run_status(ConditionStatus::Unknown, doing, "", shown.tasks);
    WorkflowExecutionStatus { pipeline_run_status: Some(run_status), conditions, ..common(target, subject) }
}

fn while_running(subject: &Subject, run: &RunId, since: Time) -> Vec<Condition> {
    let note = format!("PipelineRun {run} holds the target");
    vec![
        condition(subject, since, conditions::TARGET_LOCKED, "True", conditions::HELD, &note),
        condition(subject, since, conditions::SUCCEEDED, "Unknown", conditions::RUNNING, "the workflow is running"),
    ]
}

/// Renders the proof that something ran, since when it did, or what else is known at a time.
fn started_condition(subject: &Subject, at: Time, started: &Started) -> Condition {
    let at = match started {
        Started::Started(proof) => proof.at.unwrap_or(at),
        Started::NotStarted(_) | Started::Unknown(_) => at,
    };
    condition(subject, at, conditions::STARTED, started.status(), started.reason(), &started.to_string())
}

/// Renders the end of an execution.
#[must_use]
pub fn ended(
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
                "the workflow completed",
            )],
            ..common(target, subject)
        },
        Ending::Failed(failure) => failed(target, subject, failure),
    };
    if subject.is_running {
        status.conditions.insert(0, lock_after_the_end(subject, at, draining));
    }
    status.conditions.push(started_condition(subject, at, started));
    if let Ending::Failed(failure) = ending
        && let Some(reason) = failure.blocks()
        && let Some(target) = target
    {
        status.conditions.push(blocked_condition(subject, at, Blocked::Yes(reason), Some(target)));
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
pub fn freed(subject: &Subject, conditions: Vec<Condition>, now: Time) -> WorkflowExecutionStatus {
    amended(conditions, lock_after_the_end(subject, now, false))
}

/// Renders whether an execution that failed blocks its target.
#[must_use]
pub fn blocked(
    target: Option<&TargetName>,
    subject: &Subject,
    conditions: Vec<Condition>,
    blocked: Blocked,
    now: Time,
) -> WorkflowExecutionStatus {
    amended(conditions, blocked_condition(subject, now, blocked, target))
}

/// Renders what a clearance has done, after the end.
#[must_use]
pub fn cleared(
    target: Option<&TargetName>,
    subject: &Subject,
    conditions: Vec<Condition>,
    clearance: &Clearance,
    effective: bool,
    now: Time,
) -> WorkflowExecutionStatus {
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

/// Renders conditions of which one is new; the others stay as they are, in their places.
fn amended(mut conditions: Vec<Condition>, new: Condition) -> WorkflowExecutionStatus {
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(known) => *known = new,
        None => conditions.push(new),
    }
    WorkflowExecutionStatus { conditions, ..WorkflowExecutionStatus::default() }
}

fn blocked_condition(subject: &Subject, at: Time, blocked: Blocked, target: Option<&TargetName>) -> Condition {
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

/// Renders what an undecided execution waits for, and since when and for how long its run has been tried, where it is.
#[must_use]
pub fn waiting(
    target: Option<&TargetName>,
    subject: &Subject,
    waiting: &Waiting,
    tried: Option<std::time::Duration>,
    now: Time,
) -> WorkflowExecutionStatus {
    let (reason, message) = (waiting.reason(), waiting.message());
    let message = tried.map_or(message.clone(), |tried| tries::say(tried, &message));
    let since = tried.and_then(|tried| now.checked_sub_signed(TimeDelta::from_std(tried).ok()?)).unwrap_or(now);
    WorkflowExecutionStatus {
        phase: Some(Phase::Pending),
        // `Succeeded` says it too: the Reason column of `kubectl get` shows the reason of that condition.
        conditions: [(conditions::SUCCEEDED, "Unknown"), (conditions::WAITING, "True")]
            .map(|(type_, status)| condition(subject, since, type_, status, reason, &message))
            .into(),
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
    WorkflowExecutionStatus { run_sequence, ..waiting(target, subject, &Waiting::Withdrawn, None, now) }
}

fn failed(target: Option<&TargetName>, subject: &Subject, failure: &Failure) -> WorkflowExecutionStatus {
    let task = failure.task.as_ref();
    let message = limits::cut(&failure.message, limits::MESSAGE);
    WorkflowExecutionStatus {
        phase: Some(Phase::Failed),
        completion_time: Some(api_time(failure.failed_at)),
        duration: subject.is_running.then(|| duration::format(failure.ran_for)),
        run_sequence: failure.number.and_then(|number| i64::try_from(number).ok()),
        // What names no target counts for none.
        consecutive_failures: target.map(|_| counter(failure.charge.consecutive_failures)),
        next_allowed_execution: target.and(failure.charge.next_allowed_execution).map(api_time),
        pipeline_run_status: failure
            .outcome
            .as_ref()
            .map(|outcome| run_status(ConditionStatus::False, &outcome.reason, &outcome.message, failure.tasks)),
        failure_reason: Some(message.clone()),
        failure_details: Some(FailureDetails {
            failed_task_index: task.and_then(|task| i32::try_from(task.index).ok()).unwrap_or(0),
            failed_task_name: task.map_or_else(String::new, |task| limits::cut(&task.name, limits::NAME)),
            failed_step_name: task.and_then(|task| task.step.as_deref()).map(|step| limits::cut(step, limits::NAME)),
            reason: api_reason(failure.reason),
            message: message.clone(),
            exit_code: task.and_then(|task| task.exit_code),
            failed_at: api_time(failure.failed_at),
            execution_time_before_failure: duration::format(failure.ran_for),
            natural_language_summary: limits::cut(&failure.summary(&subject.workflow_id), limits::SUMMARY),
            was_execution_failure: failure.was_execution_failure(),
            requires_manual_review: failure.was_execution_failure(),
        }),
        conditions: vec![condition(
            subject,
            failure.failed_at,
            conditions::SUCCEEDED,
            "False",
            failure.shown_reason(),
            &message,
        )],
        ..common(target, subject)
    }
}

/// Renders a skip: no start, no duration, no run.
#[must_use]
pub fn skipped(target: Option<&TargetName>, subject: &Subject, skip: &Skip, now: Time) -> WorkflowExecutionStatus {
    let target_text = target.map(TargetName::as_str).unwrap_or_default();
    let message = skip.message(target_text);
    WorkflowExecutionStatus {
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
        ..common(target, subject)
    }
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

/// The API's integers are signed.
fn counter(failures: u32) -> i32 {
    i32::try_from(failures).unwrap_or(i32::MAX)
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
        message: limits::cut(message, limits::MESSAGE),
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

fn run_status(status: ConditionStatus, reason: &str, message: &str, tasks: Option<TaskCount>) -> PipelineRunStatus {
    let text = |text: &str, limit: u32| Some(limits::cut(text, limit)).filter(|text| !text.is_empty());
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    PipelineRunStatus {
        status,
        reason: text(reason, limits::REASON),
        message: text(message, limits::MESSAGE),
        completed_tasks: tasks.map(|tasks| number(tasks.completed)),
        total_tasks: tasks.map(|tasks| number(tasks.total)),
    }
}

#[cfg(test)]
mod fits;

#[cfg(test)]
mod tests {
    use super::*;
    use wfe_core::ending::Charge;
    use wfe_core::ending::Remediation;
    use wfe_core::evidence::{Absence, Doubt, Started};
    use wfe_core::execution::Recorded;
    use wfe_core::name::{ExecutionId, Uid};
    use wfe_core::reason::BlockReason;

    #[test]
    fn both_spellings_of_every_reason_agree() {
        for reason in FailureReason::ALL {
            assert_eq!(api_reason(reason).as_str(), reason.as_str());
        }
        let ends = [conditions::CLEARED, conditions::SUPERSEDED, conditions::LIFTED];
        assert_eq!([Blocked::Cleared, Blocked::Superseded, Blocked::Lifted].map(Blocked::reason), ends);
        for reason in BlockReason::ALL {
            assert!(SkipReason::ALL.iter().any(|skip| skip.as_str() == reason.as_str()), "{reason:?}");
        }
    }

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn id(namespace: &str, name: &str) -> ExecutionId {
        ExecutionId { namespace: namespace.into(), name: name.into(), uid: Uid::new(name) }
    }

    fn subject(is_running: bool) -> Subject {
        Subject { generation: 1, workflow_id: "w".into(), is_running, started_at: None, gave_up: false }
    }

    fn any_failure() -> Failure {
        Failure {
            reason: FailureReason::Forbidden,
            message: "no".into(),
            started: Started::NotStarted(Absence::NoRun),
            task: None,
            tasks: None,
            failed_at: at(0),
            ran_for: std::time::Duration::ZERO,
            number: Some(3),
            outcome: None,
            cancelled: false,
            charge: Charge::default(),
        }
    }

    fn skip_details(skip: &Skip, now: Time) -> SkipDetails {
        let target = TargetName::parse("node/n").unwrap();
        skipped(Some(&target), &subject(false), skip, now).skip_details.unwrap()
    }

    #[test]
    fn a_skip_names_what_stands_in_the_way_and_for_how_long_where_time_lifts_it() {
        let past = |namespace: &str, completed| Remediation {
            execution: id(namespace, "old"),
            workflow_id: "w".into(),
            completed_at: at(0),
            completed,
            is_dated: true,
        };
        let (until, half) = (Some(at(300)), std::time::Duration::from_millis(500));
        let cooldown = std::time::Duration::from_mins(5);
        for (skip, reason, namespace, outcome, remaining) in [
            (
                Skip::Cooldown { last: past("ops", true), cooldown, until },
                SkipReason::RecentlyRemediated,
                "ops",
                ApiOutcome::Completed,
                Some("4m30s"),
            ),
            (
                Skip::Backoff { latest: past("far", false), failures: 3, until },
                SkipReason::RecentlyRemediated,
                "far",
                ApiOutcome::Failed,
                Some("4m30s"),
            ),
            (
                Skip::ExhaustedRetries { latest: past("ops", false), failures: 5, limit: 5, until: None },
                SkipReason::ExhaustedRetries,
                "ops",
                ApiOutcome::Failed,
                None,
            ),
            (
                Skip::PreviousExecutionFailed { failed: past("ops", false), is_repeated: false },
                SkipReason::PreviousExecutionFailed,
                "ops",
                ApiOutcome::Failed,
                None,
            ),
        ] {
            // Half a second later it is still as long, in whole seconds.
            let details = skip_details(&skip, at(30) + half);
            assert_eq!((details.reason, details.conflicting_workflow.is_none()), (reason, true));
            assert_eq!((details.reason.as_str(), details.message), (skip.reason(), skip.message("node/n")));
            let remediation = details.recent_remediation.unwrap();
            let named = (remediation.namespace.as_deref(), remediation.name.as_str(), remediation.outcome);
            assert_eq!(named, (Some(namespace), "old", outcome));
            assert_eq!((remediation.workflow_id.as_str(), remediation.target_resource.as_str()), ("w", "node/n"));
            assert_eq!(
                (remediation.completed_at, remediation.cooldown_remaining.as_deref()),
                (api_time(at(0)), remaining)
            );
        }
    }

    #[test]
    fn the_counter_is_shown_and_only_what_counts_makes_the_next_one_wait() {
        let failure = |charge| Failure { charge, ..any_failure() };
        let target = TargetName::parse("node/n").unwrap();
        let shown = |target, charge| {
            let status = ended(target, &subject(false), &Ending::Failed(failure(charge)), false);
            (status.consecutive_failures, status.next_allowed_execution)
        };
        let counted = Charge { consecutive_failures: 2, next_allowed_execution: Some(at(120)), exhausts: false };
        assert_eq!(shown(Some(&target), counted), (Some(2), Some(api_time(at(120)))));
        let not_counted = Charge { next_allowed_execution: None, ..counted };
        assert_eq!(shown(Some(&target), not_counted), (Some(2), None));
        assert_eq!(shown(None, counted), (None, None), "an unreadable target has no counter");
    }

    #[test]
    fn a_clearance_is_recorded_or_said_to_do_nothing_and_the_other_conditions_stay() {
        let (subject, target) = (subject(false), TargetName::parse("node/n").unwrap());
        let other = condition(&subject, at(0), conditions::SUCCEEDED, "False", "Unknown", "m");
        let blocks = blocked_condition(&subject, at(0), Blocked::Yes(BlockReason::ExhaustedRetries), Some(&target));
        let clearance = Clearance { reason: "looked".into(), cleared_by: "jo".into(), recorded: Recorded::Not };
        let effective = cleared(Some(&target), &subject, vec![blocks, other.clone()], &clearance, true, at(9));
        let lifted = blocked_condition(&subject, at(9), Blocked::Cleared, Some(&target));
        assert_eq!(effective.conditions, [lifted, other.clone()]);
        assert_eq!(effective.clearance.map(|it| (it.cleared_by, it.reason)), Some(("jo".into(), "looked".into())));
        let ineffective = cleared(Some(&target), &subject, vec![other], &clearance, false, at(9));
        assert_eq!(ineffective.clearance, None);
        assert_eq!(ineffective.conditions[1].type_, conditions::CLEARANCE_INEFFECTIVE);
    }

    #[test]
    fn a_failure_that_blocks_says_so_from_its_end_on() {
        let target = TargetName::parse("node/n").unwrap();
        let reason_of = |was_execution_failure, exhausts| {
            let charge = Charge { exhausts, ..Charge::default() };
            let absence = Started::NotStarted(Absence::OnlyWaited);
            let started = if was_execution_failure { Started::Unknown(Doubt::Unread) } else { absence };
            let failure = Failure { started, charge, ..any_failure() };
            let status = ended(Some(&target), &subject(false), &Ending::Failed(failure), false);
            status.conditions.into_iter().find(|it| it.type_ == conditions::BLOCKED).map(|it| (it.status, it.reason))
        };
        let says = |reason: &str| Some(("True".to_owned(), reason.to_owned()));
        assert_eq!(reason_of(true, false), says("PreviousExecutionFailed"));
        assert_eq!(reason_of(false, true), says("ExhaustedRetries"));
        assert_eq!(reason_of(false, false), None);
    }
}
