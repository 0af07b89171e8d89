//! How long the terms of leader election are: values, and what must hold between them.

use std::time::Duration;

/// The longest that a Lease may last: for so long nobody leads when a leader dies. A longer one, written by hand or
/// by another program, is not waited for to its end.
pub const LONGEST: Duration = Duration::from_mins(5);
/// How much longer the Lease must last than its holder writes: for what is on its way when the holder stops.
const MARGIN: Duration = Duration::from_secs(1);

/// How the Lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For how long a record must not have changed before others take the Lease.
    pub duration: Duration,
    /// For how long a leader goes on writing after the last renewal that it knows of, counted from when it asked.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed, or looked at; and how long one request may take.
    pub retry_period: Duration,
}

impl Timing {
    /// Checks that a leader stops before another can begin, and that one lost request does not end its term.
    ///
    /// # Errors
    /// Which flags contradict each other.
    pub fn new(duration: Duration, renew_deadline: Duration, retry_period: Duration) -> Result<Self, String> {
        if duration > LONGEST {
            return Err(format!("--lease-duration must be at most {} s", LONGEST.as_secs()));
        }
        if renew_deadline + MARGIN > duration {
            return Err("--lease-duration must be at least 1s longer than --renew-deadline".to_owned());
        }
        if retry_period * 2 > renew_deadline {
            return Err("--renew-deadline must be at least twice --retry-period".to_owned());
        }
        Ok(Self { duration, renew_deadline, retry_period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn contradictory_times_are_refused_with_the_name_of_the_flag() {
        for (duration, deadline, retry, flag) in [
            (5000, 5000, 2000, "--lease-duration"),
            (5500, 5000, 2000, "--lease-duration"),
            (301_000, 5000, 2000, "--lease-duration"),
            (8000, 3000, 2000, "--renew-deadline"),
        ] {
            let [duration, deadline, retry] = [duration, deadline, retry].map(Duration::from_millis);
            let error = Timing::new(duration, deadline, retry).unwrap_err();
            assert!(error.starts_with(flag), "{error}");
        }
        assert!(Timing::new(SECOND * 8, SECOND * 5, SECOND * 2).is_ok());
        assert!(Timing::new(SECOND * 3, SECOND * 2, SECOND).is_ok());
    }
}
