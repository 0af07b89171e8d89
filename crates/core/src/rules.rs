//! The rules of section 6, in order: the first one that matches decides. The order of the list is the specification.

mod backoff;
mod cancelled;
mod clearance;
mod cooldown;
mod exhausted_retries;
mod limit;
mod paused;
mod previous_execution_failed;
mod resource_busy;
mod too_late;
mod unusable_spec;

use crate::Time;
use crate::ending::Skip;
use crate::execution::Execution;
use crate::explain::{Finding, Judgement};
use crate::history::History;
use crate::policy::Policy;
use crate::run::Run;
use crate::target::Target;
use crate::verdict::Verdict;

/// An execution that asks for its turn.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'a> {
    /// The target that it asks for.
    pub target: &'a Target,
    /// The executions that are Running on the target: at most one, unless another program wrote a status. Computed
    /// once, because thousands of executions may ask for a turn.
    pub running: &'a [&'a Execution],
    /// The past executions of the target.
    pub history: &'a History<'a>,
    /// The execution.
    pub execution: &'a Execution,
    /// The execution's own run, if it has created one. The rules are then applied at the look of section 5, and only
    /// what came before this run counts against the execution.
    pub run: Option<&'a Run>,
    /// The policy.
    pub policy: &'a Policy,
    /// The time of the decision.
    pub now: Time,
}

/// A rule: a function from a contender to a finding.
pub type Rule = fn(&Contender<'_>) -> Finding;

/// The rules, with their numbers in section 6; rules without a number come from sections 3.1, 14 and 17. Rule 5b
/// follows if limits are configured. Rule 6 ("otherwise: run") applies if no rule matches.
pub const RULES: &[(&str, Rule)] = &[
    ("0 unusable spec", unusable_spec::rule),
    ("cancellation", cancelled::rule),
    ("startBefore", too_late::rule),
    ("pause", paused::rule),
    ("1 resource busy", resource_busy::rule),
    ("clearance", clearance::rule),
    ("2 previous execution failed", previous_execution_failed::rule),
    ("3 exhausted retries", exhausted_retries::rule),
    ("4 backoff", backoff::rule),
    ("5 cooldown", cooldown::rule),
];

/// Applies the rules in order.
#[must_use]
pub fn judge(contender: &Contender<'_>) -> Judgement {
    let mut asked = Vec::with_capacity(RULES.len());
    for (name, rule) in RULES {
        let finding = rule(contender);
        let decided = match &finding {
            Finding::Decides { verdict, .. } => Some(verdict.clone()),
            Finding::Passes { .. } => None,
        };
        asked.push((*name, finding));
        if let Some(verdict) = decided {
            return Judgement { verdict, asked };
        }
    }
    Judgement { verdict: Verdict::Run, asked }
}

/// Applies the rules in order, and then the limits, if any are configured.
#[must_use]
pub fn judge_with_limits(contender: &Contender<'_>) -> Judgement {
    let mut judgement = judge(contender);
    if judgement.verdict != Verdict::Run {
        return judgement;
    }
    if let Some(finding) = limit::rule(contender) {
        if let Finding::Decides { verdict, .. } = &finding {
            judgement.verdict = verdict.clone();
        }
        judgement.asked.push((limit::NAME, finding));
    }
    judgement
}

/// Returns what blocks a contender until a person clears the target or a recovery succeeds (rules 2 and 3).
#[must_use]
pub fn block(contender: &Contender<'_>) -> Option<Skip> {
    [previous_execution_failed::rule, exhausted_retries::rule].into_iter().find_map(|rule| match rule(contender) {
        Finding::Decides { verdict: Verdict::Skip { skip, .. }, .. } => Some(skip),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
