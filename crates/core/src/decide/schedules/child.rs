//! The child that a schedule would create: the rules judge it before it exists.

use super::Case;
use crate::Time;
use crate::bundle::Bundle;
use crate::ending::Skip;
use crate::execution::Execution;
use crate::name::{ExecutionId, Version};
use crate::rules::{self, Contender};
use crate::schedule::{ChildOf, Retention, child_name};

/// Returns what would block a child at a future time, according to what is known now.
pub(super) fn block_at(case: Case<'_>, time: Time) -> Option<Skip> {
    let Case { view, .. } = case;
    let child = child_of(case);
    let (target, history, policy) = (view.target, view.history, view.policy);
    rules::block(&Contender { target, running: &[], history, execution: &child, run: None, policy, now: time })
}

/// Returns the child that the schedule would create now.
pub(super) fn child_of(case: Case<'_>) -> Execution {
    let schedule = case.schedule;
    let id = ExecutionId {
        namespace: schedule.id.namespace.clone(),
        name: child_name(&schedule.id.name, case.slot()).into(),
        // The child has no uid yet; this one differs from those of all executions.
        uid: schedule.id.uid.clone(),
    };
    let child =
        ChildOf { schedule: schedule.id.uid.clone(), slot: case.slot(), analyses: false, keep: Retention::Needed };
    Execution {
        origin: schedule.origin.clone(),
        workflow_id: schedule.workflow_id.clone(),
        bundle: Bundle::default(),
        paused: schedule.paused.clone(),
        child: Some(Box::new(child)),
        ..Execution::undecided(id, Version::new(""), case.view.now)
    }
}
