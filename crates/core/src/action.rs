//! What a decision asks for: writes with their preconditions, and the facts to read live before them.

use std::time::Duration;

use chrono::TimeDelta;

use crate::Time;
use crate::chain::RunNumber;
use crate::ending::{Failure, Skip, Success};
use crate::execution::{Clearance, RunShown};
use crate::explain::Judgement;
use crate::name::{ExecutionId, RunId, Uid, Version};
use crate::residue::ResidueId;
use crate::run::CancelReason;
use crate::standing::{Blocked, Standing};
use crate::verdict::Fact;
use crate::waiting::Waiting;

/// The answer of [`decide`](crate::decide::decide).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now. The actions are independent of each other: any subset may fail its precondition, and then the
    /// target is looked at again.
    pub actions: Vec<Action>,
    /// Who waits, and for what.
    pub waiting: Vec<(ExecutionId, Waiting)>,
    /// How the rules have judged those that ask for their turn.
    pub judged: Vec<(ExecutionId, Judgement)>,
    /// What stands in the way of whoever comes next. Nothing where nothing could be seen.
    pub standing: Standing,
    /// The first moment at which the answer changes by time alone.
    pub wake: Option<Time>,
}

/// One write, or one batch of like writes, each with its precondition.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Step (a): create the chain's next run, pending. Precondition: its name is absent.
    Create {
        /// For whom.
        execution: ExecutionId,
        /// Which number.
        number: RunNumber,
    },
    /// Step (c): phase Running and the run in the execution's status. Precondition: the execution's version.
    Commit {
        /// Who commits.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// To which run.
        run: RunId,
        /// The run's number.
        number: RunNumber,
        /// `startTime`.
        started_at: Time,
        /// The counter as it inherits it (`consecutiveFailures`, section 7).
        consecutive_failures: u32,
        /// What is read live first, in this order.
        facts: Vec<Fact>,
    },
    /// The withdrawal of its pending runs, first half: says in an undecided execution's status that it will never
    /// commit to a run up to this number. Precondition: its version, so that a commit on an older view fails from then
    /// on, and the runs can be deleted. Without it, a commit and a deletion under way at once would both be accepted.
    GiveUp {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// The highest number that it gives up.
        number: RunNumber,
    },
    /// Step (d): hand the run to Tekton. Precondition: its uid, and that it is still pending.
    Release {
        /// Which run.
        run: RunId,
    },
    /// The terminal write. Precondition: the execution's version.
    Finish {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// How it ended.
        ending: Ending,
        /// What is read live first, in this order.
        facts: Vec<Fact>,
        /// Whether the target drains after it.
        draining: bool,
    },
    /// Says in the status of an execution that runs how far it is. Precondition: its version.
    ShowProgress {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// Its run.
        run: RunId,
        /// What to say.
        shown: RunShown,
        /// What Tekton says that the run is doing.
        doing: Box<str>,
        /// Since when the execution runs.
        started_at: Time,
    },
    /// Looks live at a run that has failed and at what it made, to see why, and whether anything ran. Changes nothing.
    Examine {
        /// Which run.
        run: RunId,
    },
    /// Tells that the steps of a task have run again. Changes nothing.
    TellReplay {
        /// Whose run it is.
        execution: ExecutionId,
        /// The run.
        run: RunId,
        /// The task.
        task_run: Box<str>,
    },
    /// Says in a terminal execution's status that its target has drained. Precondition: the execution's version.
    Freed {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
    },
    /// Says in an undecided execution's status what it waits for (phase Pending). Precondition: its version.
    ShowWaiting {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// What for.
        waiting: Waiting,
        /// For how long its run has been tried to be created, where it is.
        tried: Option<Duration>,
    },
    /// Tells the person on call that a target drains for too long. Changes nothing.
    DrainSlow {
        /// Whose tasks or pods are left.
        holder: ExecutionId,
        /// One of what is left.
        residue: ResidueId,
        /// Since when it drains.
        since: Time,
    },
    /// Says in the status what a clearance has done (section 10). Precondition: the execution's version.
    RecordClearance {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// The clearance.
        clearance: Clearance,
        /// Whether it has lifted a block. One that has not changes nothing, for ever.
        effective: bool,
    },
    /// Says in a terminal execution's status whether it blocks its target. Precondition: the execution's version.
    ShowBlocked {
        /// Whose.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
        /// What to say.
        blocked: Blocked,
    },
    /// Skips all of these. Preconditions: the fact, read live once for all, and the version of each.
    Skip {
        /// Who is skipped.
        skipped: Vec<(ExecutionId, Version)>,
        /// Why.
        skip: Skip,
        /// The fact that the skip rests on.
        fact: Fact,
    },
    /// Deletes a run that never ran, or one that is finished and expired. Precondition: its uid and version, so that it
    /// is so still.
    Delete {
        /// Which run.
        run: RunId,
        /// The version in which it was seen so.
        version: Version,
        /// Why.
        why: Unneeded,
        /// What is read live first, in this order.
        facts: Vec<Fact>,
    },
    /// Removes an execution that is over and on which nothing rests any more. Precondition: its uid and version, so
    /// that nobody has cleared it, or said anything else of it, since.
    Remove {
        /// Which execution.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
    },
    /// Reads a run live that its watch does not deliver any more.
    Follow {
        /// Which run.
        run: RunId,
    },
    /// Asks Tekton to cancel a run. Precondition: its uid.
    Cancel {
        /// Which run.
        run: RunId,
        /// Why; it is written on the run.
        why: CancelReason,
        /// What is read live first, in this order.
        facts: Vec<Fact>,
    },
}

