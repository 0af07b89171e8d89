//! What a clearance does (SPEC section 10): everything up to its execution neither blocks nor counts any more.
//!
//! It takes effect from `spec.clearance`, before a status says so. One that comes when nothing is blocked changes
//! nothing, for ever: so the status records which it was.

use super::{End, History, Past};
use crate::Time;
use crate::execution::{Clearance, Execution, Recorded};
use crate::policy::Policy;

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
    /// Covers what the newest clearance covers.
    pub(super) fn clear(&mut self, policy: &Policy, now: Time) {
        let known = self.past.iter().rposition(|past| recorded(past) == Some(Recorded::Effective));
        self.cleared = known.map_or(0, |at| at + 1);
        // Each is judged on what was there before any of the new ones: two persons may clear two failures at once.
        let new = (0..self.past.len()).filter(|at| self.past.get(*at).and_then(recorded) == Some(Recorded::Not));
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

    /// Tells whether a new clearance lifts a block: something up to its execution blocks, or counts in a row that is
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

    fn blocks_up_to(&self, at: usize, policy: &Policy) -> bool {
        let scope = policy.previous_execution_failed_scope;
        let up_to = self.past.iter().enumerate().take(at + 1).skip(self.cleared);
        up_to.filter(|(_, past)| past.end == End::ExecutionFailure).any(|(failed_at, failed)| {
            let mut later = self.past.iter().skip(failed_at + 1);
            !later.any(|past| past.end == End::Completed && past.is_in(scope, &failed.execution.workflow_id))
        })
    }

    fn is_exhausted_by(&self, at: usize, policy: &Policy, now: Time) -> bool {
        let is_exhausted = self.exhausting(policy, now).is_some();
        let row = usize::try_from(self.consecutive_failures(policy, now)).unwrap_or(usize::MAX);
        let up_to =
            |past: &Past<'_>| self.past.iter().take(at + 1).any(|earlier| earlier.execution.id == past.execution.id);
        is_exhausted && self.failures().take(row).any(up_to)
    }
}

/// What the status says of a clearance, where there is one that can do something: only a failure can be cleared.
fn recorded(past: &Past<'_>) -> Option<Recorded> {
    let failed = past.end != End::Completed;
    past.execution.clearance.as_ref().filter(|_| failed).map(|Clearance { recorded, .. }| *recorded)
}
