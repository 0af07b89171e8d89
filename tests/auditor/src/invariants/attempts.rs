//! Invariant 2: at most one released run for each attempt, and none for an execution whose status says that nothing
//! ran.
//!
//! An execution without a retry policy has one attempt. With a policy it has the attempts in its status, which
//! [`further`] judges.

mod further;

use wfe_api::Phase;

use super::{Finding, runs_by_owner};
use crate::Evidence;
use crate::history::{Attempt, Execution, Run, Written, waits};
use crate::report::{Counts, Moment, Violation};

pub(super) fn judge(evidence: &Evidence<'_>, counts: &mut Counts) -> Vec<Violation> {
    let history = &evidence.history;
    let mut found = Vec::new();
    for (owner, runs) in runs_by_owner(evidence) {
        let mut released: Vec<&Run<'_>> = runs.into_iter().filter(|run| run.released.is_some()).collect();
        released.sort_by_key(|run| run.released);
        let Some(execution) = history.executions.get(owner) else {
            // If the owner's namespace was not recorded, the owner may have a retry policy.
            if released.iter().all(|run| history.covers_owner_of(run)) {
                found.extend(second_runs(evidence, owner, &released));
            }
            continue;
        };
        if execution.retry.is_some() {
            found.extend(released.iter().filter_map(|run| one_of_attempt(execution, run, released.len())));
        } else {
            found.extend(second_runs(evidence, owner, &released));
        }
        let ran = released.iter().filter_map(|run| ran_after_all(evidence, execution, run));
        found.extend(ran);
    }
    for execution in history.executions.values().filter(|execution| execution.retry.is_some()) {
        found.extend(further::judge(evidence, execution, counts));
    }
    found
}

/// Judges a released run of an execution with a policy. One attempt must name the run, and the attempt before must have
/// ended.
fn one_of_attempt(execution: &Execution<'_>, run: &Run<'_>, released: usize) -> Option<Violation> {
    let at = run.released?;
    let is_committed = execution.commits.iter().any(|commit| commit.run == run.object.uid);
    if !is_committed && (released == 1 || waits(execution.last())) {
        // The run was released by another user, and the operator has not committed to it yet. Other invariants judge
        // whether it does.
        return None;
    }
    let of_run: Vec<usize> = (0..)
        .zip(&execution.attempts)
        .filter(|(_, attempt)| is_committed && attempt.run() == Some(&run.object.name))
        .map(|(index, _)| index)
        .collect();
    let before = |index: usize| index.checked_sub(1).and_then(|before| execution.attempts.get(before));
    let goes_on = |before: &Attempt<'_>| before.ended.is_none_or(|ended| at < ended);
    let (what, ended) = match of_run[..] {
        [index] => {
            let before = before(index).filter(|before| goes_on(before))?;
            (format!("before the end of attempt {index} was recorded"), before.ended)
        }
        [] => ("and no attempt in the status names it".to_owned(), None),
        _ => (format!("and {} attempts in the status name it", of_run.len()), None),
    };
    let text = format!("{} of {} was released, {what}", run.object, execution.object);
    let objects = vec![run.object.clone(), execution.object.clone()];
    let at: Vec<_> = [Some(at), ended].into_iter().flatten().collect();
    Some(Finding::new(2, "second-run", text).on(execution.shown_target(), objects, &at))
}

fn second_runs(evidence: &Evidence<'_>, owner: &str, released: &[&Run<'_>]) -> Vec<Violation> {
    let pairs = released.windows(2).filter_map(|pair| match pair {
        [earlier, later] => Some((*earlier, *later, earlier.released?, later.released?)),
        _ => None,
    });
    pairs
        .map(|(earlier, later, first, second)| {
            let text = format!(
                "the WorkflowExecution with uid {owner} had {} released, and later {} too",
                earlier.object, later.object
            );
            let objects = vec![later.object.clone(), earlier.object.clone()];
            Finding::new(2, "second-run", text).on(evidence.history.target_of(later), objects, &[second, first])
        })
        .collect()
}

/// Judges a released run by the status of its owner.
fn ran_after_all(evidence: &Evidence<'_>, execution: &Execution<'_>, run: &Run<'_>) -> Option<Violation> {
    let released = run.released?;
    let attempt = attempt_of(execution, run);
    if let Some((attempt, at)) = attempt.and_then(|attempt| Some((attempt, attempt.ended?)))
        && attempt.last["started"] == "False"
        && let Some(violation) = steps_ran(evidence, execution, at, "that attempt", run)
    {
        return Some(violation);
    }
    let ended = execution.ended()?;
    let had_run = ended.status["pipelineRunRef"].is_object();
    let nothing_ran = ended.status["failureDetails"]["wasExecutionFailure"] == false;
    let record = match ended.phase()? {
        Phase::Skipped => "Skipped",
        Phase::Failed if nothing_ran && !had_run => "Failed before it had a run",
        Phase::Failed if nothing_ran => {
            let violation = steps_ran(evidence, execution, ended.at, "it", run);
            return violation.or_else(|| contradicts(execution, &ended, attempt?));
        }
        _ => return None,
    };
    let text = format!("{} is {record}, and its {} was released", execution.object, run.object);
    let objects = vec![execution.object.clone(), run.object.clone()];
    let at = [released.max(ended.at), released.min(ended.at)];
    Some(Finding::new(2, "ran-after-all", text).on(execution.shown_target(), objects, &at))
}

/// Returns the attempt to which a run belongs.
fn attempt_of<'e, 'a>(execution: &'e Execution<'a>, run: &Run<'_>) -> Option<&'e Attempt<'a>> {
    execution.retry.as_ref()?;
    execution.attempts.iter().find(|attempt| attempt.run() == Some(&run.object.name))
}

/// Finds a status which says that no step of a released run ran, although the recording shows that a step ran. The
/// status of an execution covers all its attempts.
fn steps_ran(
    evidence: &Evidence<'_>,
    execution: &Execution<'_>,
    said: Moment,
    of: &str,
    run: &Run<'_>,
) -> Option<Violation> {
    let (piece, ran) =
        evidence.history.pieces_of(run).filter_map(|piece| Some((piece, piece.ran?))).min_by_key(|(_, ran)| *ran)?;
    let text = format!("{} says that nothing of {of} ran, and a step of {} ran", execution.object, piece.object);
    let objects = vec![execution.object.clone(), piece.object.clone(), run.object.clone()];
    Some(Finding::new(2, "steps-ran", text).on(execution.shown_target(), objects, &[said, ran]))
}

/// Finds a status which says that nothing ran, although one of its attempts says that something ran or may have run.
fn contradicts(execution: &Execution<'_>, ended: &Written<'_>, attempt: &Attempt<'_>) -> Option<Violation> {
    let said = attempt.last["started"].as_str().filter(|said| matches!(*said, "True" | "Unknown"))?;
    let of_attempt = &attempt.last["attempt"];
    let text =
        format!("{} says that nothing of it ran, and its attempt {of_attempt} has started {said}", execution.object);
    Some(Finding::new(2, "steps-ran", text).about(execution, ended.at))
}
