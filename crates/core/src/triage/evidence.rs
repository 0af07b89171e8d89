//! The evidence for an analyst about a schedule that keeps failing: limited in size, and without any parameter value.

use std::time::Duration;

use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::reason::FailureReason;

/// The most failures in the evidence, newest first (section 13.3).
pub const MOST_FAILURES: usize = 5;

/// The evidence for an analyst.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The namespace and name of the schedule.
    pub subject: Box<str>,
    /// The target of the schedule.
    pub target: Box<str>,
    /// `workflowRef.workflowId` of the template.
    pub workflow_id: Box<str>,
    /// `workflowRef.version` of the template.
    pub version: Box<str>,
    /// When the schedule runs.
    pub every: Every,
    /// The number of failures in a row.
    pub failure_count: u32,
    /// The time of the last success.
    pub last_success: Option<Time>,
    /// The fingerprints of the open circuits, except those of workflows, which belong to other users.
    pub open_circuits: Vec<Box<str>>,
    /// The time-out of the executions.
    pub timeout: Duration,
    /// The last failures that still exist, newest first.
    pub failures: Vec<FailureSeen>,
}

/// The interval or cron expression of a schedule, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Every {
    /// `spec.interval`, or the value that replaces it.
    Interval(Box<str>),
    /// `spec.cron`.
    Cron(Box<str>),
}

/// One failure of a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailureSeen {
    /// The name of the child.
    pub name: Box<str>,
    /// When the child failed.
    pub failed_at: Option<Time>,
    /// The failure reason; `None` if the API server refused the child.
    pub reason: Option<FailureReason>,
    /// Whether anything of the child ran or may have run.
    pub was_execution_failure: bool,
    /// The task that failed, if any.
    pub task: Option<Box<str>>,
    /// The step that failed, if any.
    pub step: Option<Box<str>>,
    /// The exit code of that step, if any.
    pub exit_code: Option<i32>,
    /// How long the child ran, as in the status.
    pub ran_for: Option<Box<str>>,
    /// The fingerprint, if the status has one.
    pub fingerprint: Option<Fingerprint>,
    /// The reported message, cut to a limit and without parameter values.
    pub message: Box<str>,
}

/// Evidence, with the text for an analyst that is a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// The name of the child that the triage is about.
    pub of: Box<str>,
    /// The evidence for the built-in analyst.
    pub evidence: Evidence,
    /// The same evidence as text, for an analyst that is a workflow.
    pub text: Box<str>,
    /// The digest of the text, in hexadecimal digits.
    pub digest: Box<str>,
}

impl Evidence {
    /// Returns the fingerprint of all failures, if they have the same.
    #[must_use]
    pub fn common(&self) -> Option<&Fingerprint> {
        let first = self.failures.first()?.fingerprint.as_ref()?;
        self.failures.iter().all(|failure| failure.fingerprint.as_ref() == Some(first)).then_some(first)
    }
}
