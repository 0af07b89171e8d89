//! Tables of views with the decisions on them, one file for each subject. This file contains the shared builders.

mod attempts;
mod blocked;
mod cancelling;
mod deadlines;
mod draining;
mod ended;
mod expire;
mod failures;
mod guard;
mod history;
mod leaving;
mod leftovers;
mod limits;
mod look;
mod progress;
mod properties;
mod rivals;
mod schedules;
mod steps;
mod waiting;

use super::advance::{DRAIN, MAX_SKEW, SETTLE};
use super::*;
use crate::action::{Action, Announce, Change, Ending, RunChange, Unneeded, Write};
use crate::ending::{Conflict, Skip};
use crate::execution::{ExecutionState, Lost};
use crate::name::{Uid, Version};
use crate::reason::{FailureReason, Refusal};
use crate::residue::Residue;
use crate::run::{CancelReason, Order, Outcome, Owner, Presence, Progress};
use crate::testing::*;
use crate::verdict::Fact;
use crate::waiting::Waiting;
use proptest::prelude::*;
use std::time::Duration;

/// Returns the actions except those on the condition `Blocked`, which has its own table.
fn actions(target: &Target) -> Vec<Action> {
    let mut actions = decide(target, &Policy::default(), at(50)).actions;
    actions.retain(|action| !matches!(action, Action::Write(Write { says: Says::Blocked(_), .. })));
    actions
}

fn waiting(target: &Target) -> Vec<(String, Waiting)> {
    decide(target, &Policy::default(), at(50))
        .waiting
        .into_iter()
        .map(|(id, waiting)| (id.uid.to_string(), waiting))
        .collect()
}

/// Returns the wait for the turn of another execution.
fn behind(uid: &str) -> Waiting {
    Waiting::Turn(Box::new(id(uid)))
}

fn create(uid: &str, number: u64) -> Action {
    Action::Create { execution: id(uid), number, at_most: None }
}

fn written(uid: &str, facts: Vec<Fact>, says: Says) -> Action {
    Action::Write(Write { execution: id(uid), version: Version::new("v"), facts, says })
}

fn committed(uid: &str, run: &str, number: u64, gone: &[&str]) -> Action {
    let mut facts: Vec<Fact> = gone.iter().map(|uid| Fact::OwnerGone(id(uid))).collect();
    if number > 1 {
        facts.push(Fact::Drained(id(uid)));
    }
    written(uid, facts, Says::Running { run: run_id(run), number, consecutive_failures: 0 })
}

fn gives_up(uid: &str, number: u64) -> Action {
    written(uid, vec![], Says::GaveUp { number })
}

fn releases(run: &str) -> Action {
    Action::Change(Change { run: run_id(run), facts: vec![], to: RunChange::Released })
}

fn cancels(run: &str, why: CancelReason) -> Action {
    Action::Change(Change { run: run_id(run), facts: vec![], to: RunChange::Cancelled(why) })
}

/// Returns the failure in a decision whose only action is to record it.
fn only_failure(actions: &[Action]) -> &crate::ending::Failure {
    match actions {
        [Action::Write(Write { says: Says::Ended { ending: Ending::Failed(failure), .. }, .. })] => failure,
        other => panic!("{other:?}"),
    }
}

fn deleted(run: &str, why: Unneeded, gone: Option<&str>) -> Action {
    let mut facts: Vec<Fact> = gone.map(|owner| Fact::OwnerGone(id(owner))).into_iter().collect();
    if why == Unneeded::Expired {
        facts.push(Fact::NothingLeft(run_id(run)));
    }
    Action::Change(Change { run: run_id(run), facts, to: RunChange::Deleted { version: Version::new("rv"), why } })
}
