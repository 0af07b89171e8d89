//! The outcomes of executions and attempts, as closed sets of label values.

/// The outcome of an execution, as the label `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeLabel {
    /// Phase Completed.
    Completed,
    /// Phase Failed.
    Failed,
    /// Phase Skipped.
    Skipped,
}

impl OutcomeLabel {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
        }
    }
}

/// The outcome of an attempt of an execution with a retry policy, as the label `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptLabel {
    /// The attempt succeeded.
    Completed,
    /// The attempt failed, and another follows.
    Retried,
    /// The attempt failed, and so did the execution.
    Failed,
}

impl AttemptLabel {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::Retried => "Retried",
            Self::Failed => "Failed",
        }
    }
}
