//! A second implementation of rules 2 to 5 of section 6: which past executions of a target forbid a run.

use wfe_api::SkipReason;

use crate::Policy;
use crate::history::Execution;
use crate::moment::Seconds;
use crate::policy::Scope;
use crate::record::{Clearance, End, Past, Record};
use crate::section_7::{in_a_row, next_allowed, quiet, whole};

/// A rule that forbids an execution to run, and its reason.
pub(crate) struct Ban<'p, 'e> {
    pub(crate) rule: Rule,
    /// The execution that is the reason. There are several if several successes have the same longest cooldown.
    pub(crate) because: Vec<&'p Past<'e>>,
    /// The earliest and the latest time at which the ban ends with time alone; `None` if time does not end it. They
    /// differ for a wait whose jitter the auditor does not know.
    pub(crate) until: Option<(Seconds, Seconds)>,
}

/// A rule of section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    PreviousExecutionFailed,
    ExhaustedRetries,
    Backoff,
    Cooldown,
}

/// A target's record, evaluated with a policy at a time.
pub(crate) struct Reading<'r, 'e> {
    record: &'r Record<'e>,
    policy: &'r Policy,
    now: Seconds,
    /// How many executions in the record a clearance covers.
    cleared: usize,
}

// === impl Rule ===

impl Rule {
    /// Returns the rule's number in section 6.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::PreviousExecutionFailed => 2,
            Self::ExhaustedRetries => 3,
            Self::Backoff => 4,
            Self::Cooldown => 5,
        }
    }

    /// Returns the reason of a skip by this rule.
    pub(crate) fn reason(self) -> SkipReason {
        match self {
            Self::PreviousExecutionFailed => SkipReason::PreviousExecutionFailed,
            Self::ExhaustedRetries => SkipReason::ExhaustedRetries,
            Self::Backoff | Self::Cooldown => SkipReason::RecentlyRemediated,
        }
    }

    /// Returns the name of the violation if an execution gets its turn in spite of the rule.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::PreviousExecutionFailed => "previous-execution-failed",
            Self::ExhaustedRetries => "exhausted-retries",
            Self::Backoff => "backoff",
            Self::Cooldown => "cooldown",
        }
    }

    /// Returns the name of the counter for skips by this rule.
    pub(crate) fn count(self) -> &'static str {
        match self {
            Self::PreviousExecutionFailed => "by-rule-2",
            Self::ExhaustedRetries => "by-rule-3",
            Self::Backoff => "by-rule-4",
            Self::Cooldown => "by-rule-5",
        }
    }
}

// === impl Ban ===

impl Ban<'_, '_> {
    /// Returns whether the ban forbids the execution at a time, however long the jitter is.
    pub(crate) fn is_certain(&self, now: Seconds) -> bool {
        self.until.is_none_or(|(earliest, _)| now < earliest)
    }

    /// Returns the shortest and the longest remaining time of the ban.
    pub(crate) fn remaining(&self, now: Seconds) -> Option<(Seconds, Seconds)> {
        self.until.map(|(earliest, latest)| (earliest.saturating_sub(now), latest.saturating_sub(now)))
    }

    /// Describes what forbids the execution.
    pub(crate) fn tell(&self, now: Seconds) -> String {
        let names: Vec<String> = self.because.iter().map(|past| past.execution.object.to_string()).collect();
        let because = match self.rule {
            Rule::PreviousExecutionFailed => "had failed after something of it had run",
            Rule::ExhaustedRetries => "was the latest of too many failures in a row",
            Rule::Backoff => "had failed before anything of it ran",
            Rule::Cooldown => "had completed, of the same workflow",
        };
        let remaining = self.remaining(now).map(|remaining| format!(", for {} more", span(remaining)));
        format!("{} {because}{}", names.join(" and "), remaining.unwrap_or_default())
    }
}

// === impl Reading ===

impl<'r, 'e> Reading<'r, 'e> {
    pub(crate) fn of(record: &'r Record<'e>, policy: &'r Policy, now: Seconds) -> Self {
        // A clearance counts as soon as `spec.clearance` is set, for all executions up to its own. A clearance has no
        // effect if nothing was blocked. Until the status shows whether it has an effect, the earlier record decides.
        let covered = |clearance: Clearance| record.all.iter().rposition(|past| past.clearance == clearance);
        let known = covered(Clearance::Effective).map_or(0, |at| at + 1);
        let before = Self { record, policy, now, cleared: known };
        let new = (0..record.all.len()).rev().find(|at| before.is_new(*at) && before.is_blocked_by(*at));
        Self { cleared: new.map_or(known, |at| known.max(at + 1)), ..before }
    }

