//! The effect of a clearance (section 10): no execution up to the cleared one blocks or counts any more.
//!
//! The effect begins with `spec.clearance`, before a status records it, as soon as the operator knows that a policy
//! guarded the clearance. A clearance that comes when nothing is blocked never has an effect, so the status records
//! which case it was.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{End, History, Past};
use crate::Time;
use crate::ending::Skip;
use crate::execution::{Execution, Recorded};
use crate::guard::{Directive, DirectiveState, Guard};
use crate::policy::{Policy, Scope};
use crate::target::Target;

/// A clearance that no status records yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewClearance {
    /// The index of the cleared execution.
    at: usize,
    /// Whether the clearance lifts a block.
    lifts: bool,
    /// When the block would have ended by itself.
    until: Option<Time>,
}

/// A clearance whose effect must be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Unrecorded<'a> {
    /// The execution that was cleared.
    pub execution: &'a Execution,
    /// Whether the clearance has lifted a block.
    pub effective: bool,
    /// When time alone changes that.
    pub until: Option<Time>,
}

impl<'a> History<'a> {
    /// Marks the executions that the newest clearance covers; all of them, if the target name cannot be read.
    pub(super) fn clear(&mut self, policy: &Policy, now: Time, target: &Target) {
        let recorded = |past: &Past<'_>| recorded(past, target.guard);
        let known = self.past.iter().rposition(|past| recorded(past) == Some(Recorded::Effective));
        self.cleared = if target.is_unreadable { self.past.len() } else { known.map_or(0, |at| at + 1) };
        // Each clearance is judged on the history without the other new ones: two people may clear two failures at
        // once.
        let new = (0..self.past.len()).filter(|at| self.past.get(*at).and_then(&recorded) == Some(Recorded::Not));
        self.new = new.map(|at| self.judge(at, policy, now)).collect();
        let newest = self.new.iter().filter(|new| new.lifts).map(|new| new.at + 1).max();
        self.cleared = self.cleared.max(newest.unwrap_or(0));
    }

    /// Returns the clearances that no status records yet.
    pub fn unrecorded(&self) -> impl Iterator<Item = Unrecorded<'a>> {
        let to_record = |new: &NewClearance| {
            let execution = self.past.get(new.at)?.execution;
            Some(Unrecorded { execution, effective: new.lifts, until: new.until })
        };
        self.new.iter().filter_map(to_record)
    }

    /// Returns whether a new clearance lifts a block: an execution up to the cleared one blocks, or counts in an
    /// exhausted row.
    fn judge(&self, at: usize, policy: &Policy, now: Time) -> NewClearance {
        if self.blocks_up_to(at, policy) {
            NewClearance { at, lifts: true, until: None }
        } else if self.is_exhausted_by(at, policy, now) {
            NewClearance { at, lifts: true, until: self.quiet_at(policy) }
        } else {
            NewClearance { at, lifts: false, until: None }
        }
    }

    /// Returns the blocks of the target that only a person can clear, newest first, as rules 2 and 3 describe them.
    /// These are the newest execution failure that blocks (in scope Workflow: of each workflow) and the newest failure
    /// of an exhausted row. Clearing the first one lifts all blocks.
    #[must_use]
    pub fn blocks(&self, policy: &Policy, now: Time) -> Vec<Skip> {
        let mut named: BTreeSet<&str> = BTreeSet::new();
        let mut broken = self.broken(policy);
        broken.retain(|(_, failed)| named.insert(failed.blocks_whom(policy)));
        let broken = broken.into_iter().map(|(at, failed)| {
            (at, Skip::PreviousExecutionFailed { failed: failed.remediation(), is_repeated: false })
        });
        let exhausted = self.exhausted(policy, now).map(|(latest, failures)| {
            let (limit, until) = (policy.max_consecutive_failures, self.quiet_at(policy));
            let skip = Skip::ExhaustedRetries { latest: latest.remediation(), failures, limit, until };
            (self.place_of(latest), skip)
        });
        let mut blocks: Vec<_> = broken.chain(exhausted).collect();
        blocks.sort_by_key(|(at, _)| Reverse(*at));
        blocks.into_iter().map(|(_, skip)| skip).collect()
    }

    /// Returns the execution failures that no success or clearance outweighs. They block, or show which workflows
    /// cannot be used for a recovery.
    pub(crate) fn unmended(&self, policy: &Policy) -> impl Iterator<Item = &Past<'a>> {
        self.broken(policy).into_iter().map(|(_, broken)| broken)
    }

    /// Returns the uncleared execution failures that block a workflow, newest first, with their indexes.
    fn broken(&self, policy: &Policy) -> Vec<(usize, &Past<'a>)> {
        let mut healed: BTreeSet<&str> = BTreeSet::new();
        let mut broken = Vec::new();
        for (at, past) in self.past.iter().enumerate().skip(self.cleared).rev() {
            let whom = past.blocks_whom(policy);
            if past.end == End::Completed {
                healed.insert(whom);
            } else if past.end == End::ExecutionFailure && !healed.contains(whom) {
                broken.push((at, past));
            }
        }
        broken
    }

    fn blocks_up_to(&self, at: usize, policy: &Policy) -> bool {
        self.broken(policy).last().is_some_and(|(failed_at, _)| *failed_at <= at)
    }

    fn is_exhausted_by(&self, at: usize, policy: &Policy, now: Time) -> bool {
        let mut counted = self.row(policy, now).filter(|past| past.end == End::PreExecutionFailure);
        self.exhausted(policy, now).is_some() && counted.any(|past| self.place_of(past) <= at)
    }

    fn place_of(&self, one: &Past<'_>) -> usize {
        self.past.iter().position(|past| past.execution.id == one.execution.id).unwrap_or(self.past.len())
    }
}

impl Past<'_> {
    /// Returns which workflow the execution blocks if it failed, or unblocks if it succeeded; empty for every workflow.
    fn blocks_whom(&self, policy: &Policy) -> &str {
        match policy.previous_execution_failed_scope {
            Scope::Target => "",
            Scope::Workflow => &self.execution.workflow_id,
        }
    }
}

/// Returns the recorded effect of a clearance, if it can have one: only a failure can be cleared, and a clearance
/// without a recorded effect must count.
fn recorded(past: &Past<'_>, guard: Guard) -> Option<Recorded> {
    let failed = past.end != End::Completed;
    let recorded = past.execution.clearance.as_ref().filter(|_| failed).map(|clearance| clearance.recorded)?;
    let counts = || past.execution.directive(Directive::Clearance, guard) == Some(DirectiveState::Counts);
    (recorded != Recorded::Not || counts()).then_some(recorded)
}
