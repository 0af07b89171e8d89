//! An execution with a retry policy holds its target from its first run to its end, even while it waits between two
//! attempts. No run of another execution is released meanwhile.

use std::collections::BTreeSet;

use wfe_api::Phase;

use super::{Finding, clash};
use crate::history::{Execution, History, Run, phase, text};
use crate::report::{Moment, Violation};

/// Judges the runs of a chain, which are in the order of their creation.
pub(super) fn judge(history: &History<'_>, runs: &[&Run<'_>]) -> Vec<Violation> {
    let mut released: Vec<(Moment, &Run<'_>)> = runs.iter().filter_map(|run| Some((run.released?, *run))).collect();
    released.sort_by_key(|(at, _)| *at);
    let mut holders: Vec<(Moment, &Execution<'_>)> = Vec::new();
    let (mut found, mut reported) = (Vec::new(), BTreeSet::new());
    for (at, run) in released {
        for (since, holder) in &holders {
            let is_told = || {
                let own = runs.iter().filter(|own| own.owner == holder.object.uid);
                own.into_iter().any(|own| clash(history, own, run).is_some())
            };
            // If two executions are in conflict several times, only the first release is a violation.
            let mut pair = [run.owner, holder.object.uid.as_str()];
            pair.sort_unstable();
            if run.owner != holder.object.uid && holds(history, holder, at) && reported.insert(pair) && !is_told() {
                let text = format!("{} was released while {} held the target", run.object, holder.object);
                let objects = vec![run.object.clone(), holder.object.clone()];
                found.push(Finding::new(1, "held", text).on(history.target_of(run), objects, &[at, *since]));
            }
        }
        let is_new = |owner: &&Execution<'_>| holders.iter().all(|(_, holder)| holder.object.uid != owner.object.uid);
        holders
            .extend(history.owner(run).filter(|owner| owner.retry.is_some()).filter(is_new).map(|owner| (at, owner)));
    }
    found
}

/// Returns whether an execution holds its target at a moment. It does if one of its runs was released, it has not
/// ended, and its current run still exists.
fn holds(history: &History<'_>, holder: &Execution<'_>, at: Moment) -> bool {
    let status = holder.at(at);
    let run = text(status, "/pipelineRunRef/uid").and_then(|uid| history.runs.get(uid));
    let is_there = run.is_some_and(|run| run.gone.is_none_or(|gone| at < gone));
    holder.exists_at(at) && phase(status) == Some(Phase::Running) && is_there
}
