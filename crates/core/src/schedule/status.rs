//! The status of a schedule: the present one, and the one that a decision wants.

use super::{Planned, Revision};
use crate::Time;
use crate::fingerprint::Fingerprint;
use crate::triage::{Adjust, State, Triage};
use crate::words::words;

/// The most failures that a status can say (`int32`).
pub const MOST_FAILURES: u32 = i32::MAX.unsigned_abs();

words! {
    /// Says how a run of a schedule ended.
    pub enum Outcome {
        /// It succeeded: the streak of failures ends.
        Completed,
        /// It failed: the streak grows.
        Failed,
        /// It did not get its turn on the target.
        Skipped,
        /// A person cancelled it.
        Cancelled,
        /// It was not decided before `startBefore`.
        TooLate,
        /// It was deleted before its end was recorded.
        Deleted,
        /// It could not be created: the streak grows.
        Refused,
    }
}

impl Outcome {
    /// Returns the length of a streak of failures after this outcome.
    #[must_use]
    pub fn count(self, streak: u32) -> u32 {
        match self {
            Self::Completed => 0,
            Self::Failed | Self::Refused => streak.saturating_add(1).min(MOST_FAILURES),
            // These outcomes show nothing of whether the workflow works.
            Self::Skipped | Self::Cancelled | Self::TooLate | Self::Deleted => streak,
        }
    }
}

/// The status of a schedule: what it says, and what a decision wants it to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleStatus {
    /// `observedGeneration`.
    pub observed_generation: Option<i64>,
    /// `revision`.
    pub revision: Option<Revision>,
    /// `plannedFrom`: no earlier slot runs or counts.
    pub planned_from: Option<Time>,
    /// `phase`: what slots count from, if that is neither the last slot nor the beginning of the plan. For a cron
    /// expression: slots run only if their time before the spread is later.
    pub phase: Option<Time>,
    /// `failureCount`: the length of the streak.
    pub failure_count: u32,
    /// `lastRun`.
    pub last_run: Option<LastRun>,
    /// `lastSuccessTime`.
    pub last_success: Option<Time>,
    /// `lastMissed`.
    pub last_missed: Option<Missed>,
    /// `nextRunTime` and `nextRunReason`.
    pub next: Option<Planned>,
    /// `triage`: the latest one.
    pub triage: Option<Box<Triage>>,
    /// `adjust`: the values of a triage that replace those of the spec.
    pub adjust: Option<Box<Adjust>>,
    /// Condition `Ready`.
    pub ready: Ready,
    /// Condition `Held`.
    pub held: Held,
    /// Since when the condition `Ready` has its status. Kept by the renderer.
    pub ready_since: Option<Time>,
    /// Since when the condition `Held` has its status.
    pub held_since: Option<Time>,
}

impl ScheduleStatus {
    /// Returns the triage that has paused it, where one has.
    #[must_use]
    pub fn paused_by(&self) -> Option<&Triage> {
        self.triage.as_deref().filter(|triage| triage.state == State::Paused)
    }
}

/// The latest slot that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// The slot. The name of the child follows from it.
    pub slot: Time,
    /// Whether it made up for the slot before, whose child lost a race for the target.
    pub again: bool,
    /// When the child was made. None where the API server refused it.
    pub started_at: Option<Time>,
    /// When it ended; if that is unknown, when the end was seen.
    pub ended_at: Option<Time>,
    /// Its outcome. None while it is at work.
    pub outcome: Option<Outcome>,
    /// Why, in one word of the API.
    pub reason: Option<Box<str>>,
    /// The fingerprint of its failure, if it failed or the API server refused it.
    pub fingerprint: Option<Fingerprint>,
    /// What happened, for people.
    pub message: Option<Box<str>>,
}

/// The slots without a child since the last used slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The latest of them.
    pub slot: Time,
    /// How many there are; for a cron expression at most 100.
    pub count: u32,
}

impl Missed {
    /// Returns how many of them a status does not report yet that has these missed slots and this last used slot.
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
    /// Not set.
    #[default]
    Unsaid,
    /// True.
    Yes,
    /// False: its spec cannot be used, and why.
    InvalidSpec(Box<str>),
    /// False: the API server refuses its child, and why.
    ChildRefused(Box<str>),
    /// False: its deletion has begun, or that of its namespace.
    Deleting,
}

/// The condition `Held`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Held {
    /// Not set: it was never held.
    #[default]
    Never,
    /// False, `Released`: it was held once.
    Released,
    /// False, `WouldBeHeld`: its next slot lies ahead, and what blocks its target now would hold it then. The text
    /// begins with the reason.
    Ahead(Box<str>),
    /// True: no child is made, although a slot is due.
    By {
        /// What holds it.
        reason: HeldBy,
        /// The description, with what would end it.
        message: Box<str>,
    },
}

impl Held {
    /// Returns what holds it, if anything does.
    #[must_use]
    pub fn by(&self) -> Option<HeldBy> {
        match self {
            Self::Never | Self::Released | Self::Ahead(_) => None,
            Self::By { reason, .. } => Some(*reason),
        }
    }

    /// Returns the condition when nothing holds it any more.
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
        /// A person has suspended it.
        Suspended,
        /// A triage has paused it, for a person.
        TriagePaused,
        /// Everything is paused, its namespace, or its target's.
        Paused,
        /// Its target is not free.
        ResourceBusy,
        /// The last execution on its target broke half way.
        PreviousExecutionFailed,
        /// Too many executions in a row failed on its target.
        ExhaustedRetries,
        /// Its target is in backoff or cooldown.
        RecentlyRemediated,
        /// A failure is shared by many targets, and would be its own too.
        CircuitOpen,
        /// A limit of how many targets are worked on at once.
        Limit,
    }
}
