//! One schedule (a `WorkflowSchedule` object), with the fields that decisions need (section 12).
//!
//! A schedule creates an execution, its *child*, for each of its *slots*. It has its own pace: after a failed child it
//! waits longer. In every other way, a child is an ordinary execution.

pub mod cron;
pub mod plan;
mod retention;
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

pub use plan::{Planned, PlannedBy};
pub use retention::Retention;
pub use status::{Held, HeldBy, LastRun, MOST_FAILURES, Missed, Outcome, Ready, ScheduleStatus};

/// The fields of one `WorkflowSchedule` that the index keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The object.
    pub id: ScheduleId,
    /// The version that was read; a write sends it back.
    pub version: Version,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether the schedule or its namespace is being deleted: no more children are created.
    pub leaving: bool,
    /// The plan; or why the spec cannot be used, for people (row 0).
    pub plan: Result<Plan, Box<str>>,
    /// `spec.suspend`.
    pub suspended: bool,
    /// `spec.hint`, if it is valid.
    pub hint: Option<Box<Hint>>,
    /// `spec.history`.
    pub history: HistoryLimits,
    /// `spec.triage`. Most schedules do not set it, and share one value.
    pub triage: Arc<TriageSpec>,
    /// `spec.resume.triage`: the triage whose pause or adjusted values a person has ended.
    pub resume: Option<Box<str>>,
    /// The revision of the plan. When it changes, the plan begins anew.
    pub revision: Revision,
    /// `spec.template.spec.workflowRef.workflowId`: the workflow that a child would run.
    pub workflow_id: Arc<str>,
    /// What a child would run, for fingerprints.
    pub origin: Arc<Origin>,
    /// The pause of the schedule's namespace or of its target's namespace, if there is one.
    pub paused: Option<Arc<Pause>>,
    /// The status of the schedule.
    pub status: ScheduleStatus,
    /// The existing executions that were created for the schedule, by slot, including those on an earlier target.
    pub children: Vec<Child>,
    /// The execution that analyses the schedule's failures, if there is one.
    pub analyst: Option<Box<AnalystRun>>,
    /// What this process remembers of the schedule.
    pub memory: ScheduleMemory,
}

/// When a schedule runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The interval or the cron expression.
    pub every: Every,
    /// `spec.minInterval`: how soon after a slot a hint may request the next one.
    pub min_interval: Duration,
    /// `spec.maxInterval`: how far backoff and hints may move a slot.
    pub max_interval: Duration,
    /// `spec.spread`: all slots are delayed by a constant share of this duration.
    pub spread: Duration,
    /// `spec.startingDeadlineSeconds`: how long after its slot a child may be created. `None`: there is no deadline.
    pub deadline: Option<Duration>,
}

/// The interval or the cron expression of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum Every {
    /// `spec.interval`.
    Interval(Duration),
    /// `spec.cron`, in its zone.
    Cron(Arc<cron::Cron>),
}

/// An advisor's request for the next slot (`spec.hint`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The request.
    pub wish: Wish,
    /// When the request expires.
    pub expires_at: Time,
}

/// The request of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// `nextRunAt`: one slot at this time.
    At(Time),
    /// `interval`: this long after the last slot.
    Interval(Duration),
}

/// How many ended children are kept (`spec.history`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Completed children.
    pub successful: u8,
    /// All other children.
    pub failed: u8,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { successful: 3, failed: 3 }
    }
}

/// The revision of a plan, made of three digests: of the uid (16 bits), of interval, cron, zone and spread (20 bits),
/// and of what the template runs (20 bits). One edit in a million has the same digest. It is not noticed, and the plan
/// continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision(pub u64);

impl Revision {
    /// The number of bits of the plan digest, and of the template digest.
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;

    /// Creates a revision from three digests, each cut to its number of bits.
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

/// Writes the spelling of the API.
impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (uid, plan, template) = self.parts();
        write!(f, "{uid:04x}-{plan:05x}-{template:05x}")
    }
}

/// How many slots of a schedule may pass without a success.
const SLOTS_WITHOUT_SUCCESS: u32 = 3;

/// What this process remembers of a schedule. A new process remembers nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleMemory {
    /// The child that the API server refused to create, until the status records the refusal.
    pub create_refused: Option<Box<RefusedChild>>,
    /// The message of a child that did not complete, until the status records it.
    pub child_message: Option<Box<SaidOfChild>>,
    /// The slot for which this process last tried to create a child: the answer may have been lost.
    pub create_tried: Option<Time>,
    /// The evidence for a triage, until the triage has ended.
    pub triage_evidence: Option<Box<Gathered>>,
    /// The answer of an analyst, until the status records it.
    pub analyst_answer: Option<Box<Heard>>,
    /// The triages of other schedules that began within the last hour.
    pub others_begun: Begun,
}

/// The answer of an analyst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The triage that the answer belongs to, by the name of the child.
    pub of: Box<str>,
    /// The judgement, or why there is none.
    pub said: Result<Judgement, Box<str>>,
}

/// How a child ended, in the words of its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidOfChild {
    /// The slot of the child.
    pub slot: Time,
    /// The message, without any value of a parameter.
    pub words: Box<str>,
}

/// A child that the API server refused to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChild {
    /// The slot of the child.
    pub slot: Time,
    /// The answer of the API server, cut to the limit of a status.
    pub message: Box<str>,
}

