//! Chooses which skips are logged. A storm can skip thousands of executions of one target in a second; only one of them
//! is logged per second. Each execution still has its own status and event.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wfe_core::target::TargetName;

/// The period in which a target has at most one logged skip.
const WINDOW: Duration = Duration::from_secs(1);

/// The skips that were logged in the last second. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct SkipLines(Arc<Mutex<Window>>);

/// The logged targets of the present second. Their number is limited by the skips that can be written in a second.
#[derive(Default)]
struct Window {
    began: Option<Instant>,
    logged: HashSet<TargetName>,
    unlogged: u64,
}

impl SkipLines {
    /// Returns `None` if a skip on this target must not be logged. Otherwise it returns how many skips were not logged
    /// since the last line.
    pub(super) fn may_log(&self, target: Option<&TargetName>, now: Instant) -> Option<u64> {
        let Some(target) = target else { return Some(0) };
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.began.is_none_or(|began| now.saturating_duration_since(began) >= WINDOW) {
            window.began = Some(now);
            window.logged.clear();
        }
        if window.logged.insert(target.clone()) {
            Some(std::mem::take(&mut window.unlogged))
        } else {
            window.unlogged = window.unlogged.saturating_add(1);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_has_one_line_per_second_and_target() {
        let (lines, start) = (SkipLines::default(), Instant::now());
        let [web, api] =
            ["payment/deployment/web", "payment/deployment/api"].map(|name| TargetName::parse(name).unwrap());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(lines.may_log(Some(&web), at(0)), Some(0));
        assert_eq!(lines.may_log(Some(&web), at(1)), None);
        assert_eq!(lines.may_log(Some(&web), at(999)), None);
        assert_eq!(lines.may_log(Some(&api), at(999)), Some(2), "another target has its own line");
        assert_eq!(lines.may_log(Some(&web), at(1000)), Some(0), "each second has a line");
        assert_eq!(lines.may_log(None, at(1001)), Some(0), "what locks no target is always logged");
    }
}
