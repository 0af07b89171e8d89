//! What a clearance does (section 10): everything up to its execution neither blocks nor counts any more.
//!
//! It takes effect from `spec.clearance`, before a status says so, once it is known that its policy guarded it. One
//! that comes when nothing is blocked changes nothing, for ever: so the status records which it was.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{End, History, Past};
use crate::Time;
use crate::ending::Skip;
use crate::execution::{Execution, Recorded};
use crate::guard::{Guard, Word, WordKind};
use crate::policy::{Policy, Scope};
use crate::target::Target;

/// A clearance that no status records yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewClearance {
    /// Where its execution stands.
    at: usize,
    /// Whether it lifts a block.
    lifts: bool,
    /// When that block would have ended by itself.
    until: Option<Time>,
}

/// A clearance that is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Unrecorded<'a> {
    /// The execution that was cleared.
    pub execution: &'a Execution,
    /// Whether it has lifted a block.
    pub effective: bool,
    /// When that changes by time alone.
    pub until: Option<Time>,
}

impl<'a> History<'a> {
    /// Covers what the newest clearance covers; all of it where nobody can read which target this is.
    pub(super) fn clear(&mut self, policy: &Policy, now: Time, target: &Target) {
        let recorded = |past: &Past<'_>| recorded(past, target.guard);
        let known = self.past.iter().rposition(|past| recorded(past) == Some(Recorded::Effective));
        self.cleared = if target.is_unreadable { self.past.len() } else { known.map_or(0, |at| at + 1) };
        // Each is judged on what was there before any of the new ones: two persons may clear two failures at once.
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

    /// Returns whether a new clearance lifts a block: something up to its execution blocks, or counts in a row that is
    /// exhausted.
    fn judge(&self, at: usize, policy: &Policy, now: Time) -> NewClearance {
        if self.blocks_up_to(at, policy) {
            NewClearance { at, lifts: true, until: None }
        } else if self.is_exhausted_by(at, policy, now) {
            NewClearance { at, lifts: true, until: self.quiet_at(policy) }
        } else {
            NewClearance { at, lifts: false, until: None }
        }
    }

    /// Says what stands on the target until a person clears it, newest first, in the words of rules 2 and 3: the newest
    /// execution failure that blocks, in scope Workflow that of each workflow, and the newest failure of a row that is
    /// exhausted. A clearance of the first lifts all.
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

    /// Returns those of which something ran and broke, and which no success and no clearance has mended: they block, or
    /// say which workflows are no recovery of the one that does.
    pub(crate) fn unmended(&self, policy: &Policy) -> impl Iterator<Item = &Past<'a>> {
        self.broken(policy).into_iter().map(|(_, broken)| broken)
    }

    /// Returns the uncleared execution failures that block a workflow, newest first, with their places.
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
    /// Names whom it blocks where it failed, and whose failures it heals where it succeeded: all, or one workflow.
    fn blocks_whom(&self, policy: &Policy) -> &str {
        match policy.previous_execution_failed_scope {
            Scope::Target => "",
            Scope::Workflow => &self.execution.workflow_id,
        }
    }
}

/// What the status says of a clearance, where there is one that can do something: only a failure can be cleared, and
/// one that no status records must count.
fn recorded(past: &Past<'_>, guard: Guard) -> Option<Recorded> {
    let failed = past.end != End::Completed;
    let recorded = past.execution.clearance.as_ref().filter(|_| failed).map(|clearance| clearance.recorded)?;
    let counts = || past.execution.word(WordKind::Clearance, guard) == Some(Word::Counts);
    (recorded != Recorded::Not || counts()).then_some(recorded)
}
