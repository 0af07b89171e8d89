//! `WorkflowSchedule`: when to run one workflow on one target again and again, and how that goes (SPEC section 12.1).
//!
//! The doc comments of the fields are what `kubectl explain wfs` prints: they are written for people who write YAML.
//! Durations and times are as the API server has checked them; whether a cron expression has a slot at all, and what a
//! zone is, is judged elsewhere. What is planned is decided elsewhere too.

// KubeSchema expands to a public struct inside a function body. Doc comments are shown as plain text, without Markdown.
#![allow(unreachable_pub, clippy::doc_markdown)]

pub mod conditions;
mod rules;
mod spec;
mod status;

pub use spec::{
    Hint, History, ScheduleTemplate, TemplateMetadata, TemplateSpec, WorkflowSchedule, WorkflowScheduleSpec,
};
pub use status::{LastMissed, LastRun, NextRunReason, RunOutcome, WorkflowScheduleStatus};

/// Kind of a schedule, as in the `remediationRequestRef` of its children.
pub const KIND: &str = "WorkflowSchedule";

/// Names the child of a schedule for a slot: the schedule's name and the slot in Unix seconds (SPEC section 12.5).
///
/// ```
/// use wfe_api::workflow_schedule::child_name;
///
/// assert_eq!(child_name("nightly", 1_767_312_000), "nightly-1767312000");
/// ```
#[must_use]
pub fn child_name(schedule: &str, slot: i64) -> String {
    format!("{schedule}-{slot}")
}

#[cfg(test)]
mod tests;
