//! One execution (a `WorkflowExecution` object), as far as decisions need it.

mod word;

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

/// What the index keeps of one `WorkflowExecution`. What few of them have is boxed: there are tens of thousands.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// Which object it is.
    pub id: ExecutionId,
    /// The version that was seen; what a write to it carries back.
    pub version: Version,
    /// When the API server made it; the oldest of several rivals goes first.
    pub created: Time,
    /// Whether its deletion has begun (something else's finalizer still holds it).
    pub deleting: bool,
    /// `spec.workflowRef.workflowId`.
    pub workflow_id: Arc<str>,
    /// What it runs, as far as fingerprints need it.
    pub origin: Arc<Origin>,
    /// Which bundle it runs (`spec.workflowRef.containerImage` and `containerDigest`).
    pub bundle: Bundle,
    /// `status.runSequence`: the number of the run that it tried last. While it is undecided: has tried and given up.
    pub run_sequence: Option<RunNumber>,
    /// `spec.executionConfig.timeout`, where it can be read.
    pub timeout: Option<Duration>,
    /// `spec.ttlSecondsAfterFinished`.
    pub ttl: Option<Duration>,
    /// `spec.recoveryOf`: the name of the execution in the same namespace whose failure this one is to repair.
    pub recovery_of: Option<Box<str>>,
    /// Its retry policy, where it has one and has not ended, with its attempts.
    pub retry: Option<Box<Retry>>,
    /// `spec.clearance`, where somebody has set it.
    pub clearance: Option<Box<Clearance>>,
    /// `spec.cancellation`, where somebody has set it.
    pub cancellation: Option<Box<Cancellation>>,
    /// The pause of its namespace or of its target's, where there is one.
    pub paused: Option<Arc<Pause>>,
    /// Whether its run lives in another execution namespace: then it is another operator's, and left alone.
    pub elsewhere: bool,
    /// What its status says that it waits for (the condition `Waiting`), where it does.
    pub waiting_shown: Option<Box<WaitingShown>>,
    /// Whether its status says that its target drains (`TargetLocked`), or, after the end, what is true before it only.
    pub draining_shown: bool,
    /// The reason of its condition `Blocked`, also the one that its recovery gives it
    /// ([`RECOVERED`](crate::standing::RECOVERED)).
    pub blocked_shown: Option<Box<str>>,
    /// What its status says of its run while it goes on.
    pub run_shown: RunShown,
    /// Where it stands.
    pub state: ExecutionState,
    /// What it is to the schedule that made it, where one did.
    pub child: Option<Box<ChildOf>>,
    /// What this process remembers of it. Most have ended, and of these there is nothing to remember.
    pub memory: Option<Box<ExecutionMemory>>,
}

/// What this process remembers of an execution, beside what its object says. A process that begins remembers nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionMemory {
    /// Since when it has been seen to wait, while it is undecided.
    pub waits_since: Option<Time>,
    /// When its run was first tried to be created, without the time in which nobody tried (see
    /// [`tries`](crate::tries)). None while this process does not try.
    pub first_try: Option<Time>,
    /// The create of its run that the API server refused, where it did, until that is written to the status.
    pub refusal: Option<Refusal>,
    /// When its status was last told how far its run is.
    pub progress_shown_at: Option<Time>,
    /// What its run waited for in this attempt as the status was told, and when last: one entry for each kind of wait.
    pub waits_shown: Vec<(Wait, Time)>,
    /// What is known of its run, where this process has seen the run vanish or has deleted it.
    pub lost_proof: Option<Lost>,
    /// What the conditions of its retry policy have said of its last attempt, where they were asked.
    pub answers: Option<Box<Answers>>,
    /// The number of its run, where its status lost the name of the run: the next status names the run again.
    pub found_run: Option<RunNumber>,
}

