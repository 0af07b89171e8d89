//! What comes of a play, in numbers.

use serde::Serialize;

/// What comes of a play, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Totals {
    /// Runs that were released to Tekton.
    pub(super) runs: u64,
    /// Executions that completed.
    pub(super) completed: u64,
    /// Executions that failed.
    pub(super) failed: u64,
    /// Executions that were skipped, by reason.
    pub(super) skipped: Skipped,
    /// How often a schedule was held.
    pub(super) held: u64,
    /// Slots of schedules without a run.
    pub(super) missed: u64,
    /// Executions that had not ended at the end.
    pub(super) open: usize,
    /// The targets that need a person at the end.
    pub(super) blocked_targets: Vec<String>,
    /// The schedules that need a person at the end, because a triage has paused them.
    pub(super) paused_schedules: Vec<String>,
    /// For how long targets needed a person, added up, in seconds.
    pub(super) blocked_seconds: u64,
    /// The time of the latest recovery, in seconds since the start. A target recovers when an execution completes on it
    /// after a failure.
    pub(super) last_recovery_seconds: Option<u64>,
    /// On how many targets the last execution that completed or failed has failed.
    pub(super) failing_targets: usize,
}

/// How many executions were skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Skipped {
    pub(super) busy: u64,
    pub(super) cooldown: u64,
    pub(super) backoff: u64,
    pub(super) exhausted: u64,
    pub(super) blocked: u64,
}

impl Skipped {
    /// Returns the reasons with their numbers.
    pub(super) fn by_reason(self) -> [(&'static str, u64); 5] {
        let Self { busy, cooldown, backoff, exhausted, blocked } = self;
        [("busy", busy), ("cooldown", cooldown), ("backoff", backoff), ("exhausted", exhausted), ("blocked", blocked)]
    }

    /// Returns how many there are together.
    pub(super) fn all(self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }
}

impl Totals {
    /// Returns whether a target or a schedule needs a person.
    pub(super) fn needs_a_person(&self) -> bool {
        !self.blocked_targets.is_empty() || !self.paused_schedules.is_empty()
    }
}
