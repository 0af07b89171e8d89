//! The text about retries: the plan of a policy, and the progress of an execution.

use std::time::Duration;

use serde::Serialize;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::Uid;
use wfe_core::retry::{Retry, RetryPolicy};

use crate::moment::{shown, span};

/// How many waits are listed one by one.
const LISTED: u32 = 5;

/// The current attempt of a Running execution.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnAttempt {
    number: u32,
    of: u32,
    /// When the attempt begins, if it has not begun.
    not_before: Option<String>,
    /// When the execution ends at the latest, if the attempt has not begun by then.
    ends_by: Option<String>,
}

impl OnAttempt {
    /// Reads the attempt from a Running execution with a retry policy.
    pub(crate) fn of(execution: &Execution) -> Option<Self> {
        let (ExecutionState::Running { .. }, Some(retry)) = (&execution.state, &execution.retry) else { return None };
        let next = execution.next_attempt();
        Some(Self {
            number: retry.current(),
            of: retry.policy.max_attempts,
            not_before: next.as_ref().map(|next| shown(next.not_before)),
            ends_by: next.map(|next| shown(next.ends_by)),
        })
    }

    /// Describes the attempt, and how the attempt before it failed.
    pub(crate) fn told(&self, retry: &Retry) -> String {
        let Self { number, of, not_before, ends_by } = self;
        let (Some(not_before), Some(ends_by)) = (not_before, ends_by) else { return format!("{number} of {of}") };
        let last = retry.ended().last().map(|(attempt, end)| {
            let reason = end.reason.map(|reason| format!(", {reason}")).unwrap_or_default();
            format!("; attempt {attempt} failed{reason}: {}", end.message)
        });
        let last = last.unwrap_or_default();
        format!("waits for {number} of {of}, which begins at {not_before}, and ends by {ends_by} without it{last}")
    }
}

/// Describes the plan of a policy: the number and length of attempts, the waits between them, and the total. `uid` is
/// the uid of the execution, if the execution exists. The jitter depends on it.
pub(crate) fn plan(policy: &RetryPolicy, timeout: Duration, uid: Option<&Uid>) -> String {
    let (attempts, each) = (policy.max_attempts, span(timeout.min(policy.max_duration)));
    if attempts < 2 {
        return format!("1 attempt of up to {each}");
    }
    let wait = |attempt| match uid {
        Some(uid) => policy.delay(attempt, uid),
        None => longest(policy, attempt),
    };
    let last = attempts - 1;
    let mut waits: Vec<String> = (1..=last.min(LISTED)).map(|attempt| span(wait(attempt))).collect();
    if last > LISTED {
        waits.extend(["...".to_owned(), span(wait(last))]);
    }
    let up_to = if policy.jitter && uid.is_none() { "of up to " } else { "" };
    let together = span(policy.max_duration);
    format!("{attempts} attempts of up to {each}, waits {up_to}{}, at most {together} together", waits.join(", "))
}

/// Returns the longest possible wait after an attempt.
fn longest(policy: &RetryPolicy, attempt: u32) -> Duration {
    let until = |max_attempts| RetryPolicy { max_attempts, ..policy.clone() }.longest_wait();
    until(attempt.saturating_add(1)).saturating_sub(until(attempt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn policy(retry: &Value) -> RetryPolicy {
        wfe_api::retry::read(Some(retry)).unwrap().unwrap()
    }

    #[test]
    fn a_plan_says_how_often_how_long_and_when() {
        let minutes = |count| Duration::from_mins(count);
        for (retry, timeout, said) in [
            (json!(true), 30, "3 attempts of up to 30m, waits 1s, 2s, at most 24h together"),
            (json!(1), 90, "1 attempt of up to 1h30m"),
            (
                json!({"maxAttempts": 20, "maxDelay": "30s", "maxDuration": "25m"}),
                30,
                "20 attempts of up to 25m, waits 1s, 2s, 4s, 8s, 16s, ..., 30s, at most 25m together",
            ),
            (
                json!({"maxAttempts": 6, "initialDelay": "0s", "maxDuration": "1h"}),
                1,
                "6 attempts of up to 1m, waits 0s, 0s, 0s, 0s, 0s, at most 1h together",
            ),
            (
                json!({"maxAttempts": 3, "initialDelay": "1s", "jitter": true}),
                30,
                "3 attempts of up to 30m, waits of up to 1.5s, 3s, at most 24h together",
            ),
        ] {
            assert_eq!(plan(&policy(&retry), minutes(timeout), None), said, "{retry}");
        }
        let drawn = policy(&json!({"maxAttempts": 2, "jitter": true}));
        let uid = Uid::new("u");
        let said = plan(&drawn, minutes(1), Some(&uid));
        assert!(said.contains(&format!("waits {}, ", span(drawn.delay(1, &uid)))), "{said}");
    }
}
