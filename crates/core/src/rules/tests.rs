//! The tables of the specification, row by row. Other tests check that a row fails if a rule, its place or its seconds
//! are wrong.

mod mutants;
mod order;
mod section_6;
mod section_7;
mod table_000;
mod table_001;
mod words;

use std::time::Duration;

use super::*;
use crate::execution::ExecutionState;
use crate::explain::OTHERWISE;
use crate::guard::Guard;
use crate::testing::*;

const BUSY: &str = "1 resource busy";
const LOOK: &str = "clearance";
const BROKEN: &str = "2 previous execution failed";
const EXHAUSTED: &str = "3 exhausted retries";
const BACKOFF: &str = "4 backoff";
const COOLDOWN: &str = "5 cooldown";

/// One row: the past of a target, the execution that asks for a turn, the time, and the rule that decides.
#[derive(Clone)]
pub(super) struct Row {
    name: &'static str,
    target: Target,
    policy: Policy,
    asks: Execution,
    now: Time,
    rule: &'static str,
}

/// A row in which an execution of workflow `w` asks for a turn under the default policy.
fn row(name: &'static str, past: Vec<Execution>, now: i64, rule: &'static str) -> Row {
    Row { name, target: target(past, vec![]), policy: Policy::default(), asks: asks("new", "w"), now: at(now), rule }
}

impl Row {
    fn workflow(mut self, workflow: &str) -> Self {
        (self.asks.workflow_id, self.asks.bundle) = (workflow.into(), bundle_of(workflow));
        self
    }

    fn bundle(mut self, workflow: &str) -> Self {
        self.asks.bundle = bundle_of(workflow);
        self
    }

    fn recovers(mut self, name: &str) -> Self {
        self.asks.recovery_of = Some(name.into());
        self
    }

    /// Sets whether the policies of clearances and cancellations are in force.
    fn guarded(mut self, guard: Guard) -> Self {
        self.target.guard = guard;
        self
    }

    fn policy(mut self, change: fn(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    fn with(mut self, change: fn(&mut Execution)) -> Self {
        change(&mut self.asks);
        self
    }

    fn nanos(mut self, nanos: u64) -> Self {
        self.now += Duration::from_nanos(nanos);
        self
    }

    /// Judges by a list of rules. `clock` may give one rule its own time.
    fn judged_by(&self, rules: &[(&'static str, Rule)], clock: impl Fn(&str) -> Time) -> &'static str {
        let history = History::of(&self.target, &self.policy, self.now);
        let decides = |(name, rule): &(&'static str, Rule)| {
            let (target, policy, now) = (&self.target, &self.policy, clock(name));
            let contender = Contender {
                target,
                running: &target.running(),
                history: &history,
                execution: &self.asks,
                run: None,
                policy,
                now,
            };
            matches!(rule(&contender), Finding::Decides { .. })
        };
        rules.iter().find(|rule| decides(rule)).map_or(OTHERWISE, |(name, _)| name)
    }

    fn holds(&self) -> bool {
        self.judged_by(RULES, |_| self.now) == self.rule
    }
}

fn all_rows() -> Vec<Row> {
    [order::rows(), table_001::rows(), table_000::rows(), section_6::rows(), section_7::rows()].concat()
}

/// Judges the execution of a row.
fn judged(row: &Row) -> Judgement {
    let history = History::of(&row.target, &row.policy, row.now);
    let Row { target, policy, asks, now, .. } = row;
    judge(&Contender {
        target,
        running: &target.running(),
        history: &history,
        execution: asks,
        run: None,
        policy,
        now: *now,
    })
}

#[test]
fn every_row_of_the_tables_is_decided_by_its_rule() {
    for row in all_rows() {
        let judgement = judged(&row);
        assert_eq!(judgement.rule(), row.rule, "{}:\n{}", row.name, judgement.explain("node/n"));
        assert!(row.holds(), "{}: the tests judge otherwise", row.name);
        let reason = match &judgement.verdict {
            Verdict::Skip { skip, .. } => Some(skip.reason()),
            _ => None,
        };
        let expected = match row.rule {
            BUSY => Some("ResourceBusy"),
            BROKEN => Some("PreviousExecutionFailed"),
            EXHAUSTED => Some("ExhaustedRetries"),
            BACKOFF | COOLDOWN => Some("RecentlyRemediated"),
            _ => None,
        };
        assert_eq!(reason, expected, "{}", row.name);
    }
}

#[test]
fn the_name_of_a_row_is_its_own() {
    let names: Vec<_> = all_rows().iter().map(|row| row.name).collect();
    let different: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), different.len());
}
