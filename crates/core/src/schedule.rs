//! One schedule (a `WorkflowSchedule` object), as far as decisions need it (section 12).
//!
//! A schedule makes an execution, its *child*, for each of its *slots*. It paces itself: a child that fails makes it
//! wait longer, and everything else that a child does is what any execution does.

pub mod cron;
mod keep;
pub mod plan;
mod status;

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use crate::Time;
use crate::circuit::{Circuits, OpenCircuit};
use crate::fingerprint::{Fingerprint, Origin};
use crate::moment::{after, before};
use crate::name::{ScheduleId, Uid, Version};
use crate::triage::{AnalystRun, Begun, Gathered, Judgement, TriageSpec};
use crate::waiting::Pause;

pub use keep::Keep;
pub use plan::{Planned, PlannedBy};
pub use status::{Held, HeldBy, LastRun, MOST_FAILURES, Missed, Outcome, Ready, ScheduleStatus};

/// What the index keeps of one `WorkflowSchedule`.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Which object it is.
    pub id: ScheduleId,
    /// The version that was seen; what a write to it carries back.
    pub version: Version,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether its deletion has begun, or that of its namespace: nothing is made for it any more.
    pub leaving: bool,
    /// What its spec asks for; or why it cannot be used, in words for people (row 0).
    pub plan: Result<Plan, Box<str>>,
    /// `spec.suspend`.
    pub suspended: bool,
    /// `spec.hint`, where there is one that can be read.
    pub hint: Option<Box<Hint>>,
    /// `spec.history`.
    pub history: HistoryLimits,
    /// `spec.triage`. Most say nothing of it, and share one.
    pub triage: Arc<TriageSpec>,
    /// `spec.resume.triage`: the triage whose pause or values a person has lifted.
    pub resume: Option<Box<str>>,
    /// What its plan was made of: another revision begins the plan anew.
    pub revision: Revision,
    /// `spec.template.spec.workflowRef.workflowId`: what its child would run.
    pub workflow_id: Arc<str>,
    /// What its child would run, as far as fingerprints need it.
    pub origin: Arc<Origin>,
    /// The pause of its namespace or of its target's, where there is one.
    pub paused: Option<Arc<Pause>>,
    /// What its status says.
    pub status: ScheduleStatus,
    /// The executions that were made for it and are there, also on a target that it had before; by slot.
    pub children: Vec<Child>,
    /// The execution that analyses its failures, where one is there.
    pub analyst: Option<Box<AnalystRun>>,
    /// What this process remembers of it.
    pub memory: ScheduleMemory,
}

/// When a schedule runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What its slots are counted by.
    pub every: Every,
    /// `spec.minInterval`: how soon after a slot a hint may bring the next one.
    pub min_interval: Duration,
    /// `spec.maxInterval`: how far backoff and hints may move a slot.
    pub max_interval: Duration,
    /// `spec.spread`: all slots are later by one constant share of it.
    pub spread: Duration,
    /// `spec.startingDeadlineSeconds`: how late after its slot a child may be made. None: whenever it can.
    pub deadline: Option<Duration>,
}

/// What the slots of a schedule are counted by.
#[derive(Clone, Debug, PartialEq)]
pub enum Every {
    /// `spec.interval`.
    Interval(Duration),
    /// `spec.cron`, in its zone.
    Cron(Arc<cron::Cron>),
}

/// A wish of an advisor for the next slot (`spec.hint`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// What it wishes.
    pub wish: Wish,
    /// Until when it counts.
    pub expires_at: Time,
}

/// What a hint wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// `nextRunAt`: one slot at this time.
    At(Time),
    /// `interval`: this long after the last slot.
    Interval(Duration),
}

/// How many children of each kind stay after their end (`spec.history`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Of those that completed.
    pub successful: u8,
    /// Of all others.
    pub failed: u8,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { successful: 3, failed: 3 }
    }
}

/// What a plan is made of, in three digests: of the uid (16 bits), of interval, cron, zone and spread (20 bits), and of
/// what the template makes run (20 bits). An edit of which the digest stays the same, one in a million, is not noticed:
/// its plan goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision(pub u64);

impl Revision {
    /// How many bits the digests of plan and template have each.
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;

    /// Makes a revision of three digests, of which it takes as many bits as it holds.
    #[must_use]
    pub fn of(uid: u64, plan: u64, template: u64) -> Self {
        Self((uid & 0xffff) << (2 * Self::BITS) | (plan & Self::MASK) << Self::BITS | template & Self::MASK)
    }

    /// Returns the digests of uid, plan and template.
    #[must_use]
    pub fn parts(self) -> (u64, u64, u64) {
        (self.0 >> (2 * Self::BITS), self.0 >> Self::BITS & Self::MASK, self.0 & Self::MASK)
    }
}

/// The spelling of the API.
impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (uid, plan, template) = self.parts();
        write!(f, "{uid:04x}-{plan:05x}-{template:05x}")
    }
}

/// How many slots of a schedule may pass without a success.
const SLOTS_WITHOUT_SUCCESS: u32 = 3;

/// What this process remembers of a schedule. A process that begins remembers nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleMemory {
    /// The child whose create the API server refused for good, until the status says so.
    pub refused: Option<Box<RefusedChild>>,
    /// In words how a child has ended that did not complete, until the status says so.
    pub said: Option<Box<SaidOfChild>>,
    /// The slot for which this process has tried last to create a child: the answer may have been lost.
    pub tried: Option<Time>,
    /// The evidence that was gathered for a triage, until that has ended.
    pub gathered: Option<Box<Gathered>>,
    /// What an analyst has said, until the status says so.
    pub heard: Option<Box<Heard>>,
    /// The triages of other schedules that began within the last hour.
    pub others_begun: Begun,
}

