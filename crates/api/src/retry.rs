//! Reads `spec.retry`: `true`, `false`, a number of attempts, or an object.
//!
//! The schema cannot give such a field a type, so the value arrives as plain JSON. [`read`] accepts every value and
//! returns a policy, no policy, or a refusal that names the field and what to do. The admission policy
//! `retry.workflowexecutions` refuses the same values in the same words. For values that the schema itself refuses,
//! this module has messages of its own.
//!
//! Conditions (`retryWhen`, `stopWhen`) are texts here; the crate `condition` compiles them.

use std::time::Duration;

use serde_json::{Map, Value};
use wfe_core::backoff::Thousandths;
use wfe_core::duration::format;
use wfe_core::retry::RetryPolicy;

use crate::limits;

const RETRY: &str = "spec.retry";
/// The longest `initialDelay` and `maxDelay`.
const LONGEST_DELAY: Duration = Duration::from_hours(1);
/// The longest `maxDuration`.
const MAX_DURATION: Duration = Duration::from_hours(24);
/// Longest key that a refusal repeats. Longer keys, and keys with characters that no name has, are not repeated: the
/// API server shows no message of several lines.
const SHOWN_KEY: usize = 64;

/// The fields of the object, in the order in which people read them.
pub(crate) const FIELDS: [&str; 9] = [
    "maxAttempts",
    "initialDelay",
    "backoffMultiplier",
    "maxDelay",
    "jitter",
    "retryWhen",
    "stopWhen",
    "retryExecutionFailures",
    "maxDuration",
];

const FORM: &str = "must be true, a whole number of attempts from 1 to 20, or an object, e.g. 3 or \
    {maxAttempts: 3, initialDelay: 5s}";
const ATTEMPTS: &str = "must be a whole number from 1 to 20, the first attempt included, e.g. 3";
const FACTOR: &str = "must be a number from 1 to 10, e.g. 2 or 1.5";
const FLAG: &str = "must be true or false";
const CONDITION: &str = "must be a CEL condition of 1 to 512 characters, e.g. reason == 'ImagePullBackOff'";
const DELAY_FROM_0: &str = "must be a duration in whole seconds from 0s to 1h, e.g. 5s or 1m30s";
const DELAY_FROM_1: &str = "must be a duration in whole seconds from 1s to 1h, e.g. 5s or 1m30s";
const DURATION: &str = "must be a duration in whole seconds from 1s to 24h, e.g. 30m or 1h30m";
const BELOW_INITIAL: &str = "must not be below initialDelay; raise it, lower initialDelay, or leave it out";
const TOO_SHORT: &str = "is too short, the waits of initialDelay between maxAttempts attempts alone take as long; raise it, \
    or lower maxAttempts or initialDelay";

/// A retry policy for [`retry`](crate::WorkflowExecutionBuilder::retry); each value that is not set has its default.
///
/// ```
/// use std::time::Duration;
/// use wfe_api::WorkflowExecution;
/// use wfe_api::retry::Retry;
///
/// let policy = Retry::default().max_attempts(5).initial_delay(Duration::from_secs(10)).jitter(true);
/// let execution = WorkflowExecution::builder("payment-restart-1")
///     .target("payment/deployment/payment-api")
///     .workflow("deployment-restart", "1.0", "registry.example/workflows/deployment-restart:1.0")
///     .retry(policy) // or `true`, or a number of attempts
///     .build()?;
/// assert_eq!(execution.spec.retry.unwrap()["initialDelay"], "10s");
/// # Ok::<(), wfe_api::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "it has no effect until a builder takes it"]
pub struct Retry(Map<String, Value>);

// === impl Retry ===

