//! The one backoff of the project: `min(base * multiplier^(n-1), max)` with a limit on the exponent.
//!
//! Pure arithmetic (SPEC section 7). It cannot overflow for any input: what would overflow is the maximum.

use std::time::Duration;

/// A growing wait between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The wait that no failure exceeds.
    pub max: Duration,
    /// How often the wait doubles at the most.
    pub max_exponent: u32,
}

impl Backoff {
    /// Returns the wait after the `failures`-th failure in a row; none before the first.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let Some(exponent) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        2_u32
            .checked_pow(exponent.min(self.max_exponent))
            .and_then(|factor| self.base.checked_mul(factor))
            .map_or(self.max, |wait| wait.min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_up_to_the_maximum() {
        let minutes = Duration::from_mins;
        let backoff = Backoff { base: minutes(1), max: minutes(10), max_exponent: 4 };
        let waits: Vec<_> = (0..=6).map(|failures| backoff.after(failures)).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 10, 10].map(minutes));
    }

    proptest! {
        #[test]
        fn is_monotone_and_bounded(
            base in 0_u64..u64::MAX,
            max in 0_u64..u64::MAX,
            max_exponent: u32,
            failures: u32,
        ) {
            let backoff = Backoff { base: Duration::from_secs(base), max: Duration::from_secs(max), max_exponent };
            let wait = backoff.after(failures);
            prop_assert!(wait <= backoff.max);
            prop_assert!(wait <= backoff.after(failures.saturating_add(1)));
        }
    }
}
