//! Tables of views and what is decided on them, by subject; here are the builders that all share.

mod deadlines;
mod draining;
mod failures;
mod leftovers;
mod look;
mod properties;
mod rivals;
mod steps;
mod waiting;

use super::advance::{MAX_SKEW, SETTLE};
use super::*;
use crate::ending::Conflict;
use crate::execution::Cancellation;
use crate::name::{RunId, Uid, Version};
use crate::residue::{Residue, ResidueId, ResidueKind};
use crate::run::{CancelReason, Order, Outcome, Progress};
use proptest::prelude::*;

fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn id(uid: &str) -> ExecutionId {
    ExecutionId { namespace: "ops".into(), name: format!("wfe-{uid}").into(), uid: Uid::new(uid) }
}

fn run_id(uid: &str) -> RunId {
    RunId { name: format!("run-{uid}").into(), uid: Uid::new(uid) }
}

fn execution(uid: &str, state: ExecutionState) -> Execution {
    Execution { workflow_id: "wf".into(), state, ..Execution::undecided(id(uid), Version::new("v"), at(0)) }
}

fn undecided(uid: &str) -> Execution {
    Execution { workflow_id: "wf".into(), ..Execution::undecided(id(uid), Version::new("v"), at(0)) }
}

fn unusable(why: &str) -> ExecutionState {
    ExecutionState::Undecided { unusable: Some(why.into()), refusal: None, first_try: None, start_before: None }
}

fn running(uid: &str, run: &str) -> Execution {
    execution(uid, ExecutionState::Running { run: Some(run_id(run)), started_at: Some(at(0)) })
}

fn failed(uid: &str) -> Execution {
    execution(uid, ExecutionState::Failed { reason: FailureReason::Unknown })
}

/// A run `r<number>` of the chain, delivered in the order of its number.
fn run(number: u64, owner: &str, progress: Progress) -> Run {
    Run {
        id: run_id(&format!("r{number}")),
        number,
        version: Version::new("rv"),
        created: at(1),
        order: Order(number),
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        progress,
        cancelled: false,
        cancel_reason: None,
        started: false,
        done_seen: None,
    }
}

/// A pod of an execution that is not finished.
fn pod(owner: &str) -> Residue {
    Residue {
        id: ResidueId { kind: ResidueKind::Pod, name: "pod".into(), uid: Uid::new("pod") },
        owner: Owner::Execution { id: id(owner), workflow_id: "wf".into(), presence: Presence::Watched },
        created: at(5),
    }
}

fn left(mut target: Target, residue: Residue) -> Target {
    target.residue.insert(residue.id.uid.clone(), residue);
    target
}

fn done(succeeded: bool) -> Progress {
    Progress::Done(Outcome { succeeded, reason: "R".into(), message: "m".into(), completed_at: Some(at(40)) })
}

fn target(executions: Vec<Execution>, runs: Vec<Run>) -> Target {
    Target {
        executions: executions.into_iter().map(|execution| (execution.id.uid.clone(), execution)).collect(),
        runs: runs.into_iter().map(|run| (run.id.uid.clone(), run)).collect(),
        ..Target::default()
    }
}

fn actions(target: &Target) -> Vec<Action> {
    decide(target, &Policy::default(), at(50)).actions
}

fn waiting(target: &Target) -> Vec<(String, Waiting)> {
    decide(target, &Policy::default(), at(50))
        .waiting
        .into_iter()
        .map(|(id, waiting)| (id.uid.to_string(), waiting))
        .collect()
}

fn create(uid: &str, number: u64) -> Action {
    Action::Create { execution: id(uid), number }
}

fn committed(uid: &str, run: &str, number: u64, gone: &[&str]) -> Action {
    Action::Commit {
        execution: id(uid),
        version: Version::new("v"),
        run: run_id(run),
        number,
        started_at: at(50),
        gone: gone.iter().map(|uid| id(uid)).collect(),
    }
}

fn deleted(run: &str, why: Unneeded, gone: Option<&str>) -> Action {
    Action::Delete { run: run_id(run), version: Version::new("rv"), why, gone: gone.map(id) }
}
