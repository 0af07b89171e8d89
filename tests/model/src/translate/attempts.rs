//! The retry policy and the attempts of an execution in the model.

use std::time::Duration;

use wfe_core::evidence::Ran;
use wfe_core::reason::FailureReason;
use wfe_core::retry::{Attempt, AttemptEnd, NextAttempt, Retry, RetryPolicy};
use wfe_core::target::{self, Elsewhere};
use wfe_core::uid_map::SmallMap;

use super::{Translation, moment};
use crate::leave_out::LeftOut;
use crate::object::Execution;
use crate::request::OwnerRead;
use crate::view::View;

impl Translation {
    /// Returns what was read of owners that no watch delivers. The reads are old enough to be repeated.
    pub(super) fn elsewhere(self, view: &View) -> SmallMap<Elsewhere> {
        let next = NextAttempt { attempt: 2, of: 2, not_before: moment(61), ends_by: moment(50_000) };
        let found = |read: OwnerRead| match read {
            OwnerRead::Over => target::OwnerRead::Over,
            OwnerRead::Late => target::OwnerRead::Late,
            OwnerRead::Waits => target::OwnerRead::Waits { started_at: moment(50), next: next.clone() },
        };
        let mut known = SmallMap::default();
        for (owner, read) in &view.elsewhere {
            known.insert(self.execution_id(*owner).uid, Elsewhere { at: moment(80), found: found(*read) });
        }
        if self.left_out == LeftOut::Elsewhere {
            for owner in view.runs.iter().filter_map(|seen| seen.run.owner).filter(|it| view.is_elsewhere(*it)) {
                let over = Elsewhere { at: moment(80), found: target::OwnerRead::Over };
                known.insert(self.execution_id(owner).uid, over);
            }
        }
        known
    }

    /// Returns a policy with which the second attempt is always due, whether or not anything ran.
    pub(super) fn retry(self, execution: Execution) -> Option<Box<Retry>> {
        if self.attempts < 2 || execution.phase.is_terminal() {
            return None;
        }
        let max_attempts = self.attempts.into();
        let policy = RetryPolicy { max_attempts, retry_execution_failures: true, ..RetryPolicy::default() };
        let started = if execution.ran && self.left_out != LeftOut::Worst { Ran::Unknown } else { Ran::No };
        let end = AttemptEnd {
            completed_at: moment(60),
            started,
            reason: Some(FailureReason::Unknown),
            message: "message".into(),
        };
        let attempts = (1..=execution.attempts).map(|number| {
            let is_last = number == execution.attempts;
            let has_run = !(is_last && execution.waits);
            Attempt {
                delay: (number > 1).then_some(Duration::from_secs(1)),
                not_before: (number > 1).then(|| moment(61)),
                run: has_run.then(|| "run".into()),
                started_at: has_run.then(|| moment(50)),
                end: (!is_last).then(|| end.clone()),
            }
        });
        Some(Box::new(Retry { policy, attempts: attempts.collect() }))
    }
}
