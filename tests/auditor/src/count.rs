//! Counts the events of a recording. The counts distinguish a busy recording from an idle one.

use serde_json::Value;
use wfe_api::Phase;

use crate::history::{Execution, History, Run};
use crate::report::Counts;

/// Counts executions by their decision, and runs by their end.
pub(crate) fn count(history: &History<'_>) -> Counts {
    let mut counts = Counts::zero();
    for execution in history.executions.values() {
        count_execution(&mut counts, execution);
    }
    for run in history.runs.values() {
        counts.add("created");
        if run.released.is_some() {
            counts.add("runs");
        }
        if run.cancelled.is_some() {
            counts.add("cancelled");
        }
        if let Some(name) = why_deleted(history, run) {
            counts.add(name);
        }
    }
    counts
}

fn count_execution(counts: &mut Counts, execution: &Execution<'_>) {
    counts.add("executions");
    if execution.written.iter().any(|written| waits_for_place(written.status)) {
        counts.add("waited-for-place");
    }
    if !execution.commits.is_empty() {
        counts.add("ran");
    }
    let Some(ended) = execution.ended() else {
        if execution.gone.is_some() && !execution.commits.is_empty() {
            counts.add("abandoned");
        }
        return;
    };
    let reason = |details: &str| ended.status[details]["reason"].as_str().unwrap_or("(no reason)").to_owned();
    match ended.phase() {
        Some(Phase::Completed) => counts.add("completed"),
        Some(Phase::Skipped) => {
            counts.add("skipped");
            counts.add(&reason("skipDetails"));
        }
        _ => {
            counts.add("failed");
            counts.add(&reason("failureDetails"));
            if ended.status["failureDetails"]["wasExecutionFailure"] == false {
                counts.add("failed-early");
            }
        }
    }
}

/// Returns whether a status says that its execution waits for a place of a limit.
fn waits_for_place(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Waiting" && it["status"] == "True" && it["reason"] == "Limit")
}

/// Returns why a run that was never released was deleted. The state of its owner at that time decides this.
fn why_deleted(history: &History<'_>, run: &Run<'_>) -> Option<&'static str> {
    let gone = run.gone.filter(|_| run.never_ran())?;
    let undecided = history.owner(run).is_some_and(|owner| {
        owner.exists_at(gone) && matches!(crate::history::phase(owner.at(gone)), None | Some(Phase::Pending))
    });
    Some(if undecided { "withdrawn" } else { "leftovers" })
}
