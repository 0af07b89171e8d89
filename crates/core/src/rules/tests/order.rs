//! If two neighbouring rules match, the first decides.

use super::*;
use crate::execution::Recorded;
use crate::run::Progress;

fn cancel(execution: &mut Execution) {
    execution.cancellation = Some(Box::new(cancellation(None)));
}

fn expire(execution: &mut Execution) {
    if let ExecutionState::Undecided { start_before, .. } = &mut execution.state {
        *start_before = Some(at(-1));
    }
}

fn spoil(execution: &mut Execution) {
    execution.state = unusable("bad");
}

fn pause_namespace(execution: &mut Execution) {
    execution.paused = Some(pause("ask"));
}

fn pause_all(policy: &mut Policy) {
    policy.paused_by = Some("a test".into());
}

fn busy(mut row: Row) -> Row {
    let target = target(vec![running("holder", "r9")], vec![run(9, "holder", Progress::Released)]);
    row.target.executions.extend(target.executions);
    row.target.runs = target.runs;
    row
}

/// Five failures in a row, the last of which makes the next one wait.
fn exhausted() -> Vec<Execution> {
    (0..5_u32).map(|n| stalled(&format!("f{n}"), "w", u64::from(n) + 1, i64::from(n) - 5, 600)).collect()
}

pub(super) fn rows() -> Vec<Row> {
    let broken = [exhausted(), vec![broke("b", "w", 9, -1)]].concat();
    let unread = vec![cleared(broke("b", "w", 9, -1), Recorded::Not)];
    let hot = vec![completed("c", "w", 1, -9), stalled("f", "w", 2, -1, 60)];
    vec![
        row("unusable before cancelled", vec![], 0, "0 unusable spec").with(spoil).with(cancel),
        row("cancelled before late", vec![], 0, "cancellation").with(cancel).with(expire),
        row("late before paused", vec![], 0, "startBefore").with(expire).with(pause_namespace),
        row("late before all is paused", vec![], 0, "startBefore").with(expire).policy(pause_all),
        busy(row("paused before busy", vec![], 0, "pause").with(pause_namespace)),
        busy(row("all paused before busy", vec![], 0, "pause").policy(pause_all)),
        busy(row("busy before broken", broken.clone(), 0, BUSY)),
        busy(row("busy before a clearance is looked into", unread.clone(), 0, BUSY).guarded(Guard::Unknown)),
        row("a clearance is looked into before broken", unread, 0, LOOK).guarded(Guard::Unknown),
        row("broken before exhausted", broken, 0, BROKEN),
        row("exhausted before backoff", exhausted(), 0, EXHAUSTED),
        row("backoff before cooldown", hot, 0, BACKOFF),
        row("at startBefore it is in time", vec![], -1, OTHERWISE).with(expire),
        row("after startBefore it is late", vec![], 0, "startBefore").with(expire),
        row("a nanosecond after startBefore it is late", vec![], -1, "startBefore").with(expire).nanos(1),
    ]
}