impl Action {
    /// Tells whether this does the same to the same object as another, on whatever view.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.object() == other.object()
    }

    /// Returns the uid of what it writes, or of what it rests on.
    fn object(&self) -> &Uid {
        match self {
            Self::Create { execution, .. }
            | Self::Commit { execution, .. }
            | Self::GiveUp { execution, .. }
            | Self::Finish { execution, .. }
            | Self::Freed { execution, .. }
            | Self::RecordClearance { execution, .. }
            | Self::ShowBlocked { execution, .. }
            | Self::Remove { execution, .. }
            | Self::ShowProgress { execution, .. }
            | Self::TellReplay { execution, .. }
            | Self::ShowWaiting { execution, .. }
            | Self::Skip {
                fact: Fact::Stands(execution) | Fact::OwnerGone(execution) | Fact::Drained(execution),
                ..
            } => &execution.uid,
            Self::Release { run }
            | Self::Examine { run }
            | Self::Follow { run }
            | Self::Delete { run, .. }
            | Self::Cancel { run, .. }
            | Self::Skip { fact: Fact::Unfinished(run) | Fact::RunGone(_, run), .. } => &run.uid,
            Self::DrainSlow { residue, .. } | Self::Skip { fact: Fact::Draining(residue), .. } => &residue.uid,
        }
    }
}

/// How an execution ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Phase Completed.
    Completed(Success),
    /// Phase Failed.
    Failed(Failure),
}

impl Ending {
    /// Compares the end that a run tells with what was taken, and with the commit (SPEC section 9): nothing where the
    /// clocks agree as far as can be seen.
    #[must_use]
    pub fn skew(&self, started_at: Option<Time>) -> Option<Skew> {
        let (outcome, taken) = match self {
            Self::Completed(success) => (Some(&success.outcome), success.completed_at),
            Self::Failed(failure) => (failure.outcome.as_ref(), failure.failed_at),
        };
        let said = outcome?.completed_at?;
        match started_at {
            _ if said > taken => Some(Skew::Ahead { said, taken }),
            Some(started_at) if started_at - said > BEHIND => Some(Skew::Behind { said, started_at }),
            _ => None,
        }
    }
}

/// How long before the commit a run may have ended by its own words, before somebody is told that clocks differ:
/// Tekton's clock may be some seconds off without harm.
const BEHIND: TimeDelta = TimeDelta::minutes(1);

/// How the end of a run shows that its clock is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// It says that it ended at a time that is too far ahead; an earlier one was taken.
    Ahead {
        /// What it says.
        said: Time,
        /// What was taken.
        taken: Time,
    },
    /// It says that it ended long before its execution was committed to it. It is believed.
    Behind {
        /// What it says.
        said: Time,
        /// When the execution was committed to it.
        started_at: Time,
    },
}

/// Why a run is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unneeded {
    /// Its owner has given it up, as at the look something else came first.
    Withdrawn,
    /// Its owner is gone, terminal, on its way out, or committed to another run.
    Leftover,
    /// Its owner is committed to it, and it could not be released in time.
    Unreleased,
    /// It is finished, drained, and older than the retention.
    Expired,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Doubt, Started};
    use crate::run::Outcome;

    #[test]
    fn a_run_whose_clock_is_not_ours_is_told_and_one_that_is_a_minute_off_is_not() {
        let at = |second| Time::from_timestamp(1_800_000_000 + second, 0).unwrap();
        let skew = |said: Option<i64>, taken, started_at: Option<i64>| {
            let outcome =
                Outcome { succeeded: true, reason: "r".into(), message: "m".into(), completed_at: said.map(at) };
            let (completed_at, started) = (at(taken), Started::Unknown(Doubt::Unread));
            let success = Success { completed_at, ran_for: Duration::ZERO, outcome, started, tasks: None };
            Ending::Completed(success).skew(started_at.map(at))
        };
        let behind = |said, started_at| Some(Skew::Behind { said: at(said), started_at: at(started_at) });
        assert_eq!(skew(Some(160), 100, Some(0)), Some(Skew::Ahead { said: at(160), taken: at(100) }));
        assert_eq!(skew(Some(100), 100, Some(0)), None);
        assert_eq!(skew(Some(0), 0, Some(60)), None);
        assert_eq!(skew(Some(0), 0, Some(61)), behind(0, 61));
        assert_eq!(skew(Some(-3600), -3600, Some(0)), behind(-3600, 0));
        assert_eq!(skew(Some(-3600), -3600, None), None, "nobody knows when it was committed");
        assert_eq!(skew(None, 0, Some(3600)), None, "it does not say when it ended");
    }
}