/// What an analyst has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Of which triage: the name of the child that it is about.
    pub of: Box<str>,
    /// Its judgement, or why there is none.
    pub said: Result<Judgement, Box<str>>,
}

/// How a child has ended, in the words of its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidOfChild {
    /// Its slot.
    pub slot: Time,
    /// The words, which quote no value of a parameter.
    pub words: Box<str>,
}

/// A child that the API server will not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChild {
    /// Its slot.
    pub slot: Time,
    /// What the API server said, cut to what a status may hold.
    pub message: Box<str>,
}

/// An execution that was made for a slot of a schedule, as the schedule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The uid of the execution.
    pub uid: Uid,
    /// The slot that it was made for.
    pub slot: Time,
    /// When it was made.
    pub created: Time,
    /// Where it stands.
    pub state: ChildState,
}

/// Where a child stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It has not ended.
    AtWork,
    /// It has ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// When, where its status says so.
        at: Option<Time>,
        /// Why, in one word of the API, where it did not complete.
        reason: Option<&'static str>,
        /// What its failure has in common with others, where its status says so.
        fingerprint: Option<Fingerprint>,
    },
}

/// What an execution is to the schedule that it was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildOf {
    /// The uid of the schedule.
    pub schedule: Uid,
    /// The slot that it was made for.
    pub slot: Time,
    /// Whether it analyses why the child of that slot failed: then it is no child itself.
    pub analyses: bool,
    /// Whether the schedule needs it still.
    pub keep: Keep,
}

/// Returns the name of the child of a slot: the same for ever, so that no slot has two.
#[must_use]
pub fn child_name(schedule: &str, slot: Time) -> String {
    format!("{schedule}-{}", slot.timestamp())
}

/// Returns the name of the execution that analyses why a child failed.
#[must_use]
pub fn analyst_name(child: &str) -> String {
    format!("{child}{ANALYST}")
}

/// Reads from the name of an analyst which slot it is about.
#[must_use]
pub fn analysed_slot(schedule: &str, analyst: &str) -> Option<Time> {
    slot_of(schedule, analyst.strip_suffix(ANALYST)?)
}

/// What the name of an analyst ends with.
const ANALYST: &str = "-triage";

/// Reads the slot from the name of a child.
#[must_use]
pub fn slot_of(schedule: &str, child: &str) -> Option<Time> {
    let seconds: i64 = child.strip_prefix(schedule)?.strip_prefix('-')?.parse().ok()?;
    let slot = Time::from_timestamp(seconds, 0)?;
    (child_name(schedule, slot) == child).then_some(slot)
}

impl Schedule {
    /// Returns up to which slot all are used: none of them runs any more.
    #[must_use]
    pub fn used_up_to(&self) -> Option<Time> {
        let last = self.status.last_run.as_ref().map(|last| last.slot);
        last.max(self.status.planned_from)
    }

    /// Returns whether a person has lifted the pause of its triage, or the values of that or an earlier one, and its
    /// plan has not begun anew since.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        let has_values = self.status.adjust.is_some();
        let standing = self.status.triage.as_ref().filter(|triage| triage.state.is_standing() || has_values);
        standing.is_some_and(|triage| self.resume.as_ref() == Some(&triage.of))
    }

    /// Returns the open circuit that holds it: that of what its last run failed with (section 13.5).
    #[must_use]
    pub fn held_by<'a>(&self, circuits: &'a Circuits, now: Time) -> Option<&'a OpenCircuit> {
        circuits.holding(self.failed_last().map(|(fingerprint, _)| fingerprint), now)
    }

    /// Returns what its last run in this plan failed with, and when, where that has failed.
    #[must_use]
    pub fn failed_last(&self) -> Option<(&Fingerprint, Time)> {
        let last = self.status.last_run.as_ref().filter(|last| last.outcome == Some(Outcome::Failed))?;
        let in_this_plan = Some(last.slot) > self.status.planned_from;
        last.fingerprint.as_ref().filter(|_| in_this_plan).map(|it| (it, last.ended_at.unwrap_or(last.slot)))
    }

    /// Returns when its third slot without a success comes: after that, something keeps it from doing what it is for
    /// (section 12.2). None where it is not meant to run, or a triage has paused it, or its spec cannot be used.
    #[must_use]
    pub fn success_due(&self) -> Option<Time> {
        let status = &self.status;
        if self.suspended || self.leaving || status.paused_by().is_some() {
            return None;
        }
        let since = status.last_success.max(status.planned_from)?;
        match &self.plan_by(status)?.every {
            Every::Interval(interval) => Some(after(since, interval.saturating_mul(SLOTS_WITHOUT_SUCCESS))),
            Every::Cron(cron) => {
                let offset = self.past(since).offset;
                let next = |slot: &Time| cron.first_after(*slot);
                let mut slots = iter::successors(cron.first_after(before(since, offset)), next);
                slots.nth(SLOTS_WITHOUT_SUCCESS as usize - 1).map(|slot| after(slot, offset))
            }
        }
    }

    /// Returns the child of a slot, where it is there.
    #[must_use]
    pub fn child_at(&self, slot: Time) -> Option<&Child> {
        self.children.iter().find(|child| child.slot == slot)
    }

    /// Returns the children that it has not recorded the outcome of, the earliest first: that of its last run, where it
    /// is there, and those with a later slot in this plan.
    pub fn unrecorded(&self) -> impl Iterator<Item = &Child> {
        let last = self.status.last_run.as_ref();
        let open = last.filter(|last| last.outcome.is_none()).map(|last| last.slot);
        let used = self.used_up_to();
        self.children.iter().filter(move |child| Some(child.slot) == open || Some(child.slot) > used)
    }
}

#[cfg(test)]
mod tests;
