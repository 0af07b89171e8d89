//! The one border between the API's times and core's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as ApiTime;
use k8s_openapi::jiff::Timestamp;
use wfe_core::Time;

/// Translates a time of the API to core's, in whole seconds.
#[must_use]
pub fn moment(time: &ApiTime) -> Time {
    // jiff's range lies within chrono's, so the conversion has an answer.
    Time::from_timestamp(time.0.as_second(), 0).unwrap_or_default()
}

/// The first second of the year 0, in which RFC 3339 begins.
const YEAR_0: i64 = -62_167_219_200;

/// Translates a time of core's to the API's. A time outside of the years 0 to 9999 becomes the nearest that it can hold.
#[must_use]
pub fn api_time(time: Time) -> ApiTime {
    ApiTime(Timestamp::from_second(time.timestamp().max(YEAR_0)).unwrap_or(Timestamp::MAX))
}

/// Reads a time of an object that has no type here.
#[must_use]
pub fn parse_moment(text: &str) -> Option<Time> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}
