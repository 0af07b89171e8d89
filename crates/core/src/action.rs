//! What a decision asks for: writes with their preconditions, and the facts to read live before them.

mod ending;
mod triage;
mod write;

use std::borrow::Cow;
use std::time::Duration;

use crate::Time;
use crate::awaiting::{Awaiting, Unanswered};
use crate::chain::RunNumber;
use crate::circuit::Asks;
use crate::ending::Skip;
use crate::explain::Judgement;
use crate::findings::FailedTask;
use crate::name::{ExecutionId, RunId, ScheduleId, Uid, Version};
use crate::reason::FailureReason;
use crate::residue::ResidueId;
use crate::run::{CancelReason, Run};
use crate::schedule::plan::NextRun;
use crate::schedule::{HeldBy, ScheduleStatus};
use crate::standing::Standing;
use crate::triage::Suppressed;
use crate::verdict::Fact;
use crate::waiting::Waiting;

pub use ending::{Ending, Skew};
pub use triage::{Analyse, Gather, TriageDoes, TriageStep};
pub use write::{Says, Write};

/// The answer of [`decide`](crate::decide::decide).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now. The actions are independent of each other: any subset may fail its precondition, and then the
    /// target is looked at again.
    pub actions: Vec<Action>,
    /// Who waits, and for what.
    pub waiting: Vec<(ExecutionId, Waiting)>,
    /// Which executions with a run wait for something else than their workflow, and for what.
    pub awaiting: Vec<(ExecutionId, Awaiting)>,
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
    /// What it is to the open circuit that holds it.
    pub probe: Probe,
}

/// What a schedule is to the open circuit that holds it (section 13.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// Nothing: none holds it, or something else does as well.
    #[default]
    None,
    /// Nothing but its circuit keeps it from running now: that may give it its turn.
    Awaits(Asks),
    /// It has the turn, and makes its child now.
    Makes(Asks),
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
    /// Looks live at a run and at what it made: at one that has failed, to see why, and whether anything ran; at one
    /// that is being deleted while it runs, to see also whether anything is left of it. Changes nothing.
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
    /// Tekton has not answered a request to cancel it, and is asked again: how often, this time included, is written on
    /// the run, as only a write that changes the run reaches Tekton.
    AskedAgain(u32),
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
    /// Tekton does not answer a request to stop a run.
    CancelUnanswered {
        /// Whose run it is.
        execution: ExecutionId,
        /// The request.
        unanswered: Unanswered,
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
            Self::Write(Write { execution, says, .. }) => (says.name(), &execution.uid),
            Self::Skip { fact, .. } => ("skip", fact.object()),
            Self::Change(Change { run, to, .. }) => (to.name(), &run.uid),
            Self::CreateChild { schedule, .. } => ("create child", &schedule.uid),
            Self::Record(Record { schedule, .. }) => ("record", &schedule.uid),
            Self::Triage(TriageStep { schedule, does, .. }) => (does.name(), &schedule.uid),
            Self::Tell(Tell::HintIgnored { schedule, .. }) => ("tell hint", &schedule.uid),
            Self::Remove { execution, .. } => ("remove", &execution.uid),
            Self::Examine { run } => ("examine", &run.uid),
            Self::Tell(Tell::Replay { execution, .. }) => ("tell replay", &execution.uid),
            Self::Tell(Tell::CancelUnanswered { unanswered, .. }) => ("tell unanswered cancel", &unanswered.run.uid),
            Self::Tell(Tell::DrainSlow { residue, .. }) => ("tell slow drain", &residue.uid),
        };
        Mark { what, of: of.clone() }
    }
}

impl RunChange {
    fn name(&self) -> &'static str {
        match self {
            Self::Released => "release",
            Self::Cancelled(_) => "cancel",
            Self::AskedAgain(_) => "ask again to cancel",
            Self::Deleted { .. } => "delete",
        }
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
