//! The durations of leader election, and the conditions that they must meet.

use std::time::Duration;

/// The limit of a Lease's duration: after a leader dies, no replica leads for that long. If a person or another program
/// wrote a longer duration, replicas do not wait longer than this.
pub const LONGEST: Duration = Duration::from_mins(5);
/// The shortest time between the renew deadline and the end of the Lease. It leaves time for writes in flight when the
/// holder stops.
const MARGIN: Duration = Duration::from_secs(1);

/// The durations of leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long the Lease must be unchanged before another replica takes it.
    pub duration: Duration,
    /// How long a leader continues to write after its last known renewal, counted from the request of that renewal.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed or read; also the time-out of one request.
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
