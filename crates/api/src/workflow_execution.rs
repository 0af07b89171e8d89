//! `WorkflowExecution`: the request to run one workflow on one target, and the record of how it ended.
//!
//! `kubectl explain wfe` prints the doc comments of the fields: they are written for people who write YAML. Times are
//! whole seconds. Durations are strings in Go's form, which the API server checks. No input of a user can cause a panic
//! here.

// KubeSchema expands to a public struct inside a function body. Doc comments are shown as plain text, without Markdown.
#![allow(unreachable_pub, clippy::doc_markdown)]

mod failure;
mod next_step;
mod patterns;
mod phase;
mod rules;
mod skip;
mod spec;
mod status;

pub use failure::{FailureDetails, FailureReason};
pub use next_step::{NextAction, RecordedStep};
pub use phase::{ConditionStatus, Outcome, Phase};
pub use skip::{ConflictingWorkflow, RecentRemediation, SkipDetails, SkipReason};
pub(crate) use spec::MOMENT;
pub use spec::{
    Cancellation, Clearance, ExecutionConfig, RemediationRequestRef, WorkflowExecution, WorkflowExecutionSpec,
    WorkflowRef,
};
pub use status::{AttemptStatus, ClearanceStatus, PipelineRunRef, PipelineRunStatus, WorkflowExecutionStatus};

#[cfg(test)]
mod tests;
