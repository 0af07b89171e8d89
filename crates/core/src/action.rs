//! What a decision asks for: writes with their preconditions, and the facts to read live before them.

mod triage;

use std::borrow::Cow;
use std::time::Duration;

use chrono::TimeDelta;

use crate::Time;
use crate::chain::RunNumber;
use crate::circuit::CircuitKey;
use crate::ending::{Failure, Skip, Success};
use crate::evidence::Proof;
use crate::execution::{Clearance, Execution, RunShown};
use crate::explain::Judgement;
use crate::findings::FailedTask;
use crate::guard::{GuardMark, Touch, WordKind};
use crate::name::{ExecutionId, RunId, ScheduleId, Uid, Version};
use crate::reason::FailureReason;
use crate::residue::ResidueId;
use crate::retry::AttemptEnd;
use crate::run::{CancelReason, Run};
use crate::schedule::plan::NextRun;
use crate::schedule::{HeldBy, ScheduleStatus};
use crate::standing::{Blocked, Standing};
use crate::triage::Suppressed;
use crate::verdict::Fact;
use crate::waiting::Waiting;

pub use triage::{Analyse, Gather, TriageDoes, TriageStep};

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
    /// How the schedules of the target were judged.
    pub schedules: Vec<(ScheduleId, ScheduleJudgement)>,
    /// What stands in the way of whoever comes next. Nothing where nothing could be seen.
    pub standing: Standing,
    /// The first moment at which the answer changes by time alone.
    pub wake: Option<Time>,
}

/// How a schedule was judged: the rows of section 12.6 that were asked, in order; the last one decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleJudgement {
    /// The rows, by name, with what they found.
    pub asked: Vec<(&'static str, Cow<'static, str>)>,
    /// What holds it, where something does.
    pub held: Option<HeldBy>,
    /// Its next run.
    pub next: Option<NextRun>,
    /// What it is to the circuits that are open.
    pub probe: Probe,
}

/// What a schedule is to the circuits that are open (section 13.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// Nothing: none holds it, or something else does as well.
    #[default]
    None,
    /// Nothing but these circuits keeps it from running now: one of them may give it its turn.
    Awaits(Vec<CircuitKey>),
    /// It has the turn of one of these, and makes its child now.
    Makes(Vec<CircuitKey>),
}

/// One write, or one batch of like writes, each with its precondition; or a look, or a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Step (a): create the chain's next run, pending. Precondition: its name is absent.
    Create {
        /// For whom.
        execution: ExecutionId,
        /// Which number.
        number: RunNumber,
        /// The time-out that its run may have at the most, where its retry policy leaves it no more.
        at_most: Option<Duration>,
    },
    /// Says something in an execution's status.
    Write(Write),
    /// Skips all of these. Preconditions: the fact, read live once for all, and the version of each.
    Skip {
        /// Who is skipped.
        skipped: Vec<(ExecutionId, Version)>,
        /// Why.
        skip: Skip,
        /// The fact that the skip rests on.
        fact: Fact,
    },
    /// Releases, cancels or deletes a run.
    Change(Change),
    /// Removes an execution that is over and on which nothing rests any more. Precondition: its uid and version, so
    /// that nobody has cleared it, or said anything else of it, since.
    Remove {
        /// Which execution.
        execution: ExecutionId,
        /// The version that the decision rests on.
        version: Version,
    },
    /// Looks live at a run that has failed and at what it made, to see why, and whether anything ran. Changes nothing.
    Examine {
        /// Which run.
        run: RunId,
    },
    /// Asks the conditions of a retry policy about an attempt that has failed. Changes nothing.
    Ask {
        /// Whose policy.
        execution: ExecutionId,
        /// Its run; none where the create of it was refused.
        run: Option<RunId>,
        /// What is known of the attempt.
        failed: AttemptFacts,
    },
    /// Reads an execution live that no watch delivers, and whose run is done. Changes nothing.
    ReadOwner {
        /// Which one.
        owner: ExecutionId,
    },
    /// Looks whether the policies protect that guard what a person has set on an execution. Changes nothing.
    Look {
        /// Whose.
        execution: ExecutionId,
        /// What is set.
        touch: Touch,
    },
    /// Creates the child of a schedule for a slot. Preconditions: the schedule, read live, has this uid and generation,
    /// and the name of the child is absent.
    CreateChild {
        /// Which schedule.
        schedule: ScheduleId,
        /// The generation that the decision rests on: an edit or a suspension since then wins.
        generation: i64,
        /// The slot.
        slot: Time,
        /// The child's `spec.startBefore`.
        start_before: Time,
        /// An earlier slot whose create may have got through without an answer: its child must be absent too.
        not_made: Option<Time>,
    },
    /// Writes the status of a schedule.
    Record(Record),
    /// Does a step of the triage of a schedule.
    Triage(TriageStep),
    /// Reads a run live that its watch does not deliver any more. Changes nothing.
    Follow {
        /// Which run.
        run: RunId,
    },
    /// Tells people something that no status says. Changes nothing.
    Tell(Tell),
}

