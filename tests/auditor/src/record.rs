//! What is on record of a target: its executions that have ended, as their objects said it at a moment.
//!
//! Rules 2 to 5 of section 6 and the counter of section 7 are read from nothing else. It is read from the recording
//! alone, and shares no code with the operator's own history.

use std::collections::BTreeMap;

use serde_json::Value;
use wfe_api::{FailureReason, Phase, conditions};
use wfe_core::target::TargetName;

use crate::history::{Execution, History, Run, phase};
use crate::moment::{Seconds, seconds};
use crate::report::Moment;

/// The executions of a target, over the whole recording.
pub(crate) struct Ledger<'e> {
    executions: Vec<&'e Execution<'e>>,
}

/// The executions of a target that had ended and were still there at a moment, oldest first.
pub(crate) struct Record<'e> {
    pub(crate) all: Vec<Past<'e>>,
}

/// One of them.
pub(crate) struct Past<'e> {
    pub(crate) execution: &'e Execution<'e>,
    pub(crate) end: End,
    /// `completionTime`.
    pub(crate) ended: Option<Seconds>,
    /// `failedAt`, from which backoff and quiet time are counted.
    pub(crate) failed: Option<Seconds>,
    pub(crate) next_allowed: Option<Seconds>,
    pub(crate) clearance: Clearance,
    /// `status.runSequence`.
    number: Option<u64>,
}

/// How an execution ended, as far as later ones are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// Something of it ran, or nobody can tell.
    ExecutionFailure,
    /// Nothing of it ran.
    PreExecutionFailure,
    /// Nothing of it ran, as of many others (section 13.5): the next one waits for it, and it does not count.
    SharedFailure,
    /// Nothing of it ran, and it does not count (section 7): it was decided later than its `startBefore`, or a person
    /// cancelled it, or a schedule made it, which paces itself (section 12.6). Or it analysed the failures of others.
    Uncounted,
}

/// What a person has said of a failure, and what its status says of that (section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearance {
    None,
    /// Not recorded yet.
    New,
    Effective,
    Ineffective,
    /// No policy guards it, so that it does not count now (section 17).
    Unguarded,
}

// === impl Ledger ===

impl<'e> Ledger<'e> {
    /// Opens a ledger for each target. A target of which runs were seen whose executions were not recorded has none:
    /// nobody knows its history.
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

    /// Returns the oldest view of executions that a status write may rest on: the one of the version that the write
    /// names as its precondition. Where it is a commit, and a run that was created before its own had been committed
    /// to, the view also has the end of that run's execution: the look shows the run, and waits for its owner (section
    /// 5.1). An owner that is gone is on no record.
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

    /// Lists the views that a write may rest on, each by its moment: from the oldest to the last one before the write.
    ///
    /// An operator sees all executions by one watch, which delivers every change in order (section 14). So its view is
    /// what was true at some moment, and that is not before the version that its write carries as a precondition.
    pub(crate) fn views(&self, oldest: Moment, write: Moment) -> Vec<Moment> {
        let is_history = |execution: &Execution<'_>, at: Moment| has_ended(execution.at(at));
        let mut moments: Vec<Moment> = self
            .executions()
            .flat_map(|execution| execution.changes().filter(move |at| is_history(execution, *at)))
            .filter(|at| oldest < *at && *at < write)
            .collect();
        moments.push(oldest);
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// Reads what was on record at a moment.
    pub(crate) fn at(&self, moment: Moment) -> Record<'e> {
        let there = self.executions().filter(|execution| execution.exists_at(moment));
        let mut all: Vec<Past<'e>> = there.filter_map(|execution| Past::read(execution, moment)).collect();
        sort(&mut all);
        Record { all }
    }
}

// === impl Past ===

impl<'e> Past<'e> {
    /// Reads an execution as it was at a moment, where it had ended.
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
            // A time-out has a run, and a run has a number (ADR 5).
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

    /// Returns whether something of it ran, or nobody can tell.
    pub(crate) fn ran(&self) -> bool {
        matches!(self.end, End::Completed | End::ExecutionFailure)
    }

    /// Returns whether nothing of it ran and the next one waits for that.
    pub(crate) fn backs_off(&self) -> bool {
        matches!(self.end, End::PreExecutionFailure | End::SharedFailure)
    }

    /// A time that is not known is taken for the one that lets less run (ADR 5): a success is as early as can be, so
    /// that it excuses nothing, and a failure as late as can be.
    fn place_in_time(&self) -> Seconds {
        self.ended.unwrap_or(if self.end == End::Completed { Seconds::MIN } else { Seconds::MAX })
    }
}

fn has_ended(status: &Value) -> bool {
    matches!(phase(status), Some(Phase::Completed | Phase::Failed))
}

/// Returns whether a status says that a person cancelled the execution.
pub(crate) fn is_cancelled(status: &Value) -> bool {
    let says_so = |it: &Value| it["type"] == conditions::SUCCEEDED && it["reason"] == conditions::CANCELLED;
    status["conditions"].as_array().is_some_and(|all| all.iter().any(says_so))
}

/// Only a failure can be cleared (section 10).
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

/// The order of executions (section 6): `status.runSequence`, then completionTime, then uid. One that never had a
/// number stands behind the runs that had ended when it did (ADR 5).
fn sort(all: &mut [Past<'_>]) {
    let ends: Vec<(Seconds, u64)> = all.iter().filter_map(|past| Some((past.place_in_time(), past.number?))).collect();
    all.sort_by_cached_key(|past| {
        let time = past.place_in_time();
        let had_ended = ends.iter().filter(|(end, _)| *end <= time).map(|(_, number)| *number);
        let place = past.number.unwrap_or_else(|| had_ended.max().unwrap_or(0));
        (place, time, past.number.is_none(), past.uid().to_owned())
    });
}
