//! Reads the retry policy of a `WorkflowExecution`, and the attempts in its status.

use serde_json::Value;
use wfe_api::limits;
use wfe_condition::Unusable;
use wfe_core::evidence::Ran;
use wfe_core::reason::FailureReason;
use wfe_core::retry::{Attempt, AttemptEnd, Retry, RetryPolicy};
use wfe_core::{Time, duration};
use wfe_tekton::parse_moment;

/// Reads the policy of an execution that has not had its turn yet, or returns why it cannot be used (rule 0).
pub(super) fn usable_policy(spec: &Value) -> Result<Option<RetryPolicy>, String> {
    let Some(policy) = wfe_api::retry::read(spec.get("retry"))? else { return Ok(None) };
    let conditions = [("stopWhen", &policy.stop_when), ("retryWhen", &policy.retry_when)];
    for (field, condition) in conditions.into_iter().filter_map(|(field, text)| Some((field, text.as_deref()?))) {
        match wfe_condition::check(condition) {
            // A condition that could not be checked may be valid. It is checked again when it is evaluated.
            Ok(()) | Err(Unusable::NotExamined) => {}
            Err(why) => return Err(format!("spec.retry.{field}: {why}")),
        }
    }
    Ok(Some(policy))
}

/// Reads the policy of a Running execution with its attempts. A policy that another version accepted and this one
/// cannot use is ignored: the execution ends with its present attempt.
pub(super) fn running(spec: &Value, status: &Value) -> Option<Retry> {
    let policy = wfe_api::retry::read(spec.get("retry")).ok()??;
    Some(Retry { policy, attempts: attempts(&status["attempts"]) })
}

/// Reads the attempts in the order of their numbers, up to the limit. Entries without a number are skipped.
fn attempts(list: &Value) -> Vec<Attempt> {
    let entries = list.as_array().into_iter().flatten();
    let mut entries: Vec<(&Value, u64)> = entries.filter_map(|it| Some((it, it["attempt"].as_u64()?))).collect();
    entries.sort_by_key(|(_, number)| *number);
    entries.truncate(limits::ATTEMPTS as usize);
    entries.into_iter().map(|(entry, _)| attempt(entry)).collect()
}

fn attempt(entry: &Value) -> Attempt {
    let time = |key: &str| -> Option<Time> { entry[key].as_str().and_then(parse_moment) };
    Attempt {
        delay: entry["delay"].as_str().and_then(|delay| duration::parse(delay).ok()),
        not_before: time("notBefore"),
        run: entry["pipelineRun"].as_str().map(Into::into),
        started_at: time("startTime"),
        end: time("completionTime").map(|completed_at| AttemptEnd {
            completed_at,
            started: ran(&entry["started"]),
            reason: entry["reason"].as_str().map(reason),
            message: entry["message"].as_str().unwrap_or_default().into(),
        }),
    }
}

/// Reads whether anything ran; `Unknown` if the status does not record it.
fn ran(value: &Value) -> Ran {
    Ran::ALL.into_iter().find(|ran| value == ran.as_str()).unwrap_or(Ran::Unknown)
}

fn reason(text: &str) -> FailureReason {
    FailureReason::ALL.into_iter().find(|known| known.as_str() == text).unwrap_or(FailureReason::Unknown)
}

#[cfg(test)]
mod tests;
