//! The wall clock of a process as a value, so that a simulation can replace it.
//!
//! Deadlines and time-outs inside the process do not use this clock: they are measured on tokio's monotonic clock.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use wfe_core::Time;

/// Returns the time of day. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Time + Send + Sync>);

impl Clock {
    /// Returns the clock of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self::new(chrono::Utc::now)
    }

    /// Makes a clock from a function that returns the time.
    #[must_use]
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Time {
        (self.0)()
    }

    /// Returns the time in the form of Leases and events; or the Unix epoch, if the clock shows a year that no
    /// timestamp can represent.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from_microsecond(self.now().timestamp_micros()).unwrap_or_default()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_time_that_it_was_given_to_the_microsecond() {
        let time = chrono::DateTime::from_timestamp(1_800_000_000, 123_456_789).unwrap();
        let clock = Clock::new(move || time);
        assert_eq!(clock.now(), time);
        assert_eq!(clock.timestamp().as_microsecond(), 1_800_000_000_123_456);
    }
}
