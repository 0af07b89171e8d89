//! Removals of executions: only after their time to live, and only if nothing depends on them (section 3.1).

use wfe_api::Phase;

use super::Flaw;
use crate::Evidence;
use crate::history::{Execution, LastRun, phase, planned_from, text};
use crate::input::Request;
use crate::moment::{seconds, seconds_of};
use crate::report::Moment;

/// Checks that a removal names the execution by uid, and the version in which it was over.
pub(super) fn judge(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    // For a request that was refused early, the log contains no body.
    if request.request.is_null() && !(request.succeeded() && request.has_bodies()) {
        return None;
    }
    let precondition = |name: &str| text(&request.request, &format!("/preconditions/{name}"));
    let Some(uid) = precondition("uid").filter(|_| precondition("resourceVersion").is_some()) else {
        return Some(("delete", "removed an execution without its uid and version as preconditions".to_owned()));
    };
    let execution = evidence.history.executions.get(uid).filter(|_| request.succeeded())?;
    judge_time(evidence, execution, &request.received_at).map(|what| ("removed-early", what.to_owned()))
}

/// Checks that the time to live was over, and that nothing depended on the execution on one of the possible views. All
/// executions come from one watch, so a view is the state at some moment between the version in the removal and the
/// removal.
fn judge_time(evidence: &Evidence<'_>, execution: &Execution<'_>, removed_at: &str) -> Option<&'static str> {
    let gone = execution.gone?;
    let status = execution.at(gone);
    if !phase(status).is_some_and(Phase::is_terminal) {
        return Some("removed an execution that was not over");
    }
    // Without this field, the operator's configuration decides, which is unknown here.
    let ttl = execution.object_at(gone).pointer("/spec/ttlSecondsAfterFinished").and_then(serde_json::Value::as_i64);
    let lived = seconds_of(removed_at).zip(seconds(status, "/completionTime")).map(|(removed, ended)| removed - ended);
    if ttl.zip(lived).is_some_and(|(ttl, lived)| lived < ttl) && !is_expendable(evidence, execution, gone) {
        return Some("removed an execution before its time to live was over");
    }
    if is_unrecorded(evidence, execution, gone) {
        return Some("removed a child whose outcome its schedule had not recorded");
    }
    let others: Vec<&Execution<'_>> = {
        let all = evidence.history.executions.values();
        all.filter(|other| other.object.uid != execution.object.uid && other.target == execution.target).collect()
    };
    let oldest = execution.version_before(gone);
    let since = others.iter().flat_map(|other| other.changes()).filter(|at| oldest < *at && *at < gone);
    let mut views: Vec<Moment> = since.chain([oldest]).collect();
    views.sort_unstable();
    let mut flaws = views.into_iter().rev().map(|view| rests_on(execution, &others, view));
    // The newest view shows the fault best.
    let newest = flaws.next().flatten()?;
    flaws.all(|flaw| flaw.is_some()).then_some(newest)
}

/// Returns whether a child is beyond the history of its schedule: whether enough newer children had ended in the same
/// way.
fn is_expendable(evidence: &Evidence<'_>, execution: &Execution<'_>, gone: Moment) -> bool {
    let Some(child) = execution.child else { return false };
    let Some(schedule) = evidence.history.schedules.get(child.schedule) else { return false };
    let is_completed = |other: &Execution<'_>| phase(other.at(gone)) == Some(Phase::Completed);
    let mine = is_completed(execution);
    let newer = evidence.history.executions.values().filter(|other| {
        let is_over = phase(other.at(gone)).is_some_and(Phase::is_terminal);
        let is_newer = other.child.is_some_and(|other| other.slot > child.slot);
        is_newer && is_over && other.is_sibling_of(execution) && is_completed(other) == mine
    });
    // Another child of this history may have been removed since the view on which this removal is based.
    let newer = u64::try_from(newer.count()).unwrap_or(u64::MAX);
    let field = if mine { "successful" } else { "failed" };
    let limit = |object: &serde_json::Value| object["spec"]["history"][field].as_u64().unwrap_or(3);
    schedule.versions.iter().any(|(_, object)| newer >= limit(object))
}

/// Returns whether the schedule of a child exists but has never recorded the child's outcome.
fn is_unrecorded(evidence: &Evidence<'_>, execution: &Execution<'_>, gone: Moment) -> bool {
    let Some(child) = execution.child else { return false };
    let schedule = evidence.history.schedules.get(child.schedule).filter(|it| !it.object_at(gone).is_null());
    let is_recorded = |status: &serde_json::Value| {
        let is_over = |last: LastRun<'_>| last.slot > child.slot || last.slot == child.slot && last.outcome.is_some();
        let is_old = planned_from(status).is_some_and(|since| child.slot <= since);
        is_old || LastRun::read(status).is_some_and(is_over)
    };
    schedule.is_some_and(|it| !it.written.iter().any(|written| written.at < gone && is_recorded(written.status)))
}

/// Returns what depended on an execution at a moment: it was the newest of its target, or it blocked the target.
fn rests_on(execution: &Execution<'_>, others: &[&Execution<'_>], at: Moment) -> Option<&'static str> {
    let others = || others.iter().filter(|other| other.exists_at(at));
    let ended = |other: &Execution<'_>| text(other.at(at), "/completionTime").map(str::to_owned);
    let mine = ended(execution);
    if !others().any(|other| ended(other) >= mine) {
        return Some("removed the newest execution of a target");
    }
    let status = execution.at(at);
    let ran = status.pointer("/failureDetails/wasExecutionFailure") == Some(&serde_json::Value::Bool(true));
    let cleared = |other: &Execution<'_>| other.object_at(at).pointer("/spec/clearance").is_some();
    let mends = |other: &Execution<'_>| phase(other.at(at)) == Some(Phase::Completed) || cleared(other);
    let mended = cleared(execution) || others().any(|other| mends(other) && ended(other) >= mine);
    (ran && !mended).then_some("removed an execution that blocked its target")
}