    /// Returns the first ban of section 6 that certainly applies to an execution.
    pub(crate) fn ban(&self, asks: &Execution<'_>) -> Option<Ban<'r, 'e>> {
        self.bans(asks).into_iter().find(|ban| ban.is_certain(self.now))
    }

    /// Lists the rules in section 6 that forbid an execution to run, in order. The first rule decides. A rule whose ban
    /// is not certain may not decide.
    pub(crate) fn bans(&self, asks: &Execution<'_>) -> Vec<Ban<'r, 'e>> {
        let bans =
            [self.previous_execution_failed(asks), self.exhausted_retries(), self.backoff(), self.cooldown(asks)];
        bans.into_iter().flatten().collect()
    }

    /// Counts the pre-execution failures since the last success or clearance (section 7).
    pub(crate) fn row_length(&self) -> u64 {
        u64::try_from(self.counted().len()).unwrap_or(u64::MAX)
    }

    /// Counts the failures for which the next execution waits, including shared ones (section 13.5).
    pub(crate) fn waits_for(&self) -> u64 {
        u64::try_from(self.row().len()).unwrap_or(u64::MAX)
    }

    /// Returns whether a clearance covers part of the record.
    pub(crate) fn is_cleared(&self) -> bool {
        self.cleared > 0
    }

    /// Returns whether rule 2 allows an execution to run as a recovery.
    pub(crate) fn lets_recover(&self, asks: &Execution<'_>) -> bool {
        self.broken(asks).last().is_some_and(|last| self.is_recovery(asks, last))
    }

