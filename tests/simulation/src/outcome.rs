//! The outcome of a play.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::record::Record;

/// The outcome of a play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The violations. The list is empty if all invariants held.
    pub violations: Vec<String>,
    /// The hash of all requests, with their times, in hexadecimal digits.
    pub hash: String,
    /// How many requests the replicas sent.
    pub requests: u64,
    /// How many decisions the replicas made on a complete view.
    pub decisions: u64,
    /// How long the play took, in virtual time.
    pub took: Duration,
    /// How many times each kind of fault affected something.
    pub faults: BTreeMap<&'static str, u64>,
    /// How many times each event of the auditor's list happened.
    pub counts: BTreeMap<String, u64>,
    /// The final state of each execution: name, phase and reason. Schedules follow.
    pub executions: Vec<String>,
    /// One line for each request, if the record keeps lines.
    pub lines: Vec<String>,
}

impl Outcome {
    pub(crate) fn new(record: &Record, took: Duration, counts: BTreeMap<String, u64>, executions: Vec<String>) -> Self {
        let (requests, hash) = record.hash();
        Self {
            violations: record.violations(),
            hash,
            requests,
            decisions: record.decisions(),
            took,
            faults: record.faults(),
            counts,
            executions,
            lines: record.lines(),
        }
    }
}
