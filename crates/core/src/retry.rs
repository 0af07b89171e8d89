//! Retry inside an execution: the policy, what is on record of each attempt, and whether there is another (section
//! 11).
//!
//! Pure: conditions are texts here, and somebody else answers them. [`next`] reads as the table of section 11: the
//! first row that matches decides.

use std::time::Duration;

use chrono::TimeDelta;

use crate::Time;
use crate::backoff::{Backoff, Thousandths};
use crate::evidence::Ran;
use crate::moment::{after, just_after, round_up};
use crate::name::Uid;
use crate::reason::FailureReason;

/// How often an execution is tried, when, and what is not tried again (`spec.retry`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts there are at the most, the first included; 1 to 20.
    pub max_attempts: u32,
    /// How long after the first failed attempt the second begins.
    pub initial_delay: Duration,
    /// What each further failed attempt multiplies the delay by.
    pub multiplier: Thousandths,
    /// The delay that none exceeds, jitter included.
    pub max_delay: Duration,
    /// Whether delays are spread, by up to half.
    pub jitter: bool,
    /// The condition under which it is tried again. None: the default, which is that the reason is not
    /// `ConfigurationError`.
    pub retry_when: Option<Box<str>>,
    /// The condition under which it is not tried again, whatever else holds.
    pub stop_when: Option<Box<str>>,
    /// Whether it is also tried again after an attempt of which something ran, or nobody can tell.
    pub retry_execution_failures: bool,
    /// How long all attempts and waits may take together.
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

/// How much longer a delay may become by jitter, where there is jitter.
const JITTER: Thousandths = Thousandths(500);
/// Each of at most twenty attempts but the first multiplies once.
const MAX_EXPONENT: u32 = 19;

impl RetryPolicy {
    /// Returns how long the wait after the `attempt`-th attempt is, in whole milliseconds, rounded up. It is spread by
    /// the uid of the execution, so a restart computes the same.
    #[must_use]
    pub fn delay(&self, attempt: u32, uid: &Uid) -> Duration {
        whole_millis(self.backoff().jittered(attempt, &uid.to_string()))
    }

    /// Returns how long all waits together are at the most.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let backoff = self.backoff();
        let longest = |attempt| {
            let wait = backoff.after(attempt);
            whole_millis(if self.jitter { wait.saturating_add(wait / 2) } else { wait })
        };
        (1..self.max_attempts).map(longest).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns whether somebody has to be asked before it is known whether there is another attempt.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        self.retry_when.is_some() || self.stop_when.is_some()
    }

    /// With jitter the widest draw, half as much again, is the maximum: were it cut there, many would draw the same.
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

/// The policy of an execution that has one, with what its status says of its attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// The policy.
    pub policy: RetryPolicy,
    /// `status.attempts`, in order; attempt 1 is the first. Empty before the first, and where somebody else wrote the
    /// status: a Running execution is then taken to be on its first.
    pub attempts: Vec<Attempt>,
}

/// What the status says of one attempt. Of the last one it says less: it waits, or runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    /// How long the wait before it was; none of the first.
    pub delay: Option<Duration>,
    /// When it may begin; none of the first.
    pub not_before: Option<Time>,
    /// The name of its run; none while it waits, and after a create that was refused.
    pub run: Option<Box<str>>,
    /// When it was committed to its run.
    pub started_at: Option<Time>,
    /// How it ended.
    pub end: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnd {
    /// When.
    pub completed_at: Time,
    /// Whether anything of it ran.
    pub started: Ran,
    /// Which of the seven, where it failed.
    pub reason: Option<FailureReason>,
    /// What happened, in the words of whoever reported it; empty of one that succeeded.
    pub message: Box<str>,
}

/// The attempt that an execution waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextAttempt {
    /// Its number, from 2.
    pub attempt: u32,
    /// How many there are at the most.
    pub of: u32,
    /// When it may begin.
    pub not_before: Time,
    /// When the execution ends at the latest, where it has not begun by then.
    pub ends_by: Time,
}