/// An execution that was created for a slot of a schedule, as the schedule sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The uid of the execution.
    pub uid: Uid,
    /// The slot for which the execution was created.
    pub slot: Time,
    /// When the execution was created.
    pub created: Time,
    /// The state of the execution.
    pub state: ChildState,
}

/// The state of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// The child has not ended.
    AtWork,
    /// The child has ended.
    Ended {
        /// How the child ended.
        outcome: Outcome,
        /// When the child ended, if its status has the time.
        at: Option<Time>,
        /// Why the child did not complete, in one word of the API.
        reason: Option<&'static str>,
        /// The fingerprint of the failure, if the status of the child has one.
        fingerprint: Option<Fingerprint>,
    },
}

/// The relation of an execution to the schedule for which it was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildOf {
    /// The uid of the schedule.
    pub schedule: Uid,
    /// The slot for which the execution was created.
    pub slot: Time,
    /// Whether the execution analyses why the child of that slot failed; it is then not a child itself.
    pub analyses: bool,
    /// Whether the schedule still needs the execution.
    pub keep: Retention,
}

/// Returns the name of the child of a slot. It is always the same, so no slot has two children.
#[must_use]
pub fn child_name(schedule: &str, slot: Time) -> String {
    format!("{schedule}-{}", slot.timestamp())
}

/// Returns the name of the execution that analyses why a child failed.
#[must_use]
pub fn analyst_name(child: &str) -> String {
    format!("{child}{ANALYST}")
}

/// Reads the slot from the name of an analyst.
#[must_use]
pub fn analysed_slot(schedule: &str, analyst: &str) -> Option<Time> {
    slot_of(schedule, analyst.strip_suffix(ANALYST)?)
}

/// The suffix of an analyst's name.
const ANALYST: &str = "-triage";

/// Reads the slot from the name of a child.
#[must_use]
pub fn slot_of(schedule: &str, child: &str) -> Option<Time> {
    let seconds: i64 = child.strip_prefix(schedule)?.strip_prefix('-')?.parse().ok()?;
    let slot = Time::from_timestamp(seconds, 0)?;
    (child_name(schedule, slot) == child).then_some(slot)
}

impl Schedule {
    /// Returns the slot up to which all slots are used and do not run any more.
    #[must_use]
    pub fn used_up_to(&self) -> Option<Time> {
        let last = self.status.last_run.as_ref().map(|last| last.slot);
        last.max(self.status.planned_from)
    }

    /// Returns whether a person has ended the pause of the latest triage, or the values that this or an earlier triage
    /// set, and the plan has not begun anew since.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        let has_values = self.status.adjust.is_some();
        let standing = self.status.triage.as_ref().filter(|triage| triage.state.is_standing() || has_values);
        standing.is_some_and(|triage| self.resume.as_ref() == Some(&triage.of))
    }

    /// Returns the open circuit that holds the schedule: the circuit of its newest failure (section 13.5).
    #[must_use]
    pub fn held_by<'a>(&self, circuits: &'a Circuits, now: Time) -> Option<&'a OpenCircuit> {
        circuits.holding(self.failed_last().map(|(fingerprint, _)| fingerprint), now)
    }

    /// Returns the fingerprint and the time of the newest run of this plan that succeeded or failed, if it failed. A
    /// run with another outcome, such as a cancelled one, says nothing about the cause. The earlier run before it then
    /// counts, if its execution still exists.
    #[must_use]
    pub fn failed_last(&self) -> Option<(&Fingerprint, Time)> {
        let decides = |outcome: Outcome| matches!(outcome, Outcome::Completed | Outcome::Failed);
        let last = self.status.last_run.as_ref()?;
        let (slot, outcome, ended_at, fingerprint) = match last.outcome {
            Some(outcome) if decides(outcome) => (last.slot, outcome, last.ended_at, &last.fingerprint),
            _ => self.children.iter().rev().filter(|child| child.slot < last.slot).find_map(|child| {
                let ChildState::Ended { outcome, at, fingerprint, .. } = &child.state else { return None };
                decides(*outcome).then_some((child.slot, *outcome, *at, fingerprint))
            })?,
        };
        let failed_in_this_plan = outcome == Outcome::Failed && Some(slot) > self.status.planned_from;
        fingerprint.as_ref().filter(|_| failed_in_this_plan).map(|it| (it, ended_at.unwrap_or(slot)))
    }

    /// Returns when the third slot without a success comes, after which the schedule counts as failing its purpose
    /// (section 12.2). `None` if the schedule should not run, a triage has paused it, or its spec cannot be used.
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

    /// Returns the child of a slot, if it exists.
    #[must_use]
    pub fn child_at(&self, slot: Time) -> Option<&Child> {
        self.children.iter().find(|child| child.slot == slot)
    }

    /// Returns the children without a recorded outcome, earliest first: the child of the last run, if it exists, and
    /// those with a later slot in this plan.
    pub fn unrecorded(&self) -> impl Iterator<Item = &Child> {
        let last = self.status.last_run.as_ref();
        let open = last.filter(|last| last.outcome.is_none()).map(|last| last.slot);
        let used = self.used_up_to();
        self.children.iter().filter(move |child| Some(child.slot) == open || Some(child.slot) > used)
    }
}

#[cfg(test)]
mod tests;
