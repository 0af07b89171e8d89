//! Invariant 8: the chain of runs on a target. A commit names the execution's own run, numbers increase, and a run is
//! released only after its commit.

use serde_json::Value;

use super::Finding;
use crate::Evidence;
use crate::history::{Commit, Execution, Run, text};
use crate::input::Request;
use crate::report::{Counts, Violation};

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    let mut found = Vec::new();
    for execution in evidence.history.executions.values() {
        for commit in execution.commits.iter().filter(|commit| !evidence.authors.is_strangers(commit.at)) {
            found.extend(judge_commit(evidence, execution, commit));
        }
        found.extend(judge_outcome(evidence, execution));
    }
    for run in evidence.history.runs.values() {
        found.extend(judge_label(evidence, run));
        found.extend(uncommitted(evidence, run));
        found.extend(out_of_order(evidence, run));
    }
    found
}

/// Checks that a commit names an existing, unfinished run of its execution and target, with the run's number.
fn judge_commit(evidence: &Evidence<'_>, execution: &Execution<'_>, commit: &Commit<'_>) -> Option<Violation> {
    let Some(run) = evidence.history.runs.get(commit.run) else {
        let what = if evidence.history.strangers.contains(commit.run) { "is not ours" } else { "never was" };
        let text =
            format!("{} committed to PipelineRun {} ({}), which {what}", execution.object, commit.run_name, commit.run);
        return Some(Finding::new(8, "commit", text).about(execution, commit.at));
    };
    let is_gone = run.gone.is_some_and(|gone| gone <= commit.at);
    let is_finished = run.finished.is_some_and(|finished| finished <= commit.at);
    let chain = execution.target.as_ref().map(wfe_core::target::TargetName::chain);
    let number = commit.status["runSequence"].as_u64();
    let (rule, what) = if run.owner != execution.object.uid {
        ("commit", format!("which belongs to the execution with uid {}", run.owner))
    } else if commit.run_name != run.object.name {
        ("commit", format!("which it calls {}", commit.run_name))
    } else if chain.is_some_and(|chain| chain != run.chain.name) {
        ("commit", "which is in the chain of another target".to_owned())
    } else if commit.at < run.created {
        ("commit", "which did not exist yet".to_owned())
    } else if is_gone && !evidence.authors.is_deleted_by_stranger(&run.object.uid) {
        ("commit", "which was gone already".to_owned())
    } else if is_finished && !is_gone && !was_stopped_by_stranger(evidence, run) {
        ("commit", "which was finished already".to_owned())
    } else if number != Some(run.number) {
        ("number", format!("whose number is {}, and says runSequence {}", run.number, commit.status["runSequence"]))
    } else {
        return None;
    };
    let text = format!("{} committed to {}, {what}", execution.object, run.object);
    let objects = vec![execution.object.clone(), run.object.clone()];
    Some(Finding::new(8, rule, text).on(execution.shown_target(), objects, &[commit.at, run.created]))
}

/// Returns whether a user other than the operators has asked Tekton to stop a run. A pending run that a person cancels
/// ends before its execution can commit. The commit then names the cancelled run.
fn was_stopped_by_stranger(evidence: &Evidence<'_>, run: &Run<'_>) -> bool {
    let is_stop = |operation: &Value| operation["op"] != "remove" && operation["path"] == "/spec/status";
    let asks = |sent: &Value| match sent {
        Value::Array(operations) => operations.iter().any(is_stop),
        merged => text(merged, "/spec/status").is_some(),
    };
    let stops = |request: &&Request| {
        (request.verb.as_str(), request.resource.as_str()) == ("patch", "pipelineruns")
            && request.succeeded()
            && (&request.namespace, &request.name) == (&run.object.namespace, &run.object.name)
            && asks(&request.request)
            && !evidence.authors.is_operator(&request.user)
    };
    evidence.requests.iter().any(|request| stops(&request))
}

/// Checks that the run of an execution had succeeded when the execution became Completed.
fn judge_outcome(evidence: &Evidence<'_>, execution: &Execution<'_>) -> Option<Violation> {
    let ended = execution.ended()?;
    if ended.phase() != Some(wfe_api::Phase::Completed) || evidence.authors.is_strangers(ended.at) {
        return None;
    }
    let run = evidence.history.runs.get(execution.commits.last()?.run)?;
    let proven = run.succeeded && run.finished.is_some_and(|finished| finished <= ended.at);
    let text = format!("{} was Completed, and {} had not succeeded", execution.object, run.object);
    let objects = vec![execution.object.clone(), run.object.clone()];
    (!proven).then(|| Finding::new(8, "outcome", text).on(execution.shown_target(), objects, &[ended.at]))
}

/// Checks that the label contains the number in the run's name. It is for programs that compare numbers.
fn judge_label(evidence: &Evidence<'_>, run: &Run<'_>) -> Option<Violation> {
    let label = run.label.unwrap_or("nothing");
    let text = format!("{} has number {} in its name, and its label says {label}", run.object, run.number);
    (label != run.number.to_string()).then(|| {
        Finding::new(8, "number", text).on(evidence.history.target_of(run), vec![run.object.clone()], &[run.created])
    })
}

/// Checks that a run was released only after its execution had committed to it.
fn uncommitted(evidence: &Evidence<'_>, run: &Run<'_>) -> Option<Violation> {
    let history = &evidence.history;
    let released = run.released.filter(|released| !evidence.authors.is_strangers(*released))?;
    let what = match history.owner(run) {
        None if history.covers_owner_of(run) => "there is no execution with the uid that it carries",
        None => return None,
        Some(_) => match history.commit_to(run) {
            Some(commit) if commit.at < released => return None,
            Some(_) => "its execution committed to it only later",
            None => "its execution never committed to it",
        },
    };
    let text = format!("{} was released, and {what}", run.object);
    let objects = std::iter::once(run.object.clone()).chain(history.owner(run).map(|owner| owner.object.clone()));
    Some(Finding::new(8, "uncommitted", text).on(history.target_of(run), objects.collect(), &[released]))
}

/// Checks that a committed run has a higher number than earlier runs. Only committed runs that an object or a status
/// still showed at its creation count. A number that nothing shows any more may be used again, and a late pending run
/// that is withdrawn does not count.
fn out_of_order(evidence: &Evidence<'_>, run: &Run<'_>) -> Option<Violation> {
    let history = &evidence.history;
    let commit = history.commit_to(run)?;
    let earlier = history
        .runs
        .values()
        .filter(|other| other.chain == run.chain && other.object.uid != run.object.uid && other.number >= run.number)
        .filter(|other| history.commit_to(other).is_some_and(|commit| commit.at < run.created))
        .find(|other| {
            let is_there = other.gone.is_none_or(|gone| run.created < gone);
            is_there || history.owner(other).is_some_and(|owner| owner.exists_at(run.created))
        })?;
    let text = format!(
        "{} is number {} of its chain, and was created after {} had been committed, which was still known",
        run.object, run.number, earlier.object
    );
    let objects = vec![run.object.clone(), earlier.object.clone()];
    Some(Finding::new(8, "order", text).on(history.target_of(run), objects, &[run.created, commit.at]))
}
