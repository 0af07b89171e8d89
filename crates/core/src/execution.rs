//! One execution (a `WorkflowExecution` object), with the fields that decisions need.

mod directive;

use std::sync::Arc;
use std::time::Duration;

use crate::Time;
use crate::awaiting::AwaitingShown;
use crate::bundle::Bundle;
use crate::chain::RunNumber;
use crate::evidence::{Proof, Started};
use crate::findings::{TaskCount, Wait};
use crate::fingerprint::{Fingerprint, Origin};
use crate::guard::{Unguarded, author};
use crate::name::{ExecutionId, RunId, Uid, Version};
use crate::reason::{FailureReason, Refusal};
use crate::retry::{Answers, NextAttempt, Retry};
use crate::run::Run;
use crate::schedule::ChildOf;
use crate::tries::Trouble;
use crate::waiting::Pause;

/// The fields of one `WorkflowExecution` that the index keeps. Fields that few executions have are boxed, because there
/// are tens of thousands of executions.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// The object.
    pub id: ExecutionId,
    /// The version that was read; a write sends it back.
    pub version: Version,
    /// When the API server created the execution; the oldest rival goes first.
    pub created: Time,
    /// Whether the execution is being deleted (a finalizer of another controller still holds it).
    pub deleting: bool,
    /// `spec.workflowRef.workflowId`.
    pub workflow_id: Arc<str>,
    /// What the execution runs, for fingerprints.
    pub origin: Arc<Origin>,
    /// The bundle that the execution runs (`spec.workflowRef.containerImage` and `containerDigest`).
    pub bundle: Bundle,
    /// `status.runSequence`: the number of the run that the execution tried last. While the execution is undecided: the
    /// number that it has given up.
    pub run_sequence: Option<RunNumber>,
    /// `spec.executionConfig.timeout`, if it is valid.
    pub timeout: Option<Duration>,
    /// `spec.ttlSecondsAfterFinished`.
    pub ttl: Option<Duration>,
    /// `spec.recoveryOf`: the execution in the same namespace whose failure this execution repairs.
    pub recovery_of: Option<Box<str>>,
    /// The retry policy and its attempts, if the execution has a policy and has not ended.
    pub retry: Option<Box<Retry>>,
    /// `spec.clearance`, if it is set.
    pub clearance: Option<Box<Clearance>>,
    /// `spec.cancellation`, if it is set.
    pub cancellation: Option<Box<Cancellation>>,
    /// The pause of the execution's namespace or of its target's namespace, if there is one.
    pub paused: Option<Arc<Pause>>,
    /// Whether the run lives in another execution namespace: another operator then owns the execution, and this one
    /// ignores it.
    pub elsewhere: bool,
    /// The condition `Waiting` of the status, if it is set.
    pub waiting_shown: Option<Box<WaitingShown>>,
    /// Whether the status shows that the target drains (`TargetLocked`). After the end: also whether the status still
    /// has a condition that is only true before the end.
    pub draining_shown: bool,
    /// The reason of the condition `Blocked`, including [`RECOVERED`](crate::blocks::RECOVERED), which a recovery sets.
    pub blocked_shown: Option<Box<str>>,
    /// What the status shows of the run while the execution is Running.
    pub run_shown: RunShown,
    /// The phase, with the fields of that phase.
    pub state: ExecutionState,
    /// The relation to the schedule that created the execution, if one did.
    pub child: Option<Box<ChildOf>>,
    /// What this process remembers of the execution. Most executions have ended and need no memory.
    pub memory: Option<Box<ExecutionMemory>>,
}

