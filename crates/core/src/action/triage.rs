//! The steps of a triage, except writes to the status of its schedule.

use std::time::Duration;

use crate::Time;
use crate::name::{ExecutionId, ScheduleId, Uid};
use crate::triage::FailureSeen;

/// One step of a triage.
#[derive(Clone, Debug, PartialEq)]
pub struct TriageStep {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The name of the child whose failure is analysed.
    pub of: Box<str>,
    /// The step.
    pub does: TriageDoes,
}

/// What a step of a triage does.
#[derive(Clone, Debug, PartialEq)]
pub enum TriageDoes {
    /// Reads the evidence for an analyst live. Changes nothing.
    Gather(Box<Gather>),
    /// Creates the execution that analyses the failures. Preconditions: the schedule, read live, has this uid and
    /// generation and analyses this child, and no execution has this name.
    Analyse(Box<Analyse>),
    /// Reads the verdict of a completed analyst live. Changes nothing.
    ReadVerdict(ExecutionId),
}

/// The facts about a schedule for the evidence of its triage.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The target of the schedule.
    pub target: Box<str>,
    /// The number of failures in a row.
    pub failure_count: u32,
    /// The time of the last success.
    pub last_success: Option<Time>,
    /// The open circuits.
    pub open_circuits: Vec<Box<str>>,
    /// The time-out of an execution whose template sets none.
    pub default_timeout: Duration,
    /// The failed children to read, newest first, by slot and uid; at most
    /// [`MOST_FAILURES`](crate::triage::MOST_FAILURES).
    pub children: Vec<(Time, Uid)>,
    /// The last failure, if the API server refused to create that child.
    pub refused: Option<FailureSeen>,
}

/// An execution that analyses.
#[derive(Clone, Debug, PartialEq)]
pub struct Analyse {
    /// The generation of the schedule that was judged.
    pub generation: i64,
    /// The latest time at which the analysis may begin.
    pub start_before: Time,
    /// The time-out of the analysis.
    pub timeout: Duration,
    /// The evidence.
    pub evidence: Box<str>,
}

impl TriageDoes {
    /// Returns the name of the step, for marks and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gather(_) => "gather evidence",
            Self::Analyse(_) => "create analyst",
            Self::ReadVerdict(_) => "read verdict",
        }
    }
}
