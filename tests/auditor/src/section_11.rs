//! A second implementation of section 11: which attempts `spec.retry` allows, and how long the wait before an attempt
//! is.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};
use wfe_core::duration;

/// A retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The most attempts, including the first.
    pub(crate) max_attempts: usize,
    initial_delay: Duration,
    /// The backoff multiplier in thousandths.
    multiplier: u128,
    max_delay: Duration,
    jitter: bool,
    /// Whether the policy has no `retryWhen`, so that the default decides which reasons are retried.
    pub(crate) has_default_condition: bool,
    /// Whether another attempt may follow a failed attempt in which something ran (`retryExecutionFailures`).
    pub(crate) tries_what_ran: bool,
    /// The longest time for all attempts and waits together.
    pub(crate) max_duration: Duration,
}

impl Retry {
    /// Reads `spec.retry`. `None` means a single attempt. An unreadable policy also gives `None`: rule 0 ends such an
    /// execution before anything runs.
    pub(crate) fn read(spec: &Value) -> Option<Self> {
        let none = Map::new();
        let (fields, max_attempts) = match &spec["retry"] {
            Value::Bool(true) => (&none, 3.0),
            Value::Object(fields) => (fields, number(fields, "maxAttempts", 3.0)?),
            Value::Number(attempts) => (&none, attempts.as_f64()?),
            _ => return None,
        };
        let initial_delay = time(fields, "initialDelay", Duration::from_secs(1))?;
        let multiplier = number(fields, "backoffMultiplier", 2.0)?;
        if !(1.0..=20.0).contains(&max_attempts) || !(1.0..=10.0).contains(&multiplier) {
            return None;
        }
        // A float is cast to the nearest whole number in range. These floats are whole numbers in range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let (max_attempts, multiplier) = (max_attempts as usize, (multiplier * 1000.0).round() as u128);
        Some(Self {
            max_attempts,
            initial_delay,
            multiplier,
            max_delay: time(fields, "maxDelay", Duration::from_mins(1).max(initial_delay))?,
            jitter: flag(fields, "jitter")?,
            has_default_condition: fields.get("retryWhen").is_none_or(Value::is_null),
            tries_what_ran: flag(fields, "retryExecutionFailures")?,
            max_duration: time(fields, "maxDuration", Duration::from_hours(24))?,
        })
    }

    /// Returns the shortest and the longest wait after the n-th attempt, counted from 1, in whole milliseconds.
    ///
    /// The wait is `min(initialDelay * multiplier^(n-1), maxDelay)`, rounded up. Jitter lengthens the wait by up to
    /// half. The cap is then lower, because the longest wait is still `maxDelay`. Each product may or may not be cut to
    /// nanoseconds, so both results are allowed. They rarely differ by a millisecond.
    pub(crate) fn wait_after(&self, attempt: usize) -> RangeInclusive<Duration> {
        let cap = self.max_delay.as_nanos();
        let cap = if self.jitter { cap * 2 / 3 } else { cap };
        let (mut least, mut most) = (self.initial_delay.as_nanos().min(cap), self.initial_delay.as_nanos().min(cap));
        for _ in 1..attempt {
            least = (least * self.multiplier / 1000).min(cap);
            most = (most * self.multiplier).div_ceil(1000).min(cap);
        }
        if self.jitter {
            most = (most * 3).div_ceil(2).min(self.max_delay.as_nanos());
        }
        in_millis(least)..=in_millis(most)
    }
}

fn in_millis(nanos: u128) -> Duration {
    Duration::from_millis(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Reads a field. If it is absent, returns the default. If it has another type, returns `None`.
fn field<T>(fields: &Map<String, Value>, name: &str, default: T, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    fields.get(name).filter(|value| !value.is_null()).map_or(Some(default), read)
}

fn number(fields: &Map<String, Value>, name: &str, default: f64) -> Option<f64> {
    field(fields, name, default, Value::as_f64)
}

fn flag(fields: &Map<String, Value>, name: &str) -> Option<bool> {
    field(fields, name, false, Value::as_bool)
}

fn time(fields: &Map<String, Value>, name: &str, default: Duration) -> Option<Duration> {
    field(fields, name, default, |value| duration::parse(value.as_str()?).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(retry: &Value) -> Option<Retry> {
        Retry::read(&json!({"retry": retry}))
    }

    fn waits(retry: &Value) -> Vec<(u128, u128)> {
        let retry = read(retry).unwrap();
        let wait = |attempt| retry.wait_after(attempt);
        (1..retry.max_attempts).map(wait).map(|wait| (wait.start().as_millis(), wait.end().as_millis())).collect()
    }

    #[test]
    fn each_form_of_the_field_is_read_with_the_defaults() {
        let all_defaults = read(&json!(true)).unwrap();
        assert_eq!(all_defaults.max_attempts, 3);
        assert_eq!(all_defaults.max_duration, Duration::from_hours(24));
        assert!(all_defaults.has_default_condition && !all_defaults.tries_what_ran);
        assert_eq!(read(&json!({})), Some(all_defaults.clone()));
        assert_eq!(read(&json!({"jitter": null})), Some(all_defaults.clone()));
        assert_eq!(read(&json!(5)), Some(Retry { max_attempts: 5, ..all_defaults }));
    }

    #[test]
    fn what_is_no_policy_or_a_bad_one_leaves_one_attempt() {
        let bad = [json!(null), json!(false), json!(0), json!(21), json!("3"), json!([]), json!({"jitter": 1})];
        let worse = [
            json!({"initialDelay": "banana"}),
            json!({"backoffMultiplier": 1e300}),
            json!({"maxAttempts": "3"}),
            json!({"maxDuration": 7}),
            json!({"retryExecutionFailures": "yes"}),
        ];
        for value in bad.iter().chain(&worse) {
            assert_eq!(read(value), None, "{value}");
        }
    }

    #[test]
    fn a_wait_grows_up_to_its_maximum() {
        let exactly = |millis: &[u128]| millis.iter().map(|one| (*one, *one)).collect::<Vec<_>>();
        assert_eq!(waits(&json!(8)), exactly(&[1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]));
        let slow = json!({"maxAttempts": 4, "initialDelay": "1s", "backoffMultiplier": 1.0005});
        assert_eq!(waits(&slow), exactly(&[1_000, 1_001, 1_003]), "the multiplier is kept in thousandths");
        assert_eq!(waits(&json!({"initialDelay": "1h"})), exactly(&[3_600_000, 3_600_000]));
        assert_eq!(waits(&json!({"initialDelay": "0s"})), exactly(&[0, 0]));
    }

    #[test]
    fn with_jitter_the_widest_draw_is_the_maximum() {
        let jittered = json!({"maxAttempts": 5, "initialDelay": "2s", "maxDelay": "7s", "jitter": true});
        assert_eq!(waits(&jittered), [(2_000, 3_000), (4_000, 6_000), (4_667, 7_000), (4_667, 7_000)]);
    }
}
