//! What is done for the triage of a schedule beside the writes to its status.

use std::time::Duration;

use crate::Time;
use crate::name::{ExecutionId, ScheduleId, Uid};
use crate::triage::FailureSeen;

/// One step of a triage.
#[derive(Clone, Debug, PartialEq)]
pub struct TriageStep {
    /// Of which schedule.
    pub schedule: ScheduleId,
    /// The name of the child that it is about.
    pub of: Box<str>,
    /// What is done.
    pub does: TriageDoes,
}

/// What a step of a triage does.
#[derive(Clone, Debug, PartialEq)]
pub enum TriageDoes {
    /// Reads live what an analyst is shown. Changes nothing.
    Gather(Box<Gather>),
    /// Creates the execution that analyses. Preconditions: the schedule, read live, has this uid and generation and
    /// analyses for this child, and the name of the execution is absent.
    Analyse(Box<Analyse>),
    /// Reads live what an analyst that completed has said. Changes nothing.
    ReadVerdict(ExecutionId),
}

/// What is known of a schedule when its evidence is gathered.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// Its target.
    pub target: Box<str>,
    /// How many failures there are in a row.
    pub failure_count: u32,
    /// When it succeeded last.
    pub last_success: Option<Time>,
    /// The circuits that are open.
    pub open_circuits: Vec<Box<str>>,
    /// The time-out of an execution whose template has none.
    pub default_timeout: Duration,
    /// The failed children that are read, the newest first, by their slots and uids; not more than
    /// [`MOST_FAILURES`](crate::triage::MOST_FAILURES).
    pub children: Vec<(Time, Uid)>,
    /// The last failure, where the API server refused that child.
    pub refused: Option<FailureSeen>,
}

/// An execution that analyses.
#[derive(Clone, Debug, PartialEq)]
pub struct Analyse {
    /// The generation of the schedule that the decision rests on.
    pub generation: i64,
    /// Until when it may begin.
    pub start_before: Time,
    /// How long it may take.
    pub timeout: Duration,
    /// What it is shown.
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
