//! Invariant 17: the number of targets with unfinished work does not exceed a limit. Unfinished work is a released run,
//! or an object that was made for it.
//!
//! The recording must be from one leader. A later leader's run may exceed the limit, because it is counted only when
//! that leader sees it.

use super::Finding;
use crate::Evidence;
use crate::history::{History, Run};
use crate::policy::Limit;
use crate::report::{Counts, Moment, Violation};

/// The kind of target that analyses have. No limit applies to it.
const OF_ANALYSES: &str = "workflowexecution";

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    let limits = evidence.options.policy.iter().flat_map(|policy| &policy.limits.0);
    limits.flat_map(|limit| judge_limit(evidence, limit)).collect()
}

fn judge_limit(evidence: &Evidence<'_>, limit: &Limit) -> Vec<Violation> {
    let history = &evidence.history;
    let matching = history.runs.values().filter(|run| matches(limit, run, &history.target_of(run)));
    let mut changes: Vec<(Moment, bool, &Run<'_>)> = Vec::new();
    for run in matching {
        let Some(released) = run.released else { continue };
        let free = free(history, run);
        if free.is_some_and(|free| free <= released) {
            continue;
        }
        changes.push((released, true, run));
        changes.extend(free.map(|free| (free, false, run)));
    }
    changes.sort_by_key(|(at, begins, _)| (*at, *begins));
    let (mut running, mut found) = (0_u32, Vec::new());
    for (at, begins, run) in changes {
        if !begins {
            running -= 1;
            continue;
        }
        running += 1;
        if running > limit.max_running {
            let text = format!(
                "{} was released as one of {running}, and limit {} allows {}",
                run.object, limit.name, limit.max_running
            );
            found.push(Finding::new(17, "limit", text).on(history.target_of(run), vec![run.object.clone()], &[at]));
        }
    }
    found
}

/// Returns the moment from which nothing of a run was left.
fn free(history: &History<'_>, run: &Run<'_>) -> Option<Moment> {
    let mut free = run.over()?;
    for piece in history.pieces_of(run) {
        free = free.max(piece.over?);
    }
    Some(free)
}

fn matches(limit: &Limit, run: &Run<'_>, target: &str) -> bool {
    let parts: Vec<&str> = target.split('/').collect();
    let (namespace, kind) = match parts[..] {
        [kind, _] => (None, kind),
        [namespace, kind, _] => (Some(namespace), kind),
        _ => return false,
    };
    kind != OF_ANALYSES
        && limit.kind.as_deref().is_none_or(|wanted| wanted == kind)
        && (limit.namespace.is_none() || limit.namespace.as_deref() == namespace)
        && (limit.workflow_id.is_none() || limit.workflow_id.as_deref() == run.workflow_id)
}
