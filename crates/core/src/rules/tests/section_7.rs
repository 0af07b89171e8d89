//! The order of the history, the limits of the counter, and odd statuses (sections 6 and 7).

use super::*;
use crate::execution::FailedState;
use crate::reason::FailureReason;

fn unnumbered(mut execution: Execution) -> Execution {
    execution.run_sequence = None;
    execution
}

fn failed_with(change: fn(&mut FailedState)) -> Execution {
    let mut state = failure(false, 0, None);
    change(&mut state);
    past("f", "w", 1, ExecutionState::Failed(state))
}

fn too_late(second: i64) -> Execution {
    let late = FailedState { reason: FailureReason::DeadlineExceeded, ..failure(false, second, None) };
    unnumbered(past("late", "w", 0, ExecutionState::Failed(late)))
}

/// An execution that a person cancelled before anything ran.
fn cancelled(number: u64, second: i64) -> Execution {
    let state = FailedState { cancelled: true, ..failure(false, second, None) };
    past(&format!("c{number}"), "w", number, ExecutionState::Failed(state))
}

fn undated(workflow: &str) -> Execution {
    past("s", workflow, 1, ExecutionState::Completed { started_at: None, completed_at: None })
}

pub(super) fn rows() -> Vec<Row> {
    [order(), quiet(), shared(), odd(), rounding()].concat()
}

fn order() -> Vec<Row> {
    let clock_jumped = vec![broke("b", "w", 2, 0), completed("s", "x", 1, 100)];
    let healed = vec![broke("b", "w", 1, 100), completed("s", "x", 2, 0)];
    let same_number = vec![broke("b", "w", 1, 0), completed("s", "x", 1, 1)];
    let same_second = vec![broke("a", "w", 1, 0), completed("b", "x", 1, 0)];
    let uid_decides = vec![broke("b", "w", 1, 0), completed("a", "x", 1, 0)];
    let invalid = vec![completed("s", "x", 7, 0), unnumbered(stalled("f", "w", 0, 10, 70))];
    let before = vec![completed("s", "x", 7, 20), unnumbered(stalled("f", "w", 0, 10, 70))];
    vec![
        row("the number of the run orders before the time", clock_jumped, 200, BROKEN),
        row("a success of a later number lifts the block", healed, 200, OTHERWISE),
        row("of one number the time orders", same_number, 200, OTHERWISE),
        row("of one number and second the uid orders", same_second, 200, OTHERWISE),
        row("of one number and second the uid orders the other way", uid_decides, 200, BROKEN),
        row("a failure without a run stands behind the runs that had ended", invalid, 20, BACKOFF),
        row("a failure without a run stands before those that had not", before, 20, OTHERWISE),
    ]
}

fn quiet() -> Vec<Row> {
    let failures = || (1..=5).map(|n| stalled(&format!("f{n}"), "w", n, 0, 600)).collect::<Vec<_>>();
    let mut rows = vec![
        row("before the quiet period is over they count", failures(), 3599, EXHAUSTED),
        row("when the quiet period is over they do not", failures(), 3600, OTHERWISE),
        row("a gap as long as the quiet period resets too", failures(), 4000, OTHERWISE),
    ];
    rows[2].target.executions.extend(target(vec![stalled("g", "w", 6, 3700, 3760)], vec![]).executions);
    let quiet_period = |policy: &mut Policy| policy.failure_quiet_period = Some(Duration::from_hours(1));
    rows.into_iter().map(|row| row.policy(quiet_period)).collect()
}

/// Failures before anything ran, at second 0: `own` unshared and `shared` shared ones. The wait of the next execution
/// counts all of them.
fn in_a_row(own: u64, shared: u64) -> Vec<Execution> {
    let one = |number: u64| {
        let state = FailedState { shared_outage: number > own, ..failure(false, 0, None) };
        past(&format!("f{number}"), "w", number, ExecutionState::Failed(state))
    };
    (1..=own + shared).map(one).collect()
}