/// What this process remembers of an execution that its object does not contain. A new process remembers nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionMemory {
    /// When this process first saw the execution wait, while it is undecided.
    pub waits_since: Option<Time>,
    /// When the operator first tried to create the run, moved later by the time in which no process tried (see
    /// [`tries`](crate::tries)). `None` while this process does not try.
    pub first_try: Option<Time>,
    /// The refused create of the run, until the status records it.
    pub refusal: Option<Refusal>,
    /// When the progress was last written to the status.
    pub progress_shown_at: Option<Time>,
    /// The waits of the run in this attempt that the status has shown, each with the last time.
    pub waits_shown: Vec<(Wait, Time)>,
    /// What is known of the run, if this process has seen it vanish or has deleted it.
    pub lost_proof: Option<Lost>,
    /// The results of the retry policy's conditions for the last attempt, if they were evaluated.
    pub answers: Option<Box<Answers>>,
    /// The number of the run, if the status lost the name of the run. The next status write names the run again.
    pub found_run: Option<RunNumber>,
}

/// The memory of an execution of which nothing is remembered.
static NOTHING: ExecutionMemory = ExecutionMemory {
    waits_since: None,
    first_try: None,
    refusal: None,
    progress_shown_at: None,
    waits_shown: Vec::new(),
    lost_proof: None,
    answers: None,
    found_run: None,
};

impl ExecutionMemory {
    /// Returns the part of the memory that survives a new version of the execution, if any. The facts of one attempt
    /// end with that attempt: otherwise an old refusal would end the next attempt, too.
    #[must_use]
    pub fn kept(self, was: &Execution, is: &Execution) -> Option<Box<Self>> {
        use ExecutionState::{Running, Undecided};
        let attempts = |it: &Execution| it.retry.as_ref().map_or(0, |retry| retry.attempts.len());
        let kept = match (&was.state, &is.state) {
            (Undecided { .. }, Undecided { .. }) => {
                Self { progress_shown_at: None, waits_shown: Vec::new(), lost_proof: None, answers: None, ..self }
            }
            (Running { .. }, Running { .. }) if attempts(was) != attempts(is) => Self::default(),
            (Running { .. }, Running { .. }) if is.next_attempt().is_some() => self,
            (_, Running { .. }) => Self { waits_since: None, first_try: None, refusal: None, ..self },
            _ => Self::default(),
        };
        (kept != NOTHING).then(|| Box::new(kept))
    }

    /// Forgets the outcome of earlier tries to create the run.
    pub fn forget_tries(&mut self) {
        (self.refusal, self.first_try) = (None, None);
    }
}

/// What is known of a run that no longer exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Lost {
    /// The run vanished; the evidence shows whether anything of it ran.
    Vanished(Started),
    /// This process deleted the run, because it could not be released, for this reason.
    Unreleased(Trouble),
}

impl Lost {
    /// Returns whether it is known that nothing of the run ran.
    #[must_use]
    pub fn never_started(&self) -> bool {
        matches!(self, Self::Unreleased(_) | Self::Vanished(Started::NotStarted(_)))
    }
}

/// What the status of an execution shows in its condition `Waiting`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingShown {
    /// The reason of the condition.
    pub reason: Box<str>,
    /// For how long the operator has tried to create the run; zero if the status does not mention it.
    pub tried: Duration,
}

/// What the status of a Running execution shows of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunShown {
    /// The proof that a step of the run ran, if there is one.
    pub proof: Option<Box<Proof>>,
    /// How many tasks of the run are done, if their number is known.
    pub tasks: Option<TaskCount>,
    /// What the execution waits for, if anything.
    pub awaits: Option<Box<AwaitingShown>>,
}

/// A cancellation: a person asks for the execution to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancellation {
    /// The reason that the person gave.
    pub reason: Box<str>,
    /// The user name of the person, as the API server knows it.
    pub requested_by: Box<str>,
    /// The condition `Unguarded`, if no policy guarded the cancellation when it was seen.
    pub unguarded: Option<Unguarded>,
}

impl Cancellation {
    /// Returns who requested the cancellation, and whether that name was checked.
    #[must_use]
    pub fn author(&self) -> String {
        author(&self.requested_by, self.unguarded)
    }
}

/// A clearance: a person confirms that the target is clean, up to and including this execution (section 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clearance {
    /// The reason that the person gave.
    pub reason: Box<str>,
    /// The user name of the person, as the API server knows it.
    pub cleared_by: Box<str>,
    /// The recorded effect.
    pub recorded: Recorded,
    /// The condition `Unguarded`, if no policy guarded the clearance when it was seen.
    pub unguarded: Option<Unguarded>,
}

