//! Processes the outcome of the work on a target: puts the results into the view, and retries failed actions later.

use std::time::Duration;

use tokio::time::Instant;
use wfe_core::action::{Decision, Mark};
use wfe_core::backoff::Backoff;
use wfe_core::trouble::OwnTrouble;
use wfe_view::call::CallError;
use wfe_view::index::{Key, Learned};

use super::Engine;
use crate::perform::{PerformError, Report, Shown};

/// The delays before a target is decided on again after a failed action.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(30), 9);

/// For how long the operator does not repeat a write that the API server accepted without storing anything. The CRD
/// lacks a field, and until a person repairs the CRD, a repetition has the same result.
const IGNORED_FOR: Duration = Duration::from_mins(10);

/// How often in a row the work on a target failed, and what waits because of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    pub(super) count: u32,
    /// The failed actions, and the time before which they are not retried, whatever the watches deliver. `None` if only
    /// a precondition failed: then the next delivery of a watch is awaited.
    pub(super) held: Option<(Instant, Held)>,
    /// The fault of the operator itself that caused the failures, if one did.
    pub(super) own: Option<OwnTrouble>,
}

/// The actions of a target that wait after a failure.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// All actions, because it is unknown which one failed.
    Everything,
    /// The actions with these marks. The other actions of a decision are carried out: a missing permission for one
    /// action delays no other action.
    These(Vec<Mark>),
}

impl Engine {
    /// Removes from a decision the actions that the API server recently accepted without storing anything.
    pub(super) fn leave_ignored(&mut self, key: &Key, decision: &mut Decision) {
        let Some(ignored) = self.ignored.get_mut(key) else { return };
        ignored.retain(|(_, until)| *until > Instant::now());
        decision.actions.retain(|action| ignored.iter().all(|(mark, _)| *mark != action.mark()));
        if ignored.is_empty() {
            self.ignored.remove(key);
        }
    }

    /// Returns the actions of a target that wait after a failure, and for how long.
    pub(super) fn held(&self, key: &Key) -> Option<(Duration, &Held)> {
        let (until, held) = self.failures.get(key)?.held.as_ref()?;
        let wait = until.saturating_duration_since(Instant::now());
        (!wait.is_zero()).then_some((wait, held))
    }

    /// Processes the outcome of the work. Returns whether to decide again at once: all actions succeeded, and at least
    /// one gave a result. Without a result, the same decision would be repeated at once, for ever.
    pub(super) fn take_report(&mut self, key: &Key, mut report: Report) -> bool {
        let learned_something = !report.learned.is_empty();
        let until = Instant::now() + IGNORED_FOR;
        let ignored = std::mem::take(&mut report.ignored).into_iter().map(|mark| (mark, until));
        if ignored.len() > 0 {
            self.ignored.entry(key.clone()).or_default().extend(ignored);
        }
        for learned in report.learned {
            if let Learned::Told(about) = &learned {
                self.unconfirmed.forget(key, about);
            }
            self.index.learn(key, learned, self.settings.clock.now());
        }
        for announcement in report.errors.iter_mut().filter_map(PerformError::take_unconfirmed) {
            if !self.unconfirmed.keep(key, announcement) {
                self.metrics.event_lost();
            }
        }
        let is_held = self.held(key).is_some();
        let of_executions = first_to_know(&report.errors);
        if of_executions.is_some() || !is_held {
            self.index.trouble(key, of_executions.and_then(PerformError::trouble));
        }
        report.errors.append(&mut report.of_schedules);
        let trouble = first_to_know(&report.errors);
        let Some(worst) = trouble.or(report.errors.first()) else {
            if !learned_something {
                let wait = self.retry(key, None, None);
                let target = self.shown(key);
                tracing::debug!(%target, retry_in = ?wait, "nothing was written and nothing learned, looking again");
            } else if !is_held {
                self.failures.remove(key);
            }
            return learned_something;
        };
        let (mut retry_after, mut was_told) = (None, false);
        for error in &report.errors {
            self.metrics.error(error.label());
            if let PerformError::Call { source, .. } = error {
                retry_after = retry_after.max(source.retry_after());
            }
        }
        if trouble.is_some() || !is_held {
            let own = trouble.and_then(PerformError::own_trouble);
            let before = std::mem::replace(&mut self.failures.entry(key.clone()).or_default().own, own.clone());
            was_told = own.is_some() && own == before;
        }
        let wait = self.retry(key, trouble.map(|_| Held::These(report.failed)), retry_after);
        let errors = report.errors.len();
        let target = self.shown(key);
        match worst {
            PerformError::Changed { .. }
            | PerformError::Refuted { .. }
            | PerformError::Call { source: CallError::NotLeading, .. } => {
                tracing::debug!(%target, error = %worst, errors, retry_in = ?wait, "looking again");
            }
            PerformError::Dropped { .. } if was_told => {
                tracing::debug!(%target, error = %worst, errors, retry_in = ?wait, "looking again");
            }
            PerformError::Dropped { .. } => {
                tracing::warn!(%target, error = %worst, errors, retry_in = ?wait, "looking again");
            }
            PerformError::Call {
                source: CallError::Refused(_) | CallError::TimedOut(_) | CallError::Transport(_),
                ..
            } => {
                tracing::warn!(%target, error = %worst, errors, retry_in = ?wait, "looking again");
            }
        }
        false
    }

    /// Returns the target in the form of log lines.
    fn shown(&self, key: &Key) -> Shown<'_> {
        Shown(self.index.entry(key).and_then(|entry| entry.target.name.as_ref()))
    }

    /// Marks a target after the retry delay. If only a precondition failed, the next delivery of a watch marks it
    /// sooner.
    pub(super) fn retry(&mut self, key: &Key, held: Option<Held>, at_least: Option<Duration>) -> Duration {
        let before = self.held(key).map(|(_, held)| held.clone());
        let failures = self.failures.entry(key.clone()).or_default();
        failures.count = failures.count.saturating_add(1);
        let wait = RETRY.after(failures.count).max(at_least.unwrap_or_default());
        let until = Instant::now() + wait;
        match (held, before) {
            (None, Some(_)) => {}
            (None, None) => failures.held = None,
            (Some(Held::These(mut failed)), Some(Held::These(earlier))) => {
                failed.extend(earlier);
                failures.held = Some((until, Held::These(failed)));
            }
            (Some(held), _) => failures.held = Some((until, held)),
        }
        self.mark_after(key.clone(), wait);
        wait
    }
}

/// Returns the error that a person must see first: a fault of the operator itself, or else any other fault.
fn first_to_know(errors: &[PerformError]) -> Option<&PerformError> {
    let mut calls = errors.iter().filter(|error| error.trouble().is_some());
    calls.clone().find(|error| error.own_trouble().is_some()).or_else(|| calls.next())
}
