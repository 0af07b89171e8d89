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
    /// Whose status.
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
    /// Step (c): phase Running, and which run.
    Running {
        /// The run that it commits to.
        run: RunId,
        /// The run's number.
        number: RunNumber,
        /// The counter that it inherits (`consecutiveFailures`, section 7).
        consecutive_failures: u32,
    },
    /// The first half of a withdrawal: an undecided execution will never commit to a run up to this number. From then
    /// on a commit on an older view fails, and the runs can be deleted. Without it, a concurrent commit and deletion
    /// could both be accepted.
    GaveUp {
        /// The highest number that it gives up.
        number: RunNumber,
    },
    /// An attempt has failed, and there is another: phase Running stays, and the target is held (section 11).
    Retry {
        /// Which attempt has failed.
        attempt: u32,
        /// How many there are at the most.
        of: u32,
        /// Its run; none if its creation was refused.
        run: Option<RunId>,
        /// How it ended.
        end: AttemptEnd,
        /// The proof that a step of it ran, if there is one.
        proof: Option<Proof>,
        /// The wait before the next attempt.
        delay: Duration,
        /// When the next attempt may begin.
        not_before: Time,
    },
    /// What delays the next attempt of an execution, although its wait is over.
    HeldBack {
        /// What it waits for.
        waiting: Waiting,
    },
    /// The terminal write.
    Ended {
        /// How it ended.
        ending: Ending,
        /// Whether the target drains after it.
        draining: bool,
    },
    /// The progress of a Running execution.
    Progress {
        /// Its run.
        run: RunId,
        /// The new progress.
        shown: RunShown,
        /// What Tekton reports that the run is doing, or why it has failed.
        doing: Box<str>,
        /// What the run waits for, if nothing of it has started.
        wait: Option<Wait>,
        /// Since when the execution runs.
        started_at: Time,
    },
    /// What an undecided execution waits for (phase Pending).
    Waiting {
        /// What for.
        waiting: Waiting,
        /// For how long its run has been tried to be created, if it is.
        tried: Option<Duration>,
    },
    /// The target of a terminal execution has drained.
    Freed,
    /// The effect of a clearance (section 10).
    Cleared {
        /// The clearance.
        clearance: Clearance,
        /// Whether it has lifted a block. If not, it never does anything.
        effective: bool,
    },
    /// Whether a terminal execution blocks its target.
    Blocked(Blocked),
    /// No policy was in force when a clearance or cancellation was seen.
    Unguarded {
        /// Which of the two.
        kind: Directive,
        /// Whether it counts all the same, because the policies are back.
        counts: bool,
    },
}

impl Says {
    /// Returns its name, for marks.
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

    /// Returns whether events and counters announce the write, and not only a line of the log.
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

    /// Returns whether an execution is as this write makes it, for a write that [is announced](Self::is_announced): if
    /// its answer was lost, the view shows whether it happened.
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

    /// Returns whether the write leaves other conditions in the status as they are, so that they must be read live
    /// first.
    #[must_use]
    pub fn keeps_conditions(&self) -> bool {
        matches!(
            self,
            Self::Freed | Self::Cleared { .. } | Self::Blocked(_) | Self::HeldBack { .. } | Self::Unguarded { .. }
        )
    }
}

impl Execution {
    /// Makes a write to its status that needs no fact but its version.
    pub(crate) fn says(&self, says: Says) -> Action {
        self.says_if(Vec::new(), says)
    }

    /// Makes a write to its status that needs these facts.
    pub(crate) fn says_if(&self, facts: Vec<Fact>, says: Says) -> Action {
        Action::Write(Write { execution: self.id.clone(), version: self.version.clone(), facts, says })
    }
}
