//! The evidence for an analyst about a schedule that keeps failing: bounded, and without any value of a parameter.

use std::time::Duration;

use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::reason::FailureReason;

/// How many failures the evidence has, the newest first (section 13.3).
pub const MOST_FAILURES: usize = 5;

/// The evidence for an analyst.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The namespace and name of the schedule.
    pub subject: Box<str>,
    /// Its target.
    pub target: Box<str>,
    /// `workflowRef.workflowId` of its template.
    pub workflow_id: Box<str>,
    /// `workflowRef.version` of its template.
    pub version: Box<str>,
    /// When it runs.
    pub every: Every,
    /// How many failures there are in a row.
    pub failure_count: u32,
    /// When it succeeded last.
    pub last_success: Option<Time>,
    /// The open circuits, by their fingerprints, without those of workflows, which belong to other users.
    pub open_circuits: Vec<Box<str>>,
    /// How long its executions may take.
    pub timeout: Duration,
    /// Its last failures that still exist, the newest first.
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
    /// When it failed.
    pub failed_at: Option<Time>,
    /// The reason, one of seven; none if the API server refused the child.
    pub reason: Option<FailureReason>,
    /// Whether something of it ran, or that is unknown.
    pub was_execution_failure: bool,
    /// The task that failed, if one did.
    pub task: Option<Box<str>>,
    /// Its step.
    pub step: Option<Box<str>>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// How long it ran, as in the status.
    pub ran_for: Option<Box<str>>,
    /// The fingerprint, if the status has one.
    pub fingerprint: Option<Fingerprint>,
    /// What was reported, cut, without values of parameters.
    pub message: Box<str>,
}

/// Evidence, with the text for an analyst that is a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// The name of the child that it is about.
    pub of: Box<str>,
    /// The evidence for the built-in analyst.
    pub evidence: Evidence,
    /// The same as text, for an analyst that is a workflow.
    pub text: Box<str>,
    /// The digest of that text, in hexadecimal digits.
    pub digest: Box<str>,
}

impl Evidence {
    /// Returns the common fingerprint of the failures, if they have one.
    #[must_use]
    pub fn common(&self) -> Option<&Fingerprint> {
        let first = self.failures.first()?.fingerprint.as_ref()?;
        self.failures.iter().all(|failure| failure.fingerprint.as_ref() == Some(first)).then_some(first)
    }
}