    fn uncleared(&self) -> &'r [Past<'e>] {
        self.record.all.get(self.cleared..).unwrap_or_default()
    }

    fn row(&self) -> Vec<&'r Past<'e>> {
        in_a_row(self.uncleared(), self.policy, self.now)
    }

    /// Lists those consecutive failures that can exhaust a target.
    fn counted(&self) -> Vec<&'r Past<'e>> {
        self.row().into_iter().filter(|past| past.end == End::PreExecutionFailure).collect()
    }

    /// Rule 2: the latest execution in scope that ran has failed.
    fn previous_execution_failed(&self, asks: &Execution<'_>) -> Option<Ban<'r, 'e>> {
        let last = self.broken(asks).pop()?;
        (!self.is_recovery(asks, last)).then(|| Ban {
            rule: Rule::PreviousExecutionFailed,
            because: vec![last],
            until: None,
        })
    }

    /// Lists the execution failures in scope since the last success in scope or clearance. The last of them is the
    /// latest execution that ran.
    fn broken(&self, asks: &Execution<'_>) -> Vec<&'r Past<'e>> {
        let ran = self.uncleared().iter().filter(|past| past.ran());
        let in_scope: Vec<&Past<'e>> =
            ran.filter(|past| self.is_in_scope(past.execution.workflow_id(), asks.workflow_id())).collect();
        let since = in_scope.iter().rposition(|past| past.end == End::Completed).map_or(0, |at| at + 1);
        in_scope.into_iter().skip(since).collect()
    }

    fn is_in_scope(&self, workflow: &str, of: &str) -> bool {
        self.policy.previous_execution_failed_scope == Scope::Target || workflow == of
    }

    /// Returns whether an execution names the latest failure as the one that it recovers, with a workflow and a bundle
    /// that no failure had.
    fn is_recovery(&self, asks: &Execution<'_>, last: &Past<'_>) -> bool {
        let (mine, broken) = (&asks.object, &last.execution.object);
        asks.recovery_of() == Some(&broken.name)
            && mine.namespace == broken.namespace
            && self.broken(asks).iter().all(|past| {
                past.execution.workflow_id() != asks.workflow_id()
                    && !is_same_bundle(past.execution.bundle(), asks.bundle())
            })
    }

    /// Rule 3: there are too many consecutive failures.
    fn exhausted_retries(&self) -> Option<Ban<'r, 'e>> {
        let row = self.counted();
        let limit = usize::try_from(self.policy.max_consecutive_failures).unwrap_or(usize::MAX);
        let latest = *row.first().filter(|_| limit > 0 && row.len() >= limit)?;
        // A shared failure also interrupts the quiet time.
        let newest = self.row().first().and_then(|newest| newest.failed);
        let until = quiet(self.policy).zip(newest).map(|(quiet, failed)| exactly(failed.saturating_add(quiet)));
        Some(Ban { rule: Rule::ExhaustedRetries, because: vec![latest], until })
    }

    /// Rule 4: the latest execution failed before anything ran, and its nextAllowedExecution is in the future. The
    /// failure may be shared. Executions that do not count are left out (ADR 5).
    fn backoff(&self) -> Option<Ban<'r, 'e>> {
        let latest = self.uncleared().iter().rfind(|past| past.end != End::Uncounted)?;
        let until = latest.next_allowed.map(exactly).or_else(|| {
            // Another program has written a status without the field, or the failure exhausted its target until an
            // earlier failure was cleared. The proper value is used.
            let failed = latest.failed?;
            let at_its_time = Self { now: failed, ..*self };
            Some(next_allowed(self.policy, at_its_time.waits_for().max(1), failed))
        });
        let forbids = latest.backs_off() && until.is_none_or(|(_, latest)| self.now < latest);
        forbids.then(|| Ban { rule: Rule::Backoff, because: vec![latest], until })
    }

    /// Rule 5: the same workflow completed less than the cooldown ago. A clearance does not lift this rule. It does not
    /// apply between children of schedules, because a schedule itself determines how often it runs (section 12.6).
    fn cooldown(&self, asks: &Execution<'_>) -> Option<Ban<'r, 'e>> {
        let cooldown = whole(self.policy.cooldown_period.as_nanos());
        let completed = self.record.all.iter().filter(|past| past.end == End::Completed);
        let same = completed.filter(|past| past.execution.workflow_id() == asks.workflow_id());
        let same = same.filter(|past| past.execution.child.is_none() || asks.child.is_none());
        // If the end of an execution is unknown, the end of its cooldown is unknown too.
        let until = |past: &Past<'_>| past.ended.map(|ended| ended.saturating_add(cooldown));
        let is_hot = |past: &&Past<'_>| cooldown > 0 && until(past).is_none_or(|until| self.now < until);
        let hot: Vec<&Past<'e>> = same.filter(is_hot).collect();
        let longest = hot.iter().map(|past| until(past).unwrap_or(Seconds::MAX)).max()?;
        let because: Vec<&Past<'e>> =
            hot.into_iter().filter(|past| until(past).unwrap_or(Seconds::MAX) == longest).collect();
        let until = because.first().and_then(|past| until(past)).map(exactly);
        Some(Ban { rule: Rule::Cooldown, because, until })
    }

    fn is_new(&self, at: usize) -> bool {
        self.record.all.get(at).is_some_and(|past| past.clearance == Clearance::New)
    }

    /// Returns whether an execution up to this one blocks the target (section 10). That is an execution failure without
    /// a later success in its scope, or a failure among those that exhaust the target.
    fn is_blocked_by(&self, at: usize) -> bool {
        let up_to = |past: &Past<'_>| self.record.all.iter().take(at + 1).any(|one| one.uid() == past.uid());
        let has_success_after = |failed: &Past<'_>| {
            let later = self.uncleared().iter().skip_while(|past| past.uid() != failed.uid());
            let mut successes = later.filter(|past| past.end == End::Completed);
            successes.any(|past| self.is_in_scope(past.execution.workflow_id(), failed.execution.workflow_id()))
        };
        let breaks = |past: &&Past<'_>| past.end == End::ExecutionFailure && up_to(past);
        self.uncleared().iter().filter(breaks).any(|failed| !has_success_after(failed))
            || self.exhausted_retries().is_some() && self.counted().into_iter().any(up_to)
    }
}

/// Shows how long a ban lasts, from its shortest and its longest time.
pub(crate) fn span((shortest, longest): (Seconds, Seconds)) -> String {
    if shortest == longest { format!("{shortest} s") } else { format!("{shortest} to {longest} s") }
}

/// Returns a time that is known exactly, as a range.
fn exactly(time: Seconds) -> (Seconds, Seconds) {
    (time, time)
}

/// Returns whether two bundles are the same: by digest if both are pinned, otherwise by repository (section 6).
fn is_same_bundle(one: (&str, Option<&str>), other: (&str, Option<&str>)) -> bool {
    match (one, other) {
        ((_, Some(one)), (_, Some(other))) => one == other,
        ((one, _), (other, _)) => one.eq_ignore_ascii_case(other),
    }
}
