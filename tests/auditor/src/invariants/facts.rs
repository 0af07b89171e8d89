//! Invariant 5: a Skip names a fact that was true at some moment between the creation of the execution and the Skip.

mod remediation;

use serde_json::Value;
use wfe_api::{Phase, SkipReason};

use super::Finding;
use crate::Evidence;
use crate::history::{Execution, Run, Written, text, waits};
use crate::record::Ledger;
use crate::report::{Counts, Moment, Violation};

/// The rule that a Skip breaks, and a clause that completes "it was skipped, but".
type Flaw = (&'static str, String);

/// The path of an object's creation time.
const CREATED: &str = "/metadata/creationTimestamp";

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let ledgers = Ledger::open(&evidence.history);
    let mut found = Vec::new();
    for execution in evidence.history.executions.values() {
        let Some(ended) = execution.ended().filter(|ended| ended.phase() == Some(Phase::Skipped)) else { continue };
        if evidence.authors.is_strangers(ended.at) {
            continue;
        }
        let details = &ended.status["skipDetails"];
        let flaw = match details["reason"].as_str() {
            Some(reason) if reason == SkipReason::ResourceBusy.as_str() => busy(evidence, execution, &ended),
            Some(reason) if SkipReason::ALL.iter().any(|one| one.as_str() == reason) => {
                let ledger = execution.target.as_ref().and_then(|target| ledgers.get(target));
                remediation::judge(evidence, ledger, execution, &ended, counts)
            }
            _ => None, // other reasons are judged by invariant 3
        };
        found.extend(flaw.map(|(rule, what)| {
            let reason = details["reason"].as_str().unwrap_or_default();
            let text = format!("{} was skipped ({reason}), but {what}", execution.object);
            Finding::new(5, rule, text).about(execution, ended.at)
        }));
    }
    found
}

/// Judges ResourceBusy. The named execution must have waited for its next attempt. Or one of its runs was committed or
/// released, and was unfinished or draining.
fn busy(evidence: &Evidence<'_>, execution: &Execution<'_>, ended: &Written<'_>) -> Option<Flaw> {
    let conflict = &ended.status["skipDetails"]["conflictingWorkflow"];
    let Some(name) = named(execution, conflict) else {
        return Some(("no-fact", "it names no conflicting workflow".to_owned()));
    };
    let chain = execution.target.as_ref().map(wfe_core::target::TargetName::chain);
    let of_that_name: Vec<&Run<'_>> = evidence
        .history
        .runs
        .values()
        .filter(|run| Some(run.chain.name) == chain && run.owner != execution.object.uid)
        .filter(|run| run.owner_name == Some(name.as_str()))
        .collect();
    let holders: Vec<&Run<'_>> =
        of_that_name.iter().copied().filter(|run| held_target(evidence, run, execution.created, ended.at)).collect();
    let waited = waited(evidence, execution, ended, &name);
    if waited.iter().any(|holder| !misnames_waiting(execution, conflict, holder)) {
        return None;
    }
    if holders.is_empty() && !waited.is_empty() {
        return Some(("wrong-fact", format!("{name} waited for its next attempt otherwise than it says")));
    }
    if holders.is_empty() {
        // If the owner's status is not recorded, the time of the commit is unknown.
        let unknown = |run: &&Run<'_>| evidence.history.owner(run).is_none() && run.is_unfinished_at(ended.at);
        return (!of_that_name.iter().any(unknown) && !held_foreign(evidence, execution, ended, &name)).then(|| {
            let what = "committed or released and unfinished, or draining, nor did it wait for its next attempt";
            ("no-fact", format!("from its creation to then no run of {name} on the target was {what}"))
        });
    }
    let flaws: Vec<String> = holders.iter().filter_map(|run| misnamed(evidence, execution, conflict, run)).collect();
    (flaws.len() == holders.len()).then(|| ("wrong-fact", flaws.join("; ")))
}

