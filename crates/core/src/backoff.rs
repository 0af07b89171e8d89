//! The project's only backoff: `min(base * multiplier^(n-1), max)`, with a limit on the exponent and with jitter.
//!
//! The arithmetic uses whole numbers (section 7) and cannot overflow: a result that would overflow is the maximum.
//! There is no clock, state or randomness. The number of failures in a row is counted from their times
//! ([`failures_in_a_row`]), and jitter is derived from a key. A restart therefore computes the same wait.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::Time;

/// A growing wait between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The factor for each further failure; less than 1 counts as 1.
    pub multiplier: Thousandths,
    /// The longest wait, before jitter.
    pub max: Duration,
    /// The maximum number of multiplications.
    pub max_exponent: u32,
    /// How much longer jitter may make the wait, as a share of the wait. Jitter never makes the wait shorter.
    pub jitter: Thousandths,
}

/// A number in thousandths: `Thousandths(2000)` is 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thousandths(pub u32);

impl Thousandths {
    /// 0.
    pub const ZERO: Self = Self(0);
    /// 1.
    pub const ONE: Self = Self(1000);
    /// 2.
    pub const TWO: Self = Self(2000);

    /// Reads a share, rounded to thousandths; `None` if the share is not from 0 to 1.
    #[must_use]
    pub fn share(share: f64) -> Option<Self> {
        // The value is in range, so the cast does not change it.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (0.0..=1.0).contains(&share).then(|| Self((share * 1000.0).round() as u32))
    }

    /// Multiplies a count, and rounds down.
    fn of(self, count: u128) -> u128 {
        count.saturating_mul(u128::from(self.0)) / 1000
    }
}

impl Backoff {
    /// Returns a backoff that doubles, without jitter.
    #[must_use]
    pub const fn doubling(base: Duration, max: Duration, max_exponent: u32) -> Self {
        Self { base, multiplier: Thousandths::TWO, max, max_exponent, jitter: Thousandths::ZERO }
    }

    /// Returns the wait after the `failures`-th failure in a row, without jitter; none before the first.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let Some(exponent) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let max = self.max.as_nanos();
        let mut wait = self.base.as_nanos().min(max);
        for _ in 0..exponent.min(self.max_exponent) {
            let longer = self.multiplier.max(Thousandths::ONE).of(wait).min(max);
            if longer == wait {
                break; // the wait is at its maximum, or never grows
            }
            wait = longer;
        }
        from_nanos(wait)
    }

    /// Returns the wait after the `failures`-th failure in a row, with jitter. The same key and number always give the
    /// same wait; different keys give different waits.
    #[must_use]
    pub fn jittered(&self, failures: u32, key: &str) -> Duration {
        let wait = self.after(failures);
        let most = self.jitter.min(Thousandths::ONE).of(wait.as_nanos());
        let added = most.saturating_mul(u128::from(draw(key, failures))) / u128::from(u32::MAX);
        wait.saturating_add(from_nanos(added))
    }
}

/// Derives a number from a key and a failure count: always the same, and evenly distributed over keys.
pub(crate) fn draw(key: &str, failures: u32) -> u32 {
    let digest = Sha256::new().chain_update(failures.to_be_bytes()).chain_update(key).finalize();
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// Derives a number from 0 to `whole - 1` from a key and an occasion: always the same, and evenly distributed over
/// both.
pub(crate) fn share_of(key: &str, occasion: u32, whole: u64) -> u64 {
    let share = (u128::from(whole) * u128::from(draw(key, occasion))) >> 32;
    u64::try_from(share).unwrap_or(0) // less than the whole
}

fn from_nanos(nanos: u128) -> Duration {
    const NANOS: u128 = 1_000_000_000;
    let subsecond = u32::try_from(nanos % NANOS).unwrap_or(0); // below a thousand million
    u64::try_from(nanos / NANOS).map_or(Duration::MAX, |seconds| Duration::new(seconds, subsecond))
}

/// Counts the failures in a row from their times, newest first. A success resets the count, so the caller passes only
/// failures after the last success. If a quiet time is configured, a gap of that length between failures, or up to now,
/// resets the count, too.
///
/// A failure at an unknown or future time still counts: it would be unsafe to forget a failure.
#[must_use]
pub fn failures_in_a_row(
    newest_first: impl IntoIterator<Item = Option<Time>>,
    quiet: Option<Duration>,
    now: Time,
) -> u32 {
    let mut later = Some(now);
    let mut count: u32 = 0;
    for failed_at in newest_first {
        if let (Some(quiet), Some(later), Some(failed_at)) = (quiet, later, failed_at)
            && (later - failed_at).to_std().is_ok_and(|gap| gap >= quiet)
        {
            break;
        }
        count = count.saturating_add(1);
        later = failed_at;
    }
    count
}

#[cfg(test)]
mod tests;
