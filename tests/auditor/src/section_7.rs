//! A second implementation of section 7: consecutive failures, and how long the next execution waits after them.

use std::time::Duration;

use crate::Policy;
use crate::moment::Seconds;
use crate::record::{End, Past};

/// Lists the pre-execution failures since the last success, newest first. The next execution waits for all of them, but
/// only failures that are not shared are counted. A quiet time ends the row. An unknown time does not count as quiet.
pub(crate) fn in_a_row<'p, 'e>(uncleared: &'p [Past<'e>], policy: &Policy, at: Seconds) -> Vec<&'p Past<'e>> {
    let since_success = uncleared.iter().rev().take_while(|past| past.end != End::Completed);
    let mut row: Vec<&Past<'_>> = since_success.filter(|past| past.backs_off()).collect();
    if let Some(quiet) = quiet(policy) {
        let mut later = Some(at);
        let is_quiet = |earlier: Option<Seconds>, later: Option<Seconds>| matches!((earlier, later), (Some(earlier), Some(later)) if later.saturating_sub(earlier) >= quiet);
        let length = row.iter().take_while(|past| {
            let goes_on = !is_quiet(past.failed, later);
            later = past.failed;
            goes_on
        });
        let length = length.count();
        row.truncate(length);
    }
    row
}

/// Returns the quiet time if one is configured.
pub(crate) fn quiet(policy: &Policy) -> Option<Seconds> {
    Some(whole(policy.failure_quiet_period.as_nanos())).filter(|quiet| *quiet > 0)
}

/// Returns the earliest and the latest `nextAllowedExecution` after the n-th consecutive failure. With a capped
/// exponent, the wait is `min(base * 2^(n-1), max)`. Jitter may lengthen the wait by its share.
pub(crate) fn next_allowed(policy: &Policy, failures: u64, failed: Seconds) -> (Seconds, Seconds) {
    let wait = wait_nanos(policy, failures);
    let longest = wait.saturating_add(wait.saturating_mul(u128::from(policy.backoff_jitter)) / 1000);
    (failed.saturating_add(whole(wait)), failed.saturating_add(whole(longest)))
}

fn wait_nanos(policy: &Policy, failures: u64) -> u128 {
    let exponent = failures.saturating_sub(1).min(u64::from(policy.max_backoff_exponent));
    // 2^64 nanoseconds are 584 years, so that a larger factor would exceed any maximum.
    let factor = 1_u128.checked_shl(u32::try_from(exponent).unwrap_or(u32::MAX).min(64)).unwrap_or(u128::MAX);
    policy.base_cooldown_period.as_nanos().saturating_mul(factor).min(policy.max_cooldown_period.as_nanos())
}

/// Rounds up to whole seconds, because nothing may run early.
pub(crate) fn whole(nanos: u128) -> Seconds {
    Seconds::try_from(nanos.div_ceil(Duration::from_secs(1).as_nanos())).unwrap_or(Seconds::MAX)
}