impl Clearance {
    /// Returns who cleared the target, and whether that name was checked.
    #[must_use]
    pub fn author(&self) -> String {
        author(&self.cleared_by, self.unguarded)
    }
}

/// The effect of a clearance, as the status of its execution records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// No effect is recorded yet.
    Not,
    /// The clearance has lifted a block.
    Effective,
    /// Nothing was blocked when the clearance came (condition `ClearanceIneffective`).
    Ineffective,
}

/// The phase of an execution, with the fields of that phase.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionState {
    /// No phase, or Pending.
    Undecided {
        /// What makes the spec unusable, if anything (rule 0).
        unusable: Option<Box<str>>,
        /// `spec.startBefore`.
        start_before: Option<Time>,
    },
    /// Phase Running: the execution committed to a run.
    Running {
        /// The run that the execution committed to. `None` only if another program wrote the status.
        run: Option<RunId>,
        /// `status.startTime`.
        started_at: Option<Time>,
    },
    /// Phase Completed.
    Completed {
        /// `status.startTime`: when the execution committed to its run.
        started_at: Option<Time>,
        /// `status.completionTime`.
        completed_at: Option<Time>,
    },
    /// Phase Failed.
    Failed(FailedState),
    /// Phase Skipped: a skipped execution is not part of the history.
    Skipped {
        /// `status.completionTime`.
        completed_at: Option<Time>,
    },
}

/// The failure in the status of a Failed execution. Every time may be missing, because another version of the operator
/// may have written the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedState {
    /// `status.failureDetails.reason`.
    pub reason: FailureReason,
    /// `status.failureDetails.wasExecutionFailure`; true if the field is missing, because the answer is then unknown.
    pub was_execution_failure: bool,
    /// Whether a person cancelled the execution (reason `Cancelled` of its condition `Succeeded`).
    pub cancelled: bool,
    /// `status.failureDetails.failedAt`.
    pub failed_at: Option<Time>,
    /// `status.completionTime`.
    pub completed_at: Option<Time>,
    /// `status.nextAllowedExecution`.
    pub next_allowed_execution: Option<Time>,
    /// `status.failureDetails.fingerprint`, if it is valid.
    pub fingerprint: Option<Fingerprint>,
    /// `status.failureDetails.sharedOutage`: the execution failed before anything ran, and other targets failed alike.
    /// The failure does not count.
    pub shared_outage: bool,
}

impl Execution {
    /// Returns an execution without a phase and with default fields.
    #[must_use]
    pub fn undecided(id: ExecutionId, version: Version, created: Time) -> Self {
        Self {
            id,
            version,
            created,
            deleting: false,
            workflow_id: "".into(),
            origin: Arc::default(),
            bundle: Bundle::default(),
            run_sequence: None,
            timeout: None,
            ttl: None,
            recovery_of: None,
            retry: None,
            clearance: None,
            cancellation: None,
            paused: None,
            elsewhere: false,
            waiting_shown: None,
            draining_shown: false,
            blocked_shown: None,
            run_shown: RunShown::default(),
            state: ExecutionState::Undecided { unusable: None, start_before: None },
            child: None,
            memory: None,
        }
    }

    /// Returns what this process remembers of the execution.
    #[must_use]
    pub fn recall(&self) -> &ExecutionMemory {
        self.memory.as_deref().unwrap_or(&NOTHING)
    }

    /// Returns what this process remembers of the execution, mutably.
    pub fn remember(&mut self) -> &mut ExecutionMemory {
        self.memory.get_or_insert_default()
    }

    /// Returns the attempt that the execution waits for, if it is Running and between two attempts.
    #[must_use]
    pub fn next_attempt(&self) -> Option<NextAttempt> {
        let (ExecutionState::Running { started_at, .. }, Some(retry)) = (&self.state, &self.retry) else { return None };
        let last = retry.attempts.last().filter(|last| last.started_at.is_none() && last.end.is_none())?;
        let not_before = last.not_before?;
        let ends_by = retry.ends_by(*started_at, not_before);
        Some(NextAttempt { attempt: retry.current(), of: retry.policy.max_attempts, not_before, ends_by })
    }

