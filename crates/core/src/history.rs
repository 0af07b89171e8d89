//! The history of a target: its terminal executions in order, and which of them still block or count.
//!
//! Rules 2 to 5 of section 6 and the counter of section 7 read only the history. It is computed from the statuses for
//! every decision, so a restart loses nothing, and deleting an execution removes its effect. The counters in statuses
//! are not read, so a wrong one does no harm.

mod clearing;
mod order;

use crate::Time;
use crate::backoff::failures_in_a_row;
use crate::ending::{Charge, Remediation};
use crate::execution::{Execution, ExecutionState, FailedState};
use crate::moment::{after, round_up};
use crate::name::ExecutionId;
use crate::policy::{Policy, Scope};
use crate::reason::FailureReason;
use crate::target::Target;

use clearing::NewClearance;
pub use clearing::Unrecorded;

/// The history of a target at one time.
#[derive(Clone, Debug)]
pub struct History<'a> {
    /// The terminal executions, oldest first.
    past: Vec<Past<'a>>,
    /// The index of the first execution that no clearance covers.
    cleared: usize,
    /// The clearances that no status records yet.
    new: Vec<NewClearance>,
}

/// A terminal execution.
#[derive(Clone, Copy, Debug)]
pub struct Past<'a> {
    /// The execution.
    pub execution: &'a Execution,
    /// How the execution ended.
    pub end: End,
    /// When the execution ended, if its status has the time.
    pub ended_at: Option<Time>,
}

/// How an execution ended, as later executions treat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The execution completed.
    Completed,
    /// Something ran or may have run: the failure blocks.
    ExecutionFailure,
    /// Nothing ran: the failure counts.
    PreExecutionFailure,
    /// Nothing ran, and other targets failed alike at that time. The next execution waits as if the failure counted
    /// (section 13.5).
    SharedFailure,
    /// Nothing ran, and the failure does not count (section 7). The execution was too late (`startBefore`), a person
    /// cancelled it, or it is a child of a schedule, which has its own pace.
    Uncounted,
}

/// The effect of a failure on the failure count of its target (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The failure has no effect.
    None,
    /// The next execution waits as if the failure counted: its cause is shared (section 13.5).
    Waits,
    /// The failure counts, and the next execution waits.
    Counts,
}

impl<'a> History<'a> {
    /// Reads the history of a target.
    #[must_use]
    pub fn of(target: &'a Target, policy: &Policy, now: Time) -> Self {
        let mut past: Vec<Past<'a>> = target.executions.values().filter_map(Past::of).collect();
        order::sort(&mut past);
        let mut history = Self { past, cleared: 0, new: Vec::new() };
        history.clear(policy, now, target);
        history
    }

    /// Returns the whole history, oldest first.
    #[must_use]
    pub fn all(&self) -> &[Past<'a>] {
        &self.past
    }

    /// Returns the executions that no clearance covers, oldest first.
    #[must_use]
    pub fn uncleared(&self) -> &[Past<'a>] {
        self.past.get(self.cleared..).unwrap_or_default()
    }

