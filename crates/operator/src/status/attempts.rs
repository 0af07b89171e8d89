//! Renders the attempts of an execution with a retry policy: the list, which is always written as a whole, and the
//! condition `Retrying`.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use wfe_api::{AttemptStatus, ConditionStatus, WorkflowExecutionStatus, conditions, limits};
use wfe_core::action::Ending;
use wfe_core::evidence::{Proof, Ran, Started};
use wfe_core::name::RunId;
use wfe_core::reason::FailureReason;
use wfe_core::retry::{Attempt, AttemptEnd, Retry};
use wfe_core::target::TargetName;
use wfe_core::waiting::Waiting;
use wfe_core::{Time, duration};
use wfe_tekton::api_time;

use super::{Subject, amended, base_status, condition, held, started_condition};

/// Returns the list of attempts after the current attempt has been committed to its run.
pub(super) fn begun(retry: &Retry, run: &RunId, now: Time) -> Vec<AttemptStatus> {
    let mut all = listed(&retry.attempts);
    if all.is_empty() {
        all.push(AttemptStatus { attempt: 1, ..AttemptStatus::default() });
    }
    if let Some(last) = all.last_mut().filter(|last| last.start_time.is_none() && last.completion_time.is_none()) {
        last.pipeline_run = Some(run.name.to_string());
        last.start_time = Some(api_time(now));
    }
    all
}

/// Returns the list of attempts after the current attempt has ended.
fn ended(subject: &Subject, retry: &Retry, end: &AttemptEnd) -> Vec<AttemptStatus> {
    let mut all = listed(&retry.attempts);
    if all.is_empty() {
        // Another program wrote the status, so the first attempt is missing from the list.
        let first = Attempt {
            run: subject.run.as_ref().filter(|_| subject.started_at.is_some()).map(|run| run.name.clone()),
            started_at: subject.started_at.filter(|_| subject.run.is_some()),
            ..Attempt::default()
        };
        all.push(entry(1, &first));
    }
    if let Some(last) = all.last_mut().filter(|last| last.completion_time.is_none()) {
        complete(last, end);
    }
    all
}

fn listed(attempts: &[Attempt]) -> Vec<AttemptStatus> {
    (1..).zip(attempts).map(|(number, attempt)| entry(number, attempt)).collect()
}

fn entry(number: i32, attempt: &Attempt) -> AttemptStatus {
    let mut entry = AttemptStatus {
        attempt: number,
        delay: attempt.delay.map(delay_text),
        not_before: attempt.not_before.map(api_time),
        pipeline_run: attempt.run.as_deref().map(|run| limits::cut(run, limits::NAME)),
        start_time: attempt.started_at.map(api_time),
        ..AttemptStatus::default()
    };
    if let Some(end) = &attempt.end {
        complete(&mut entry, end);
    }
    entry
}

fn complete(entry: &mut AttemptStatus, end: &AttemptEnd) {
    entry.completion_time = Some(api_time(end.completed_at));
    entry.started = Some(match end.started {
        Ran::Yes => ConditionStatus::True,
        Ran::No => ConditionStatus::False,
        Ran::Unknown => ConditionStatus::Unknown,
    });
    entry.reason = end.reason;
    entry.message = Some(limits::cut(&end.message, limits::ATTEMPT_MESSAGE)).filter(|message| !message.is_empty());
}

/// Formats a delay as Go does; fractions of a second become milliseconds.
pub(crate) fn delay_text(delay: Duration) -> String {
    let whole = duration::format(delay);
    match delay.subsec_millis() {
        0 => whole,
        millis => format!("{}.{}s", whole.trim_end_matches('s'), format!("{millis:03}").trim_end_matches('0')),
    }
}

/// A failed attempt that is followed by another.
pub(super) struct Retried<'a> {
    /// The number of the failed attempt.
    pub(super) attempt: u32,
    /// The largest possible number of attempts.
    pub(super) of: u32,
    /// How the attempt ended.
    pub(super) end: &'a AttemptEnd,
    /// The proof that a step of the attempt ran, if the proof is not recorded yet.
    pub(super) proof: Option<&'a Proof>,
    /// The wait before the next attempt.
    pub(super) delay: Duration,
    /// When the next attempt may begin.
    pub(super) not_before: Time,
}

