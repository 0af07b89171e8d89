//! Retries within an execution: the policy, the record of each attempt, and whether another attempt follows (section
//! 11).
//!
//! This module is pure: it holds conditions as text, and the operator evaluates them. [`next`] follows the table of
//! section 11: the first row that matches decides.

use std::time::Duration;

use chrono::TimeDelta;

use crate::Time;
use crate::backoff::{Backoff, Thousandths};
use crate::evidence::Ran;
use crate::moment::{after, just_after, round_up};
use crate::name::Uid;
use crate::reason::FailureReason;

/// How often an execution is tried, when, and after which failures (`spec.retry`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first; 1 to 20.
    pub max_attempts: u32,
    /// The delay between the first failed attempt and the second attempt.
    pub initial_delay: Duration,
    /// The factor by which each further failed attempt lengthens the delay.
    pub multiplier: Thousandths,
    /// The longest delay, including jitter.
    pub max_delay: Duration,
    /// Whether delays are lengthened at random, by up to half.
    pub jitter: bool,
    /// The condition for another attempt. `None`: the default, `reason != 'ConfigurationError'`.
    pub retry_when: Option<Box<str>>,
    /// The condition against another attempt; it takes precedence over `retryWhen`.
    pub stop_when: Option<Box<str>>,
    /// Whether another attempt follows even if something ran or may have run.
    pub retry_execution_failures: bool,
    /// The maximum time for all attempts and delays together.
    pub max_duration: Duration,
}

impl Default for RetryPolicy {
    /// The defaults of section 11.1.
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay: Duration::from_secs(1),
            multiplier: Thousandths::TWO,
            max_delay: Duration::from_mins(1),
            jitter: false,
            retry_when: None,
            stop_when: None,
            retry_execution_failures: false,
            max_duration: Duration::from_hours(24),
        }
    }
}

/// How much longer jitter may make a delay, if it is enabled.
const JITTER: Thousandths = Thousandths(500);
/// Each attempt after the first multiplies once, and there are at most twenty attempts.
const MAX_EXPONENT: u32 = 19;

impl RetryPolicy {
    /// Returns the delay after the `attempt`-th attempt, rounded up to whole milliseconds. Jitter is derived from the
    /// uid of the execution, so a restart computes the same delay.
    #[must_use]
    pub fn delay(&self, attempt: u32, uid: &Uid) -> Duration {
        whole_millis(self.backoff().jittered(attempt, &uid.to_string()))
    }

    /// Returns how long all delays together can be.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let backoff = self.backoff();
        let longest = |attempt| {
            let wait = backoff.after(attempt);
            whole_millis(if self.jitter { wait.saturating_add(wait / 2) } else { wait })
        };
        (1..self.max_attempts).map(longest).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns whether the operator must evaluate conditions to know whether another attempt follows.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.retry_when.is_some() || self.stop_when.is_some()
    }

    /// Returns the backoff of the policy. With jitter, the delay without jitter is cut to two thirds of the maximum:
    /// half as much again is then the maximum. If the sum were cut instead, many executions would wait equally long.
    fn backoff(&self) -> Backoff {
        let max = if self.jitter { self.max_delay / 3 * 2 } else { self.max_delay };
        let jitter = if self.jitter { JITTER } else { Thousandths::ZERO };
        Backoff { base: self.initial_delay, multiplier: self.multiplier, max, max_exponent: MAX_EXPONENT, jitter }
    }
}

fn whole_millis(duration: Duration) -> Duration {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis)
}

/// The retry policy of an execution, with the record of its attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// The policy.
    pub policy: RetryPolicy,
    /// `status.attempts`, in order, from attempt 1. Empty before the first attempt, or if another program wrote the
    /// status. A Running execution with an empty list counts as being in its first attempt.
    pub attempts: Vec<Attempt>,
}

/// The record of one attempt in the status. The last record is incomplete while its attempt waits or runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    /// The wait before the attempt; `None` for the first.
    pub delay: Option<Duration>,
    /// When the attempt may begin; `None` for the first.
    pub not_before: Option<Time>,
    /// The name of the attempt's run; `None` while the attempt waits, or if the creation of the run was refused.
    pub run: Option<Box<str>>,
    /// When the attempt committed to its run.
    pub started_at: Option<Time>,
    /// How the attempt ended.
    pub end: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnd {
    /// When the attempt ended.
    pub completed_at: Time,
    /// Whether anything of the attempt ran.
    pub started: Ran,
    /// The failure reason, if the attempt failed.
    pub reason: Option<FailureReason>,
    /// What happened, in the words of Tekton or the API server; empty after a success.
    pub message: Box<str>,
}

