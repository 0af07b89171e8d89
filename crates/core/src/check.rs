//! The rules that no decision may break: a second, independent implementation of sections 5, 6, 7, 12, 16 and 18.
//!
//! The implementation is obviously correct rather than fast. It shares no code with the rules, the history or the
//! decision: if one of them is wrong, the two disagree. Tests check every decision with it.

mod actions;
mod attempts;
mod blocked;
mod guard;
mod limits;
mod record;
mod runs;
mod schedules;
mod whole;

use crate::Time;
use crate::action::Decision;
use crate::policy::Policy;
use crate::target::Target;
use record::Record;

/// A violation of the specification by a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What is violated: a section of the specification.
    pub section: &'static str,
    /// What was decided, and why it is wrong.
    pub what: String,
}

/// Lists the violations of a decision that was made on a target at a time.
#[must_use]
pub fn violations(target: &Target, policy: &Policy, now: Time, decision: &Decision) -> Vec<Violation> {
    Check::new(target, policy, now).run(decision)
}

/// Checks a decision on a target, and collects the violations.
struct Check<'a> {
    target: &'a Target,
    policy: &'a Policy,
    now: Time,
    record: Record<'a>,
    found: Vec<Violation>,
}

impl<'a> Check<'a> {
    fn new(target: &'a Target, policy: &'a Policy, now: Time) -> Self {
        Self { target, policy, now, record: Record::new(target, policy, now), found: Vec::new() }
    }

    fn require(&mut self, section: &'static str, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.found.push(Violation { section, what: what() });
        }
    }
}

#[cfg(test)]
mod tests;