/// A write to a schedule's status. Preconditions: its uid and version, and the fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Whose status.
    pub schedule: ScheduleId,
    /// The version that the decision rests on.
    pub version: Version,
    /// The name of an execution of the schedule that is absent, read live.
    pub gone: Option<Box<str>>,
    /// Why the failure that it records begins no triage, where it would begin one otherwise. To count.
    pub suppressed: Option<Suppressed>,
    /// What the status says then.
    pub status: Box<ScheduleStatus>,
}

/// What is known of a failed attempt when the conditions are asked about it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFacts {
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How many there are at the most.
    pub of: u32,
    /// Which of the seven.
    pub reason: FailureReason,
    /// What happened, as the status will say it.
    pub message: Box<str>,
    /// Whether something of it ran, or nobody can tell.
    pub was_execution_failure: bool,
    /// The task of the pipeline that failed, where one did.
    pub task: Option<FailedTask>,
}

/// A write to an execution's status. Preconditions: its version, and the facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Whose status.
    pub execution: ExecutionId,
    /// The version that the decision rests on.
    pub version: Version,
    /// What is read live first, in this order.
    pub facts: Vec<Fact>,
    /// What the status says then.
    pub says: Says,
}

/// What a write says in the status of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Says {
    /// Step (c): phase Running, and which run.
    Running {
        /// The run that it commits to.
        run: RunId,
        /// The run's number.
        number: RunNumber,
        /// The counter as it inherits it (`consecutiveFailures`, section 7).
        consecutive_failures: u32,
    },
    /// The withdrawal of its pending runs, first half: an undecided execution will never commit to a run up to this
    /// number. A commit on an older view fails from then on, and the runs can be deleted. Without it, a commit and a
    /// deletion under way at once would both be accepted.
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
        /// Its run; none where the create of it was refused.
        run: Option<RunId>,
        /// How it ended.
        end: AttemptEnd,
        /// The proof that a step of it ran, where there is one.
        proof: Option<Proof>,
        /// How long the wait before the next one is.
        delay: Duration,
        /// When that may begin.
        not_before: Time,
    },
    /// What holds back the next attempt of an execution, though its wait is over.
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
    /// How far an execution is that runs.
    Progress {
        /// Its run.
        run: RunId,
        /// What to say.
        shown: RunShown,
        /// What Tekton says that the run is doing.
        doing: Box<str>,
        /// Since when the execution runs.
        started_at: Time,
    },
    /// What an undecided execution waits for (phase Pending).
    Waiting {
        /// What for.
        waiting: Waiting,
        /// For how long its run has been tried to be created, where it is.
        tried: Option<Duration>,
    },
    /// The target of a terminal execution has drained.
    Freed,
    /// What a clearance has done (section 10).
    Cleared {
        /// The clearance.
        clearance: Clearance,
        /// Whether it has lifted a block. One that has not changes nothing, for ever.
        effective: bool,
    },
    /// Whether a terminal execution blocks its target.
    Blocked(Blocked),
    /// Which policies are in force, while nobody has set anything that they are to guard.
    Guarded(GuardMark),
    /// That what a person has set does not count, as no policy guarded it.
    Unguarded(WordKind),
}

/// A write to a run. Preconditions: its uid, the facts, and what each kind of write names.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which run.
    pub run: RunId,
    /// What is read live first, in this order.
    pub facts: Vec<Fact>,
    /// What becomes of it.
    pub to: RunChange,
}

/// What becomes of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunChange {
    /// Step (d): it is handed to Tekton. Precondition: it is still pending.
    Released,
    /// Tekton is asked to cancel it. Why is written on the run.
    Cancelled(CancelReason),
    /// One that never ran, or that is finished and expired, is deleted. Precondition: its version, so that it is so
    /// still.
    Deleted {
        /// The version in which it was seen so.
        version: Version,
        /// Why.
        why: Unneeded,
    },
}