fn shared() -> Vec<Row> {
    vec![
        row("shared failures back off as others do", in_a_row(0, 5), 599, BACKOFF),
        row("shared failures exhaust nothing", in_a_row(0, 5), 600, OTHERWISE),
        row("a shared failure is waited for after those of its own", in_a_row(2, 1), 239, BACKOFF),
        row("the wait after a shared failure ends like others", in_a_row(2, 1), 240, OTHERWISE),
        row("a shared failure is not the fifth", in_a_row(4, 1), 600, OTHERWISE),
        row("a shared failure hides no exhaustion", in_a_row(5, 1), 600, EXHAUSTED),
    ]
}

fn odd() -> Vec<Row> {
    let far = 200_000_000_000;
    vec![
        row(
            "a failure too late neither counts nor hides the backoff",
            vec![stalled("f", "w", 1, 0, 60), too_late(10)],
            20,
            BACKOFF,
        ),
        row("a cancellation before anything ran backs nothing off", vec![cancelled(1, 10)], 11, OTHERWISE),
        row(
            "a cancellation before anything ran hides no backoff",
            vec![stalled("f", "w", 1, 0, 60), cancelled(2, 10)],
            20,
            BACKOFF,
        ),
        row(
            "cancellations before anything ran exhaust nothing",
            (1..=5).map(|number| cancelled(number, 0)).collect(),
            9,
            OTHERWISE,
        ),
        row("a failure too late backs nothing off", vec![too_late(10)], 11, OTHERWISE),
        row("without nextAllowedExecution it is computed", vec![failed_with(|_| {})], 59, BACKOFF),
        row("computed, it ends as if it were there", vec![failed_with(|_| {})], 60, OTHERWISE),
        row("without failedAt the completionTime serves", vec![failed_with(|it| it.failed_at = None)], 59, BACKOFF),
        row("by completionTime, it ends in time", vec![failed_with(|it| it.failed_at = None)], 60, OTHERWISE),
        row(
            "failedAt counts before completionTime",
            vec![failed_with(|it| it.completed_at = Some(at(-30)))],
            59,
            BACKOFF,
        ),
        row(
            "without any time its status does not tell when that is over",
            vec![failed_with(|it| (it.failed_at, it.completed_at) = (None, None))],
            far,
            BACKOFF,
        ),
        row("a nextAllowedExecution far away is kept", vec![stalled("f", "w", 1, 0, far)], far - 1, BACKOFF),
        row("a success without a time may have been just now", vec![undated("w")], far, COOLDOWN),
        row("a success without a time holds up no other workflow", vec![undated("x")], 0, OTHERWISE),
        row(
            "a success without a number and a time excuses nothing",
            vec![broke("b", "w", 1, 0), unnumbered(undated("x"))],
            9,
            BROKEN,
        ),
        row("a success in the future cools down from there", vec![completed("s", "w", 1, 1000)], 1299, COOLDOWN),
        row("a clock that jumped back finds the same end", vec![completed("s", "w", 1, 1000)], 1300, OTHERWISE),
        row(
            "a success without a run is a success",
            vec![broke("b", "w", 1, 0), unnumbered(completed("s", "x", 0, 1))],
            9,
            OTHERWISE,
        ),
    ]
}

fn rounding() -> Vec<Row> {
    let cooldown = |policy: &mut Policy| policy.cooldown_period = Duration::from_millis(1500);
    let off = |policy: &mut Policy| policy.cooldown_period = Duration::ZERO;
    let succeeded = || vec![completed("s", "w", 1, 0)];
    vec![
        row("a cooldown of 1.5s lasts two seconds", succeeded(), 1, COOLDOWN).policy(cooldown).nanos(999_999_999),
        row("a cooldown of 1.5s is over after two seconds", succeeded(), 2, OTHERWISE).policy(cooldown),
        row("a cooldown of 0 is none", succeeded(), 0, OTHERWISE).policy(off),
    ]
}
