//! What a decision requests: writes with their preconditions, and the facts that a live read must confirm before them.

mod ending;
mod triage;
mod write;

use std::borrow::Cow;
use std::time::Duration;

use crate::Time;
use crate::awaiting::{Awaiting, Unanswered};
use crate::blocks::TargetBlocks;
use crate::chain::RunNumber;
use crate::circuit::Asks;
use crate::ending::Skip;
use crate::explain::Judgement;
use crate::findings::FailedTask;
use crate::limit::Ask;
use crate::name::{ExecutionId, RunId, ScheduleId, Uid, Version};
use crate::reason::FailureReason;
use crate::residue::ResidueId;
use crate::run::{CancelReason, Run};
use crate::schedule::plan::NextRun;
use crate::schedule::{HeldBy, ScheduleStatus};
use crate::triage::Suppressed;
use crate::verdict::Fact;
use crate::waiting::Waiting;

pub use ending::{Ending, Skew};
pub use triage::{Analyse, Gather, TriageDoes, TriageStep};
pub use write::{Says, Write};

/// The answer of [`decide`](crate::decide::decide).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now. The actions are independent of each other: if any of them fails its precondition, the target is
    /// looked at again.
    pub actions: Vec<Action>,
    /// The executions that wait, and what for.
    pub waiting: Vec<(ExecutionId, Waiting)>,
    /// The executions with a run that wait for something other than their workflow, and what for.
    pub awaiting: Vec<(ExecutionId, Awaiting)>,
    /// How the rules judged the executions that ask for their turn.
    pub judged: Vec<(ExecutionId, Judgement)>,
    /// How the schedules of the target were judged.
    pub schedules: Vec<(ScheduleId, ScheduleJudgement)>,
    /// What would stop a new execution now. Empty while the view is incomplete.
    pub blocks: TargetBlocks,
    /// The requests for places in limits: the oldest for each set of limits.
    pub asks: Vec<Ask>,
    /// Whether an action uses the place that was given on this target.
    pub uses_place: bool,
    /// The first moment at which the answer changes by time alone.
    pub wake: Option<Time>,
}

/// How a schedule was judged: the rows of section 12.6 that were asked, in order; the last one decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleJudgement {
    /// The rows, by name, with what they found.
    pub asked: Vec<(&'static str, Cow<'static, str>)>,
    /// What holds it, if anything does.
    pub held: Option<HeldBy>,
    /// Its next run.
    pub next: Option<NextRun>,
    /// What it is to the open circuit that holds it.
    pub probe: Probe,
}

/// What a schedule is to the open circuit that holds it (section 13.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// Nothing: no circuit holds it, or something else holds it as well.
    #[default]
    None,
    /// Only its circuit keeps it from running now, and may give it its turn.
    Awaits(Asks),
    /// It has the turn, and makes its child now.
    Makes(Asks),
}

/// A write with its precondition, a batch of like writes, a live read, or an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Step (a): create the chain's next run, pending. Precondition: its name is absent.
    Create {
        /// For which execution.
        execution: ExecutionId,
        /// Which number.
        number: RunNumber,
        /// The longest time-out of its run, if its retry policy leaves it less than the spec.
        at_most: Option<Duration>,
    },
    /// Writes something to an execution's status.
    Write(Write),
    /// Skips all of these. Preconditions: the fact, read live once for all, and the version of each.
    Skip {
        /// The executions, each with the version that was judged.
        skipped: Vec<(ExecutionId, Version)>,
        /// Why.
        skip: Skip,
        /// The fact behind the skip.
        fact: Fact,
    },
    /// Releases, cancels or deletes a run.
    Change(Change),
    /// Removes an execution whose time to live is over and on which no decision depends any more. Precondition: its uid
    /// and version, so that nobody has cleared or changed it since.
    Remove {
        /// The execution.
        execution: ExecutionId,
        /// The version that was judged.
        version: Version,
    },
    /// Reads a run and its descendants live. For a failed run: why it failed, and whether anything ran. For a run that
    /// is deleted while it runs, also: whether anything of it is left. Changes nothing.
    Examine {
        /// The run.
        run: RunId,
    },
    /// Asks the conditions of a retry policy about a failed attempt. Changes nothing.
    Ask {
        /// The execution with the policy.
        execution: ExecutionId,
        /// Its run; none if its creation was refused.
        run: Option<RunId>,
        /// The facts about the attempt.
        failed: AttemptFacts,
    },
    /// Reads an execution live that no watch delivers and whose run is done. Changes nothing.
    ReadOwner {
        /// The execution.
        owner: ExecutionId,
    },
    /// Creates the child of a schedule for a slot. Preconditions: the schedule, read live, has this uid and generation,
    /// and the name of the child is absent.
    CreateChild {
        /// Which schedule.
        schedule: ScheduleId,
        /// The generation that was judged: a later edit or suspension wins.
        generation: i64,
        /// The slot.
        slot: Time,
        /// The child's `spec.startBefore`.
        start_before: Time,
        /// An earlier slot whose create may have succeeded although its answer was lost: a live read must find no child
        /// for it.
        not_made: Option<Time>,
    },
    /// Writes the status of a schedule.
    Record(Record),
    /// Does a step of the triage of a schedule.
    Triage(TriageStep),
    /// Announces something that no status records. Changes nothing.
    Tell(Announce),
}