/// The attempt that an execution waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextAttempt {
    /// The number of the attempt, from 2.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub of: u32,
    /// When the attempt may begin.
    pub not_before: Time,
    /// When the execution ends if the attempt has not begun by then.
    pub ends_by: Time,
}

impl Retry {
    /// Returns the number of the attempt that the execution is on.
    #[must_use]
    pub fn current(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Returns the ends of the attempts that are over.
    pub fn ended(&self) -> impl Iterator<Item = (u32, &AttemptEnd)> {
        (1..).zip(&self.attempts).filter_map(|(number, attempt)| Some((number, attempt.end.as_ref()?)))
    }

    /// Returns the time from which `maxDuration` counts: the start of the execution, or, if no status has that, the end
    /// of its first attempt.
    #[must_use]
    pub fn since(&self, started_at: Option<Time>) -> Option<Time> {
        started_at.or_else(|| self.ended().next().map(|(_, end)| end.completed_at))
    }

    /// Returns when all attempts and waits must be over.
    #[must_use]
    pub fn ends_by(&self, started_at: Option<Time>, now: Time) -> Time {
        after(self.since(started_at).unwrap_or(now), self.policy.max_duration)
    }
}

/// The results of a policy's conditions for a failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The result of `stopWhen`, if the policy sets it and it could be evaluated.
    pub stop_when: Option<Answer>,
    /// The result of `retryWhen`, if the policy sets it and it could be evaluated.
    pub retry_when: Option<Answer>,
}

/// No results.
pub(crate) static UNANSWERED: Answers = Answers { stop_when: None, retry_when: None };

/// The result of a condition: true, false, or the class of its error in plain words.
pub type Answer = Result<bool, Box<str>>;

/// Why no other attempt follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A person cancelled the execution, or a user cancelled its run.
    Cancelled,
    /// The execution is being deleted.
    Deleted,
    /// The run is gone.
    RunDeleted,
    /// `stopWhen` is true.
    StopWhen,
    /// `retryWhen` is false.
    RetryWhen,
    /// A condition failed with this error, or could not be evaluated.
    ConditionError(Box<str>),
    /// Something of the attempt ran or may have run.
    Ran,
    /// The attempt was the last one that is allowed.
    Exhausted,
    /// The next attempt would begin too late.
    MaxDuration,
    /// The run of the next attempt could not be created before the start deadline.
    NotCreated,
}

impl Stop {
    /// All reasons, as the condition `Retrying` shows them.
    pub const REASONS: [&str; 10] = [
        "Cancelled",
        "Deleted",
        "RunDeleted",
        "StopWhen",
        "RetryWhen",
        "ConditionError",
        "Ran",
        "Exhausted",
        "MaxDuration",
        "NotCreated",
    ];

    /// Returns the reason of the condition `Retrying`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Cancelled => "Cancelled",
            Self::Deleted => "Deleted",
            Self::RunDeleted => "RunDeleted",
            Self::StopWhen => "StopWhen",
            Self::RetryWhen => "RetryWhen",
            Self::ConditionError(_) => "ConditionError",
            Self::Ran => "Ran",
            Self::Exhausted => "Exhausted",
            Self::MaxDuration => "MaxDuration",
            Self::NotCreated => "NotCreated",
        }
    }

    /// Describes why no other attempt follows.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Cancelled => "it was cancelled".to_owned(),
            Self::Deleted => "the WorkflowExecution is being deleted".to_owned(),
            Self::RunDeleted => "its PipelineRun is gone, which held the target between attempts".to_owned(),
            Self::StopWhen => "stopWhen holds".to_owned(),
            Self::RetryWhen => "retryWhen does not hold".to_owned(),
            Self::ConditionError(what) => format!("a condition could not be answered: {what}"),
            Self::Ran => "something of it ran, or may have run, and retryExecutionFailures is not set".to_owned(),
            Self::Exhausted => "it was the last attempt".to_owned(),
            Self::MaxDuration => "the next attempt would begin after maxDuration".to_owned(),
            Self::NotCreated => "its PipelineRun could not be created in time".to_owned(),
        }
    }
}

