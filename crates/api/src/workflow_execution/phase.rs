//! Enums of a status: phase, outcome, status of a condition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The phase of an execution. It only moves forward: the API server refuses any other change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The execution waits to be decided.
    Pending,
    /// Its run is committed.
    Running,
    /// Its run succeeded.
    Completed,
    /// It failed, before or after something ran.
    Failed,
    /// It did not get its turn, and nothing ran.
    Skipped,
}

// === impl Phase ===

impl Phase {
    /// All phases.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Skipped];

    /// Returns the phase as the API spells it.
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

/// How an earlier execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
}

/// Status of a condition, spelled as in metav1.Condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// The operator cannot tell, or cannot tell yet.
    Unknown,
}

// === impl ConditionStatus ===

impl ConditionStatus {
    /// Returns the status as the API spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}