/// Returns whether a run held its target at any moment of an interval.
fn held_target(evidence: &Evidence<'_>, run: &Run<'_>, from: Moment, to: Moment) -> bool {
    let history = &evidence.history;
    let committed = history.commit_to(run).map(|commit| commit.at);
    let Some(held) = [committed, run.released, run.unheld].into_iter().flatten().min() else { return false };
    let meets = |begin: Moment, end: Option<Moment>| begin < to && end.is_none_or(|end| from < end && begin < end);
    meets(held, run.over())
        || (run.released.is_some() && history.pieces_of(run).any(|piece| meets(piece.created, piece.over)))
}

/// Lists the executions of this name that waited for their next attempt between the creation and the end of the skipped
/// execution. Such an execution holds the target, although none of its runs does.
fn waited<'e, 'a>(
    evidence: &'e Evidence<'a>,
    execution: &Execution<'_>,
    ended: &Written<'_>,
    name: &str,
) -> Vec<&'e Execution<'a>> {
    let is_named = |other: &&Execution<'_>| {
        other.retry.is_some() && other.object.is_named(name) && other.target == execution.target
    };
    let waits_then = |other: &&Execution<'_>| {
        let next = other.written.iter().skip(1).map(|next| Some(next.at)).chain([other.gone]);
        other.written.iter().zip(next).any(|(written, next)| {
            waits(written.status) && written.at < ended.at && next.is_none_or(|next| execution.created < next)
        })
    };
    evidence.history.executions.values().filter(is_named).filter(waits_then).collect()
}

/// Returns whether a skip gives a wrong description of a waiting execution.
fn misnames_waiting(execution: &Execution<'_>, conflict: &Value, holder: &Execution<'_>) -> bool {
    let started = text(holder.last(), "/startTime").or_else(|| text(holder.object_at(holder.created), CREATED));
    text(conflict, "/workflowId") != Some(holder.workflow_id())
        || text(conflict, "/targetResource") != Some(execution.shown_target().as_str())
        || text(conflict, "/startedAt").is_some_and(|named| Some(named) != started)
}

/// Returns whether the named execution committed to a foreign run, which may have held the target unseen.
fn held_foreign(evidence: &Evidence<'_>, execution: &Execution<'_>, ended: &Written<'_>, name: &str) -> bool {
    let history = &evidence.history;
    history.executions.values().any(|other| {
        other.object.is_named(name)
            && other.target == execution.target
            && other.commits.iter().any(|commit| commit.at < ended.at && history.strangers.contains(commit.run))
    })
}

fn misnamed(evidence: &Evidence<'_>, execution: &Execution<'_>, conflict: &Value, run: &Run<'_>) -> Option<String> {
    let history = &evidence.history;
    let started = history.commit_to(run).and_then(|commit| text(commit.status, "/startTime"));
    let named = text(conflict, "/startedAt");
    // While a run drains, the objects made for it may be all that is known of it.
    let is_known = || {
        let pieces = history.pieces_of(run).filter_map(|piece| piece.created_time);
        pieces.chain(started).chain(run.created_time).any(|time| Some(time) == named)
    };
    if text(conflict, "/workflowId") != run.workflow_id {
        return Some(format!("{} is of another workflow than the skip says", run.object));
    }
    if text(conflict, "/targetResource") != Some(execution.shown_target().as_str()) {
        return Some("the target that it names is another".to_owned());
    }
    (named.is_some() && !is_known()).then(|| format!("{} did not start when the skip says", run.object))
}

/// Returns the namespace/name of the execution that a skip names. An earlier version had no field for the namespace,
/// and wrote a namespace into the name if it was another than the skipped execution's.
fn named(execution: &Execution<'_>, other: &Value) -> Option<String> {
    let name = text(other, "/name")?;
    Some(match text(other, "/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None if name.contains('/') => name.to_owned(),
        None => format!("{}/{name}", execution.object.namespace),
    })
}
