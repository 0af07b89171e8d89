//! The fold itself: what opens a circuit, keeps it open and closes it, one event after the other.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{ALL, End, Event, OpenCircuit, What, touches, wait};
use crate::Policy;
use crate::moment::Seconds;
use crate::section_7::whole;

/// So many namespaces that failed alike hold all the others with them (ADR 15).
const PARTIES: usize = 5;

/// Where the circuits stand.
pub(super) struct State<'e> {
    policy: &'e Policy,
    open: BTreeMap<String, Open<'e>>,
    /// From when to when circuits were open.
    closed: Vec<RangeInclusive<Seconds>>,
    /// When the circuit of all closed last.
    all_closed: Option<Seconds>,
    /// Which targets failed with a fingerprint, when, and in executions of which namespace.
    failed: BTreeMap<&'e str, Vec<(&'e str, Seconds, &'e str)>>,
    /// Of each target when it ended last, and in an execution of which namespace, where it failed then.
    newest: BTreeMap<&'e str, (Seconds, Option<&'e str>)>,
    /// What each schedule failed with last, where it failed before anything ran.
    failed_last: BTreeMap<&'e str, &'e str>,
}

struct Open<'e> {
    since: Seconds,
    /// The namespaces whose executions have failed with it, in the order in which they did, and when each did first.
    /// There are never more than hold all.
    parties: Vec<(&'e str, Seconds)>,
    failed_probes: u64,
    newest_probe: Option<Seconds>,
    /// When it opened, something of its kind failed, or it was probed last.
    active: Seconds,
}

impl<'e> Open<'e> {
    /// Returns from when on it holds the schedules of a namespace.
    fn holds_from(&self, namespace: &str) -> Option<Seconds> {
        let own = self.parties.iter().find(|(party, _)| *party == namespace);
        own.or_else(|| self.parties.get(PARTIES - 1)).map(|(_, since)| *since)
    }

    /// Notes that an execution of a namespace failed with it.
    fn fails_in(&mut self, namespace: &'e str, at: Seconds) {
        if self.holds_from(namespace).is_none() {
            self.parties.push((namespace, at));
        }
    }

    /// Returns when it closes by itself.
    fn quiet(&self, policy: &Policy) -> Seconds {
        self.active + 2 * wait(policy, u64::MAX)
    }
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
        let of = |(key, open): (&String, &Open<'_>)| {
            let some = (open.parties.len() < PARTIES).then_some(&open.parties);
            let probed = open.newest_probe.map_or(open.since, |newest| newest.max(open.since));
            OpenCircuit {
                key: key.clone(),
                holds: some.map(|some| some.iter().map(|(namespace, _)| (*namespace).to_owned()).collect()),
                opened: open.since,
                next_probe: probed + wait(self.policy, open.failed_probes + 1),
                quiet: open.quiet(self.policy),
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
            for (key, open) in &mut self.open {
                let is_held = open.holds_from(event.asked_in).is_some();
                if is_held && is_touched(key) && event.at >= open.since + first_probe {
                    open.newest_probe = open.newest_probe.max(Some(event.at));
                    open.active = open.active.max(event.at);
                }
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
            let held_from = open.holds_from(event.asked_in);
            if is_of_its_kind {
                open.active = open.active.max(event.at);
                open.fails_in(event.asked_in, event.at);
            }
            // Outside of what it holds nothing probes or closes it.
            let Some(held_from) = held_from.filter(|_| is_of_its_kind || is_touched(key)) else { continue };
            let gets_past = *end == End::Succeeded || *end == End::FailedAfter && key != ALL;
            if gets_past && *created > open.since {
                past.push(key.clone());
            } else if !gets_past && event.schedule.is_some() && *created >= held_from.max(open.since + first_probe) {
                open.failed_probes += 1;
            }
        }
        for key in past {
            self.close(&key, event.at);
        }
        self.count(event, target, *end);
        self.count_all(target, (*end != End::Succeeded).then_some(event.asked_in), event.at);
        let Some(schedule) = event.schedule else { return };
        if let End::FailedBefore(Some(with)) = end {
            self.failed_last.insert(schedule, with);
        } else if let Some(with) = self.failed_last.remove(schedule)
            && *end == End::Succeeded
        {
            self.failed.remove(with);
        }
    }

    fn close_quiet(&mut self, now: Seconds) {
        let quiet = self.open.iter().map(|(key, open)| (key.clone(), open.quiet(self.policy)));
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
                targets.retain(|(other, at, _)| *other != target && *at >= begins);
                targets.push((target, event.at, event.asked_in));
                if targets.len() >= usize::try_from(self.policy.outage_targets).unwrap_or(usize::MAX) {
                    let namespaces = self.failed.remove(with).into_iter().flatten().map(|(.., namespace)| namespace);
                    self.open_at(with, event.at, namespaces.collect());
                }
            }
            End::FailedBefore(_) | End::FailedAfter => {}
        }
    }

    /// Counts the targets that ended, for the circuit of all.
    fn count_all(&mut self, target: &'e str, failed_in: Option<&'e str>, at: Seconds) {
        let threshold = u64::from(self.policy.breaker_threshold);
        if threshold == 0 || self.open.contains_key(ALL) || self.all_closed.is_some_and(|closed| closed >= at) {
            return;
        }
        let begins = at - self.window();
        self.newest.insert(target, (at, failed_in));
        self.newest.retain(|_, (at, _)| *at >= begins);
        let finished = u64::try_from(self.newest.len()).unwrap_or(u64::MAX);
        let failed_in: Vec<&str> = self.newest.values().filter_map(|(_, failed_in)| *failed_in).collect();
        let failed = u64::try_from(failed_in.len()).unwrap_or(u64::MAX);
        if finished >= u64::from(self.policy.breaker_minimum) && failed > 0 && failed * 1000 >= finished * threshold {
            self.newest.clear();
            self.open_at(ALL, at, failed_in);
        }
    }

    fn open_at(&mut self, key: &str, since: Seconds, failed_in: Vec<&'e str>) {
        let mut open = Open { since, parties: Vec::new(), failed_probes: 0, newest_probe: None, active: since };
        for namespace in failed_in {
            open.fails_in(namespace, since);
        }
        self.open.insert(key.to_owned(), open);
    }

    fn window(&self) -> Seconds {
        whole(self.policy.outage_window.as_nanos())
    }
}
