//! The fixed sets of reasons for failures and blocks (sections 3.1 and 6).

use crate::chain::RunNumber;
use crate::words::words;

words! {
    /// Classifies a failure. The set is closed at these seven values, because programs match on them.
    pub enum FailureReason {
        /// A container was killed for its memory limit.
        OomKilled = "OOMKilled",
        /// The run, a task or a deadline of the operator timed out.
        DeadlineExceeded,
        /// A permission was missing.
        Forbidden,
        /// A quota or limit of the cluster was exhausted.
        ResourceExhausted,
        /// The workflow, its parameters or the `WorkflowExecution` cannot work as written.
        ConfigurationError,
        /// An image or the bundle could not be fetched.
        ImagePullBackOff,
        /// None of the others is proven.
        Unknown,
    }
}

/// A refusal by the API server to create a run, which another try would not change (section 9). Nothing of the workflow
/// ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What the refusal means.
    pub reason: FailureReason,
    /// The message of the API server.
    pub message: Box<str>,
    /// The number of the run that was tried.
    pub number: RunNumber,
}

/// How an execution blocks its target, in the order of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockReason {
    /// The execution failed half way (rule 2).
    PreviousExecutionFailed,
    /// The execution is the newest of too many failures in a row (rule 3).
    ExhaustedRetries,
}

impl BlockReason {
    /// Both reasons.
    pub const ALL: [Self; 2] = [Self::PreviousExecutionFailed, Self::ExhaustedRetries];

    /// Returns the skip reason that corresponds to the block, in the spelling of the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreviousExecutionFailed => "PreviousExecutionFailed",
            Self::ExhaustedRetries => "ExhaustedRetries",
        }
    }
}
