//! `WorkflowSchedule`: when to run one workflow on one target again and again, and the record of its runs (section
//! 12.1).
//!
//! `kubectl explain wfs` prints the doc comments of the fields: they are written for people who write YAML. The API
//! server has checked the form of durations and times. The operator plans the runs. It also finds out whether a cron
//! expression has a slot at all, and whether it knows the time zone.

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

/// Kind of a schedule, which the `remediationRequestRef` of its children names.
pub const KIND: &str = "WorkflowSchedule";

#[cfg(test)]
mod tests;
