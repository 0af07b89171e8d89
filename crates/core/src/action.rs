//! The actions that a decision requests: writes with their preconditions, live reads, and announcements.

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

/// The result of [`decide`](crate::decide::decide).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What to do now. The actions do not depend on each other. If a precondition fails, the operator decides on the
    /// target again.
    pub actions: Vec<Action>,
    /// The executions that wait, and what they wait for.
    pub waiting: Vec<(ExecutionId, Waiting)>,
    /// The executions whose run waits for something other than their workflow, and what it waits for.
    pub awaiting: Vec<(ExecutionId, Awaiting)>,
    /// How the rules judged the executions that ask for their turn.
    pub judged: Vec<(ExecutionId, Judgement)>,
    /// How the schedules of the target were judged.
    pub schedules: Vec<(ScheduleId, ScheduleJudgement)>,
    /// What would stop a new execution now. Empty while the view is incomplete.
    pub blocks: TargetBlocks,
    /// The requests for places in limits: the oldest request for each set of limits.
    pub asks: Vec<Ask>,
    /// Whether an action uses the place in the limits that was given to this target.
    pub uses_place: bool,
    /// The first moment at which time alone changes the decision.
    pub wake: Option<Time>,
}

/// How a schedule was judged: the rows of section 12.6 that were applied, in order; the last one decided.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleJudgement {
    /// The names of the rows, with their findings.
    pub asked: Vec<(&'static str, Cow<'static, str>)>,
    /// What holds the schedule, if anything does.
    pub held: Option<HeldBy>,
    /// The next run of the schedule.
    pub next: Option<NextRun>,
    /// The role of the schedule for the open circuit that holds it.
    pub probe: Probe,
}

/// The role of a schedule for the open circuit that holds it (section 13.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// None: no circuit holds the schedule, or something else holds it as well.
    #[default]
    None,
    /// Only the circuit keeps the schedule from running now, and may give it the turn to probe.
    Awaits(Asks),
    /// The schedule has the turn to probe, and creates its child now.
    Makes(Asks),
}

/// A write with its precondition, a batch of like writes, a live read, or an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Creates the chain's next run, pending (step a). Precondition: no run has this name.
    Create {
        /// The execution that the run belongs to.
        execution: ExecutionId,
        /// The number of the run.
        number: RunNumber,
        /// The longest time-out of the run, if the retry policy leaves less time than the spec's time-out.
        at_most: Option<Duration>,
    },
    /// Writes something to an execution's status.
    Write(Write),
    /// Skips a batch of executions. Preconditions: the fact, which one live read confirms for the batch, and the
    /// version of each execution.
    Skip {
        /// The executions, each with the version that was judged.
        skipped: Vec<(ExecutionId, Version)>,
        /// Why they are skipped.
        skip: Skip,
        /// The fact behind the skip.
        fact: Fact,
    },
    /// Releases, cancels or deletes a run.
    Change(Change),
    /// Removes an execution whose time to live is over and on which no decision depends any more. Precondition: its uid
    /// and version, so that a clearance or another change in the meantime prevents the removal.
    Remove {
        /// The execution.
        execution: ExecutionId,
        /// The version that was judged.
        version: Version,
    },
    /// Reads a failed run and its descendants live, to learn why it failed and whether anything ran. For a run that is
    /// deleted while it runs, the read also shows whether any task or pod is left. Changes nothing.
    Examine {
        /// The run.
        run: RunId,
    },
    /// Evaluates the conditions of a retry policy for a failed attempt. Changes nothing.
    Ask {
        /// The execution with the policy.
        execution: ExecutionId,
        /// The run of the attempt; `None` if its creation was refused.
        run: Option<RunId>,
        /// The facts about the attempt.
        failed: AttemptFacts,
    },
    /// Reads an execution live whose run is done and that no watch delivers. Changes nothing.
    ReadOwner {
        /// The execution.
        owner: ExecutionId,
    },
    /// Creates the child of a schedule for a slot. Preconditions: the schedule, read live, has this uid and generation,
    /// and no execution has the name of the child.
    CreateChild {
        /// The schedule.
        schedule: ScheduleId,
        /// The generation that was judged, so that a later edit or suspension takes precedence.
        generation: i64,
        /// The slot.
        slot: Time,
        /// The child's `spec.startBefore`.
        start_before: Time,
        /// An earlier slot whose create may have succeeded although its answer was lost. A live read must find no child
        /// for this slot.
        not_made: Option<Time>,
    },
    /// Writes the status of a schedule.
    Record(Record),
    /// Performs a step of the triage of a schedule.
    Triage(TriageStep),
    /// Announces something that no status records. Changes nothing.
    Tell(Announce),
}

