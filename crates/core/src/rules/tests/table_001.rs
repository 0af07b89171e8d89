//! The lock decision rules of the contract with the RemediationOrchestrator (001), to the second.

use super::*;
use crate::run::Progress;

pub(super) fn rows() -> Vec<Row> {
    let succeeded = || vec![completed("p", "w", 1, 0)];
    let running = Row {
        target: target(vec![running("holder", "r1")], vec![run(1, "holder", Progress::Released)]),
        ..row("another one runs on the target", vec![], 0, BUSY)
    };
    vec![
        running,
        row("the same workflow completed just now", succeeded(), 0, COOLDOWN),
        row("the same workflow completed 4m59s ago", succeeded(), 299, COOLDOWN),
        row("the same workflow completed a nanosecond less than 5m ago", succeeded(), 299, COOLDOWN).nanos(999_999_999),
        row("the same workflow completed 5m ago", succeeded(), 300, OTHERWISE),
        row("another workflow completed a second ago", succeeded(), 1, OTHERWISE).workflow("other"),
        row("another target", vec![], 0, OTHERWISE),
    ]
}
