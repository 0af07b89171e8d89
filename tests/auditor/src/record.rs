//! The record of a target at a moment: the executions that had ended, as their objects showed them.
//!
//! Rules 2 to 5 of section 6 and the counter of section 7 read only this record. It is built from the recording alone,
//! and shares no code with the operator's own history.

use std::collections::BTreeMap;

use serde_json::Value;
use wfe_api::{FailureReason, Phase, conditions};
use wfe_core::target::TargetName;

use crate::history::{Execution, History, Run, phase};
use crate::moment::{Seconds, seconds};
use crate::report::Moment;

/// All executions of a target in the recording.
pub(crate) struct Ledger<'e> {
    executions: Vec<&'e Execution<'e>>,
}

/// The executions of a target that had ended and still existed at a moment, oldest first.
pub(crate) struct Record<'e> {
    pub(crate) all: Vec<Past<'e>>,
}

/// One ended execution.
pub(crate) struct Past<'e> {
    pub(crate) execution: &'e Execution<'e>,
    pub(crate) end: End,
    /// The value of `completionTime`.
    pub(crate) ended: Option<Seconds>,
    /// The value of `failedAt`. Backoff and quiet time count from it.
    pub(crate) failed: Option<Seconds>,
    pub(crate) next_allowed: Option<Seconds>,
    pub(crate) clearance: Clearance,
    /// The value of `status.runSequence`.
    number: Option<u64>,
}

/// How an execution ended, as far as it matters for later executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// The execution failed after something ran, or may have run.
    ExecutionFailure,
    /// The execution failed before anything ran.
    PreExecutionFailure,
    /// The execution failed before anything ran, in an outage that many targets share (section 13.5). The next
    /// execution waits for this failure, but it does not count.
    SharedFailure,
    /// The execution failed before anything ran, and does not count (section 7). It was decided after its
    /// `startBefore`, a person cancelled it, or it analysed a failure. Or a schedule made it, which paces itself
    /// (section 12.6).
    Uncounted,
}

/// The clearance of a failure, and its effect according to the status (section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearance {
    None,
    /// The status does not show the effect of the clearance yet.
    New,
    Effective,
    Ineffective,
    /// No policy guards the clearance, and it does not count at present (section 17).
    Unguarded,
}

// === impl Ledger ===

impl<'e> Ledger<'e> {
    /// Opens a ledger for each target. If the executions of some runs on a target are not recorded, its history is
    /// unknown and it gets no ledger.
    pub(crate) fn open(history: &'e History<'e>) -> BTreeMap<&'e TargetName, Self> {
        let mut all: BTreeMap<&TargetName, Self> = BTreeMap::new();
        for execution in history.executions.values() {
            if let Some(target) = &execution.target {
                all.entry(target).or_insert(Self { executions: Vec::new() }).executions.push(execution);
            }
        }
        let unknown = history.runs.values().filter(|run| history.owner(run).is_none() && !history.covers_owner_of(run));
        for run in unknown {
            all.retain(|target, _| target.chain() != run.chain.name);
        }
        all
    }

    pub(crate) fn executions(&self) -> impl Iterator<Item = &'e Execution<'e>> {
        self.executions.iter().copied()
    }

    /// Returns the oldest view of executions on which a status write may be based: the version in its precondition.
    ///
    /// The view of a commit also contains the end of every execution that had committed to an earlier run. The operator
    /// sees these runs and waits for their owners (section 5.1). An owner that is gone is in no record.
    pub(crate) fn oldest_view(&self, history: &History<'_>, execution: &Execution<'_>, write: Moment) -> Moment {
        let own = execution.version_before(write);
        let commit = execution.commits.iter().find(|commit| commit.at == write);
        let Some(mine) = commit.and_then(|commit| history.runs.get(commit.run)) else { return own };
        let came_first = |run: &Run<'_>| run.chain == mine.chain && run.created < mine.created;
        let had_turn_before = |other: &&Execution<'_>| {
            other.commits.iter().any(|commit| history.runs.get(commit.run).is_some_and(came_first))
        };
        let owners = self.executions().filter(|other| other.exists_at(write)).filter(had_turn_before);
        let ends = owners.filter_map(Execution::ended).map(|ended| ended.at);
        ends.filter(|ended| *ended < write).fold(own, Moment::max)
    }

    /// Lists the views on which a write may be based, from the oldest to the last before the write. Each view is a
    /// moment.
    ///
    /// All executions come from one watch, in the order of their changes. An operator's view is therefore the true
    /// state at some moment, which is no earlier than the version in the write's precondition.
    pub(crate) fn views(&self, oldest: Moment, write: Moment) -> Vec<Moment> {
        let is_between = |at: &Moment| oldest < *at && *at < write;
        let in_history = |execution: &'e Execution<'e>| {
            execution.changes().filter(is_between).filter(|at| has_ended(execution.at(*at)))
        };
        let mut moments: Vec<Moment> = self.executions().flat_map(in_history).collect();
        moments.push(oldest);
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// Returns the record at a moment.
    pub(crate) fn at(&self, moment: Moment) -> Record<'e> {
        let there = self.executions().filter(|execution| execution.exists_at(moment));
        let mut all: Vec<Past<'e>> = there.filter_map(|execution| Past::read(execution, moment)).collect();
        sort(&mut all);
        Record { all }
    }
}