    /// Returns whether the execution runs the same as another one: the same workflow, or a workflow from the same
    /// bundle.
    #[must_use]
    pub fn runs_the_same_as(&self, other: &Self) -> bool {
        self.workflow_id == other.workflow_id || self.bundle.is_same(other.bundle)
    }

    /// Returns whether the execution analyses failures for a triage. Its end does not show whether workflows can run.
    #[must_use]
    pub fn analyses(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.analyses)
    }

    /// Returns whether the phase is final.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.state,
            ExecutionState::Completed { .. } | ExecutionState::Failed(_) | ExecutionState::Skipped { .. }
        )
    }

    /// Returns when the execution ended, if it has ended and its status has the time.
    #[must_use]
    pub fn ended_at(&self) -> Option<Time> {
        match &self.state {
            ExecutionState::Undecided { .. } | ExecutionState::Running { .. } => None,
            ExecutionState::Completed { completed_at, .. } | ExecutionState::Skipped { completed_at } => *completed_at,
            // A failure counts from `failedAt`. `completionTime` is the same, unless another program wrote the status.
            ExecutionState::Failed(failed) => failed.failed_at.or(failed.completed_at),
        }
    }

    /// Returns for how long this process and earlier ones have tried to create the run. `None` if this process does not
    /// try.
    #[must_use]
    pub fn tried_for(&self, now: Time) -> Option<Duration> {
        self.recall().first_try.map(|first| (now - first).to_std().unwrap_or_default())
    }

    /// Returns whether the execution waits for its decision: it has no phase or is Pending, and is not being deleted.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(self.state, ExecutionState::Undecided { .. }) && !self.deleting
    }

    /// Returns whether the status shows that the execution will never commit to this run of its own.
    #[must_use]
    pub fn has_given_up(&self, run: &Run) -> bool {
        self.is_undecided() && self.run_sequence.is_some_and(|given_up| run.number <= given_up)
    }

    /// Returns whether the execution committed to this run and is not yet terminal.
    #[must_use]
    pub fn is_running(&self, candidate: &RunId) -> bool {
        self.is_running_on(&candidate.uid)
    }

    /// Returns whether the execution committed to the run with this uid and is not yet terminal.
    #[must_use]
    pub fn is_running_on(&self, candidate: &Uid) -> bool {
        matches!(&self.state, ExecutionState::Running { run: Some(run), .. } if run.uid == *candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, failed, no_answer, running, undecided};

    #[test]
    fn a_wait_is_remembered_while_it_is_undecided_and_a_run_while_it_runs() {
        let memory = |of_wait: bool, of_run: bool| ExecutionMemory {
            waits_since: of_wait.then(|| at(1)),
            first_try: of_wait.then(|| at(2)),
            refusal: of_wait.then(|| Refusal { reason: FailureReason::Forbidden, message: "no".into(), number: 1 }),
            progress_shown_at: of_run.then(|| at(3)),
            waits_shown: if of_run { vec![(Wait::Node, at(3))] } else { Vec::new() },
            lost_proof: of_run.then(|| Lost::Unreleased(no_answer())),
            answers: None,
            found_run: None,
        };
        let kept = |was: &Execution, is: &Execution| memory(true, true).kept(was, is).map(|it| *it);
        let (waits, runs, ended) = (undecided("a"), running("a", "r1"), failed("a"));
        assert_eq!(kept(&waits, &waits), Some(memory(true, false)));
        assert_eq!(kept(&waits, &runs), Some(memory(false, true)));
        assert_eq!(kept(&runs, &runs), Some(memory(false, true)));
        for was in [&waits, &runs, &ended] {
            assert_eq!(kept(was, &ended), None, "what has ended is in its status");
        }
        assert_eq!(memory(false, true).kept(&waits, &waits), None, "nothing takes no room");
    }
}
