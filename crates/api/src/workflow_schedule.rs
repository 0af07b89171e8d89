//! `WorkflowSchedule`: when to run one workflow on one target repeatedly, and the record of the runs (section 12.1).
//!
//! `kubectl explain wfs` prints the doc comments of the fields: they are written for people who write YAML. The API
//! server checks the form of durations and times. The operator plans the runs. The operator also checks whether a cron
//! expression has any slot, and whether its own zone database contains the time zone.

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

/// Kind of a schedule, as the `remediationRequestRef` of its children contains it.
pub const KIND: &str = "WorkflowSchedule";

#[cfg(test)]
mod tests;