/// Renders that an attempt has failed and that another follows; the execution stays Running.
pub(super) fn retried(
    target: Option<&TargetName>,
    subject: &Subject,
    retried: &Retried<'_>,
    now: Time,
) -> WorkflowExecutionStatus {
    let mut attempts = subject.retry.as_ref().map(|retry| ended(subject, retry, retried.end)).unwrap_or_default();
    let (delay, not_before) = (Some(delay_text(retried.delay)), Some(api_time(retried.not_before)));
    let next = retried.attempt.saturating_add(1);
    let attempt = i32::try_from(next).unwrap_or(i32::MAX);
    attempts.push(AttemptStatus { attempt, delay, not_before, ..AttemptStatus::default() });
    let since = subject.started_at.unwrap_or(now);
    let proof = subject.proof.as_deref().or(retried.proof);
    let waits = "an attempt failed; the workflow is tried again";
    let mut conditions = vec![
        held(subject, since, "the execution holds the target until its next attempt"),
        condition(subject, since, conditions::SUCCEEDED, "Unknown", conditions::RUNNING, waits),
    ];
    conditions.extend(proof.map(|proof| started_condition(subject, now, &Started::Started(proof.clone()))));
    let Retried { attempt, of, end, not_before, .. } = retried;
    let reason = end.reason.unwrap_or(FailureReason::Unknown);
    let message = format!(
        "attempt {next} of {of} begins at {}: attempt {attempt} failed, {reason}: {}",
        not_before.format("%Y-%m-%dT%H:%M:%SZ"),
        end.message
    );
    conditions.push(retrying(subject, now, "True", conditions::BACKOFF, &message));
    WorkflowExecutionStatus { attempts, conditions, ..base_status(target, subject) }
}

/// The text in front of what delays the next attempt.
const HELD_BACK: &str = "; it is held back: ";

/// Renders what still delays the next attempt after its wait is over. The text goes into the condition `Waiting`, and
/// is appended to the condition `Retrying`.
pub(super) fn held_back(
    subject: &Subject,
    mut kept: Vec<Condition>,
    waiting: &Waiting,
    now: Time,
) -> WorkflowExecutionStatus {
    let why = waiting.message();
    for retrying in kept.iter_mut().filter(|it| it.type_ == conditions::RETRYING) {
        let said = retrying.message.split(HELD_BACK).next().unwrap_or_default();
        // The text about the failure is cut to leave room for the appended text.
        let room = limits::MESSAGE.saturating_sub(u32::try_from(HELD_BACK.len() + why.len()).unwrap_or(u32::MAX));
        retrying.message = limits::cut(&format!("{}{HELD_BACK}{why}", limits::cut(said, room)), limits::MESSAGE);
    }
    amended(kept, condition(subject, now, conditions::WAITING, "True", waiting.reason(), &why))
}

/// Renders that an attempt is running; `None` without a retry policy. `begun` is when the attempt began, if the status
/// does not show it yet.
pub(super) fn runs(subject: &Subject, begun: Option<Time>) -> Option<Condition> {
    let retry = subject.retry.as_deref()?;
    let since = begun.or_else(|| retry.attempts.last()?.started_at).or(subject.started_at).unwrap_or_default();
    let message = format!("attempt {} of {} runs", retry.current(), retry.policy.max_attempts);
    Some(retrying(subject, since, "False", conditions::RUNNING, &message))
}

/// Adds the attempts to the end of an execution with a policy, if it got its turn. An attempt that only waited stays
/// unchanged.
pub(super) fn finish(status: &mut WorkflowExecutionStatus, subject: &Subject, ending: &Ending, at: Time) {
    let Some(retry) = subject.retry.as_deref() else { return };
    let (end, reason, message) = match ending {
        Ending::Completed(success) => {
            let Some(end) = success.attempt.as_deref() else { return };
            let message = format!("attempt {} of {} succeeded", retry.current(), retry.policy.max_attempts);
            (Some(end), conditions::RETRY_SUCCEEDED, message)
        }
        Ending::Failed(failure) => {
            let Some(tried) = failure.tried.as_deref() else { return };
            (tried.end.as_ref(), tried.stop.reason(), tried.stop.message())
        }
    };
    status.attempts = end.map(|end| ended(subject, retry, end)).unwrap_or_default();
    status.conditions.push(retrying(subject, at, "False", reason, &message));
}

fn retrying(subject: &Subject, at: Time, status: &str, reason: &str, message: &str) -> Condition {
    condition(subject, at, conditions::RETRYING, status, reason, message)
}

#[cfg(test)]
mod tests;
