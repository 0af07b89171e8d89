//! Workflows that succeed on a target again and again: each success repairs a symptom, and its cause returns.
//!
//! No decision depends on this. It is shown to people, who look for the cause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::Time;
use crate::execution::{Execution, ExecutionState};
use crate::moment::{MAX_AHEAD, after, before};
use crate::target::Target;

/// The window in which successes are counted: a day, so that even a cause that acts only at night is seen.
pub const WINDOW: Duration = Duration::from_hours(24);

/// How many successes within the window count as recurring. Two or three repairs a day can have several causes. With
/// five repairs, the workflow has run about every five hours, and its effect did not last.
pub const LEAST: usize = 5;

/// The successes of one workflow on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The workflow.
    pub workflow_id: Arc<str>,
    /// When each execution completed, oldest first.
    completed: Vec<Time>,
}

impl Recurrence {
    /// Returns how many of the successes are within the window; 0 if they are too few to recur.
    #[must_use]
    pub fn count(&self, now: Time) -> u32 {
        let from = before(now, WINDOW);
        let within = self.completed.len() - self.completed.partition_point(|completed| *completed <= from);
        if within < LEAST { 0 } else { u32::try_from(within).unwrap_or(u32::MAX) }
    }
}

/// Returns the workflows whose successes recur on a target, in the order of their names. Time alone adds none.
#[must_use]
pub fn recurrences(target: &Target, now: Time) -> Vec<Recurrence> {
    let within = || target.executions.values().filter_map(|execution| success(execution, now));
    if within().nth(LEAST - 1).is_none() {
        return Vec::new(); // as on most targets
    }
    let mut by_workflow: BTreeMap<&Arc<str>, Vec<Time>> = BTreeMap::new();
    for (workflow_id, completed) in within() {
        by_workflow.entry(workflow_id).or_default().push(completed);
    }
    by_workflow.retain(|_, completed| completed.len() >= LEAST);
    let sorted = by_workflow.into_iter().map(|(workflow_id, mut completed)| {
        completed.sort_unstable();
        Recurrence { workflow_id: Arc::clone(workflow_id), completed }
    });
    sorted.collect()
}

/// Returns the workflow of an execution that completed within the window, with the time. A schedule is meant to recur,
/// so its children do not count.
fn success(execution: &Execution, now: Time) -> Option<(&Arc<str>, Time)> {
    let ExecutionState::Completed { completed_at, .. } = &execution.state else { return None };
    let completed_at = (*completed_at)?;
    let is_counted = execution.child.is_none() && !execution.elsewhere;
    let is_within = before(now, WINDOW) < completed_at && completed_at <= after(now, MAX_AHEAD);
    (is_counted && is_within).then_some((&execution.workflow_id, completed_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Retention;
    use crate::testing::{at, completed, failed, made_by, target};

    const DAY: i64 = 24 * 3600;

    /// A target on which workflows completed at these seconds.
    fn successes(of: &[(&str, i64)]) -> Target {
        let numbered = of.iter().zip(1..);
        let all =
            numbered.map(|((workflow, second), number)| completed(&format!("u{number}"), workflow, number, *second));
        target(all.collect(), Vec::new())
    }

    fn counts(target: &Target, second: i64) -> Vec<(String, u32)> {
        let all = recurrences(target, at(second));
        all.iter().map(|it| (it.workflow_id.to_string(), it.count(at(second)))).collect()
    }

    #[test]
    fn five_successes_of_one_workflow_within_a_day_recur() {
        let five = |workflow: &'static str, from: i64| (0..5).map(move |hour| (workflow, from + hour * 3600));
        let hourly = || five("cleanup", 0).collect::<Vec<_>>();
        let last = 4 * 3600;
        let mixed = vec![("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)];
        for (case, ends, second, expected) in [
            ("four", five("cleanup", 0).skip(1).collect(), last, vec![]),
            ("five", hourly(), last, vec![("cleanup", 5)]),
            ("six", five("cleanup", 0).chain([("cleanup", 7)]).collect(), last, vec![("cleanup", 6)]),
            ("the first is nearly a day old", hourly(), DAY - 1, vec![("cleanup", 5)]),
            ("the first is a day old", hourly(), DAY, vec![]),
            ("five of two workflows", mixed, 10, vec![]),
            ("five of each", five("b", 0).chain(five("a", 1)).collect(), last + 1, vec![("a", 5), ("b", 5)]),
            ("the clock is more than a minute behind", hourly(), last - 61, vec![]),
            ("the clock is a minute behind", hourly(), last - 60, vec![("cleanup", 5)]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(workflow, count)| (workflow.to_owned(), count)).collect();
            assert_eq!(counts(&successes(&ends), second), expected, "{case}");
        }
    }

    #[test]
    fn only_successes_that_no_schedule_made_count() {
        let with = |change: fn(Execution) -> Execution| {
            let of = |number: u64| completed(&format!("u{number}"), "wf", number, 10);
            target((1..5).map(of).chain([change(of(5))]).collect(), Vec::new())
        };
        assert_eq!(counts(&with(|it| it), 10), [("wf".to_owned(), 5)]);
        for (case, target) in [
            ("a child", with(|it| made_by("s", 0, Retention::Own, it))),
            ("another operator's", with(|it| Execution { elsewhere: true, ..it })),
            ("a failure", with(|_| Execution { workflow_id: "wf".into(), ..failed("u5") })),
            (
                "no time",
                with(|it| {
                    let state = ExecutionState::Completed { started_at: None, completed_at: None };
                    Execution { state, ..it }
                }),
            ),
        ] {
            assert_eq!(counts(&target, 10), [], "{case}");
        }
    }

    #[test]
    fn a_recurrence_ends_when_its_successes_are_old() {
        let target = successes(&[("wf", 0), ("wf", 10), ("wf", 20), ("wf", 30), ("wf", 40), ("wf", 50)]);
        let found = recurrences(&target, at(60)).remove(0);
        for (second, expected) in [(60, 6), (DAY - 1, 6), (DAY, 5), (DAY + 9, 5), (DAY + 10, 0), (3 * DAY, 0)] {
            assert_eq!(found.count(at(second)), expected, "{second}");
        }
    }
}
