//! Decisions with a rule left out. The core has no hooks for this, so the view before and the steps after are changed.

use super::Translation;
use crate::leave_out::LeftOut;
use crate::object::{Execution, ExecutionId, Phase, Progress, Residue, Run};
use crate::request::{Fact, Premise, Request, StatusWrite, Step};
use crate::view::View;

impl Translation {
    /// Changes the steps of a decision if the rule that is left out requires this.
    pub(super) fn leave_out(self, view: &View, steps: &mut Vec<Step>) {
        match self.left_out {
            LeftOut::Look => commit_blindly(view, |execution| execution.phase == Phase::Undecided, steps),
            LeftOut::AttemptLook => commit_blindly(view, |execution| execution.waits, steps),
            LeftOut::Hold => self.overlook_holds(view, steps),
            LeftOut::NextRun => delete_next_runs(view, steps),
            LeftOut::SkipRival => spare_rivals_with_runs(view, steps),
            _ => {}
        }
    }

    /// Returns whether the view ignores the remains of an execution's own earlier attempt.
    pub(super) fn overlooks(self, view: &View, left: Residue) -> bool {
        let waits = |owner: ExecutionId| view.executions.iter().any(|known| known.id == owner && known.waits);
        self.left_out == LeftOut::OwnRemains && left.owner.is_some_and(waits)
    }

    /// Changes a decision as if an execution that waits for its next attempt had ended.
    fn overlook_holds(self, view: &View, steps: &mut Vec<Step>) {
        let mut without = view.clone();
        for execution in without.executions.iter_mut().filter(|execution| execution.waits) {
            (execution.phase, execution.waits) = (Phase::Failed { ran: true }, false);
        }
        let undecided = |owner: ExecutionId| {
            view.executions.iter().any(|known| known.id == owner && known.phase == Phase::Undecided)
        };
        steps.retain(|step| !matches!(step, Step::ReadFact { fact: Fact::Holds(_), .. }));
        let others = Self { left_out: LeftOut::Nothing, ..self }.decide_anew(&without);
        let gains = |step: &Step| match step {
            Step::Write(_, request) | Step::ReadFirst { request, .. } => match request {
                Request::Create { owner, .. } => undecided(*owner),
                Request::Status { execution, .. } => undecided(*execution),
                Request::Release { .. } | Request::Delete { .. } | Request::Cancel { .. } => false,
            },
            Step::ReadFact { .. } | Step::ReadOwner(_) => true,
        };
        let new: Vec<Step> = others.into_iter().filter(|step| gains(step) && !steps.contains(step)).collect();
        steps.extend(new);
    }
}

/// Replaces the check before a commit: each of these executions commits to its pending run.
fn commit_blindly(view: &View, whose: impl Fn(&Execution) -> bool, steps: &mut Vec<Step>) {
    for execution in view.executions.iter().filter(|execution| whose(execution)) {
        let Some(run) = pending_run(view, execution) else { continue };
        steps.retain(
            |step| !matches!(step, Step::Write(_, Request::Delete { run: withdrawn, .. }) if *withdrawn == run.uid),
        );
        let write = StatusWrite::Commit { run: run.uid, number: run.number };
        let commit = Request::Status { execution: execution.id, version: execution.version, write };
        steps.retain(|step| {
            let (Step::Write(_, request) | Step::ReadFirst { request, .. }) = step else { return true };
            *request != commit
        });
        steps.push(Step::Write(Premise::None, commit));
    }
}

fn pending_run(view: &View, execution: &Execution) -> Option<Run> {
    let own = |run: &Run| run.owner == Some(execution.id) && run.progress == Progress::Pending;
    view.runs.iter().map(|seen| seen.run).find(|run| own(run) && run.number > execution.sequence)
}

/// Deletes the pending run of every execution that waits for its next attempt, as if no execution needed the run.
fn delete_next_runs(view: &View, steps: &mut Vec<Step>) {
    for execution in view.executions.iter().filter(|execution| execution.waits) {
        let Some(Run { uid: run, number, version, .. }) = pending_run(view, execution) else { continue };
        steps.push(Step::Write(Premise::None, Request::Delete { run, number, version }));
    }
}

/// Removes skips of executions with a pending run if the reason is an execution that waits for its next attempt.
fn spare_rivals_with_runs(view: &View, steps: &mut Vec<Step>) {
    let has_run = |id: ExecutionId| {
        view.runs.iter().any(|seen| seen.run.owner == Some(id) && seen.run.progress == Progress::Pending)
    };
    for step in steps.iter_mut() {
        if let Step::ReadFact { fact: Fact::Holds(_), skipped } = step {
            skipped.retain(|(id, _)| !has_run(*id));
        }
    }
    steps.retain(|step| !matches!(step, Step::ReadFact { skipped, .. } if skipped.is_empty()));
}