/// What is remembered of most executions.
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
    /// Returns what of it outlives a new version of the execution, if anything does. What belongs to one attempt ends
    /// with it: a refusal that outlived its attempt would use up the next.
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

    /// Forgets what came of earlier tries to create its run.
    pub fn forget_tries(&mut self) {
        (self.refusal, self.first_try) = (None, None);
    }
}

/// What is known of a run that is not there any more.
#[derive(Clone, Debug, PartialEq)]
pub enum Lost {
    /// It vanished; with what is known of whether anything of it ran.
    Vanished(Started),
    /// This process has deleted it, as it could not be released; with what stood in the way.
    Unreleased(Trouble),
}

impl Lost {
    /// Tells whether it is known that nothing of the run ran.
    #[must_use]
    pub fn never_started(&self) -> bool {
        matches!(self, Self::Unreleased(_) | Self::Vanished(Started::NotStarted(_)))
    }
}

/// What the status of an execution says that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingShown {
    /// The reason of the condition.
    pub reason: Box<str>,
    /// For how long its run has been tried to be created; zero where nothing is said of it.
    pub tried: Duration,
}

/// What the status of an execution says of its run while it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunShown {
    /// The proof that a step of it ran, where there is one.
    pub proof: Option<Box<Proof>>,
    /// How many of its tasks are done, where it is known how many there are.
    pub tasks: Option<TaskCount>,
    /// What the execution waits for, where it waits for something.
    pub awaits: Option<Box<AwaitingShown>>,
}

/// A person's wish that an execution stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancellation {
    /// Why.
    pub reason: Box<str>,
    /// Who, as the API server knows them.
    pub requested_by: Box<str>,
    /// What the status says where no policy guarded it when it was seen (condition `Unguarded`).
    pub unguarded: Option<Unguarded>,
}

impl Cancellation {
    /// Returns who asked for it, as far as that is known.
    #[must_use]
    pub fn author(&self) -> String {
        author(&self.requested_by, self.unguarded)
    }
}

/// A person's word that what this execution and those before it left behind is in order (section 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clearance {
    /// Why.
    pub reason: Box<str>,
    /// Who, as the API server knows them.
    pub cleared_by: Box<str>,
    /// What the status says of what it has done.
    pub recorded: Recorded,
    /// What the status says where no policy guarded it when it was seen (condition `Unguarded`).
    pub unguarded: Option<Unguarded>,
}

impl Clearance {
    /// Returns who cleared, as far as that is known.
    #[must_use]
    pub fn author(&self) -> String {
        author(&self.cleared_by, self.unguarded)
    }
}

/// What the status of an execution says of its clearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Nothing yet.
    Not,
    /// That it has lifted a block.
    Effective,
    /// That it came when nothing was blocked (condition `ClearanceIneffective`).
    Ineffective,
}

/// Where an execution stands: its phase, with what that phase brings.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionState {
    /// No phase, or Pending.
    Undecided {
        /// What makes its spec unusable, where something does (rule 0).
        unusable: Option<Box<str>>,
        /// `spec.startBefore`.
        start_before: Option<Time>,
    },
    /// Phase Running: committed to a run.
    Running {
        /// The run that it committed to. None only where something else wrote the status.
        run: Option<RunId>,
        /// `status.startTime`.
        started_at: Option<Time>,
    },
    /// Phase Completed.
    Completed {
        /// `status.startTime`: when it was committed to its run.
        started_at: Option<Time>,
        /// `status.completionTime`.
        completed_at: Option<Time>,
    },
    /// Phase Failed.
    Failed(FailedState),
    /// Phase Skipped: never an execution in the sense of the history.
    Skipped {
        /// `status.completionTime`.
        completed_at: Option<Time>,
    },
}