    /// Returns the latest execution, unless a clearance covers it. Executions that do not count are ignored.
    #[must_use]
    pub fn latest(&self) -> Option<&Past<'a>> {
        self.uncleared().iter().rfind(|past| past.end != End::Uncounted)
    }

    /// Returns the uncleared executions that ran and that concern a workflow in this scope, newest first.
    pub fn ran(&self, scope: Scope, workflow_id: &str) -> impl Iterator<Item = &Past<'a>> {
        self.uncleared().iter().rev().filter(move |past| past.ran() && past.is_in(scope, workflow_id))
    }

    /// Returns the newest execution that ran, whether or not a clearance covers it.
    pub(crate) fn newest_that_ran(&self) -> Option<&Past<'a>> {
        self.past.iter().rfind(|past| past.ran())
    }

    /// Returns the failure whose recovery is the newest execution that ran, if this recovery succeeded.
    pub(crate) fn recovered(&self) -> Option<&Past<'a>> {
        let recovery = self.newest_that_ran().filter(|past| past.end == End::Completed)?.execution;
        let name = recovery.recovery_of.as_deref()?;
        let is_named = |id: &ExecutionId| *id.name == *name && id.namespace == recovery.id.namespace;
        self.past.iter().find(|past| past.end == End::ExecutionFailure && is_named(&past.execution.id))
    }

    /// Returns the pre-execution failures since the last success or clearance, newest first, including shared ones.
    pub fn failures(&self) -> impl Iterator<Item = &Past<'a>> {
        let since = self.uncleared().iter().rev().take_while(|past| past.end != End::Completed);
        since.filter(|past| past.backs_off())
    }

    /// Returns the failures in a row as of a time, newest first.
    pub fn row(&self, policy: &Policy, at: Time) -> impl Iterator<Item = &Past<'a>> {
        let length = self.failures_to_wait_for(policy, at);
        self.failures().take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Returns the index after the last execution that ended earlier than one before it. Up to that index, the times
    /// contradict the numbers.
    pub(crate) fn in_order_from(&self) -> usize {
        let (mut from, mut latest) = (0, Time::MIN_UTC);
        for (at, past) in self.past.iter().enumerate() {
            let ended_at = order::ended_at(past);
            if ended_at < latest {
                from = at + 1;
            }
            latest = latest.max(ended_at);
        }
        from
    }

    /// Returns whether a clearance covers an execution of the history.
    pub(crate) fn is_cleared(&self, past: &Past<'_>) -> bool {
        let cleared = self.past.get(..self.cleared).unwrap_or_default();
        cleared.iter().any(|covered| covered.execution.id == past.execution.id)
    }

    /// Counts the pre-execution failures in a row, as of a time (section 7). Shared ones do not count.
    #[must_use]
    pub fn consecutive_failures(&self, policy: &Policy, at: Time) -> u32 {
        let counted = self.row(policy, at).filter(|past| past.end == End::PreExecutionFailure).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    }

    /// Counts the failures in a row that the next execution waits for, as of a time, including shared ones.
    #[must_use]
    pub fn failures_to_wait_for(&self, policy: &Policy, at: Time) -> u32 {
        failures_in_a_row(self.failures().map(|past| past.ended_at), policy.failure_quiet_period, at)
    }

    /// Returns the latest failure that counts and the number of failures in a row, if the number has reached the limit.
    #[must_use]
    pub fn exhausted(&self, policy: &Policy, now: Time) -> Option<(&Past<'a>, u32)> {
        let (failures, limit) = (self.consecutive_failures(policy, now), policy.max_consecutive_failures);
        let mut counted = self.failures().filter(|past| past.end == End::PreExecutionFailure);
        let latest = counted.next().filter(|_| limit > 0 && failures >= limit)?;
        Some((latest, failures))
    }

    /// Returns when the failures in a row are forgotten, if a quiet time is configured.
    #[must_use]
    pub fn quiet_at(&self, policy: &Policy) -> Option<Time> {
        let latest = self.failures().next()?;
        Some(after(latest.ended_at?, policy.failure_quiet_period?))
    }

    /// Returns when the backoff lets the next execution run, as the latest failure's status records or should record
    /// it. `None` if the time of the failure is unknown.
    #[must_use]
    pub fn next_allowed(&self, latest: &Past<'_>, policy: &Policy, key: &str) -> Option<Time> {
        let ExecutionState::Failed(failed) = &latest.execution.state else { return None };
        failed.next_allowed_execution.or_else(|| {
            let failed_at = latest.ended_at?;
            Some(next_allowed(policy, key, self.failures_to_wait_for(policy, failed_at).max(1), failed_at))
        })
    }

    /// Returns the failure count that the status of an execution records when it ends, for a failure of this weight.
    ///
    /// The count comes from the known history at the time of the write; it is never one status plus one. The ends of
    /// runs are written one at a time, because only the holder of the target writes them. Other failures need no target
    /// (a refused create, rule 0). One operator writes those one after the other. Two operators may each write such a
    /// failure at the same moment, without seeing the write of the other. Both failures then count, and one status for
    /// ever shows a number that is one too low.
    #[must_use]
    pub fn charge(&self, policy: &Policy, key: &str, at: Time, weight: Weight) -> Charge {
        let counts = weight == Weight::Counts;
        let consecutive_failures = self.consecutive_failures(policy, at).saturating_add(u32::from(counts));
        let waits_for = || self.failures_to_wait_for(policy, at).saturating_add(1);
        let next_allowed_execution = (weight != Weight::None).then(|| next_allowed(policy, key, waits_for(), at));
        let limit = policy.max_consecutive_failures;
        let exhausts = counts && limit > 0 && consecutive_failures >= limit;
        Charge { consecutive_failures, next_allowed_execution, exhausts }
    }
}

fn next_allowed(policy: &Policy, key: &str, failures: u32, failed_at: Time) -> Time {
    round_up(after(failed_at, policy.backoff.jittered(failures, key)))
}

impl<'a> Past<'a> {
    fn of(execution: &'a Execution) -> Option<Self> {
        let end = match &execution.state {
            ExecutionState::Completed { .. } => End::Completed,
            ExecutionState::Failed(failed) => end_of(execution, failed),
            ExecutionState::Undecided { .. } | ExecutionState::Running { .. } | ExecutionState::Skipped { .. } => {
                return None;
            }
        };
        Some(Self { execution, end, ended_at: execution.ended_at() })
    }

    /// Returns the description of the execution for a skip that it causes.
    pub(crate) fn remediation(&self) -> Remediation {
        Remediation {
            execution: self.execution.id.clone(),
            workflow_id: (*self.execution.workflow_id).into(),
            completed_at: self.ended_at.unwrap_or(self.execution.created),
            completed: self.end == End::Completed,
            is_dated: self.ended_at.is_some(),
        }
    }

    /// Returns whether something ran or may have run.
    #[must_use]
    pub fn ran(&self) -> bool {
        matches!(self.end, End::Completed | End::ExecutionFailure)
    }

    /// Returns whether nothing ran and the next execution waits.
    #[must_use]
    pub fn backs_off(&self) -> bool {
        matches!(self.end, End::PreExecutionFailure | End::SharedFailure)
    }

    fn is_in(&self, scope: Scope, workflow_id: &str) -> bool {
        scope == Scope::Target || *self.execution.workflow_id == *workflow_id
    }
}

/// Returns how an execution ended. A failure with the reason `DeadlineExceeded` and without a run number was too late
/// for its `startBefore`: a run that timed out has a number.
fn end_of(execution: &Execution, failed: &FailedState) -> End {
    let is_too_late = failed.reason == FailureReason::DeadlineExceeded && execution.run_sequence.is_none();
    if execution.analyses() {
        End::Uncounted // an analysis has a target of its own
    } else if failed.was_execution_failure {
        End::ExecutionFailure
    } else if failed.cancelled || is_too_late || execution.child.is_some() {
        End::Uncounted
    } else if failed.shared_outage {
        End::SharedFailure
    } else {
        End::PreExecutionFailure
    }
}

#[cfg(test)]
mod tests;
