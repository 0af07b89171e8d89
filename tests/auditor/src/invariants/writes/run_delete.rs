//! Deletions of runs: of a pending run that no execution needs, or of a finished run that was kept long enough.

use wfe_api::Phase;

use super::{Flaw, owner_uid};
use crate::Evidence;
use crate::history::{Execution, Run, phase, text};
use crate::input::Request;

/// Returns whether the API server refused the operator's release of a run.
fn was_release_refused(evidence: &Evidence<'_>, run: &Run<'_>) -> bool {
    let is_refusal = |request: &&Request| {
        (request.verb.as_str(), request.resource.as_str()) == ("patch", "pipelineruns")
            && request.code >= 400
            && (&request.namespace, &request.name) == (&run.object.namespace, &run.object.name)
            && evidence.authors.is_operator(&request.user)
    };
    evidence.requests.iter().any(|request| is_refusal(&request))
}

/// Checks that a deletion names the run by uid, and for a pending run also the version in which it was pending.
pub(super) fn judge(evidence: &Evidence<'_>, request: &Request) -> Option<Flaw> {
    let history = &evidence.history;
    let precondition = |name: &str| text(&request.request, &format!("/preconditions/{name}"));
    // For a request that was refused early, the log contains no body.
    if request.request.is_null() && !(request.succeeded() && request.has_bodies()) {
        return None;
    }
    let Some(uid) = precondition("uid") else {
        return Some(("delete", "deleted a run without its uid as a precondition".to_owned()));
    };
    let is_answered = text(&request.response, "/metadata/uid").is_some();
    if history.strangers.contains(uid) || (is_answered && owner_uid(&request.response).is_none()) {
        return Some(("foreign", "deleted a run that is not ours".to_owned()));
    }
    let run = history.runs.get(uid).filter(|_| request.succeeded())?;
    if run.never_ran() && precondition("resourceVersion").is_none() {
        let what = "deleted a pending run without the version in which it was pending as a precondition";
        return Some(("delete", what.to_owned()));
    }
    judge_time(evidence, run)
}

/// Checks that a released run is deleted only when it is over and drained, and its execution has ended. A run that was
/// never released must be kept while its execution has committed to it, or may do so for its next attempt. The
/// exception is a refused release, whose duration is not visible here. An old view is no excuse, because numbers only
/// grow.
fn judge_time(evidence: &Evidence<'_>, run: &Run<'_>) -> Option<Flaw> {
    let history = &evidence.history;
    let gone = run.gone?;
    let owner = history.owner(run).filter(|owner| owner.exists_at(gone));
    let is_open = owner.is_some_and(|owner| !phase(owner.at(gone)).is_some_and(Phase::is_terminal));
    if run.never_ran() {
        let committed = history.commit_to(run).is_some_and(|commit| commit.at < gone);
        if committed && is_open && !was_release_refused(evidence, run) {
            return Some(("deleted-committed", "deleted a pending run that its execution is committed to".to_owned()));
        }
        let is_leaving = |owner: &Execution<'_>| text(owner.object_at(gone), "/metadata/deletionTimestamp").is_some();
        let needs = |owner: &Execution<'_>| owner.may_commit_to(run, owner.at(gone)) && !is_leaving(owner);
        return (!committed && owner.is_some_and(needs))
            .then(|| ("deleted-needed", "deleted a pending run that its execution may yet commit to".to_owned()));
    }
    let what = if run.finished.is_none_or(|finished| finished > gone) {
        "deleted a run that was not finished"
    } else if is_open {
        "deleted a run whose execution had not ended"
    } else if history.pieces_of(run).any(|piece| piece.created < gone && piece.over.is_none_or(|over| gone <= over)) {
        "deleted a run that was draining"
    } else {
        return None;
    };
    Some(("deleted-early", what.to_owned()))
}
