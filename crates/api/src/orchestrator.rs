//! What the statuses of `WorkflowExecution`s mean for the program that creates them, such as the
//! RemediationOrchestrator.
//!
//! ```text
//!  WorkflowExecution ──► StatusView ──► NextStep            what to do now
//!          └───────────► PreviousExecution                  what to tell the analysis of a failure
//! ```
//!
//! These are pure functions of one object, without a client or a clock. A time is an argument, and a wait is a result.
//! `docs/remediation-orchestrator.md` describes the whole flow.

mod next_step;
mod previous_execution;
mod view;

pub use next_step::{Holder, NextStep, UNSAID_WAIT};
pub use previous_execution::{ExecutionFailure, PreviousExecution};
pub use view::{Attempt, Failure, Progress, StatusView};

#[cfg(test)]
mod tests;
