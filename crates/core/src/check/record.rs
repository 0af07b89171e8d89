//! The history, compared pair by pair.

use std::cmp::Ordering;

use crate::Time;
use crate::execution::{Execution, ExecutionState, Recorded};
use crate::guard::Guard;
use crate::policy::{Policy, Scope};
use crate::reason::BlockReason;
use crate::reason::FailureReason;
use crate::target::Target;

/// The terminal executions of a target, and the policy that judges them.
pub(super) struct Record<'a> {
    ended: Vec<&'a Execution>,
    policy: &'a Policy,
    pub(super) guard: Guard,
    key: &'a str,
    now: Time,
}

impl<'a> Record<'a> {
    pub(super) fn new(target: &'a Target, policy: &'a Policy, now: Time) -> Self {
        let has_ended =
            |it: &&Execution| matches!(it.state, ExecutionState::Completed { .. } | ExecutionState::Failed(_));
        // Executions whose target cannot be read neither count nor block.
        let executions = target.executions.values().filter(|_| !target.is_unreadable);
        let ended = executions.filter(has_ended).collect();
        Self { ended, policy, guard: target.guard, key: target.label(), now }
    }

    /// Returns the skip reasons that forbid an execution to run, each with the executions that can be its cause.
    pub(super) fn forbids(&self, contender: &Execution) -> Vec<(&'static str, Vec<&'a Execution>)> {
        let mut reasons = Vec::new();
        let broken = self.broken_for(&contender.workflow_id);
        if let Some(newest) = broken.iter().copied().max_by(|a, b| self.order(a, b)) {
            let is_recovery = contender.recovery_of.as_deref() == Some(&*newest.id.name)
                && contender.id.namespace == newest.id.namespace
                && broken
                    .iter()
                    .all(|it| it.workflow_id != contender.workflow_id && !it.bundle.is_same(contender.bundle));
            if !is_recovery {
                reasons.push(("PreviousExecutionFailed", vec![newest]));
            }
        }
        let row = self.counted(self.now);
        let limit = usize::try_from(self.policy.max_consecutive_failures).unwrap_or(usize::MAX);
        if limit > 0 && row.len() >= limit {
            reasons.push(("ExhaustedRetries", row));
        }
        if let Some(latest) = self.backs_off() {
            reasons.push(("RecentlyRemediated", vec![latest]));
        }
        let hot: Vec<_> = self.ended.iter().copied().filter(|it| self.cools_down(it, contender)).collect();
        if !hot.is_empty() {
            reasons.push(("RecentlyRemediated", hot));
        }
        reasons
    }

