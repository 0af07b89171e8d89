//! Tables of views and what is decided on them, by subject; here are the builders that all share.

mod blocked;
mod deadlines;
mod draining;
mod ended;
mod expire;
mod failures;
mod history;
mod leftovers;
mod look;
mod progress;
mod properties;
mod rivals;
mod steps;
mod waiting;

use super::advance::{DRAIN, MAX_SKEW, PATIENCE, SETTLE};
use super::*;
use crate::action::{Ending, Unneeded};
use crate::ending::{Conflict, Skip};
use crate::execution::{Cancellation, ExecutionState, Lost};
use crate::name::{Uid, Version};
use crate::reason::{FailureReason, Refusal};
use crate::residue::Residue;
use crate::run::{CancelReason, Order, Outcome, Owner, Presence, Progress};
use crate::testing::*;
use crate::verdict::Fact;
use crate::waiting::Waiting;
use proptest::prelude::*;
use std::time::Duration;

/// What is done, but for the condition `Blocked`, which has a table of its own.
fn actions(target: &Target) -> Vec<Action> {
    let mut actions = decide(target, &Policy::default(), at(50)).actions;
    actions.retain(|action| !matches!(action, Action::ShowBlocked { .. }));
    actions
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
    let mut facts: Vec<Fact> = gone.iter().map(|uid| Fact::OwnerGone(id(uid))).collect();
    if number > 1 {
        facts.push(Fact::Drained(id(uid)));
    }
    Action::Commit {
        execution: id(uid),
        version: Version::new("v"),
        run: run_id(run),
        number,
        started_at: at(50),
        consecutive_failures: 0,
        facts,
    }
}

fn gives_up(uid: &str, number: u64) -> Action {
    Action::GiveUp { execution: id(uid), version: Version::new("v"), number }
}

fn deleted(run: &str, why: Unneeded, gone: Option<&str>) -> Action {
    let facts = gone.map(|owner| Fact::OwnerGone(id(owner))).into_iter().collect();
    Action::Delete { run: run_id(run), version: Version::new("rv"), why, facts }
}
