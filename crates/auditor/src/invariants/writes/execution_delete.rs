//! Removals of executions: of those whose time to live is over, and on which nothing rests (section 3.1).

use wfe_api::Phase;

use super::Flaw;
use crate::Evidence;
use crate::history::{Execution, phase, text};
use crate::input::Request;
use crate::record::{seconds, seconds_of};
use crate::report::Moment;

/// A removal names the execution by uid, and the version in which it was over.
pub(super) fn judge(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    // Of what was refused outright the log has no body.
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

/// It was over for its time to live, and nothing rested on it by some view that the removal may rest on: as all
/// executions come by one watch, a moment between the version that the removal names and the removal itself.
fn judge_time(evidence: &Evidence<'_>, execution: &Execution<'_>, removed_at: &str) -> Option<&'static str> {
    let gone = execution.gone?;
    let status = execution.at(gone);
    if !phase(status).is_some_and(Phase::is_terminal) {
        return Some("removed an execution that was not over");
    }
    // Without one, the operator's configuration has one, which is not known here.
    let ttl = execution.object_at(gone).pointer("/spec/ttlSecondsAfterFinished").and_then(serde_json::Value::as_i64);
    let lived = seconds_of(removed_at).zip(seconds(status, "/completionTime")).map(|(removed, ended)| removed - ended);
    // The history of a schedule may be full (section 12.7).
    if execution.schedule().is_none() && ttl.zip(lived).is_some_and(|(ttl, lived)| lived < ttl) {
        return Some("removed an execution before its time to live was over");
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
    // The newest view tells best what is wrong.
    let newest = flaws.next().flatten()?;
    flaws.all(|flaw| flaw.is_some()).then_some(newest)
}

/// Says what rested on an execution at a moment: it was the newest of its target, or it blocked it.
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
