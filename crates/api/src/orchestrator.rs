//! What a program that creates `WorkflowExecution`s makes of their statuses: the RemediationOrchestrator, or any other.
//!
//! ```text
//!  WorkflowExecution ──► StatusView ──► NextStep            what to do now
//!          └───────────► PreviousExecution                  what to tell the analysis of a failure
//! ```
//!
//! Pure functions of one object. Knows no other objects, no client and no clock: a time goes in as a value, and what is
//! to be awaited comes out as one. `docs/remediation-orchestrator.md` tells the whole flow.

mod next_step;
mod previous_execution;
mod view;

pub use next_step::{Holder, NextStep, UNSAID_WAIT};
pub use previous_execution::{ExecutionFailure, PreviousExecution};
pub use view::{Attempt, Failure, Progress, StatusView};

#[cfg(test)]
mod tests;