    /// Returns the pre-execution failures in a row that count, as of a time. A failure that many targets share does not
    /// count.
    pub(super) fn counted(&self, at: Time) -> Vec<&'a Execution> {
        self.row(at).into_iter().filter(|it| !is_shared(it)).collect()
    }

    /// Returns the pre-execution failures in a row, as of a time. Their number determines the wait of the next
    /// execution.
    pub(super) fn row(&self, at: Time) -> Vec<&'a Execution> {
        self.row_among(at, &|it| self.is_cleared(it))
    }

    /// Returns whether an execution blocks the target for this reason.
    pub(super) fn is_blocked_by(&self, it: &Execution, reason: BlockReason) -> bool {
        let newest = |all: Vec<&'a Execution>| all.into_iter().max_by(|a, b| self.order(a, b));
        let newest = match reason {
            BlockReason::PreviousExecutionFailed => newest(self.broken_for(&it.workflow_id)),
            BlockReason::ExhaustedRetries => {
                let row = self.counted(self.now);
                let limit = usize::try_from(self.policy.max_consecutive_failures).unwrap_or(usize::MAX);
                if limit > 0 && row.len() >= limit { newest(row) } else { None }
            }
        };
        newest.is_some_and(|newest| newest.id == it.id)
    }

    /// Returns whether the newest execution that ran is a recovery of this failure and succeeded.
    pub(super) fn is_recovered(&self, failed: &Execution) -> bool {
        let ran = self.ended.iter().copied().filter(|it| is_success(it) || is_broken(it));
        ran.max_by(|a, b| self.order(a, b)).is_some_and(|newest| {
            is_success(newest)
                && is_broken(failed)
                && newest.id.namespace == failed.id.namespace
                && newest.recovery_of.as_deref() == Some(&*failed.id.name)
        })
    }

    /// Returns whether a clearance without a recorded effect lifts a block.
    pub(super) fn lifts(&self, cleared: &Execution) -> bool {
        let gone = |it: &Execution| self.is_cleared_for_long(it);
        let up_to = |it: &Execution| self.order(it, cleared) != Ordering::Greater;
        let breaks = |it: &&Execution| {
            is_broken(it) && !gone(it) && up_to(it) && {
                let scope =
                    Some(&*it.workflow_id).filter(|_| self.policy.previous_execution_failed_scope == Scope::Workflow);
                !self.has_success_after(it, scope)
            }
        };
        let mut row = self.row_among(self.now, &gone);
        row.retain(|it| !is_shared(it));
        let limit = usize::try_from(self.policy.max_consecutive_failures).unwrap_or(usize::MAX);
        let is_exhausted = limit > 0 && row.len() >= limit;
        self.ended.iter().any(breaks) || is_exhausted && row.iter().any(|it| up_to(it))
    }

    /// Returns the execution failures that block a workflow.
    fn broken_for(&self, workflow: &str) -> Vec<&'a Execution> {
        let scope = Some(workflow).filter(|_| self.policy.previous_execution_failed_scope == Scope::Workflow);
        let ended = self.ended.iter().copied().filter(|it| is_broken(it) && !self.is_cleared(it));
        let in_scope = ended.filter(|it| scope.is_none_or(|workflow| &*it.workflow_id == workflow));
        in_scope.filter(|it| !self.has_success_after(it, scope)).collect()
    }

    fn has_success_after(&self, failed: &Execution, workflow: Option<&str>) -> bool {
        self.ended.iter().any(|it| {
            is_success(it)
                && workflow.is_none_or(|workflow| &*it.workflow_id == workflow)
                && self.order(it, failed) == Ordering::Greater
        })
    }

    fn row_among(&self, at: Time, is_cleared: &dyn Fn(&Execution) -> bool) -> Vec<&'a Execution> {
        let mut failures: Vec<_> = self
            .ended
            .iter()
            .copied()
            .filter(|it| is_stalled(it) && !is_cleared(it) && !self.has_success_after(it, None))
            .collect();
        failures.sort_by(|a, b| self.order(b, a));
        let Some(quiet) =
            self.policy.failure_quiet_period.map(|quiet| i128::try_from(quiet.as_nanos()).unwrap_or(i128::MAX))
        else {
            return failures;
        };
        let nanos =
            |time: Time| i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos());
        let times: Vec<Option<Time>> =
            std::iter::once(Some(at)).chain(failures.iter().map(|it| ended_at(it))).collect();
        let is_quiet = |pair: &[Option<Time>]| match pair {
            [Some(later), Some(earlier)] => nanos(*later) - nanos(*earlier) >= quiet,
            _ => false,
        };
        let length = times.windows(2).position(is_quiet).unwrap_or(failures.len());
        failures.truncate(length);
        failures
    }

    /// Returns the latest execution if it makes the next one wait.
    fn backs_off(&self) -> Option<&'a Execution> {
        let turns = self.ended.iter().copied().filter(|it| !is_excused(it));
        let latest = turns.max_by(|a, b| self.order(a, b)).filter(|it| is_stalled(it) && !self.is_cleared(it))?;
        let ExecutionState::Failed(failed) = &latest.state else { return None };
        let next = failed.next_allowed_execution.or_else(|| {
            let failed_at = ended_at(latest)?;
            let row = self.row(failed_at).len().max(1);
            Some(next_allowed(self.policy, self.key, row, failed_at))
        });
        next.is_none_or(|next| self.now < next).then_some(latest)
    }

    fn cools_down(&self, ended: &Execution, contender: &Execution) -> bool {
        if ended.child.is_some() && contender.child.is_some() {
            return false; // schedules have their own pace
        }
        let cooldown =
            i64::try_from(self.policy.cooldown_period.as_nanos().div_ceil(1_000_000_000)).unwrap_or(i64::MAX);
        let is_early = |completed_at: Time| self.now.timestamp() < completed_at.timestamp().saturating_add(cooldown);
        is_success(ended)
            && ended.workflow_id == contender.workflow_id
            && cooldown > 0
            && ended_at(ended).is_none_or(is_early)
    }

    fn is_cleared(&self, it: &Execution) -> bool {
        let acts = |other: &&Execution| match self.clearance(other) {
            Some(Recorded::Effective) => true,
            Some(Recorded::Not) => self.lifts(other),
            Some(Recorded::Ineffective) | None => false,
        };
        self.ended.iter().filter(|other| self.order(it, other) != Ordering::Greater).any(acts)
    }

    /// Returns whether a clearance with a recorded effect covers an execution.
    fn is_cleared_for_long(&self, it: &Execution) -> bool {
        let covers = |other: &&&Execution| self.order(it, other) != Ordering::Greater;
        self.ended.iter().filter(covers).any(|other| self.clearance(other) == Some(Recorded::Effective))
    }

    /// Orders by run number, time of the end and uid. An execution without a number is ordered after all runs that had
    /// ended by then.
    fn order(&self, a: &Execution, b: &Execution) -> Ordering {
        let place = |it: &Execution| {
            let end =
                |it: &Execution| ended_at(it).unwrap_or(if is_success(it) { Time::MIN_UTC } else { Time::MAX_UTC });
            let before = self.ended.iter().filter(|other| end(other) <= end(it)).filter_map(|other| other.run_sequence);
            let number = it.run_sequence.or_else(|| before.max()).unwrap_or(0);
            (number, end(it), it.run_sequence.is_none(), it.id.uid.clone())
        };
        place(a).cmp(&place(b))
    }
}

