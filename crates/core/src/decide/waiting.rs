//! Says in the status what an execution waits for, so that an empty phase never puzzles anyone (SPEC section 14).

use std::time::Duration;

use crate::Time;
use crate::action::{Action, Decision, Waiting};
use crate::execution::ExecutionState;
use crate::moment::after;
use crate::target::Target;

/// How long an execution may wait before its status says so. Counted from when this process first saw it wait: after a
/// restart among thousands of undecided ones, the wait is not told of each before its turn has come.
const SHOW_AFTER: Duration = Duration::from_secs(10);

/// Decides on a target that cannot be seen: nothing, but for saying so.
#[must_use]
pub fn decide_blind(target: &Target, why: &str, now: Time) -> Decision {
    let mut decision = Decision::default();
    for execution in target.executions.values() {
        if matches!(execution.state, ExecutionState::Undecided { .. }) {
            decision.waiting.push((execution.id.clone(), Waiting::Blind(why.into())));
        }
    }
    show(target, now, &mut decision);
    decision
}

/// Adds the status writes for those that have waited long enough and whose status does not say what for.
pub(super) fn show(target: &Target, now: Time, decision: &mut Decision) {
    for execution in target.executions.values().filter(|execution| execution.deleting) {
        if matches!(execution.state, ExecutionState::Undecided { .. }) {
            decision.waiting.push((execution.id.clone(), Waiting::Deleting));
        }
    }
    if let Some(trouble) = &target.trouble {
        let tries = decision.actions.iter().flat_map(|action| match action {
            Action::Create { execution, .. } | Action::Commit { execution, .. } => vec![execution.clone()],
            Action::Skip { skipped, .. } => skipped.iter().map(|(execution, _)| execution.clone()).collect(),
            _ => Vec::new(),
        });
        let waiting = tries.map(|execution| (execution, Waiting::ApiErrors(trouble.clone())));
        decision.waiting.extend(waiting.collect::<Vec<_>>());
    }
    let waiting = decision.waiting.clone();
    for (id, waiting) in waiting {
        let Some(execution) = target.executions.get(&id.uid) else { continue };
        if execution.waiting_shown.as_deref() == Some(waiting.reason()) {
            continue;
        }
        let due = after(execution.waits_since.unwrap_or(now), SHOW_AFTER);
        if now < due {
            decision.wake_at(due);
        } else {
            let (execution, version) = (execution.id.clone(), execution.version.clone());
            decision.actions.push(Action::ShowWaiting { execution, version, waiting });
        }
    }
}
