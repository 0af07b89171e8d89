//! The WorkflowExecution API, group `kubernaut.ai`, version `v1alpha1`.
//!
//! ```text
//!  WorkflowExecution ── spec   what to run on which target; immutable, except `cancellation` and `clearance`
//!                    └─ status what happened to it; written only by the operator
//!  WorkflowSchedule ─── spec   when to create executions, and from which template; every field may change
//!                    └─ status the last run, the next run and what holds it; written only by the operator
//! ```
//!
//! This crate has the types, their schema with every limit, the admission rules (CEL, evaluated by the API server),
//! labels, annotations, condition types and reasons. It has no client and no clock, does not know Tekton, and makes no
//! decisions. A program that creates WorkflowExecutions can depend on this crate alone.
//!
//! Such a program builds its executions with [`WorkflowExecution::builder`]. [`StatusView`] then reports how an
//! execution ended and what to do next.

mod builder;
pub mod conditions;
pub mod crd;
mod image;
pub mod labels;
pub mod limits;
mod orchestrator;
pub mod retry;
mod target;
pub mod variable;
pub mod workflow_execution;
pub mod workflow_schedule;

pub use builder::{BuildError, Problem, WorkflowExecutionBuilder};
pub use crd::{crds, crds_yaml};
pub use image::is_image_reference;
pub use orchestrator::{
    Attempt, ExecutionFailure, Failure, Holder, NextStep, PreviousExecution, Progress, StatusView, UNSAID_WAIT,
};
pub use target::target_resource;
pub use wfe_core::target::{TargetError, is_dns_label};
pub use workflow_execution::{
    AttemptStatus, Cancellation, Clearance, ClearanceStatus, ConditionStatus, ConflictingWorkflow, ExecutionConfig,
    FailureDetails, FailureReason, NextAction, Outcome, Phase, PipelineRunRef, PipelineRunStatus, RecentRemediation,
    RecordedStep, RemediationRequestRef, SkipDetails, SkipReason, WorkflowExecution, WorkflowExecutionSpec,
    WorkflowExecutionStatus, WorkflowRef,
};
pub use workflow_schedule::{WorkflowSchedule, WorkflowScheduleSpec, WorkflowScheduleStatus};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

/// Name of the API group.
pub const GROUP: &str = "kubernaut.ai";
/// Name of the API version.
pub const VERSION: &str = "v1alpha1";
