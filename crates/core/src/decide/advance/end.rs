//! Ends executions whose run is done or gone.

use std::time::Duration;

use super::Running;
use super::attempts::Failed;
use crate::Time;
use crate::action::{Action, Decision, Ending};
use crate::awaiting::Awaiting;
use crate::decide::waiting::SHOW_AFTER;
use crate::duration;
use crate::ending::Charge;
use crate::ending::{Failure, Success};
use crate::evidence::{Absence, Doubt, Proof, Started};
use crate::execution::{Lost, RunShown};
use crate::findings::Findings;
use crate::fingerprint::Stage;
use crate::history::Weight;
use crate::moment::{after, round_up};
use crate::name::RunId;
use crate::reason::FailureReason;
use crate::retry::{AttemptEnd, Stop};
use crate::run::{CancelReason, Look, Outcome, Run};
use crate::tries::Trouble;
use crate::trouble::{OwnCause, OwnTrouble};
use crate::verdict::Fact;

/// How far in the future a time of the run may lie. A later time is reduced to this limit (section 9).
pub(in crate::decide) const MAX_SKEW: Duration = Duration::from_mins(1);
/// How long the tasks and pods of a finished run may take to be seen finished, before the status reports that the
/// target drains. Other watches deliver them, some milliseconds before or after the run.
pub(in crate::decide) const SETTLE: Duration = Duration::from_secs(2);
/// How long the tasks and pods of a failed run may take to finish, if a live read could not establish whether anything
/// ran. A pod may take its grace period, which is thirty seconds by default.
pub(in crate::decide) const DRAIN: Duration = Duration::from_secs(32);
/// For how long a failed run is examined again, if the live read could not establish whether anything ran. The time
/// counts from the first answered read of this term. While no read is answered, the operator keeps trying, because
/// nothing is known of the run.
const PATIENCE: Duration = Duration::from_secs(45);
/// How soon a run is examined again if something was unfinished, or the watches were behind.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl<'a> Running<'a> {
    /// Ends the execution as soon as everything of its run is seen finished, or takes too long to finish. The cause of
    /// a failed run must be known, too.
    pub(super) fn end(self, run: &'a Run, outcome: &Outcome, decision: &mut Decision) {
        let now = self.view.now;
        let done_seen = run.memory.done_seen.unwrap_or(now);
        let is_certain = self.proof(run).is_some() || run.memory.seen.opaque.is_some();
        let is_short = outcome.succeeded && !is_certain && !all_skipped(run);
        let settled = after(done_seen, SETTLE);
        // If an examination left something unknown, `examined_again` waits longer for tasks and pods that drain.
        let may_tell = |look: &Look| !outcome.succeeded && !is_certain && look.findings.may_change();
        let drains = self.drains() && !run.memory.diagnosed.as_deref().is_some_and(may_tell);
        if now < settled && (drains || is_short) {
            return decision.wake_at(settled);
        }
        if !outcome.succeeded
            && let Some(again) = self.examined_again(run, is_certain)
        {
            if now < again {
                return decision.wake_at(again);
            }
            decision.actions.push(Action::Examine { run: run.id.clone() });
            return self.show_examining(run, outcome, again, decision);
        }
        match self.ending_of(run, outcome) {
            Ending::Failed(failure) if self.execution.retry.is_some() => {
                let ended_by = self.ended_by(run);
                let is_asked = self.fail(Failed { run: Some(&run.id), failure, ended_by }, decision);
                if is_asked {
                    let since = run.memory.diagnosed.as_ref().map_or(done_seen, |look| look.at);
                    self.show_examining(run, outcome, since, decision);
                }
            }
            ending => decision.actions.push(self.finish(ending, None)),
        }
    }

    /// Returns when a failed run is examined again, if it is. The examination is repeated until a read is answered, and
    /// after that as long as another read may find more.
    fn examined_again(self, run: &Run, is_certain: bool) -> Option<Time> {
        let Some(look) = &run.memory.diagnosed else {
            return Some(run.memory.done_seen.map_or(self.view.now, |done_seen| done_seen.min(self.view.now)));
        };
        let too_late = after(look.since, PATIENCE);
        if is_certain || !look.findings.may_change() || look.at >= too_late {
            return None;
        }
        let drained = after(look.since, DRAIN);
        // The end of the last task or pod triggers a decision.
        if self.drains() && self.view.now < drained {
            return Some(drained);
        }
        Some(after(look.at, LOOK_AGAIN).min(too_late))
    }

    /// Reports that the API server does not let the operator read why the run failed, once the reads have failed for a
    /// while. `since` is the time of the first failed read.
    fn show_examining(self, run: &'a Run, outcome: &Outcome, since: Time, decision: &mut Decision) {
        let Some(trouble) = self.view.target.memory.trouble.as_deref() else { return };
        let due = after(since, SHOW_AFTER);
        if self.view.now < due {
            return decision.wake_at(due);
        }
        let trouble = OwnTrouble { cause: OwnCause::CannotExamine, words: trouble.words.clone() };
        let awaiting = Awaiting::Examining { since, trouble };
        decision.awaiting.push((self.execution.id.clone(), awaiting.clone()));
        let before = &self.execution.run_shown;
        let seen = || self.proof(run).cloned().map(|proof| Box::new(self.of_attempt(proof)));
        let shown = RunShown {
            proof: before.proof.clone().or_else(seen),
            tasks: before.tasks,
            awaits: Some(Box::new(awaiting.shown(before.awaits.as_deref()))),
        };
        self.show(run, &outcome.reason, shown, None, decision);
    }

    /// Returns the failure of an execution whose run was deleted while it ran and of which nothing is left. What was
    /// seen and found decides whether anything ran.
    pub(super) fn left_over(self, run: &'a Run) -> Failure {
        let found = run.memory.diagnosed.as_ref().map(|look| look.findings.started.clone());
        let seen = self.proof(run).cloned().map(Started::Started);
        let started = seen.or(found).unwrap_or(Started::Unknown(Doubt::RunGone));
        let held = run.stop.as_ref().map_or("", |stop| &stop.finalizers);
        let message = format!(
            "PipelineRun {} was deleted while the workflow was running, and nothing of it is left; finalizers hold it: \
             {held}",
            run.id
        );
        self.failed_as(started, &message, self.view.now)
    }

    /// Returns why a person or a deletion ended the run, if one did: no other attempt follows. Runs that the operator
    /// cancelled, because they did not start or end in time, count as ordinary failures.
    fn ended_by(self, run: &Run) -> Option<Stop> {
        let of_ours = matches!(run.cancel_reason, Some(CancelReason::NotStarted | CancelReason::TimedOut));
        let findings = run.memory.diagnosed.as_ref().map(|look| &look.findings);
        // This applies even if a running task failed meanwhile: a person who stops a run wants no other attempt.
        let cancelled = run.stopped || findings.map_or(run.cancelled, |findings| findings.was_cancelled) && !of_ours;
        if cancelled { Some(Stop::Cancelled) } else { self.asked_to_end() }
    }

    fn drains(self) -> bool {
        self.view.target.residue_of(&self.execution.id).next().is_some()
    }

    pub(super) fn finish(self, ending: Ending, gone: Option<RunId>) -> Action {
        let facts = gone.map(|run| Fact::RunGone(self.execution.id.clone(), run)).into_iter().collect();
        self.finish_if(facts, ending)
    }

    /// Ends the execution if these facts hold.
    pub(super) fn finish_if(self, facts: Vec<Fact>, ending: Ending) -> Action {
        self.view.ended(self.execution, facts, ending, self.drains())
    }

    /// Converts Tekton's report and the findings of the examination into the end of the execution.
    fn ending_of(self, run: &'a Run, outcome: &Outcome) -> Ending {
        let completed_at = outcome.completed_at.map_or(self.view.now, |time| time.min(after(self.view.now, MAX_SKEW)));
        let proof = self.proof(run).cloned();
        if outcome.succeeded {
            let completed_at = round_up(completed_at); // as a status keeps it
            let ran_for = elapsed(self.started_at, completed_at);
            let tasks = run.tasks(run.total_tasks.unwrap_or(0).saturating_sub(run.skipped_tasks));
            let started = succeeded(run, proof);
            let ended =
                |_| Box::new(AttemptEnd { completed_at, started: started.ran(), reason: None, message: "".into() });
            let attempt = self.execution.retry.as_ref().map(ended);
            let (outcome, started) = (outcome.clone(), self.worst(started));
            return Ending::Completed(Success { completed_at, ran_for, outcome, started, attempt, tasks });
        }
        let said = format!("{}: {}", outcome.reason, outcome.message);
        let unread = || Findings::unread(said.clone().into());
        let findings = run.memory.diagnosed.as_ref().map_or_else(unread, |look| look.findings.clone());
        let own = proof.map_or(findings.started.clone(), Started::Started);
        let started = self.worst(own.clone());
        let completed =
            if run.memory.diagnosed.is_some() { findings.completed_tasks } else { run.memory.seen.completed_tasks };
        let (reason, message) = self.why(run, &findings, &said);
        let cancelled = is_cancelled_by_a_person(run, &findings);
        let counts = !started.may_have_run() && !cancelled;
        let failure = self.failed(&message, completed_at);
        Ending::Failed(Failure {
            reason,
            tried: self.tried(&own, reason, &message, failure.failed_at),
            started,
            task: findings.cause.task,
            tasks: run.tasks(completed),
            outcome: Some(outcome.clone()),
            cancelled,
            stage: if findings.unresolved { Stage::Unresolved } else { Stage::Released },
            charge: self.charge(failure.failed_at, counts),
            ..failure
        })
    }

    /// Returns why a run failed: why it was cancelled, if it was, and otherwise what the examination found.
    fn why(self, run: &Run, findings: &Findings, said: &str) -> (FailureReason, String) {
        if !was_cancelled(run, findings) {
            return (findings.cause.reason, findings.cause.message.to_string());
        }
        match (run.cancel_reason, &self.execution.cancellation) {
            (Some(CancelReason::Requested), Some(cancellation)) => {
                let message = format!("cancelled by {}: {}", cancellation.author(), cancellation.reason);
                (FailureReason::Unknown, message)
            }
            (Some(CancelReason::NotStarted), _) => {
                let deadline = duration::format(self.view.policy.start_deadline);
                let message = format!("nothing of it was seen to start within {deadline}, so it was cancelled");
                match &findings.waited {
                    Some(waited) => (waited.reason, format!("{message}; it waited for {}", waited.words)),
                    None => (FailureReason::Unknown, format!("{message}; Tekton says {said}")),
                }
            }
            (Some(CancelReason::TimedOut), _) => {
                let timeout = duration::format(self.timeout(run));
                let message = format!(
                    "not done a minute after its time-out of {timeout}, so it was cancelled; Tekton says {said}"
                );
                (FailureReason::DeadlineExceeded, message)
            }
            _ => {
                let what = match (run.cancelled, run.stopped) {
                    (true, _) => "the PipelineRun was cancelled by somebody else",
                    (false, true) => "the PipelineRun was stopped by somebody else (StoppedRunFinally)",
                    (false, false) => "a task of the PipelineRun was cancelled by somebody else",
                };
                (findings.cause.reason, format!("{what}; Tekton says {said}"))
            }
        }
    }

    /// Creates the failure of an execution whose run is not there to examine.
    pub(super) fn failed(self, message: &str, failed_at: Time) -> Failure {
        let shown = self.shown_proof().cloned().map(Started::Started);
        let lost = || match &self.execution.recall().lost_proof {
            Some(Lost::Vanished(started)) => Some(started.clone()),
            Some(Lost::Unreleased(_)) | None => None,
        };
        self.failed_as(shown.or_else(lost).unwrap_or(Started::Unknown(Doubt::RunGone)), message, failed_at)
    }

    /// Creates the failure of an execution whose run was never released to Tekton.
    pub(super) fn never_started(self, message: &str, failed_at: Time) -> Failure {
        let shown = self.shown_proof().cloned();
        self.failed_as(shown.map_or(Started::NotStarted(Absence::NoRun), Started::Started), message, failed_at)
    }

    pub(super) fn failed_as(self, own: Started, message: &str, failed_at: Time) -> Failure {
        let failed_at = round_up(failed_at); // as a status keeps it
        let tried = self.tried(&own, FailureReason::Unknown, message, failed_at);
        let started = self.worst(own);
        let counts = !started.may_have_run();
        Failure {
            reason: FailureReason::Unknown,
            message: message.into(),
            started,
            task: None,
            tasks: self.execution.run_shown.tasks,
            failed_at,
            ran_for: elapsed(self.started_at, failed_at),
            number: None,
            outcome: None,
            cancelled: false,
            stage: Stage::Released,
            fingerprint: None,
            shared_outage: false,
            charge: self.charge(failed_at, counts),
            tried,
        }
    }

    /// Creates the failure of an execution whose run was never released.
    pub(super) fn unreleased(self, trouble: &Trouble) -> Failure {
        let deadline = duration::format(self.view.policy.start_deadline);
        let message =
            format!("the PipelineRun could not be released within {deadline}, so it was deleted: {}", trouble.words);
        let failure = self.failed_as(Started::NotStarted(Absence::NoRun), &message, self.view.now);
        let counts = !failure.was_execution_failure();
        Failure { stage: Stage::Creating, charge: self.charge(failure.failed_at, counts), ..failure }
    }

    pub(super) fn charge(self, at: Time, counts: bool) -> Charge {
        // A child's failure counts only for its schedule.
        let weight = if counts && self.execution.child.is_none() { Weight::Counts } else { Weight::None };
        self.view.charge(at, weight)
    }
}

