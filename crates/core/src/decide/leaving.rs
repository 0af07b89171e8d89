//! Follows runs that are deleted while they run and that a finalizer holds.
//!
//! Tekton does not reconcile such a run: it creates and stops no tasks, and never reports that the run is done. Running
//! tasks continue until their own time-outs. The run is over when none of its tasks and pods is left.

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision};
use crate::moment::after;
use crate::target::Target;

/// How long the tasks and pods of the run must have been out of view before a live read searches for them. Tekton may
/// have been about to create a task when the deletion began, and the watches of tasks and pods may be behind.
pub(in crate::decide) const BARE: Duration = Duration::from_secs(30);

/// Requests the live reads that are due.
pub(super) fn see_to(target: &Target, now: Time, decision: &mut Decision) {
    for run in target.runs.values().filter(|run| run.is_leaving()) {
        let Some(stop) = run.stop.as_deref().filter(|_| target.is_bare(run)) else { continue };
        let seen = [stop.deleted_at, stop.bare_since, run.memory.diagnosed.as_ref().map(|look| look.at)];
        // For a run without visible tasks and pods, the time counts from the decision that first notices it.
        let since = seen.into_iter().flatten().max().filter(|_| stop.bare_since.is_some()).unwrap_or(now);
        let due = after(since, BARE);
        if due <= now {
            decision.actions.push(Action::Examine { run: run.id.clone() });
        } else {
            decision.wake_at(due);
        }
    }
}