/// What the status of a Failed execution says. Every time may be missing: another version may have written it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedState {
    /// `status.failureDetails.reason`.
    pub reason: FailureReason,
    /// `status.failureDetails.wasExecutionFailure`; true where that is missing, as then nobody can tell.
    pub was_execution_failure: bool,
    /// Whether a person cancelled it (the reason `Cancelled` of its condition `Succeeded`).
    pub cancelled: bool,
    /// `status.failureDetails.failedAt`.
    pub failed_at: Option<Time>,
    /// `status.completionTime`.
    pub completed_at: Option<Time>,
    /// `status.nextAllowedExecution`.
    pub next_allowed_execution: Option<Time>,
    /// `status.failureDetails.fingerprint`, where it can be read.
    pub fingerprint: Option<Fingerprint>,
    /// `status.failureDetails.sharedOutage`: it failed before anything ran, while others did too. It does not count.
    pub shared_outage: bool,
}

impl Execution {
    /// Returns an execution with no phase and nothing special about it.
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

    /// Returns what this process remembers of it.
    #[must_use]
    pub fn recall(&self) -> &ExecutionMemory {
        self.memory.as_deref().unwrap_or(&NOTHING)
    }

    /// Returns what this process remembers of it, to add something.
    pub fn remember(&mut self) -> &mut ExecutionMemory {
        self.memory.get_or_insert_default()
    }

    /// Returns the attempt that it waits for, where it is Running and between two.
    #[must_use]
    pub fn next_attempt(&self) -> Option<NextAttempt> {
        let (ExecutionState::Running { started_at, .. }, Some(retry)) = (&self.state, &self.retry) else { return None };
        let last = retry.attempts.last().filter(|last| last.started_at.is_none() && last.end.is_none())?;
        let not_before = last.not_before?;
        let ends_by = retry.ends_by(*started_at, not_before);
        Some(NextAttempt { attempt: retry.current(), of: retry.policy.max_attempts, not_before, ends_by })
    }

    /// Tells whether it runs the same as another: the same workflow, or another one from the same bundle.
    #[must_use]
    pub fn runs_the_same_as(&self, other: &Self) -> bool {
        self.workflow_id == other.workflow_id || self.bundle.is_same(other.bundle)
    }

    /// Tells whether it analyses why others failed: it says nothing of whether workflows can run.
    #[must_use]
    pub fn analyses(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.analyses)
    }

    /// Tells whether its phase is final.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.state,
            ExecutionState::Completed { .. } | ExecutionState::Failed(_) | ExecutionState::Skipped { .. }
        )
    }

    /// Returns when it ended, where it has ended and its status says when.
    #[must_use]
    pub fn ended_at(&self) -> Option<Time> {
        match &self.state {
            ExecutionState::Undecided { .. } | ExecutionState::Running { .. } => None,
            ExecutionState::Completed { completed_at, .. } | ExecutionState::Skipped { completed_at } => *completed_at,
            // Its failure counts from `failedAt`; `completionTime` is the same, but in a status of somebody else.
            ExecutionState::Failed(failed) => failed.failed_at.or(failed.completed_at),
        }
    }

    /// Returns for how long its run has been tried to be created, by this process and those before it, where this
    /// process tries.
    #[must_use]
    pub fn tried_for(&self, now: Time) -> Option<Duration> {
        self.recall().first_try.map(|first| (now - first).to_std().unwrap_or_default())
    }

    /// Tells whether it waits for its decision: no phase or Pending, and not on its way out.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        matches!(self.state, ExecutionState::Undecided { .. }) && !self.deleting
    }

    /// Tells whether its status says that it will never commit to this run of its own.
    #[must_use]
    pub fn has_given_up(&self, run: &Run) -> bool {
        self.is_undecided() && self.run_sequence.is_some_and(|given_up| run.number <= given_up)
    }

    /// Tells whether it is committed to this run and not yet terminal.
    #[must_use]
    pub fn is_running(&self, candidate: &RunId) -> bool {
        self.is_running_on(&candidate.uid)
    }

    /// Tells whether it is committed to the run with this uid and not yet terminal.
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
