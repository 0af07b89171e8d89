//! Writes to the status of an execution.

use std::time::Duration;

use super::{Action, Ending};
use crate::Time;
use crate::blocks::Blocked;
use crate::chain::RunNumber;
use crate::evidence::Proof;
use crate::execution::{Clearance, Execution, ExecutionState, Recorded, RunShown};
use crate::findings::Wait;
use crate::guard::Directive;
use crate::name::{ExecutionId, RunId, Version};
use crate::retry::AttemptEnd;
use crate::verdict::Fact;
use crate::waiting::Waiting;

/// A write to an execution's status. Preconditions: its version, and the facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The execution whose status is written.
    pub execution: ExecutionId,
    /// The version that was judged.
    pub version: Version,
    /// The facts that a live read must confirm first, in this order.
    pub facts: Vec<Fact>,
    /// The new content.
    pub says: Says,
}

/// The new content of an execution's status.
#[derive(Clone, Debug, PartialEq)]
pub enum Says {
    /// The execution commits to a run: phase Running (step c).
    Running {
        /// The run.
        run: RunId,
        /// The run's number.
        number: RunNumber,
        /// The failure count that the execution takes over (`consecutiveFailures`, section 7).
        consecutive_failures: u32,
    },
    /// The first half of a withdrawal: an undecided execution gives up its runs up to this number. A commit on an older
    /// view then fails, so the runs can be deleted. Without this write, a commit and a concurrent deletion could both
    /// succeed.
    GaveUp {
        /// The highest number that the execution gives up.
        number: RunNumber,
    },
    /// An attempt has failed, and another one follows. The phase stays Running, and the execution keeps the target
    /// (section 11).
    Retry {
        /// The number of the failed attempt.
        attempt: u32,
        /// The maximum number of attempts.
        of: u32,
        /// The run of the failed attempt; `None` if its creation was refused.
        run: Option<RunId>,
        /// How the failed attempt ended.
        end: AttemptEnd,
        /// The proof that a step of the attempt ran, if there is one.
        proof: Option<Proof>,
        /// The wait before the next attempt.
        delay: Duration,
        /// When the next attempt may begin.
        not_before: Time,
    },
    /// What delays the next attempt of an execution, although the time for it has come.
    HeldBack {
        /// What the attempt waits for.
        waiting: Waiting,
    },
    /// The execution has ended.
    Ended {
        /// How the execution ended.
        ending: Ending,
        /// Whether the target drains after the end.
        draining: bool,
    },
    /// The progress of a Running execution.
    Progress {
        /// The run of the execution.
        run: RunId,
        /// The new progress.
        shown: RunShown,
        /// What the run is doing, or why it failed, as Tekton reports it.
        doing: Box<str>,
        /// What the run waits for, if nothing of it has started.
        wait: Option<Wait>,
        /// When the execution started.
        started_at: Time,
    },
    /// What an undecided execution waits for (phase Pending).
    Waiting {
        /// What the execution waits for.
        waiting: Waiting,
        /// For how long the operator has tried to create the run, if it tries.
        tried: Option<Duration>,
    },
    /// The target of a terminal execution has drained.
    Freed,
    /// The effect of a clearance (section 10).
    Cleared {
        /// The clearance.
        clearance: Clearance,
        /// Whether the clearance has lifted a block. If not, it never has an effect.
        effective: bool,
    },
    /// Whether a terminal execution blocks its target.
    Blocked(Blocked),
    /// No policy was in force when the operator saw a clearance or cancellation.
    Unguarded {
        /// Whether it is the clearance or the cancellation.
        kind: Directive,
        /// Whether the clearance or cancellation counts now, because the policies are back.
        counts: bool,
    },
}

impl Says {
    /// Returns the name of the write, for marks.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running { .. } => "running",
            Self::GaveUp { .. } => "gave up",
            Self::Retry { .. } => "retry",
            Self::HeldBack { .. } => "held back",
            Self::Ended { .. } => "ended",
            Self::Progress { .. } => "progress",
            Self::Waiting { .. } => "waiting",
            Self::Freed => "freed",
            Self::Cleared { .. } => "cleared",
            Self::Blocked(_) => "blocked",
            Self::Unguarded { .. } => "unguarded",
        }
    }

    /// Returns whether an event and a counter announce the write, in addition to the log.
    #[must_use]
    pub fn is_announced(&self) -> bool {
        match self {
            Self::Running { .. }
            | Self::Retry { .. }
            | Self::Ended { .. }
            | Self::Freed
            | Self::Cleared { .. }
            | Self::Unguarded { counts: false, .. } => true,
            Self::GaveUp { .. }
            | Self::HeldBack { .. }
            | Self::Progress { .. }
            | Self::Waiting { .. }
            | Self::Blocked(_)
            | Self::Unguarded { counts: true, .. } => false,
        }
    }

    /// Returns whether the status of an execution shows this write. This shows whether an
    /// [announced](Self::is_announced) write succeeded, if the answer to it was lost.
    #[must_use]
    pub fn is_shown_by(&self, execution: &Execution) -> bool {
        match (self, &execution.state) {
            (Self::Running { run, .. }, ExecutionState::Running { run: Some(shown), .. }) => shown.uid == run.uid,
            (Self::Retry { attempt, .. }, ExecutionState::Running { .. }) => {
                execution.retry.as_ref().is_some_and(|retry| retry.current() > *attempt)
            }
            (Self::Ended { ending, .. }, ExecutionState::Completed { .. }) => matches!(ending, Ending::Completed(_)),
            (Self::Ended { ending, .. }, ExecutionState::Failed(_)) => matches!(ending, Ending::Failed(_)),
            (Self::Freed, _) => execution.is_terminal() && !execution.draining_shown,
            (Self::Cleared { effective, .. }, _) => {
                let recorded = if *effective { Recorded::Effective } else { Recorded::Ineffective };
                execution.clearance.as_ref().is_some_and(|clearance| clearance.recorded == recorded)
            }
            (Self::Unguarded { kind, .. }, _) => execution.shown_unguarded(*kind).is_some(),
            _ => false,
        }
    }

    /// Returns whether the write keeps the other conditions of the status, so that they must be read live first.
    #[must_use]
    pub fn keeps_conditions(&self) -> bool {
        matches!(
            self,
            Self::Freed | Self::Cleared { .. } | Self::Blocked(_) | Self::HeldBack { .. } | Self::Unguarded { .. }
        )
    }
}

impl Execution {
    /// Creates a write to the execution's status with its version as the only precondition.
    pub(crate) fn says(&self, says: Says) -> Action {
        self.says_if(Vec::new(), says)
    }

    /// Creates a write to the execution's status that also depends on facts.
    pub(crate) fn says_if(&self, facts: Vec<Fact>, says: Says) -> Action {
        Action::Write(Write { execution: self.id.clone(), version: self.version.clone(), facts, says })
    }
}
