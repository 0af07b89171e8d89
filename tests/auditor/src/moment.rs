//! Times in whole seconds, as in statuses.

use serde_json::Value;
use wfe_core::Time;

/// A time in whole seconds, as in the API.
pub(crate) type Seconds = i64;

/// Reads a time in whole seconds. No operator writes a fraction. If there is one, it is rounded up, because nothing may
/// run early.
pub(crate) fn seconds(value: &Value, pointer: &str) -> Option<Seconds> {
    seconds_of(value.pointer(pointer)?.as_str()?)
}

/// Reads a time as [`seconds`] does.
pub(crate) fn seconds_of(text: &str) -> Option<Seconds> {
    let time: Time = text.parse().ok()?;
    Some(time.timestamp().saturating_add(i64::from(time.timestamp_subsec_nanos() > 0)))
}
