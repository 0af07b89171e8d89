//! The closed words of failures and blocks (sections 3.1 and 6).

use std::fmt;

use crate::chain::RunNumber;

/// The seven failure reasons (section 3.1). The RemediationOrchestrator matches on them: there are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// A container was killed for its memory.
    OomKilled,
    /// A time-out passed.
    DeadlineExceeded,
    /// Access was denied.
    Forbidden,
    /// A quota or the cluster's resources were exhausted.
    ResourceExhausted,
    /// The spec, the pipeline or the set-up is wrong.
    ConfigurationError,
    /// An image or the bundle could not be pulled.
    ImagePullBackOff,
    /// None of the others is proven.
    Unknown,
}

impl FailureReason {
    /// All seven.
    pub const ALL: [Self; 7] = [
        Self::OomKilled,
        Self::DeadlineExceeded,
        Self::Forbidden,
        Self::ResourceExhausted,
        Self::ConfigurationError,
        Self::ImagePullBackOff,
        Self::Unknown,
    ];

    /// Returns the spelling of the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OomKilled => "OOMKilled",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::Forbidden => "Forbidden",
            Self::ResourceExhausted => "ResourceExhausted",
            Self::ConfigurationError => "ConfigurationError",
            Self::ImagePullBackOff => "ImagePullBackOff",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
