//! The fold itself: what opens a circuit, keeps it open and closes it, one event after the other.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::fingerprint::{subject, uses};
use super::{End, Event, OpenCircuit, What, wait};
use crate::Policy;
use crate::moment::Seconds;
use crate::section_7::whole;

/// Where the circuits stand.
pub(super) struct State<'e> {
    policy: &'e Policy,
    open: BTreeMap<&'e str, Open>,
    /// From when to when circuits were open.
    closed: Vec<RangeInclusive<Seconds>>,
    /// When the success of somebody else closed a circuit, where nothing else has closed it since.
    refuted: BTreeMap<&'e str, Seconds>,
    /// Which targets failed with a fingerprint, when, and what they used.
    failed: BTreeMap<&'e str, Vec<(&'e str, Seconds, String)>>,
    /// What each schedule failed with last.
    failed_last: BTreeMap<&'e str, &'e str>,
}

struct Open {
    since: Seconds,
    holds_from: Seconds,
    /// What somebody's success has to use to close it.
    subject: String,
    failed_probes: u64,
    newest_probe: Option<Seconds>,
    /// When it opened, something failed with it, or it was probed last.
    active: Seconds,
}

impl<'e> State<'e> {
    pub(super) fn new(policy: &'e Policy) -> Self {
        Self {
            policy,
            open: BTreeMap::new(),
            closed: Vec::new(),
            refuted: BTreeMap::new(),
            failed: BTreeMap::new(),
            failed_last: BTreeMap::new(),
        }
    }

    /// Returns the circuits that are open, unless they close by themselves meanwhile.
    pub(super) fn open(self) -> Vec<OpenCircuit> {
        let of = |(fingerprint, open): (&&str, &Open)| {
            let probed = open.newest_probe.map_or(open.since, |newest| newest.max(open.since));
            OpenCircuit {
                fingerprint: (*fingerprint).to_owned(),
                opened: open.since,
                holds_from: open.holds_from,
                next_probe: probed + wait(self.policy, open.failed_probes + 1),
                quiet: self.quiet(open),
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
        let What::Ended { target, created, end } = &event.what else {
            if let Some(probed) = failed_last.filter(|with| self.is_probe(with, event.at)) {
                self.open.entry(probed).and_modify(|open| {
                    open.newest_probe = open.newest_probe.max(Some(event.at));
                    open.active = open.active.max(event.at);
                });
            }
            return;
        };
        let probed = failed_last.filter(|with| self.is_probe(with, *created));
        match end {
            End::Succeeded { began } => {
                if let Some(probed) = probed {
                    self.close(probed, event.at);
                    self.refuted.remove(probed);
                }
                self.succeeds(event, failed_last, *began);
            }
            End::Failed { with: Some(with), before } => {
                if let Some(open) = self.open.get_mut(with) {
                    open.active = open.active.max(event.at);
                    open.failed_probes += u64::from(probed == Some(with));
                } else if *before {
                    self.count(event, target, with);
                }
            }
            End::Failed { with: None, .. } => {}
        }
        let Some(schedule) = event.schedule else { return };
        if let End::Failed { with: Some(with), .. } = end {
            self.failed_last.insert(schedule, with);
        } else {
            self.failed_last.remove(schedule);
        }
    }

    /// Tells whether what a schedule makes at a time probes the circuit of what it failed with last.
    fn is_probe(&self, with: &str, created: Seconds) -> bool {
        let first = wait(self.policy, 1);
        self.open.get(with).is_some_and(|open| created >= open.holds_from && created >= open.since + first)
    }

    fn quiet(&self, open: &Open) -> Seconds {
        open.active + 2 * wait(self.policy, u64::MAX)
    }

    fn close_quiet(&mut self, now: Seconds) {
        let quiet = self.open.iter().map(|(fingerprint, open)| (*fingerprint, self.quiet(open)));
        let quiet: Vec<(&str, Seconds)> = quiet.filter(|(_, at)| *at <= now).collect();
        for (fingerprint, at) in quiet {
            self.close(fingerprint, at);
            self.refuted.remove(fingerprint);
        }
    }

    fn close(&mut self, fingerprint: &str, at: Seconds) {
        self.closed.extend(self.open.remove(fingerprint).map(|open| open.since..=at));
    }

    /// What failed before a success began, and used the same, is refuted.
    fn succeeds(&mut self, event: &Event<'e>, failed_last: Option<&str>, began: Seconds) {
        for (fingerprint, targets) in &mut self.failed {
            let is_its_own = failed_last == Some(fingerprint);
            targets.retain(|(_, at, subject)| *at >= began || !(is_its_own || uses(subject, event.runs)));
        }
        let is_refuted = |(fingerprint, open): &(&&str, &Open)| {
            let uses_it = failed_last == Some(**fingerprint) || uses(&open.subject, event.runs);
            uses_it && began > open.since
        };
        let refuted: Vec<&str> = self.open.iter().filter(is_refuted).map(|(it, _)| *it).collect();
        for fingerprint in refuted {
            self.close(fingerprint, event.at);
            self.refuted.insert(fingerprint, event.at);
        }
    }

    /// Counts the targets that failed with one fingerprint within the window.
    fn count(&mut self, event: &Event<'e>, target: &'e str, with: &'e str) {
        if self.policy.outage_targets == 0 {
            return;
        }
        let begins = event.at - whole(self.policy.outage_window.as_nanos());
        let about = subject(with, event.runs);
        let targets = self.failed.entry(with).or_default();
        targets.retain(|(other, at, _)| *other != target && *at >= begins);
        targets.push((target, event.at, about.clone()));
        if targets.len() < usize::try_from(self.policy.outage_targets).unwrap_or(usize::MAX) {
            return;
        }
        self.failed.remove(with);
        let (since, longest) = (event.at, wait(self.policy, u64::MAX));
        let holds_from = self.refuted.get(with).map_or(since, |closed| since.max(closed + longest));
        let open = Open { since, holds_from, subject: about, failed_probes: 0, newest_probe: None, active: since };
        self.open.insert(with, open);
    }
}
