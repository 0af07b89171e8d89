//! Times as shown to people.

use wfe_core::Time;

/// Shows a time in whole seconds.
pub(crate) fn shown(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