/// Whether another attempt follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another attempt follows.
    Retry {
        /// How long the wait is.
        delay: Duration,
        /// When the wait is over, in whole seconds, as in the status.
        not_before: Time,
    },
    /// No other attempt follows.
    Stop(Stop),
}

/// A failed attempt, with everything that the next one depends on.
#[derive(Clone, Copy, Debug)]
pub struct FailedAttempt<'a> {
    /// The policy.
    pub policy: &'a RetryPolicy,
    /// The number of the failed attempt, from 1.
    pub attempt: u32,
    /// The uid of the execution, from which jitter is derived.
    pub uid: &'a Uid,
    /// Why the execution ends with this attempt, if a person or a deletion ended it.
    pub ended_by: Option<&'a Stop>,
    /// The failure reason.
    pub reason: FailureReason,
    /// Whether anything of the attempt ran.
    pub started: Ran,
    /// The results of the conditions.
    pub answers: &'a Answers,
    /// The time from which `maxDuration` counts.
    pub since: Time,
    /// The time of the decision.
    pub now: Time,
}

/// A row of the table: returns why no other attempt follows, if the row matches.
type Row = fn(&FailedAttempt<'_>) -> Option<Stop>;

/// The rows of section 11, in order.
const ROWS: [Row; 7] = [
    |it| it.ended_by.cloned(),
    |it| matches!(it.answers.stop_when, Some(Ok(true))).then_some(Stop::StopWhen),
    |it| (it.wants_retry() == Ok(false)).then_some(Stop::RetryWhen),
    |it| it.error().map(Stop::ConditionError),
    |it| (it.started != Ran::No && !it.policy.retry_execution_failures).then_some(Stop::Ran),
    |it| (it.attempt >= it.policy.max_attempts).then_some(Stop::Exhausted),
    |it| (it.not_before() >= after(it.since, it.policy.max_duration)).then_some(Stop::MaxDuration),
];

/// Returns whether another attempt follows a failed one, and when it begins.
#[must_use]
pub fn next(failed: &FailedAttempt<'_>) -> Next {
    ROWS.iter()
        .find_map(|row| row(failed))
        .map_or_else(|| Next::Retry { delay: failed.delay(), not_before: failed.not_before() }, Next::Stop)
}

impl FailedAttempt<'_> {
    /// Returns the first moment at which it is too late to record another attempt.
    #[must_use]
    pub fn too_late(&self) -> Time {
        // `not_before` is rounded up, so it reaches `end` as soon as the delay ends within the last second before
        // `end`.
        let end = round_up(after(self.since, self.policy.max_duration));
        let lead = TimeDelta::from_std(self.delay().saturating_add(Duration::from_secs(1))).ok();
        lead.and_then(|lead| end.checked_sub_signed(lead)).map_or(Time::MIN_UTC, just_after)
    }

    fn delay(&self) -> Duration {
        self.policy.delay(self.attempt, self.uid)
    }

    /// The wait counts from now, when the end of the attempt is recorded, because Tekton rounds times down to seconds.
    fn not_before(&self) -> Time {
        round_up(after(self.now, self.delay()))
    }

    fn wants_retry(&self) -> Answer {
        match &self.policy.retry_when {
            None => Ok(self.reason != FailureReason::ConfigurationError),
            Some(_) => self.answers.retry_when.clone().unwrap_or_else(|| Err(UNASKED.into())),
        }
    }

    fn error(&self) -> Option<Box<str>> {
        let stop = self.policy.stop_when.as_ref();
        let stop = stop.and_then(|_| self.answers.stop_when.clone().unwrap_or_else(|| Err(UNASKED.into())).err());
        stop.map(|why| format!("stopWhen: {why}").into())
            .or_else(|| self.wants_retry().err().map(|why| format!("retryWhen: {why}").into()))
    }
}

/// The error of a condition that could not be evaluated in time.
const UNASKED: &str = "what it asks about could not be read in time";

#[cfg(test)]
mod tests;
