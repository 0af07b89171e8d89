//! Steps of a triage other than writes to the status of its schedule.

use std::time::Duration;

use crate::Time;
use crate::name::{ExecutionId, ScheduleId, Uid};
use crate::triage::FailureSeen;

/// One step of a triage.
#[derive(Clone, Debug, PartialEq)]
pub struct TriageStep {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The name of the child that it is about.
    pub of: Box<str>,
    /// The step.
    pub does: TriageDoes,
}

/// What a step of a triage does.
#[derive(Clone, Debug, PartialEq)]
pub enum TriageDoes {
    /// Reads live the evidence for an analyst. Changes nothing.
    Gather(Box<Gather>),
    /// Creates the execution that analyses. Preconditions: the schedule, read live, has this uid and generation and
    /// analyses this child, and the name of the execution is absent.
    Analyse(Box<Analyse>),
    /// Reads live the verdict of an analyst that completed. Changes nothing.
    ReadVerdict(ExecutionId),
}

/// The facts about a schedule for its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// Its target.
    pub target: Box<str>,
    /// How many failures there are in a row.
    pub failure_count: u32,
    /// When it succeeded last.
    pub last_success: Option<Time>,
    /// The open circuits.
    pub open_circuits: Vec<Box<str>>,
    /// The time-out of an execution whose template has none.
    pub default_timeout: Duration,
    /// The failed children to read, the newest first, by slot and uid; at most
    /// [`MOST_FAILURES`](crate::triage::MOST_FAILURES).
    pub children: Vec<(Time, Uid)>,
    /// The last failure, if the API server refused that child.
    pub refused: Option<FailureSeen>,
}

/// An execution that analyses.
#[derive(Clone, Debug, PartialEq)]
pub struct Analyse {
    /// The generation of the schedule that was judged.
    pub generation: i64,
    /// Until when it may begin.
    pub start_before: Time,
    /// How long it may take.
    pub timeout: Duration,
    /// The evidence.
    pub evidence: Box<str>,
}

impl TriageDoes {
    /// Returns its name, for marks and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gather(_) => "gather evidence",
            Self::Analyse(_) => "create analyst",
            Self::ReadVerdict(_) => "read verdict",
        }
    }
}