/// Returns `failedAt` plus the backoff, in whole seconds, rounded up.
pub(super) fn next_allowed(policy: &Policy, key: &str, failures: usize, failed_at: Time) -> Time {
    let wait = policy.backoff.jittered(u32::try_from(failures).unwrap_or(u32::MAX), key);
    let nanos = u128::from(failed_at.timestamp_subsec_nanos()) + wait.as_nanos();
    let seconds = i64::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(i64::MAX);
    Time::from_timestamp(failed_at.timestamp().saturating_add(seconds), 0).unwrap_or(Time::MAX_UTC)
}

fn ended_at(it: &Execution) -> Option<Time> {
    match &it.state {
        ExecutionState::Completed { completed_at, .. } => *completed_at,
        ExecutionState::Failed(failed) => failed.failed_at.or(failed.completed_at),
        _ => None,
    }
}

fn is_success(it: &Execution) -> bool {
    matches!(it.state, ExecutionState::Completed { .. })
}

fn is_broken(it: &Execution) -> bool {
    // An analyst has a target of its own.
    let analyses = it.child.as_ref().is_some_and(|child| child.analyses);
    matches!(&it.state, ExecutionState::Failed(failed) if failed.was_execution_failure) && !analyses
}

/// Returns whether an execution neither counts nor makes others wait. Such an execution is an analysis, or nothing of
/// it ran and it was too late, cancelled, or the child of a schedule.
fn is_excused(it: &Execution) -> bool {
    let is_too_late = |reason| reason == FailureReason::DeadlineExceeded && it.run_sequence.is_none();
    matches!(&it.state, ExecutionState::Failed(failed)
        if it.child.as_ref().is_some_and(|child| child.analyses) || !failed.was_execution_failure && (failed.cancelled || is_too_late(failed.reason) || it.child.is_some()))
}

fn is_stalled(it: &Execution) -> bool {
    matches!(&it.state, ExecutionState::Failed(failed) if !failed.was_execution_failure) && !is_excused(it)
}

/// Returns whether many targets shared the failure.
fn is_shared(it: &Execution) -> bool {
    matches!(&it.state, ExecutionState::Failed(failed) if failed.shared_outage)
}
