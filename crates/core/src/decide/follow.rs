//! Follows the runs that no watch delivers any more, because somebody took our label off: they are read live.

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision};
use crate::moment::after;
use crate::target::Target;

/// How often such a run is read: often enough to end its execution soon, and one request in ten seconds for each.
pub(in crate::decide) const EVERY: Duration = Duration::from_secs(10);

/// Asks for the reads that are due.
pub(super) fn follow(target: &Target, now: Time, decision: &mut Decision) {
    for run in target.runs.values() {
        let Some(read_at) = run.unwatched.as_deref() else { continue };
        let due = after(*read_at, EVERY);
        if due <= now {
            decision.actions.push(Action::Follow { run: run.id.clone() });
        } else {
            decision.wake_at(due);
        }
    }
}
