//! The progression and the decision matrix of the backoff decision (000).

use super::*;
use crate::history::Weight;

/// Failures in a row before anything ran, of different workflows, the last one at second 0. `next` is its
/// `nextAllowedExecution`.
fn failures(count: u32, next: i64) -> Vec<Execution> {
    (1..=count)
        .map(|n| {
            let (uid, workflow) = (format!("f{n}"), format!("w{n}"));
            let last = n == count;
            stalled(
                &uid,
                &workflow,
                n.into(),
                if last { 0 } else { -1000 + i64::from(n) },
                if last { next } else { -900 },
            )
        })
        .collect()
}

pub(super) fn rows() -> Vec<Row> {
    let after_success = || [failures(4, 480), vec![completed("s", "w", 9, 1)]].concat();
    let mut rows = vec![
        row("an execution failure blocks at once", vec![broke("b", "other", 1, 0)], 0, BROKEN),
        row("an execution failure blocks after a year", vec![broke("b", "other", 1, 0)], 31_536_000, BROKEN),
        row("after a success failures count anew", after_success(), 301, OTHERWISE),
        row("a success ends the backoff", after_success(), 2, OTHERWISE).workflow("other"),
        row("the sixth is exhausted", failures(5, 600), 0, EXHAUSTED),
        row("the sixth is exhausted when the backoff is over", failures(5, 600), 600, EXHAUSTED),
        row("the sixth is exhausted after a year", failures(5, 600), 31_536_000, EXHAUSTED),
        row("more than the limit is exhausted too", failures(7, 600), 600, EXHAUSTED),
        row("a limit of 0 is none", failures(7, 600), 600, OTHERWISE).policy(|it| it.max_consecutive_failures = 0),
        row("deleting the executions is a reset", vec![], 0, OTHERWISE),
    ];
    let progression = [
        ("failure 1 waits a minute", "after failure 1 and a minute", 1, 60),
        ("failure 2 waits two minutes", "after failure 2 and two minutes", 2, 120),
        ("failure 3 waits four minutes", "after failure 3 and four minutes", 3, 240),
        ("failure 4 waits eight minutes", "after failure 4 and eight minutes", 4, 480),
    ];
    for (waits, runs, count, seconds) in progression {
        rows.push(row(waits, failures(count, seconds), seconds - 1, BACKOFF));
        rows.push(row(runs, failures(count, seconds), seconds, OTHERWISE));
    }
    rows
}

#[test]
fn failures_wait_1_2_4_8_and_10_minutes_and_are_counted_at_the_terminal_write() {
    let policy = Policy::default();
    let mut past: Vec<Execution> = Vec::new();
    let mut now = 0;
    for (n, (minutes, cumulative)) in (1..).zip([(1, 1), (2, 3), (4, 7), (8, 15), (10, 25)]) {
        let target = target(past.clone(), vec![]);
        let charge = History::of(&target, &policy, at(now)).charge(&policy, "node/n", at(now), Weight::Counts);
        assert_eq!((charge.consecutive_failures, charge.next_allowed_execution), (n, Some(at(now + minutes * 60))));
        past.push(stalled(&format!("f{n}"), "w", n.into(), now, now + minutes * 60));
        now += minutes * 60;
        assert_eq!(now, cumulative * 60);
    }
    assert!(row("the sixth", past, now, EXHAUSTED).holds());
}