/// What people are told that no status says.
#[derive(Clone, Debug, PartialEq)]
pub enum Tell {
    /// The steps of a task have run again.
    Replay {
        /// Whose run it is.
        execution: ExecutionId,
        /// The run.
        run: RunId,
        /// The task.
        task_run: Box<str>,
    },
    /// A target drains for too long.
    DrainSlow {
        /// Whose tasks or pods are left.
        holder: ExecutionId,
        /// One of what is left.
        residue: ResidueId,
        /// Since when it drains.
        since: Time,
    },
    /// The hint of a schedule does not count.
    HintIgnored {
        /// Whose hint it is.
        schedule: ScheduleId,
        /// The generation that brought it: it is told once for each.
        generation: i64,
        /// Why it does not count.
        why: &'static str,
    },
}

/// What an action does, and to what: two actions with one mark do the same to the same object, on whatever view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    what: &'static str,
    of: Uid,
}

impl Action {
    /// Returns what it does, and to what.
    #[must_use]
    pub fn mark(&self) -> Mark {
        let (what, of) = match self {
            Self::Create { execution, .. } => ("create", &execution.uid),
            Self::Ask { execution, .. } => ("ask", &execution.uid),
            Self::ReadOwner { owner } => ("read owner", &owner.uid),
            Self::Look { execution, .. } => ("look", &execution.uid),
            Self::Write(Write { execution, says, .. }) => (says.name(), &execution.uid),
            Self::Skip { fact, .. } => ("skip", fact.object()),
            Self::Change(Change { run, to, .. }) => (to.name(), &run.uid),
            Self::CreateChild { schedule, .. } => ("create child", &schedule.uid),
            Self::Record(Record { schedule, .. }) => ("record", &schedule.uid),
            Self::Triage(TriageStep { schedule, does, .. }) => (does.name(), &schedule.uid),
            Self::Tell(Tell::HintIgnored { schedule, .. }) => ("tell hint", &schedule.uid),
            Self::Remove { execution, .. } => ("remove", &execution.uid),
            Self::Examine { run } => ("examine", &run.uid),
            Self::Follow { run } => ("follow", &run.uid),
            Self::Tell(Tell::Replay { execution, .. }) => ("tell replay", &execution.uid),
            Self::Tell(Tell::DrainSlow { residue, .. }) => ("tell slow drain", &residue.uid),
        };
        Mark { what, of: of.clone() }
    }
}

impl Says {
    fn name(&self) -> &'static str {
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
            Self::Guarded(_) => "guarded",
            Self::Unguarded(_) => "unguarded",
        }
    }

    /// Tells whether the write leaves conditions of others in the status as they are, so that they are read live first.
    #[must_use]
    pub fn keeps_conditions(&self) -> bool {
        matches!(
            self,
            Self::Freed | Self::Cleared { .. } | Self::Blocked(_) | Self::HeldBack { .. } | Self::Unguarded(_)
        )
    }
}

impl RunChange {
    fn name(&self) -> &'static str {
        match self {
            Self::Released => "release",
            Self::Cancelled(_) => "cancel",
            Self::Deleted { .. } => "delete",
        }
    }
}

impl Execution {
    /// Makes a write to its status that rests on no fact but its version.
    pub(crate) fn says(&self, says: Says) -> Action {
        self.says_if(Vec::new(), says)
    }

    /// Makes a write to its status that rests on facts.
    pub(crate) fn says_if(&self, facts: Vec<Fact>, says: Says) -> Action {
        Action::Write(Write { execution: self.id.clone(), version: self.version.clone(), facts, says })
    }
}

impl Run {
    /// Makes a change to it that rests on no fact but what it names itself.
    pub(crate) fn change(&self, to: RunChange) -> Action {
        self.change_if(Vec::new(), to)
    }

    /// Makes a change to it that rests on facts.
    pub(crate) fn change_if(&self, facts: Vec<Fact>, to: RunChange) -> Action {
        Action::Change(Change { run: self.id.clone(), facts, to })
    }

    /// Makes the deletion of it as it is.
    pub(crate) fn deleted(&self, why: Unneeded) -> RunChange {
        RunChange::Deleted { version: self.version.clone(), why }
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
            let success =
                Success { completed_at, ran_for: Duration::ZERO, outcome, started, tasks: None, attempt: None };
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
