//! The share of targets that only fail. While it is too large, triage waits (section 13.6).
//!
//! A target that has also succeeded within the window does not count as failed: a flaky target is not down, and its
//! schedules deserve a triage. The order of the ends does not matter, so nothing is folded here.

use std::collections::{BTreeSet, HashMap};

use crate::Time;
use crate::backoff::Thousandths;
use crate::chain::ChainName;
use crate::moment::before;
use crate::policy::CircuitPolicy;

/// The maximum number of ends from which the share is computed. A target has at most two, and each end takes about 100
/// bytes. The share of the newest ends is as good as the share of all.
pub(super) const MOST: usize = 20_000;

/// The number of failed targets, and the number of finished targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// How many targets only failed.
    pub failed: u32,
    /// How many targets finished.
    pub of: u32,
}

/// The last ends of targets within the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Newest {
    by_target: HashMap<ChainName, Ends>,
    /// The same ends ordered by time, with whether each was a success.
    in_order: BTreeSet<(Time, ChainName, bool)>,
    failed: u32,
}

/// The newest success and the newest failure of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ends {
    succeeded: Option<Time>,
    failed: Option<Time>,
}

impl Ends {
    fn of(&mut self, success: bool) -> &mut Option<Time> {
        if success { &mut self.succeeded } else { &mut self.failed }
    }

    fn only_fails(self) -> bool {
        self.succeeded.is_none() && self.failed.is_some()
    }
}

impl Newest {
    pub(super) fn put(&mut self, target: ChainName, at: Time, success: bool) {
        let known = self.by_target.get_mut(&target).and_then(|ends| *ends.of(success));
        if known < Some(at) {
            self.set(target, success, Some(at));
        }
        if self.in_order.len() > MOST {
            self.forget_oldest();
        }
    }

    /// Returns the share within the window, if the policy considers it too large.
    pub(super) fn degraded(&mut self, policy: &CircuitPolicy, now: Time) -> Option<Share> {
        let begins = before(now, policy.outage_window);
        while self.in_order.first().is_some_and(|(at, ..)| *at < begins) {
            self.forget_oldest();
        }
        let share = Share { failed: self.failed, of: u32::try_from(self.by_target.len()).unwrap_or(u32::MAX) };
        let is_large = u64::from(share.failed) * 1000 >= u64::from(share.of) * u64::from(policy.breaker_threshold.0);
        let counts = policy.breaker_threshold > Thousandths::ZERO && share.of >= policy.breaker_minimum;
        (counts && is_large).then_some(share)
    }

    fn forget_oldest(&mut self) {
        if let Some((_, target, success)) = self.in_order.first().copied() {
            self.set(target, success, None);
        }
    }

    fn set(&mut self, target: ChainName, success: bool, at: Option<Time>) {
        let ends = self.by_target.entry(target).or_default();
        let failed_before = ends.only_fails();
        let known = std::mem::replace(ends.of(success), at);
        let fails = ends.only_fails();
        if *ends == Ends::default() {
            self.by_target.remove(&target);
        }
        self.failed = self.failed + u32::from(fails) - u32::from(failed_before);
        known.map(|known| self.in_order.remove(&(known, target, success)));
        at.map(|at| self.in_order.insert((at, target, success)));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.in_order.len()
    }
}
