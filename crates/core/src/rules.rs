//! The rules of SPEC section 6, in order: the first that matches decides. This list is the specification.
//!
//! Rules 2 to 5 come with the history that they read.

mod cancelled;
mod paused;
mod resource_busy;
mod too_late;
mod unusable_spec;

use crate::Time;
use crate::action::{Fact, Waiting};
use crate::ending::{FailureReason, Skip};
use crate::execution::Execution;
use crate::run::Run;
use crate::target::Target;

/// An execution that asks for its turn.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'a> {
    /// The target that it asks for.
    pub target: &'a Target,
    /// The execution.
    pub execution: &'a Execution,
    /// Its own run, where that has been created already: then this is the look of section 5, and only what came before
    /// the run counts against it.
    pub run: Option<&'a Run>,
    /// The time of the decision.
    pub now: Time,
}

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It ends Failed, and nothing of it ran.
    Fail {
        /// Which of the seven.
        reason: FailureReason,
        /// What is wrong.
        message: Box<str>,
    },
    /// It is skipped, as long as the fact holds.
    Skip {
        /// Why.
        skip: Skip,
        /// What to read live first.
        fact: Fact,
    },
    /// It waits for a fact.
    Wait(Waiting),
    /// It runs.
    Run,
}

/// A rule: what it says of a contender, or nothing.
pub type Rule = fn(&Contender<'_>) -> Option<Verdict>;

/// The rules, with their numbers in SPEC section 6 (the unnumbered ones are of sections 3.1 and 14). Rule 6
/// ("otherwise: run") is what is left.
pub const RULES: &[(&str, Rule)] = &[
    ("0 unusable spec", unusable_spec::rule),
    ("cancellation", cancelled::rule),
    ("startBefore", too_late::rule),
    ("pause", paused::rule),
    ("1 resource busy", resource_busy::rule),
];

/// Asks the rules in order.
#[must_use]
pub fn judge(contender: &Contender<'_>) -> Verdict {
    RULES.iter().find_map(|(_, rule)| rule(contender)).unwrap_or(Verdict::Run)
}
