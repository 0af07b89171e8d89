//! Sees to runs that are deleted while they run, and that a finalizer holds.
//!
//! Tekton reconciles no such run: it makes no task of it any more, stops none, and never says that the run is done. Its
//! tasks go on by themselves, to their own time-outs. When nothing of the run is left, the run is over.

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision};
use crate::moment::after;
use crate::target::Target;

/// How long nothing of the run must have been seen before it is looked for live: Tekton may have been about to make a
/// task when the deletion began, and the watches of tasks and pods may be behind.
pub(in crate::decide) const BARE: Duration = Duration::from_secs(30);

/// Asks for the looks that are due.
pub(super) fn see_to(target: &Target, now: Time, decision: &mut Decision) {
    for run in target.runs.values().filter(|run| run.is_leaving()) {
        let Some(stop) = run.stop.as_deref().filter(|_| target.is_bare(run)) else { continue };
        let seen = [stop.deleted_at, stop.bare_since, run.memory.diagnosed.as_ref().map(|look| look.at)];
        // One that this decision sees bare for the first time is so from now on.
        let since = seen.into_iter().flatten().max().filter(|_| stop.bare_since.is_some()).unwrap_or(now);
        let due = after(since, BARE);
        if due <= now {
            decision.actions.push(Action::Examine { run: run.id.clone() });
        } else {
            decision.wake_at(due);
        }
    }
}