impl Retry {
    /// Sets how many attempts there are at most, from 1 to 20, including the first.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with("maxAttempts", attempts)
    }

    /// Sets the wait before the second attempt, in whole seconds up to an hour.
    pub fn initial_delay(self, delay: Duration) -> Self {
        self.with("initialDelay", written(delay))
    }

    /// Sets the factor by which each further wait is longer than the wait before, from 1 to 10.
    pub fn backoff_multiplier(self, multiplier: f64) -> Self {
        // JSON has neither infinities nor NaN, and a null would count as absent.
        let number = if multiplier.is_finite() { Value::from(multiplier) } else { multiplier.to_string().into() };
        self.with("backoffMultiplier", number)
    }

    /// Sets the longest wait, in whole seconds from a second to an hour.
    pub fn max_delay(self, delay: Duration) -> Self {
        self.with("maxDelay", written(delay))
    }

    /// Sets whether waits are spread: many executions then do not begin at once.
    pub fn jitter(self, jitter: bool) -> Self {
        self.with("jitter", jitter)
    }

    /// Sets the CEL condition under which a failed attempt is repeated.
    pub fn retry_when(self, condition: impl Into<String>) -> Self {
        self.with("retryWhen", condition.into())
    }

    /// Sets the CEL condition under which no attempt is repeated. It is evaluated before `retryWhen`.
    pub fn stop_when(self, condition: impl Into<String>) -> Self {
        self.with("stopWhen", condition.into())
    }

    /// Sets whether an attempt is also repeated if something of the workflow ran in it.
    pub fn retry_execution_failures(self, retry: bool) -> Self {
        self.with("retryExecutionFailures", retry)
    }

    /// Sets how long all attempts and waits may take together, in whole seconds up to 24 hours.
    pub fn max_duration(self, duration: Duration) -> Self {
        self.with("maxDuration", written(duration))
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

impl From<Retry> for Value {
    fn from(Retry(fields): Retry) -> Self {
        Self::Object(fields)
    }
}

/// Writes whole seconds in the form of the field. Any other duration is written in a form that is refused, and is not
/// rounded.
fn written(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 { format(duration) } else { format!("{}ns", duration.as_nanos()) }
}

/// Why a value is refused: the field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) field: String,
    pub(crate) problem: String,
}

type Judged<T> = Result<T, Refusal>;

/// Reads the policy. Returns `None` if the field is absent, null or false: there is one attempt.
///
/// # Errors
///
/// The message begins with the field and says what to do, e.g. `spec.retry.jitter: must be true or false`.
pub fn read(value: Option<&Value>) -> Result<Option<RetryPolicy>, String> {
    judge(value).map_err(|Refusal { field, problem }| format!("{field}: {problem}"))
}

/// Reads the policy like [`read`], but returns the field and the problem of a refusal separately.
pub(crate) fn judge(value: Option<&Value>) -> Judged<Option<RetryPolicy>> {
    let none = Map::new();
    let (fields, max_attempts) = match value {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
        Some(Value::Bool(true)) => (&none, None),
        Some(number @ Value::Number(_)) => (&none, Some(attempts(number).ok_or_else(|| refusal("", FORM))?)),
        Some(Value::Object(fields)) => (fields, None),
        Some(Value::String(_) | Value::Array(_)) => return Err(refusal("", FORM)),
    };
    known(fields)?;
    let given = Given(fields);
    let max_attempts = max_attempts.map_or_else(|| given.read("maxAttempts", ATTEMPTS, attempts), |it| Ok(Some(it)))?;
    let initial_delay = given.read("initialDelay", DELAY_FROM_0, |value| seconds(value, 0, LONGEST_DELAY))?;
    let multiplier = given.read("backoffMultiplier", FACTOR, multiplier)?;
    let max_delay = given.read("maxDelay", DELAY_FROM_1, |value| seconds(value, 1, LONGEST_DELAY))?;
    let jitter = given.read("jitter", FLAG, Value::as_bool)?;
    let retry_when = given.read("retryWhen", CONDITION, condition)?;
    let stop_when = given.read("stopWhen", CONDITION, condition)?;
    let retry_execution_failures = given.read("retryExecutionFailures", FLAG, Value::as_bool)?;
    let max_duration = given.read("maxDuration", DURATION, |value| seconds(value, 1, MAX_DURATION))?;

    let absent = RetryPolicy::default();
    let initial_delay = initial_delay.unwrap_or(absent.initial_delay);
    let policy = RetryPolicy {
        max_attempts: max_attempts.unwrap_or(absent.max_attempts),
        initial_delay,
        multiplier: multiplier.unwrap_or(absent.multiplier),
        max_delay: max_delay.unwrap_or(absent.max_delay.max(initial_delay)),
        jitter: jitter.unwrap_or(absent.jitter),
        retry_when,
        stop_when,
        retry_execution_failures: retry_execution_failures.unwrap_or(absent.retry_execution_failures),
        max_duration: max_duration.unwrap_or(absent.max_duration),
    };
    fits(&policy)?;
    Ok(Some(policy))
}

