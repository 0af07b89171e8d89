//! Arithmetic on times that cannot overflow, and rounding that never lets anything run early.

use std::time::Duration;

use chrono::{TimeDelta, Timelike};

use chrono::SecondsFormat;

use crate::Time;

/// How far in the future a time in a status may lie. A later time shows that a clock was wrong, and does not count.
pub const MAX_AHEAD: Duration = Duration::from_mins(1);

/// Returns a time plus a duration; the latest possible time if the sum is out of range.
pub(crate) fn after(time: Time, duration: Duration) -> Time {
    TimeDelta::from_std(duration).ok().and_then(|duration| time.checked_add_signed(duration)).unwrap_or(Time::MAX_UTC)
}

/// Returns a time minus a duration; the earliest possible time if the result is out of range.
pub(crate) fn before(time: Time, duration: Duration) -> Time {
    TimeDelta::from_std(duration).ok().and_then(|duration| time.checked_sub_signed(duration)).unwrap_or(Time::MIN_UTC)
}

/// Rounds a time up to a whole second. Statuses hold whole seconds, and rounding down would let the next execution run
/// up to a second early.
pub(crate) fn round_up(time: Time) -> Time {
    match time.nanosecond() {
        0 => time,
        _ => Time::from_timestamp(time.timestamp().saturating_add(1), 0).unwrap_or(Time::MAX_UTC),
    }
}

/// Returns the first moment that is later than a time.
pub(crate) fn just_after(time: Time) -> Time {
    after(time, Duration::from_nanos(1))
}

/// Formats a time for people, in whole seconds.
pub(crate) fn shown(time: Time) -> impl std::fmt::Display {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_up_and_whole_seconds_stay() {
        let at = |seconds, nanos| Time::from_timestamp(seconds, nanos).unwrap();
        assert_eq!(round_up(at(7, 0)), at(7, 0));
        assert_eq!(round_up(at(7, 1)), at(8, 0));
        assert_eq!(round_up(at(7, 999_999_999)), at(8, 0));
        assert_eq!(round_up(at(-7, 1)), at(-6, 0));
        assert!(round_up(Time::MAX_UTC) >= Time::MAX_UTC - TimeDelta::seconds(1));
    }

    #[test]
    fn sums_that_no_clock_reaches_are_the_last_moment() {
        assert_eq!(after(Time::MAX_UTC, Duration::from_secs(1)), Time::MAX_UTC);
        assert_eq!(after(Time::UNIX_EPOCH, Duration::MAX), Time::MAX_UTC);
        assert_eq!(before(Time::MIN_UTC, Duration::from_secs(1)), Time::MIN_UTC);
        assert_eq!(before(after(Time::UNIX_EPOCH, Duration::from_secs(1)), Duration::from_secs(1)), Time::UNIX_EPOCH);
    }
}
