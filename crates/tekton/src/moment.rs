//! Converts times between the API and core.

use chrono::SecondsFormat;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as ApiTime;
use k8s_openapi::jiff::Timestamp;
use wfe_core::Time;

/// Converts a time of the API to a time of core, in whole seconds.
#[must_use]
pub fn moment(time: &ApiTime) -> Time {
    // Every time of jiff is within chrono's range, so the conversion always succeeds.
    Time::from_timestamp(time.0.as_second(), 0).unwrap_or_default()
}

/// The first second of the year 0, the beginning of RFC 3339's range.
const YEAR_0: i64 = -62_167_219_200;

/// Converts a time of core to a time of the API. A time outside the years 0 to 9999 becomes the nearest time within
/// them.
#[must_use]
pub fn api_time(time: Time) -> ApiTime {
    ApiTime(Timestamp::from_second(time.timestamp().max(YEAR_0)).unwrap_or(Timestamp::MAX))
}

/// Parses a time of an untyped object, in every form that an API server accepts as a `date-time`. These include a comma
/// before the fraction, and an offset of up to 24 hours.
#[must_use]
pub fn parse_moment(text: &str) -> Option<Time> {
    if let Ok(time) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    // chrono parses neither of these forms. jiff does, except for the last day of the year 9999.
    let time: Timestamp = text.parse().ok()?;
    let (seconds, nanos) = (time.as_second(), time.subsec_nanosecond());
    // Before 1970, jiff counts seconds and nanoseconds backwards, but chrono only the seconds.
    let (seconds, nanos) = if nanos < 0 { (seconds - 1, nanos + 1_000_000_000) } else { (seconds, nanos) };
    Time::from_timestamp(seconds, u32::try_from(nanos).ok()?)
}

/// Formats a time as the API does, in whole seconds.
#[must_use]
pub fn rfc3339(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_the_api_server_reads_it() {
        for (text, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500Z"),
            ("2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05.500Z"),
            ("2026-01-02T03:04:05,123456789-00:00", "2026-01-02T03:04:05.123456789Z"),
            ("2026-01-02T03:04:05+24:00", "2026-01-01T03:04:05Z"),
            ("2026-01-02T03:04:05-24:00", "2026-01-03T03:04:05Z"),
            ("2026-01-02T03:04:05+14:30", "2026-01-01T12:34:05Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
            ("1969-12-31T23:59:59,25Z", "1969-12-31T23:59:59.250Z"),
            ("1969-12-31T23:59:59.25Z", "1969-12-31T23:59:59.250Z"),
        ] {
            let expected: Time = expected.parse().unwrap();
            assert_eq!(parse_moment(text), Some(expected), "{text}");
        }
        for text in ["", "tomorrow", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04:05+23:60"] {
            assert_eq!(parse_moment(text), None, "{text}");
        }
    }
}