impl Retry {
    /// Returns the number of the attempt that the execution is on.
    #[must_use]
    pub fn current(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Returns how the attempts that are over ended.
    pub fn ended(&self) -> impl Iterator<Item = (u32, &AttemptEnd)> {
        (1..).zip(&self.attempts).filter_map(|(number, attempt)| Some((number, attempt.end.as_ref()?)))
    }

    /// Returns from when on `maxDuration` counts: the start of the execution, or where no status says that, the end of
    /// its first attempt.
    #[must_use]
    pub fn since(&self, started_at: Option<Time>) -> Option<Time> {
        started_at.or_else(|| self.ended().next().map(|(_, end)| end.completed_at))
    }

    /// Returns when all attempts and waits have to be over.
    #[must_use]
    pub fn ends_by(&self, started_at: Option<Time>, now: Time) -> Time {
        after(self.since(started_at).unwrap_or(now), self.policy.max_duration)
    }
}

/// What the conditions of a policy have answered of a failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Of `stopWhen`, where the policy has it and could be asked.
    pub stop_when: Option<Answer>,
    /// Of `retryWhen`, where the policy has it and could be asked.
    pub retry_when: Option<Answer>,
}

/// What is known where nobody was asked.
pub(crate) static UNANSWERED: Answers = Answers { stop_when: None, retry_when: None };

/// What a condition has answered: yes, no, or the class of its error in plain words.
pub type Answer = Result<bool, Box<str>>;

/// Why there is no other attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A person cancelled the execution, or somebody its run.
    Cancelled,
    /// The execution is being deleted.
    Deleted,
    /// Its run is gone.
    RunDeleted,
    /// `stopWhen` holds.
    StopWhen,
    /// `retryWhen` does not hold.
    RetryWhen,
    /// A condition erred, as this says, or could not be asked.
    ConditionError(Box<str>),
    /// Something of the attempt ran, or nobody can tell.
    Ran,
    /// It was the last.
    Exhausted,
    /// The next would begin too late.
    MaxDuration,
    /// The run of the next could not be created until the start deadline.
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

    /// Tells a person why there is no other attempt.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Cancelled => "it was cancelled".to_owned(),
            Self::Deleted => "the WorkflowExecution is being deleted".to_owned(),
            Self::RunDeleted => "its PipelineRun is gone, which held the target between attempts".to_owned(),
            Self::StopWhen => "stopWhen holds".to_owned(),
            Self::RetryWhen => "retryWhen does not hold".to_owned(),
            Self::ConditionError(what) => format!("a condition could not be answered: {what}"),
            Self::Ran => "something of it ran, or nobody can tell, and retryExecutionFailures is not set".to_owned(),
            Self::Exhausted => "it was the last attempt".to_owned(),
            Self::MaxDuration => "the next attempt would begin after maxDuration".to_owned(),
            Self::NotCreated => "its PipelineRun could not be created in time".to_owned(),
        }
    }
}

/// Whether there is another attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is.
    Retry {
        /// How long the wait is.
        delay: Duration,
        /// When it is over, in whole seconds: as a status keeps it.
        not_before: Time,
    },
    /// There is none.
    Stop(Stop),
}

/// An attempt that failed, and all that the next one depends on.
#[derive(Clone, Copy, Debug)]
pub struct FailedAttempt<'a> {
    /// The policy.
    pub policy: &'a RetryPolicy,
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// The uid of its execution; jitter is drawn from it.
    pub uid: &'a Uid,
    /// Who or what ended the execution with it, where somebody did.
    pub ended_by: Option<&'a Stop>,
    /// Which of the seven.
    pub reason: FailureReason,
    /// Whether anything of it ran.
    pub started: Ran,
    /// What the conditions say.
    pub answers: &'a Answers,
    /// From when on `maxDuration` counts.
    pub since: Time,
    /// The time of the decision.
    pub now: Time,
}

/// A row of the table: why there is no other attempt, where it matches.
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

/// Returns whether there is another attempt after one that failed, and when it begins.
#[must_use]
pub fn next(failed: &FailedAttempt<'_>) -> Next {
    ROWS.iter()
        .find_map(|row| row(failed))
        .map_or_else(|| Next::Retry { delay: failed.delay(), not_before: failed.not_before() }, Next::Stop)
}

impl FailedAttempt<'_> {
    /// Returns the first moment at which it is too late to record that there is another attempt.
    #[must_use]
    pub fn too_late(&self) -> Time {
        // What is rounded up to whole seconds reaches the end as soon as it is past the second before.
        let end = round_up(after(self.since, self.policy.max_duration));
        let lead = TimeDelta::from_std(self.delay().saturating_add(Duration::from_secs(1))).ok();
        lead.and_then(|lead| end.checked_sub_signed(lead)).map_or(Time::MIN_UTC, just_after)
    }

    fn delay(&self) -> Duration {
        self.policy.delay(self.attempt, self.uid)
    }

    /// The wait counts from now, when the end of the attempt is recorded: Tekton's times are cut to seconds.
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

/// What is said of a condition that could not be asked in time.
const UNASKED: &str = "what it asks about could not be read in time";

#[cfg(test)]
mod tests;
