//! Records in the status what an execution waits for, so that an empty phase is never a puzzle (section 14).

use std::time::Duration;

use super::{View, contend};
use crate::Time;
use crate::action::{Action, Decision, Says, Write};
use crate::execution::{Execution, ExecutionState};
use crate::history::History;
use crate::moment::after;
use crate::name::{ExecutionId, Uid};
use crate::policy::Policy;
use crate::target::Target;
use crate::tries;
use crate::waiting::Waiting;

/// How long an execution may wait before its status shows it. The time counts from when this process first saw the
/// wait. After a restart with thousands of undecided executions, each one can get its turn before its wait is reported.
pub(super) const SHOW_AFTER: Duration = Duration::from_secs(10);

/// Decides on a target that the operator cannot see: it only writes what executions wait for, with one exception. The
/// start deadline still ends an execution whose run cannot be created because Tekton's kinds went missing, and the
/// tries continue to count. An execution is left out while the view lacks the last write to its status (`is_written`):
/// the API server would refuse another write.
///
/// No deadline ends a Running execution here, and neither does the `maxDuration` of its retries. One of its runs may
/// have been released without our seeing it, and ending the execution now would record that nothing ran.
#[must_use]
pub fn decide_blind(
    target: &Target,
    policy: &Policy,
    why: &str,
    is_written: impl Fn(&Uid) -> bool,
    now: Time,
) -> Decision {
    let mut decision = Decision::default();
    for execution in target.executions.values().filter(|execution| !is_written(&execution.id.uid)) {
        if matches!(execution.state, ExecutionState::Undecided { .. }) {
            let waiting = match &target.memory.trouble {
                Some(trouble) if contend::misses_tekton(execution, trouble) => trouble.waiting(),
                _ => Waiting::Blind(why.into()),
            };
            decision.waiting.push((execution.id.clone(), waiting));
        }
    }
    let history = History::of(target, policy, now);
    contend::fail_without_tekton(View { target, history: &history, policy, now }, &mut decision);
    show(target, policy, now, &mut decision);
    decision
}

/// Decides on a target while no watch has delivered this process's last write. Ten seconds after that write, the
/// operator begins to write what executions wait for, and does nothing else. Executions for which `is_written` returns
/// true are left out, as in [`decide_blind`].
#[must_use]
pub fn decide_unseen(
    target: &Target,
    policy: &Policy,
    (what, since): (&str, Time),
    is_written: impl Fn(&Uid) -> bool,
    now: Time,
) -> Decision {
    let mut decision = Decision::default();
    for execution in target.executions.values().filter(|execution| !is_written(&execution.id.uid)) {
        if matches!(execution.state, ExecutionState::Undecided { .. }) {
            decision.waiting.push((execution.id.clone(), Waiting::Unseen(what.into())));
        }
    }
    let due = after(since, SHOW_AFTER);
    if now < due {
        decision.wake_at(due);
    } else {
        show(target, policy, now, &mut decision);
    }
    decision
}

/// Adds the status writes for executions that have waited long enough and whose status does not show the wait.
pub(super) fn show(target: &Target, policy: &Policy, now: Time, decision: &mut Decision) {
    for execution in target.executions.values().filter(|execution| execution.deleting) {
        if matches!(execution.state, ExecutionState::Undecided { .. }) {
            decision.waiting.push((execution.id.clone(), Waiting::Deleting));
        }
    }
    if let Some(trouble) = &target.memory.trouble {
        let tries = decision.actions.iter().flat_map(|action| match action {
            Action::Create { execution, .. } | Action::Write(Write { execution, says: Says::Running { .. }, .. }) => {
                vec![execution.clone()]
            }
            Action::Skip { skipped, .. } => skipped.iter().map(|(execution, _)| execution.clone()).collect(),
            _ => Vec::new(),
        });
        // An execution between two attempts stays Running.
        let is_undecided = |id: &ExecutionId| target.executions.get(&id.uid).is_some_and(Execution::is_undecided);
        let waiting = tries.filter(is_undecided).map(|execution| (execution, trouble.waiting()));
        decision.waiting.extend(waiting.collect::<Vec<_>>());
    }
    let waiting = decision.waiting.clone();
    for (id, waiting) in waiting {
        let Some(execution) = target.executions.get(&id.uid) else { continue };
        let tried = execution.tried_for(now).filter(|_| waiting.is_tried());
        let due = if execution.waiting_shown.as_ref().is_none_or(|shown| *shown.reason != *waiting.reason()) {
            after(execution.recall().waits_since.unwrap_or(now), SHOW_AFTER)
        } else if let Some(tried) = tried {
            // The next process continues from the count in the status.
            let missing = shown(execution).saturating_add(tries::step(policy.start_deadline)).saturating_sub(tried);
            after(now, missing)
        } else {
            continue;
        };
        if now < due {
            decision.wake_at(due);
        } else {
            decision.actions.push(execution.says(Says::Waiting { waiting, tried }));
        }
    }
}

/// Returns for how long the operator has tried to create the run, according to the status.
fn shown(execution: &Execution) -> Duration {
    execution.waiting_shown.as_ref().map_or(Duration::ZERO, |shown| shown.tried)
}
