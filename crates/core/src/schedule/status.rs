//! The status of a schedule: the current one, and the one that a decision wants.

use super::{Planned, Revision};
use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::triage::{Adjust, State, Triage};
use crate::words::words;

/// The highest number of failures that a status can hold (`int32`).
pub const MOST_FAILURES: u32 = i32::MAX.unsigned_abs();

words! {
    /// Names how a run of a schedule ended.
    pub enum Outcome {
        /// The child succeeded: the number of failures in a row is reset.
        Completed,
        /// The child failed: the number of failures in a row grows.
        Failed,
        /// The child did not get its turn on the target.
        Skipped,
        /// A person cancelled the child.
        Cancelled,
        /// The child did not get its turn before `startBefore`.
        TooLate,
        /// The child was deleted before its end was recorded.
        Deleted,
        /// The child could not be created: the number of failures in a row grows.
        Refused,
    }
}

impl Outcome {
    /// Returns the number of failures in a row after this outcome.
    #[must_use]
    pub fn count(self, streak: u32) -> u32 {
        match self {
            Self::Completed => 0,
            Self::Failed | Self::Refused => streak.saturating_add(1).min(MOST_FAILURES),
            // These outcomes do not show whether the workflow works.
            Self::Skipped | Self::Cancelled | Self::TooLate | Self::Deleted => streak,
        }
    }
}

/// The status of a schedule, as it is or as a decision wants it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleStatus {
    /// `observedGeneration`.
    pub observed_generation: Option<i64>,
    /// `revision`.
    pub revision: Option<Revision>,
    /// `plannedFrom`: slots before this time neither run nor count.
    pub planned_from: Option<Time>,
    /// `phase`: the time from which slots are counted, if that is neither the last slot nor the start of the plan. With
    /// a cron expression, a slot runs only if its time before the spread is later than `phase`.
    pub phase: Option<Time>,
    /// `failureCount`: the number of failures in a row.
    pub failure_count: u32,
    /// `lastRun`.
    pub last_run: Option<LastRun>,
    /// `lastSuccessTime`.
    pub last_success: Option<Time>,
    /// `lastMissed`.
    pub last_missed: Option<Missed>,
    /// `nextRunTime` and `nextRunReason`.
    pub next: Option<Planned>,
    /// `triage`: the latest triage.
    pub triage: Option<Box<Triage>>,
    /// `adjust`: the values from a triage that replace those of the spec.
    pub adjust: Option<Box<Adjust>>,
    /// Condition `Ready`.
    pub ready: Ready,
    /// Condition `Held`.
    pub held: Held,
    /// Since when the condition `Ready` has its status. The renderer preserves this time.
    pub ready_since: Option<Time>,
    /// Since when the condition `Held` has its status.
    pub held_since: Option<Time>,
}

impl ScheduleStatus {
    /// Returns the triage that has paused the schedule, if one has.
    #[must_use]
    pub fn paused_by(&self) -> Option<&Triage> {
        self.triage.as_deref().filter(|triage| triage.state == State::Paused)
    }
}

/// The latest slot that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// The slot. The name of the child is derived from the slot.
    pub slot: Time,
    /// Whether the child made up for the slot before, whose child lost a race for the target.
    pub again: bool,
    /// When the child was created. `None` if the API server refused it.
    pub started_at: Option<Time>,
    /// When the child ended; if that is unknown, when its end was seen.
    pub ended_at: Option<Time>,
    /// The outcome of the child. `None` while it is running.
    pub outcome: Option<Outcome>,
    /// The reason, in one word of the API.
    pub reason: Option<Box<str>>,
    /// The fingerprint, if the child failed or the API server refused it.
    pub fingerprint: Option<Fingerprint>,
    /// What happened, for people.
    pub message: Option<Box<str>>,
}

/// The slots without a child since the last used slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The latest missed slot.
    pub slot: Time,
    /// The number of missed slots; for a cron expression at most 100.
    pub count: u32,
}

impl Missed {
    /// Returns how many of these missed slots are new, compared with the missed slots and the last used slot of a
    /// status.
    #[must_use]
    pub fn beyond(self, told: Option<Self>, used: Option<Time>) -> u32 {
        match told {
            Some(told) if told == self => 0,
            Some(told) if Some(told.slot) > used => self.count.saturating_sub(told.count),
            _ => self.count,
        }
    }
}

/// The condition `Ready`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// The condition is not set.
    #[default]
    Unsaid,
    /// True.
    Yes,
    /// False: the spec cannot be used, for this reason.
    InvalidSpec(Box<str>),
    /// False: the API server refuses the child, for this reason.
    ChildRefused(Box<str>),
    /// False: the schedule or its namespace is being deleted.
    Deleting,
}

/// The condition `Held`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// The condition is not set: the schedule was never held.
    #[default]
    Never,
    /// False, `Released`: the schedule was held before.
    Released,
    /// False, `WouldBeHeld`: the next slot lies in the future, and what blocks the target now would hold that slot. The
    /// text begins with the reason.
    Ahead(Box<str>),
    /// True: no child is created, although a slot is due.
    By {
        /// What holds the schedule.
        reason: HeldBy,
        /// The description, with what would end it.
        message: Box<str>,
    },
}

impl Held {
    /// Returns what holds the schedule, if anything does.
    #[must_use]
    pub fn by(&self) -> Option<HeldBy> {
        match self {
            Self::Never | Self::Released | Self::Ahead(_) => None,
            Self::By { reason, .. } => Some(*reason),
        }
    }

    /// Returns the condition for when nothing holds the schedule any more.
    #[must_use]
    pub fn released(&self) -> Self {
        match self {
            Self::Never => Self::Never,
            Self::Released | Self::Ahead(_) | Self::By { .. } => Self::Released,
        }
    }
}

words! {
    /// What holds a schedule.
    pub enum HeldBy {
        /// A person has suspended the schedule.
        Suspended,
        /// A triage has paused the schedule, until a person resumes it.
        TriagePaused,
        /// Everything is paused, or the namespace of the schedule or of its target.
        Paused,
        /// The target is not free.
        ResourceBusy,
        /// The last execution on the target failed half way.
        PreviousExecutionFailed,
        /// Too many executions in a row failed on the target.
        ExhaustedRetries,
        /// The target is in backoff or cooldown.
        RecentlyRemediated,
        /// Many targets, including this schedule's, share a failure.
        CircuitOpen,
        /// A limit on the number of targets in work at once has no free place.
        Limit,
    }
}