// === impl Past ===

impl<'e> Past<'e> {
    /// Returns an execution as it was at a moment, if it had ended by then.
    pub(crate) fn read(execution: &'e Execution<'e>, moment: Moment) -> Option<Self> {
        let object = execution.object_at(moment);
        let status = &object["status"];
        if !has_ended(status) {
            return None;
        }
        let details = &status["failureDetails"];
        let number = status["runSequence"].as_u64();
        let end = if phase(status) == Some(Phase::Completed) {
            End::Completed
        } else if execution.analyses.is_some() {
            End::Uncounted
        } else if details["wasExecutionFailure"] != false {
            End::ExecutionFailure
        } else if is_cancelled(status) || execution.child.is_some() {
            End::Uncounted
        } else if number.is_none() && details["reason"] == FailureReason::DeadlineExceeded.as_str() {
            // The time-out of a run sets the same reason, but then there is a number (ADR 5).
            End::Uncounted
        } else if details["sharedOutage"] == true {
            End::SharedFailure
        } else {
            End::PreExecutionFailure
        };
        let (completed, failed) = (seconds(status, "/completionTime"), seconds(details, "/failedAt"));
        Some(Self {
            execution,
            end,
            ended: completed.or(failed),
            failed: failed.or(completed),
            next_allowed: seconds(status, "/nextAllowedExecution"),
            clearance: clearance(object),
            number,
        })
    }

    pub(crate) fn uid(&self) -> &'e str {
        &self.execution.object.uid
    }

    /// Returns whether something of the execution ran or may have run.
    pub(crate) fn ran(&self) -> bool {
        matches!(self.end, End::Completed | End::ExecutionFailure)
    }

    /// Returns whether nothing of the execution ran, and the next execution waits because of that.
    pub(crate) fn backs_off(&self) -> bool {
        matches!(self.end, End::PreExecutionFailure | End::SharedFailure)
    }

    /// Returns when the execution ended. If the time is unknown, the result is the time that allows fewer runs (ADR 5).
    /// A success is then as early as possible, because it excuses nothing, and a failure is as late as possible.
    fn place_in_time(&self) -> Seconds {
        self.ended.unwrap_or(if self.end == End::Completed { Seconds::MIN } else { Seconds::MAX })
    }
}

fn has_ended(status: &Value) -> bool {
    matches!(phase(status), Some(Phase::Completed | Phase::Failed))
}

/// Returns whether, according to its status, the execution was cancelled by a person.
pub(crate) fn is_cancelled(status: &Value) -> bool {
    let says_so = |it: &Value| it["type"] == conditions::SUCCEEDED && it["reason"] == conditions::CANCELLED;
    status["conditions"].as_array().is_some_and(|all| all.iter().any(says_so))
}

/// Returns the clearance of an execution. Only a failure can have one (section 10).
fn clearance(object: &Value) -> Clearance {
    let status = &object["status"];
    let is_ineffective =
        |condition: &Value| condition["type"] == conditions::CLEARANCE_INEFFECTIVE && condition["status"] == "True";
    let is_unguarded = |condition: &Value| {
        condition["type"] == conditions::UNGUARDED
            && condition["status"] == "True"
            && condition["reason"] == conditions::CLEARANCE_UNGUARDED
    };
    if !object["spec"]["clearance"].is_object() || phase(status) != Some(Phase::Failed) {
        Clearance::None
    } else if status["conditions"].as_array().is_some_and(|all| all.iter().any(is_ineffective)) {
        Clearance::Ineffective
    } else if status["conditions"].as_array().is_some_and(|all| all.iter().any(is_unguarded)) {
        Clearance::Unguarded
    } else if status["clearance"].is_object() {
        Clearance::Effective
    } else {
        Clearance::New
    }
}

/// Sorts executions (section 6) by `status.runSequence`, then completionTime, then uid. An execution without a number
/// comes after the runs that had ended by then (ADR 5).
fn sort(all: &mut [Past<'_>]) {
    let ends: Vec<(Seconds, u64)> = all.iter().filter_map(|past| Some((past.place_in_time(), past.number?))).collect();
    all.sort_by_cached_key(|past| {
        let time = past.place_in_time();
        let had_ended = ends.iter().filter(|(end, _)| *end <= time).map(|(_, number)| *number);
        let place = past.number.unwrap_or_else(|| had_ended.max().unwrap_or(0));
        (place, time, past.number.is_none(), past.uid().to_owned())
    });
}
