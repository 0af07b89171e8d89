//! `WorkflowSchedule`: when to run one workflow on one target again and again, and how that goes (section 12.1).
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
mod triage;

pub use spec::{
    Hint, History, ScheduleTemplate, TemplateMetadata, TemplateSpec, WorkflowSchedule, WorkflowScheduleSpec,
};
pub use status::{LastMissed, LastRun, NextRunReason, RunOutcome, WorkflowScheduleStatus};
pub use triage::{Adjustment, Analyst, Resume, Triage, TriageRun, TriageState, TriageStatus, TriageVerdict};

/// Kind of a schedule, as in the `remediationRequestRef` of its children.
pub const KIND: &str = "WorkflowSchedule";

#[cfg(test)]
mod tests;
