//! The closed words of failures and blocks (sections 3.1 and 6).

use crate::chain::RunNumber;
use crate::words::words;

words! {
    /// Classifies a failure. These seven and no others: programs match on them.
    pub enum FailureReason {
        /// A container was killed for its memory limit.
        OomKilled = "OOMKilled",
        /// The run, a task or a deadline of the operator timed out.
        DeadlineExceeded,
        /// A right was missing.
        Forbidden,
        /// A quota or limit of the cluster was exhausted.
        ResourceExhausted,
        /// The workflow, its parameters or this object cannot work as written.
        ConfigurationError,
        /// An image or the bundle could not be fetched.
        ImagePullBackOff,
        /// None of the others is proven.
        Unknown,
    }
}

/// A create of a run that the API server refused for good (section 9): nothing of the workflow ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What the refusal means.
    pub reason: FailureReason,
    /// What the API server said.
    pub message: Box<str>,
    /// The number that was tried.
    pub number: RunNumber,
}

/// How an execution blocks its target, in the order of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockReason {
    /// It broke half way (rule 2).
    PreviousExecutionFailed,
    /// It is the newest of too many failures in a row (rule 3).
    ExhaustedRetries,
}

impl BlockReason {
    /// Both.
    pub const ALL: [Self; 2] = [Self::PreviousExecutionFailed, Self::ExhaustedRetries];

    /// Returns the skip reason that it brings, in the spelling of the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreviousExecutionFailed => "PreviousExecutionFailed",
            Self::ExhaustedRetries => "ExhaustedRetries",
        }
    }
}
