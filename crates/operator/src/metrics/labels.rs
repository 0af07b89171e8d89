//! How executions and attempts end, as the closed sets of values of a label.

/// How an execution ended, as the label `outcome` says it.
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

/// How an attempt of an execution with a retry policy ended, as the label `outcome` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptLabel {
    /// It succeeded.
    Completed,
    /// It failed, and there is another.
    Retried,
    /// It failed, and with it the execution.
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