/// Refuses an unknown field. It is probably misspelt, and its author would expect an effect that never comes.
fn known(fields: &Map<String, Value>) -> Judged<()> {
    // The message names the unknown field that is first by bytes, because the API server keeps no order of keys.
    let Some(unknown) = fields.keys().filter(|key| !FIELDS.contains(&key.as_str())).min() else { return Ok(()) };
    let is_name = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    let shown = if (1..=SHOWN_KEY).contains(&unknown.len()) && is_name(unknown) { unknown } else { "" };
    let problem = format!("is not known; correct or remove it, the fields are {}", FIELDS.join(", "));
    Err(refusal(shown, if shown.is_empty() { format!("has a field that {problem}") } else { problem }))
}

/// Refuses waits that contradict each other, or that do not fit into `maxDuration`.
fn fits(policy: &RetryPolicy) -> Judged<()> {
    let RetryPolicy { max_attempts, initial_delay, max_delay, max_duration, .. } = policy;
    if max_delay < initial_delay {
        return Err(refusal("maxDelay", BELOW_INITIAL));
    }
    // The admission policy makes the same test. It cannot compute powers and leaves the exact sum to the second test.
    if initial_delay.saturating_mul(max_attempts - 1) >= *max_duration {
        return Err(refusal("maxDuration", TOO_SHORT));
    }
    let waits = policy.longest_wait();
    if waits >= *max_duration {
        let (waits, limit) = (format(rounded_up(waits)), format(*max_duration));
        return Err(refusal(
            "maxDuration",
            format!(
                "{limit} is too short, the waits alone may take {waits}; raise it, or lower maxAttempts, \
                 initialDelay, backoffMultiplier or maxDelay"
            ),
        ));
    }
    Ok(())
}

/// The fields that are present in the value.
struct Given<'a>(&'a Map<String, Value>);

impl Given<'_> {
    fn read<T>(&self, name: &str, problem: &str, read: impl FnOnce(&Value) -> Option<T>) -> Judged<Option<T>> {
        // The API server drops a null from fields that it knows, so a null counts as absent.
        match self.0.get(name).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| refusal(name, problem)),
        }
    }
}

fn refusal(name: &str, problem: impl Into<String>) -> Refusal {
    let field = if name.is_empty() { RETRY.to_owned() } else { format!("{RETRY}.{name}") };
    Refusal { field, problem: problem.into() }
}

/// JSON may also write the number 3 as `3.0`, and the schema accepts both.
fn attempts(value: &Value) -> Option<u32> {
    (1..=limits::ATTEMPTS).find(|&count| value.as_f64() == Some(f64::from(count)))
}

fn multiplier(value: &Value) -> Option<Thousandths> {
    let number = value.as_f64().filter(|number| (1.0..=10.0).contains(number))?;
    // A cast from a float to an integer saturates; this value is at most 10000.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(Thousandths((number * 1000.0).round() as u32))
}

fn condition(value: &Value) -> Option<Box<str>> {
    let text = value.as_str()?;
    (1..=limits::CONDITION).contains(&u32::try_from(text.chars().count()).ok()?).then(|| text.into())
}

/// Reads hours, minutes and seconds in this order. At least one of them is present, and each has at most five digits.
///
/// Go also accepts fractions. The admission policy tests this form before it reads the duration, because a duration
/// that is too large stops the evaluation of the whole policy.
fn seconds(value: &Value, least: u64, most: Duration) -> Option<Duration> {
    let mut rest = value.as_str().filter(|text| !text.is_empty())?;
    let mut total: u64 = 0;
    for (unit, seconds) in [('h', 3600), ('m', 60), ('s', 1)] {
        let Some((digits, after)) = rest.split_once(unit) else { continue };
        if !(1..=5).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // 99999 hours are 3.6e8 seconds: no sum overflows.
        total += digits.parse::<u64>().ok()? * seconds;
        rest = after;
    }
    let duration = Duration::from_secs(total);
    (rest.is_empty() && total >= least && duration <= most).then_some(duration)
}

fn rounded_up(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests;