/// A write to a schedule's status. Preconditions: its uid and version, and the fact.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Whose status.
    pub schedule: ScheduleId,
    /// The version that was judged.
    pub version: Version,
    /// The name of an execution of the schedule that a live read must find gone.
    pub gone: Option<Box<str>>,
    /// Why the recorded failure begins no triage, if it otherwise would. Counted by a metric.
    pub suppressed: Option<Suppressed>,
    /// The new status.
    pub status: Box<ScheduleStatus>,
}

/// The facts about a failed attempt for the conditions of a retry policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFacts {
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How many there are at the most.
    pub of: u32,
    /// The reason, one of seven.
    pub reason: FailureReason,
    /// What happened, as in the status.
    pub message: Box<str>,
    /// Whether something of it ran, or it is unknown.
    pub was_execution_failure: bool,
    /// The task of the pipeline that failed, if one did.
    pub task: Option<FailedTask>,
}

/// A write to a run. Preconditions: its uid, the facts, and what each kind of write names.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which run.
    pub run: RunId,
    /// The facts that a live read must confirm first, in this order.
    pub facts: Vec<Fact>,
    /// The change.
    pub to: RunChange,
}

/// A change to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunChange {
    /// Step (d): it is handed to Tekton. Precondition: it is still pending.
    Released,
    /// Tekton is asked to cancel it. The reason is recorded on the run.
    Cancelled(CancelReason),
    /// Tekton has not answered a request to cancel it, and is asked again. The number of requests is recorded on the
    /// run, because only a write that changes the run reaches Tekton.
    AskedAgain(u32),
    /// A run that never started, or that is finished and expired, is deleted. Precondition: its version, so that this
    /// is still true.
    Deleted {
        /// The version that was judged.
        version: Version,
        /// Why.
        why: Unneeded,
    },
}

/// An announcement of something that no status records.
#[derive(Clone, Debug, PartialEq)]
pub enum Announce {
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
        /// The generation with the hint: each is announced once.
        generation: i64,
        /// Why it does not count.
        why: &'static str,
    },
}

/// What an action does, and to which object: two actions with the same mark do the same to the same object, on any
/// view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    what: &'static str,
    of: Uid,
}

impl Action {
    /// Returns what it does, and to which object.
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
            Self::Tell(Announce::HintIgnored { schedule, .. }) => ("tell hint", &schedule.uid),
            Self::Remove { execution, .. } => ("remove", &execution.uid),
            Self::Examine { run } => ("examine", &run.uid),
            Self::Tell(Announce::Replay { execution, .. }) => ("tell replay", &execution.uid),
            Self::Tell(Announce::CancelUnanswered { unanswered, .. }) => {
                ("tell unanswered cancel", &unanswered.run.uid)
            }
            Self::Tell(Announce::DrainSlow { residue, .. }) => ("tell slow drain", &residue.uid),
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
    /// Changes the run, without any fact to confirm.
    pub(crate) fn change(&self, to: RunChange) -> Action {
        self.change_if(Vec::new(), to)
    }

    /// Changes the run if these facts hold.
    pub(crate) fn change_if(&self, facts: Vec<Fact>, to: RunChange) -> Action {
        Action::Change(Change { run: self.id.clone(), facts, to })
    }

    /// Returns the deletion of the run in its present version.
    pub(crate) fn deleted(&self, why: Unneeded) -> RunChange {
        RunChange::Deleted { version: self.version.clone(), why }
    }
}

/// Why a run is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unneeded {
    /// Its owner has given it up: at the look another execution came first.
    Withdrawn,
    /// Its owner is gone, terminal, on its way out, or committed to another run.
    Leftover,
    /// Its owner is committed to it, but it could not be released in time.
    Unreleased,
    /// It is finished, drained, and older than the retention.
    Expired,
}
