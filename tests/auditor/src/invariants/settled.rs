//! Invariant 6: after the faults have stopped, every execution becomes terminal, and nothing is left behind.

use wfe_api::Phase;

use super::Finding;
use crate::Evidence;
use crate::history::{Execution, History, LastRun, Run, Schedule, phase, planned_from};
use crate::report::{Counts, Violation};

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    if !evidence.options.settled {
        return Vec::new();
    }
    let history = &evidence.history;
    let mut found = Vec::new();
    for execution in history.executions.values().filter(|execution| execution.gone.is_none()) {
        let last = execution.last();
        if !phase(last).is_some_and(Phase::is_terminal) {
            let word = phase(last).map_or("no phase", Phase::as_str);
            let text = format!("{} has {word} at the end", execution.object);
            let since = execution.written.last().map_or(execution.created, |written| written.at);
            found.push(Finding::new(6, "undecided", text).about(execution, since));
        }
    }
    found.extend(history.runs.values().filter_map(|run| left(history, run)));
    found.extend(history.schedules.values().filter_map(|schedule| unrecorded(evidence, schedule)));
    found
}

/// Checks for an existing schedule that all its children and its last run have ended.
fn unrecorded(evidence: &Evidence<'_>, schedule: &Schedule<'_>) -> Option<Violation> {
    let status = &schedule.last()["status"];
    let (last, since) = (LastRun::read(status), planned_from(status)?);
    let ready = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
    if schedule.gone.is_some() || ready.is_some_and(|ready| ready["reason"] == "InvalidSpec") {
        return None;
    }
    let used = last.map_or(since, |last| last.slot.max(since));
    let of_it = |it: &&Execution<'_>| it.child.is_some_and(|child| child.schedule == schedule.object.uid);
    let mut children = evidence.history.executions.values().filter(of_it).filter(|it| it.gone.is_none());
    // Without a policy, a clock may be wrong. The slot of the child may then lie in the future, and the schedule is
    // right to wait.
    let late = children.find(|it| it.child.is_some_and(|child| child.slot > used));
    let late = late.filter(|_| evidence.options.policy.is_some());
    let what = match (late, last.filter(|last| last.outcome.is_none())) {
        (Some(child), _) => format!("{} has not recorded what came of {}", schedule.object, child.object),
        (None, Some(last)) => format!("{} has no outcome of slot {}", schedule.object, last.slot),
        (None, None) => return None,
    };
    let target = schedule.last()["spec"]["template"]["spec"]["targetResource"].as_str().unwrap_or_default();
    let at = schedule.written.last().map(|written| written.at)?;
    Some(Finding::new(6, "unrecorded", what).on(target.to_owned(), vec![schedule.object.clone()], &[at]))
}

/// Judges a run that exists and is unfinished at the end. If its owner is not terminal, that is already reported.
fn left(history: &History<'_>, run: &Run<'_>) -> Option<Violation> {
    if run.over().is_some() {
        return None;
    }
    let owner = history.owner(run).filter(|owner| owner.gone.is_none());
    let (rule, what) = match owner {
        Some(owner) if !phase(owner.last()).is_some_and(Phase::is_terminal) => {
            let is_other = owner.commits.last().is_some_and(|commit| commit.run != run.object.uid);
            let is_other = is_other && !owner.may_commit_to(run, owner.last());
            is_other.then_some(("leftover", "its owner is committed to another"))?
        }
        Some(_) if run.released.is_none() => ("leftover", "its owner has ended"),
        Some(_) => ("abandoned", "its owner has ended"),
        None if run.released.is_none() => ("leftover", "its owner is gone"),
        None if history.owner(run).is_some() || history.covers_owner_of(run) => ("abandoned", "its owner is gone"),
        None => return None,
    };
    let text = format!("{} is there and unfinished at the end, and {what}", run.object);
    let at = run.released.unwrap_or(run.created);
    Some(Finding::new(6, rule, text).on(history.target_of(run), vec![run.object.clone()], &[at]))
}
