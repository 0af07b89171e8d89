//! What follows a failed attempt: another attempt, or the end of the execution (section 11).

use super::Running;
use crate::Time;
use crate::action::{Action, AttemptFacts, Decision, Ending, Says};
use crate::ending::{Failure, Tried};
use crate::evidence::{Doubt, Proof, Ran, Started};
use crate::name::RunId;
use crate::reason::FailureReason;
use crate::retry::{self, AttemptEnd, FailedAttempt, Next, Stop};

/// A failed attempt, with everything that the next attempt depends on.
pub(super) struct Failed<'a> {
    /// The run of the attempt; `None` if its creation was refused.
    pub(super) run: Option<&'a RunId>,
    /// The failure with which the execution would end.
    pub(super) failure: Failure,
    /// Why the execution ends with this attempt, if a person or a deletion ended it.
    pub(super) ended_by: Option<Stop>,
}

impl<'a> Running<'a> {
    /// Records a failed attempt and that another one follows, or ends the execution. Returns true if neither is
    /// possible yet, because the conditions of the policy must be evaluated first. That requires reads from the
    /// cluster.
    pub(super) fn fail(self, failed: Failed<'_>, decision: &mut Decision) -> bool {
        let Failed { run, failure, ended_by } = failed;
        let (now, execution) = (self.view.now, self.execution);
        let last = failure.tried.as_deref().and_then(|tried| Some((tried, tried.end.as_ref()?)));
        let (Some(retry), Some((tried, end))) = (&execution.retry, last) else {
            decision.actions.push(self.finish(Ending::Failed(failure), None));
            return false;
        };
        let answers = execution.recall().answers.as_deref();
        let is_open = ended_by.is_none() && retry.policy.has_conditions() && answers.is_none();
        if is_open {
            let facts = AttemptFacts {
                attempt: tried.attempt,
                of: tried.of,
                reason: failure.reason,
                message: failure.message.clone(),
                was_execution_failure: end.started != Ran::No,
                task: failure.task.clone(),
            };
            decision.actions.push(Action::Ask { execution: execution.id.clone(), run: run.cloned(), failed: facts });
            return true;
        }
        let since = retry.since(self.started_at).or(run.map(|_| end.completed_at));
        let failed = FailedAttempt {
            policy: &retry.policy,
            attempt: tried.attempt,
            uid: &execution.id.uid,
            ended_by: ended_by.as_ref(),
            reason: failure.reason,
            started: end.started,
            answers: answers.unwrap_or(&retry::UNANSWERED),
            since: since.unwrap_or(now),
            now,
        };
        match retry::next(&failed) {
            Next::Retry { delay, not_before } => {
                if since.is_some() {
                    decision.wake_at(failed.too_late());
                }
                decision.actions.push(execution.says(Says::Retry {
                    attempt: tried.attempt,
                    of: tried.of,
                    run: run.cloned(),
                    end: end.clone(),
                    proof: self.proof_to_keep(&failure.started),
                    delay,
                    not_before,
                }));
            }
            Next::Stop(stop) => decision.actions.push(self.finish(Ending::Failed(stopped(failure, stop)), None)),
        }
        false
    }

    /// Returns why the execution was asked to end, if it was. These are the cases of the first row in section 11.3 that
    /// the execution itself shows.
    pub(super) fn asked_to_end(self) -> Option<Stop> {
        if self.execution.cancelled(self.view.target.guard).is_some() {
            return Some(Stop::Cancelled);
        }
        self.execution.deleting.then_some(Stop::Deleted)
    }

    /// Returns what the end of the execution records about its current attempt, if it has a policy. A failure that goes
    /// through [`fail`](Self::fail) gets its stop from the table there. Any other failure ends the execution because
    /// its run is gone or never existed: the last case of the first row.
    pub(super) fn tried(
        self,
        started: &Started,
        reason: FailureReason,
        message: &str,
        completed_at: Time,
    ) -> Option<Box<Tried>> {
        let retry = self.execution.retry.as_ref()?;
        let (reason, message) = (Some(reason), message.into());
        let end = Some(AttemptEnd { completed_at, started: started.ran(), reason, message });
        let (attempt, of) = (retry.current(), retry.policy.max_attempts);
        let stop = self.asked_to_end().unwrap_or(Stop::RunDeleted);
        Some(Box::new(Tried { attempt, of, end, stop }))
    }

    /// Returns the worst result of all attempts, where `current` is the result of the current one. A recorded proof
    /// comes first, because it stays recorded.
    pub(super) fn worst(self, current: Started) -> Started {
        let Some(retry) = &self.execution.retry else { return current };
        let Some((attempt, worst)) = retry.ended().map(|(attempt, end)| (attempt, end.started)).max_by_key(|it| it.1)
        else {
            return self.named(current);
        };
        match (worst, current.ran()) {
            (Ran::Yes, _) => {
                let shown = self.execution.run_shown.proof.as_deref().cloned();
                shown.map_or(Started::Unknown(Doubt::Attempt(attempt)), Started::Started)
            }
            (Ran::Unknown, Ran::No) => Started::Unknown(Doubt::Attempt(attempt)),
            _ => self.named(current),
        }
    }

    /// Adds the number of the attempt to the proof that a step of the attempt ran.
    fn named(self, started: Started) -> Started {
        match started {
            Started::Started(proof) => Started::Started(self.of_attempt(proof)),
            other => other,
        }
    }

    /// Adds the number of the attempt to a proof, if there can be several attempts.
    pub(super) fn of_attempt(self, proof: Proof) -> Proof {
        match &self.execution.retry {
            Some(retry) if !proof.words.starts_with("attempt ") => {
                Proof { words: format!("attempt {}: {}", retry.current(), proof.words).into(), ..proof }
            }
            _ => proof,
        }
    }

    /// Returns the recorded proof that a step of the current attempt ran. A proof of an earlier attempt does not count.
    pub(super) fn shown_proof(self) -> Option<&'a Proof> {
        let mut earlier = self.execution.retry.iter().flat_map(|retry| retry.ended());
        let ran_before = earlier.any(|(_, end)| end.started == Ran::Yes);
        self.execution.run_shown.proof.as_deref().filter(|_| !ran_before)
    }

    /// Returns the proof that is written with the record of an attempt; `None` if a proof is already recorded.
    fn proof_to_keep(self, worst: &Started) -> Option<Proof> {
        match worst {
            Started::Started(proof) if self.execution.run_shown.proof.is_none() => Some(proof.clone()),
            _ => None,
        }
    }
}

/// Adds to a failure why no other attempt follows.
pub(super) fn stopped(mut failure: Failure, stop: Stop) -> Failure {
    if let Some(tried) = &mut failure.tried {
        tried.stop = stop;
    }
    failure
}
