//! Closed words of a status: phase, outcome, status of a condition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Says where an execution stands. It only moves forward; the API server refuses the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// It had to wait and is undecided.
    Pending,
    /// Its run is committed.
    Running,
    /// Its run succeeded.
    Completed,
    /// It failed, before or after something ran.
    Failed,
    /// It did not get its turn.
    Skipped,
}

// === impl Phase ===

impl Phase {
    /// Lists every phase.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Skipped];

    /// Spells the phase as the API does.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
        }
    }

    /// Returns whether the phase is final.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped)
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says how an earlier execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
}

/// Status of a condition, spelled as metav1.Condition does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell, or not yet.
    Unknown,
}

// === impl ConditionStatus ===

impl ConditionStatus {
    /// Spells the status as the API does.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}
