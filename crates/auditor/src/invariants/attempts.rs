//! Invariant 2: at most one released run per attempt, and none of an execution whose record says that nothing ran.
//!
//! An execution has one attempt; executions with several come with `spec.retry`.

use wfe_api::Phase;

use super::{Finding, runs_by_owner};
use crate::Evidence;
use crate::history::{Execution, Run, Written};
use crate::report::{Counts, Violation};

pub(super) fn judge(evidence: &Evidence<'_>, _: &mut Counts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (owner, runs) in runs_by_owner(evidence) {
        let mut released: Vec<&Run<'_>> = runs.into_iter().filter(|run| run.released.is_some()).collect();
        released.sort_by_key(|run| run.released);
        found.extend(second_runs(evidence, owner, &released));
        if let Some(execution) = evidence.history.executions.get(owner)
            && let Some(ended) = execution.ended()
        {
            found.extend(released.iter().filter_map(|run| ran_after_all(evidence, execution, &ended, run)));
        }
    }
    found
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

/// Judges a released run by what its owner's record says.
fn ran_after_all(
    evidence: &Evidence<'_>,
    execution: &Execution<'_>,
    ended: &Written<'_>,
    run: &Run<'_>,
) -> Option<Violation> {
    let released = run.released?;
    let had_run = ended.status["pipelineRunRef"].is_object();
    let nothing_ran = ended.status["failureDetails"]["wasExecutionFailure"] == false;
    let record = match ended.phase()? {
        Phase::Skipped => "Skipped",
        Phase::Failed if nothing_ran && !had_run => "Failed before it had a run",
        Phase::Failed if nothing_ran => return steps_ran(evidence, execution, ended, run),
        _ => return None,
    };
    let text = format!("{} is {record}, and its {} was released", execution.object, run.object);
    let objects = vec![execution.object.clone(), run.object.clone()];
    let at = [released.max(ended.at), released.min(ended.at)];
    Some(Finding::new(2, "ran-after-all", text).on(execution.shown_target(), objects, &at))
}

/// A record that says that no step of a released run ran, while one was seen to run.
fn steps_ran(
    evidence: &Evidence<'_>,
    execution: &Execution<'_>,
    ended: &Written<'_>,
    run: &Run<'_>,
) -> Option<Violation> {
    let (piece, ran) =
        evidence.history.pieces_of(run).filter_map(|piece| Some((piece, piece.ran?))).min_by_key(|(_, ran)| *ran)?;
    let text = format!("{} says that nothing of it ran, and a step of {} ran", execution.object, piece.object);
    let objects = vec![execution.object.clone(), piece.object.clone(), run.object.clone()];
    Some(Finding::new(2, "steps-ran", text).on(execution.shown_target(), objects, &[ended.at, ran]))
}
