//! The fold itself: what opens a circuit, keeps it open and closes it, one event after the other.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{ALL, End, Event, OpenCircuit, What, touches, wait};
use crate::Policy;
use crate::moment::Seconds;
use crate::section_7::whole;

/// Where the circuits stand.
pub(super) struct State<'e> {
    policy: &'e Policy,
    open: BTreeMap<String, Open>,
    /// From when to when circuits were open.
    closed: Vec<RangeInclusive<Seconds>>,
    /// When the circuit of all closed last.
    all_closed: Option<Seconds>,
    /// Which targets failed with a fingerprint, and when.
    failed: BTreeMap<&'e str, Vec<(&'e str, Seconds)>>,
    /// Of each target when it ended last, and whether it failed then.
    newest: BTreeMap<&'e str, (Seconds, bool)>,
    /// What each schedule failed with last, where it failed before anything ran.
    failed_last: BTreeMap<&'e str, &'e str>,
}

#[derive(Clone, Copy)]
struct Open {
    since: Seconds,
    failed_probes: u64,
    newest_probe: Option<Seconds>,
    /// When it opened, something of its kind failed, or it was probed last.
    active: Seconds,
}

impl<'e> State<'e> {
    pub(super) fn new(policy: &'e Policy) -> Self {
        Self {
            policy,
            open: BTreeMap::new(),
            closed: Vec::new(),
            all_closed: None,
            failed: BTreeMap::new(),
            newest: BTreeMap::new(),
            failed_last: BTreeMap::new(),
        }
    }

    /// Returns the circuits that are open, unless they close by themselves meanwhile.
    pub(super) fn open(self) -> Vec<OpenCircuit> {
        let of = |(key, open): (&String, &Open)| {
            let probed = open.newest_probe.map_or(open.since, |newest| newest.max(open.since));
            OpenCircuit {
                key: key.clone(),
                opened: open.since,
                next_probe: probed + wait(self.policy, open.failed_probes + 1),
                quiet: self.quiet(*open),
            }
        };
        self.open.iter().map(of).collect()
    }

    /// Returns from when to when circuits were open.
    pub(super) fn spans(mut self) -> Vec<RangeInclusive<Seconds>> {
        self.close_quiet(Seconds::MAX);
        self.closed
    }

    /// Takes in what happened next.
    pub(super) fn take(&mut self, event: &Event<'e>) {
        self.close_quiet(event.at);
        let failed_last = event.schedule.and_then(|schedule| self.failed_last.get(schedule).copied());
        let is_touched = |key: &str| failed_last == Some(key) || touches(key, event.runs);
        let first_probe = wait(self.policy, 1);
        let What::Ended { target, created, end } = &event.what else {
            for (_, open) in
                self.open.iter_mut().filter(|(key, open)| is_touched(key) && event.at >= open.since + first_probe)
            {
                open.newest_probe = open.newest_probe.max(Some(event.at));
                open.active = open.active.max(event.at);
            }
            return;
        };
        let mut past = Vec::new();
        for (key, open) in &mut self.open {
            let is_of_its_kind = match end {
                End::Succeeded => false,
                End::FailedBefore(with) => key == ALL || *with == Some(key),
                End::FailedAfter => key == ALL,
            };
            if is_of_its_kind {
                open.active = open.active.max(event.at);
            } else if !is_touched(key) {
                continue;
            }
            let gets_past = *end == End::Succeeded || *end == End::FailedAfter && key != ALL;
            if gets_past && *created > open.since {
                past.push(key.clone());
            } else if !gets_past && event.schedule.is_some() && *created >= open.since + first_probe {
                open.failed_probes += 1;
            }
        }
        for key in past {
            self.close(&key, event.at);
        }
        self.count(event, target, *end);
        self.count_all(target, *end != End::Succeeded, event.at);
        let Some(schedule) = event.schedule else { return };
        if let End::FailedBefore(Some(with)) = end {
            self.failed_last.insert(schedule, with);
        } else if let Some(with) = self.failed_last.remove(schedule)
            && *end == End::Succeeded
        {
            self.failed.remove(with);
        }
    }

    fn quiet(&self, open: Open) -> Seconds {
        open.active + 2 * wait(self.policy, u64::MAX)
    }

    fn close_quiet(&mut self, now: Seconds) {
        let quiet = self.open.iter().map(|(key, open)| (key.clone(), self.quiet(*open)));
        let quiet: Vec<(String, Seconds)> = quiet.filter(|(_, at)| *at <= now).collect();
        for (key, at) in quiet {
            self.close(&key, at);
        }
    }

    fn close(&mut self, key: &str, at: Seconds) {
        let Some(open) = self.open.remove(key) else { return };
        self.closed.push(open.since..=at);
        if key == ALL {
            self.all_closed = Some(at);
        }
    }

    /// Counts the targets that failed with one fingerprint since the last success that it touches.
    fn count(&mut self, event: &Event<'e>, target: &'e str, end: End<'e>) {
        match end {
            End::Succeeded => self.failed.retain(|with, _| !touches(with, event.runs)),
            End::FailedBefore(Some(with)) if self.policy.outage_targets > 0 && !self.open.contains_key(with) => {
                let begins = event.at - self.window();
                let targets = self.failed.entry(with).or_default();
                targets.retain(|(other, at)| *other != target && *at >= begins);
                targets.push((target, event.at));
                if targets.len() >= usize::try_from(self.policy.outage_targets).unwrap_or(usize::MAX) {
                    self.failed.remove(with);
                    self.open_at(with, event.at);
                }
            }
            End::FailedBefore(_) | End::FailedAfter => {}
        }
    }

    /// Counts the targets that ended, for the circuit of all.
    fn count_all(&mut self, target: &'e str, has_failed: bool, at: Seconds) {
        let threshold = u64::from(self.policy.breaker_threshold);
        if threshold == 0 || self.open.contains_key(ALL) || self.all_closed.is_some_and(|closed| closed >= at) {
            return;
        }
        let begins = at - self.window();
        self.newest.insert(target, (at, has_failed));
        self.newest.retain(|_, (at, _)| *at >= begins);
        let finished = u64::try_from(self.newest.len()).unwrap_or(u64::MAX);
        let failed = self.newest.values().filter(|(_, failed)| *failed).count();
        let failed = u64::try_from(failed).unwrap_or(u64::MAX);
        if finished >= u64::from(self.policy.breaker_minimum) && failed > 0 && failed * 1000 >= finished * threshold {
            self.newest.clear();
            self.open_at(ALL, at);
        }
    }

    fn open_at(&mut self, key: &str, since: Seconds) {
        self.open.insert(key.to_owned(), Open { since, failed_probes: 0, newest_probe: None, active: since });
    }

    fn window(&self) -> Seconds {
        whole(self.policy.outage_window.as_nanos())
    }
}
