//! What configuration says about decisions. Values only; where they come from is not known here.

use std::time::Duration;

/// The policy of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time-out of a workflow whose spec has none.
    pub default_timeout: Duration,
    /// How long a run may take to be created, and then to start (section 5, 8).
    pub start_deadline: Duration,
    /// How long a target may drain before somebody is told (section 5, 6).
    pub drain_deadline: Duration,
    /// How long a finished run is kept (section 5, 3).
    pub retention: Duration,
}

impl Default for Policy {
    /// The defaults of SPEC section 14.
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_mins(30),
            start_deadline: Duration::from_mins(5),
            drain_deadline: Duration::from_mins(10),
            retention: Duration::from_hours(24),
        }
    }
}
