//! What an analyst is shown of a schedule that keeps failing: bounded, and without any value of a parameter.

use std::time::Duration;

use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::reason::FailureReason;

/// How many failures an analyst is shown, the newest first (section 13.3).
pub const MOST_FAILURES: usize = 5;

/// What an analyst is shown.
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
    /// The circuits that are open, by their fingerprints; but for those of workflows, which are of others.
    pub open_circuits: Vec<Box<str>>,
    /// How long its executions may take.
    pub timeout: Duration,
    /// Its last failures that are still there, the newest first.
    pub failures: Vec<FailureSeen>,
}

/// When a schedule runs, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Every {
    /// `spec.interval`, or what applies in its place.
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
    /// Which of the seven; none where the API server refused the child.
    pub reason: Option<FailureReason>,
    /// Whether something of it ran, or nobody can tell.
    pub was_execution_failure: bool,
    /// The task that failed, where one did.
    pub task: Option<Box<str>>,
    /// Its step.
    pub step: Option<Box<str>>,
    /// With which code that exited.
    pub exit_code: Option<i32>,
    /// How long it ran, as the status says it.
    pub ran_for: Option<Box<str>>,
    /// What failed, where the status says it.
    pub fingerprint: Option<Fingerprint>,
    /// What was reported, cut, without values of parameters.
    pub message: Box<str>,
}

/// Evidence that was gathered, with what is handed to an analyst of somebody else.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// The name of the child that it is about.
    pub of: Box<str>,
    /// What the built-in analyst reads.
    pub evidence: Evidence,
    /// The same as text, for an analyst that is a workflow.
    pub text: Box<str>,
    /// The digest of that text, in hexadecimal digits.
    pub digest: Box<str>,
}

impl Evidence {
    /// Returns what the failures have in common, where they do.
    #[must_use]
    pub fn common(&self) -> Option<&Fingerprint> {
        let first = self.failures.first()?.fingerprint.as_ref()?;
        self.failures.iter().all(|failure| failure.fingerprint.as_ref() == Some(first)).then_some(first)
    }
}