/// Returns whether the run ended because it was cancelled, and had not already failed by itself.
fn was_cancelled(run: &Run, findings: &Findings) -> bool {
    findings.was_cancelled || run.memory.diagnosed.is_none() && (run.cancelled || run.stopped)
}

/// Returns whether a person cancelled the run, on the execution or on the run itself.
fn is_cancelled_by_a_person(run: &Run, findings: &Findings) -> bool {
    let by_a_person = matches!(run.cancel_reason, None | Some(CancelReason::Requested));
    was_cancelled(run, findings) && (run.cancelled || run.stopped) && by_a_person
}

/// Returns whether a run succeeded without running any task.
fn all_skipped(run: &Run) -> bool {
    run.total_tasks.is_some_and(|total| total == run.skipped_tasks)
}

/// Returns whether anything of a successful run ran. No live read is made, because nothing depends on the answer.
fn succeeded(run: &Run, proof: Option<Proof>) -> Started {
    match (proof, &run.memory.seen.opaque) {
        (Some(proof), _) => Started::Started(proof),
        (None, Some(name)) => Started::Unknown(Doubt::Opaque(name.clone())),
        (None, None) if all_skipped(run) => Started::NotStarted(Absence::NoTaskRun),
        (None, None) => Started::Unknown(Doubt::Unread),
    }
}

/// Returns the time from start to end, in whole seconds as in the status; zero if a skewed clock makes it negative.
fn elapsed(start: Option<Time>, end: Time) -> Duration {
    let seconds = start.map_or(0, |start| end.timestamp().saturating_sub(start.timestamp()));
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