/// A write to a schedule's status. Preconditions: its uid and version, and that the execution in `gone` is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The schedule whose status is written.
    pub schedule: ScheduleId,
    /// The version that was judged.
    pub version: Version,
    /// The name of an execution of the schedule. The write requires a live read which shows that this execution is
    /// gone.
    pub gone: Option<Box<str>>,
    /// Why the recorded failure starts no triage, if it otherwise would. A metric counts the reasons.
    pub suppressed: Option<Suppressed>,
    /// The new status.
    pub status: Box<ScheduleStatus>,
}

/// The facts about a failed attempt for the conditions of a retry policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFacts {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub of: u32,
    /// The failure reason.
    pub reason: FailureReason,
    /// The failure message, as in the status.
    pub message: Box<str>,
    /// Whether anything of the attempt ran or may have run.
    pub was_execution_failure: bool,
    /// The task of the pipeline that failed, if any.
    pub task: Option<FailedTask>,
}

/// A write to a run. Preconditions: its uid, the facts, and the precondition that each kind of change names.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The run.
    pub run: RunId,
    /// The facts that a live read must confirm first, in this order.
    pub facts: Vec<Fact>,
    /// The change.
    pub to: RunChange,
}

/// A change to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunChange {
    /// Releases the run to Tekton (step d). Precondition: the run is still pending.
    Released,
    /// Asks Tekton to cancel the run, and records the reason on the run.
    Cancelled(CancelReason),
    /// Repeats a request to cancel the run that Tekton has not answered. The number of requests is recorded on the run,
    /// because Tekton is notified only of a write that changes the run.
    AskedAgain(u32),
    /// Deletes a run that never started, or that is finished and expired. Precondition: its version, so that this is
    /// still true.
    Deleted {
        /// The version that was judged.
        version: Version,
        /// Why the run is deleted.
        why: Unneeded,
    },
}

/// An announcement of something that no status records.
#[derive(Clone, Debug, PartialEq)]
pub enum Announce {
    /// The steps of a task have run again.
    Replay {
        /// The execution that owns the run.
        execution: ExecutionId,
        /// The run.
        run: RunId,
        /// The task.
        task_run: Box<str>,
    },
    /// Tekton has not answered a request to stop a run.
    CancelUnanswered {
        /// The execution that owns the run.
        execution: ExecutionId,
        /// The request.
        unanswered: Unanswered,
    },
    /// A target has been draining for too long.
    DrainSlow {
        /// The execution whose tasks or pods are left.
        holder: ExecutionId,
        /// One of the tasks or pods that are left.
        residue: ResidueId,
        /// When the target began to drain.
        since: Time,
    },
    /// The hint of a schedule is ignored.
    HintIgnored {
        /// The schedule with the hint.
        schedule: ScheduleId,
        /// The generation of the schedule with the hint; each generation is announced once.
        generation: i64,
        /// Why the hint is ignored.
        why: &'static str,
    },
}

/// The kind of an action and its object. Two actions with the same mark do the same to the same object, even if they
/// were decided on different views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    what: &'static str,
    of: Uid,
}

impl Action {
    /// Returns the kind of the action and its object.
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
    /// Changes the run without a fact to confirm.
    pub(crate) fn change(&self, to: RunChange) -> Action {
        self.change_if(Vec::new(), to)
    }

    /// Changes the run if these facts hold.
    pub(crate) fn change_if(&self, facts: Vec<Fact>, to: RunChange) -> Action {
        Action::Change(Change { run: self.id.clone(), facts, to })
    }

    /// Returns the deletion of the run in its current version.
    pub(crate) fn deleted(&self, why: Unneeded) -> RunChange {
        RunChange::Deleted { version: self.version.clone(), why }
    }
}

/// Why a run is no longer needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unneeded {
    /// Its owner has given up the run: at the look another execution came first.
    Withdrawn,
    /// Its owner is gone, terminal, being deleted, or committed to another run.
    Leftover,
    /// Its owner is committed to it, but it could not be released in time.
    Unreleased,
    /// The run is finished, drained, and older than the retention.
    Expired,
}
