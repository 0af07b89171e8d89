//! Section 12, read anew: which slot of a schedule is due.

mod cron;

use std::ops::RangeInclusive;

use serde_json::Value;
use wfe_core::duration;

use crate::history::{LastRun, failure_count, planned_from, text};
use crate::moment::{Seconds, seconds};
use cron::Cron;

const MINUTE: Seconds = 60;
const DAY: Seconds = 24 * 60 * MINUTE;
/// How often the interval doubles at the most.
const DOUBLINGS: u64 = 5;

/// When a schedule runs.
#[derive(Debug)]
pub(crate) struct Plan {
    every: Every,
    min_interval: Seconds,
    max_interval: Seconds,
    /// All slots are later by a share of this that nobody but the operator knows.
    spread: Seconds,
    /// How late after its slot a child may be made.
    pub(crate) deadline: Option<Seconds>,
    hint: Option<Hint>,
}

#[derive(Debug)]
enum Every {
    Interval(Seconds),
    Cron(Cron),
}

#[derive(Debug)]
struct Hint {
    at: Option<Seconds>,
    interval: Option<Seconds>,
    expires: Seconds,
}

/// What of the past a slot depends on.
#[derive(Debug)]
pub(crate) struct State {
    since: Seconds,
    /// What slots count from, where the status says so.
    phase: Option<Seconds>,
    /// Whether the last child lost a race that nothing has made up for yet.
    lost_race: bool,
    /// The last slot of this plan, and when its child ended.
    last: Option<(Seconds, Option<Seconds>)>,
    failures: u64,
}

/// Slots from which, with steps of the interval, the ones that are due follow.
#[derive(Debug)]
struct Due {
    /// The first; anywhere in this range, where a spread moves it.
    at: RangeInclusive<Seconds>,
    /// None: this one alone.
    step: Option<Seconds>,
}

// === impl State ===

impl State {
    /// Reads it from the status of a schedule; none where no plan has begun.
    pub(crate) fn read(status: &Value) -> Option<Self> {
        let since = planned_from(status)?;
        let last = LastRun::read(status).filter(|last| last.slot > since);
        let is_lost = |last: &LastRun<'_>| matches!(last.outcome, Some("Skipped" | "TooLate"));
        let lost_race = last.as_ref().is_some_and(is_lost) && status["lastRun"]["again"] != true;
        let phase = seconds(status, "/phase");
        let last = last.map(|last| (last.slot, last.ended));
        Some(Self { since, phase, lost_race, last, failures: failure_count(status) })
    }

    /// Returns up to when no slot of a cron expression runs.
    fn used_on_clock(&self) -> Seconds {
        self.used().max(self.phase.unwrap_or(Seconds::MIN))
    }

    /// Returns up to when all slots are used.
    pub(crate) fn used(&self) -> Seconds {
        self.last.map_or(self.since, |(slot, _)| slot)
    }
}

// === impl Plan ===

impl Plan {
    /// Reads it from the spec of a schedule, and from what a triage has put over that (`status.adjust`); none where it
    /// is not understood, so that its slots are not judged.
    pub(crate) fn read(spec: &Value, adjusted: &Value) -> Option<Self> {
        let length = |field: &str| text(spec, field).and_then(whole_seconds);
        let every = match (length("/interval"), text(spec, "/cron")) {
            (Some(interval), None) => Every::Interval(interval),
            (None, Some(cron)) if matches!(text(spec, "/timeZone"), None | Some("UTC")) => {
                Every::Cron(Cron::read(cron)?)
            }
            _ => return None,
        };
        let (shortest, longest) = match every {
            Every::Interval(interval) => ((interval / 10).max(MINUTE).min(interval), interval.max(DAY)),
            Every::Cron(_) => (MINUTE, DAY),
        };
        let every = match (every, text(adjusted, "/interval").and_then(whole_seconds)) {
            (Every::Interval(_), Some(interval)) => Every::Interval(interval),
            (every, _) => every,
        };
        let hint = &spec["hint"];
        let hint = seconds(hint, "/expiresAt").map(|expires| Hint {
            at: seconds(hint, "/nextRunAt"),
            interval: text(hint, "/interval").and_then(whole_seconds),
            expires,
        });
        Some(Self {
            every,
            min_interval: length("/minInterval").unwrap_or(shortest),
            max_interval: length("/maxInterval").unwrap_or(longest),
            spread: length("/spread").unwrap_or(0),
            deadline: spec["startingDeadlineSeconds"].as_i64(),
            hint,
        })
    }

    /// Says why a slot is not the one that is due, whenever in a range of times that was decided.
    pub(crate) fn denies(&self, state: &State, slot: Seconds, now: &RangeInclusive<Seconds>) -> Option<String> {
        let dues = self.dues(state, now)?;
        if dues.iter().any(|due| due.allows(slot, now)) || self.is_slot_of_cron(state, slot, now) {
            return None;
        }
        let told: Vec<String> = dues.iter().map(|due| due.at.start().to_string()).collect();
        Some(format!("slot {slot} is not due: by the plan {} is the first that is", told.join(" or ")))
    }

    /// Returns the first slots that are to run. A hint that expires while it is decided may count or not. None where it
    /// is not known: the past does not say when the last child ended, or the cron expression has a spread.
    fn dues(&self, state: &State, now: &RangeInclusive<Seconds>) -> Option<Vec<Due>> {
        let (usual, step) = match &self.every {
            Every::Interval(interval) => (self.by_interval(*interval, state)?, Some(*interval)),
            Every::Cron(_) if self.spread > 0 => return None,
            Every::Cron(cron) => {
                let first = cron.first_after(state.used_on_clock())?;
                (first..=first, Some(0))
            }
        };
        let mut dues = Vec::new();
        let hinted = self.by_hint(state, *usual.end());
        let counts_always = hinted.is_some_and(|(_, until)| *now.end() < until);
        if let Some((at, _)) = hinted.filter(|(_, until)| *now.start() < *until) {
            // Of an interval several are one, the latest.
            let of_interval = self.hint.as_ref().is_some_and(|hint| hint.at.is_none());
            dues.push(Due { at: at..=at, step: of_interval.then_some((at - state.used()).max(1)) });
        }
        if let Some((last, ended)) = state.last.filter(|_| state.lost_race && !counts_always) {
            let again = ended?.max(last + 1);
            let late = self.deadline.map_or(Seconds::MAX, |deadline| last + deadline + 1);
            if *now.start() < late.min(*usual.end()) {
                dues.push(Due { at: again..=again, step: None });
            }
        }
        if !counts_always && step != Some(0) {
            dues.push(Due { at: usual, step });
        }
        Some(dues)
    }

    fn by_interval(&self, interval: Seconds, state: &State) -> Option<RangeInclusive<Seconds>> {
        let doubled = interval.saturating_mul(1 << state.failures.min(DOUBLINGS));
        let wait = doubled.min(self.max_interval.max(interval));
        Some(match state.last {
            // It rests after a failure.
            Some((slot, ended)) if state.failures > 0 => {
                let rested = ended?.max(slot) + wait;
                rested..=rested
            }
            None if state.phase.is_none() => state.since + interval..=state.since + interval + self.spread,
            _ => {
                let phase = state.phase.unwrap_or(state.used());
                let passed = (state.used() - phase).div_euclid(interval.max(1)).max(0);
                let next = phase + (passed + 1) * interval;
                next..=next
            }
        })
    }

    /// Returns the slot that the hint asks for, where it is not used yet: not before `minInterval`, and not after the
    /// later of `maxInterval` and what was due without it. And until when it counts: one that has come too late for its
    /// slot is spent, as one that has expired.
    fn by_hint(&self, state: &State, usual: Seconds) -> Option<(Seconds, Seconds)> {
        let hint = self.hint.as_ref()?;
        let from = state.used();
        let wished = match (hint.at, hint.interval) {
            (Some(at), _) if at <= from => return None,
            (Some(at), _) => at,
            (None, interval) => from + interval?,
        };
        let earliest = state.last.map_or(Seconds::MIN, |(slot, _)| slot + self.min_interval);
        let slot = wished.max(earliest).min((from + self.max_interval).max(usual));
        let ends = self.deadline.filter(|_| hint.at.is_some());
        let late = ends.map_or(Seconds::MAX, |deadline| slot.saturating_add(deadline + 1));
        Some((slot, hint.expires.min(late)))
    }

    /// Tells whether the cron expression has this slot, and it was the latest that had passed.
    fn is_slot_of_cron(&self, state: &State, slot: Seconds, now: &RangeInclusive<Seconds>) -> bool {
        let Every::Cron(cron) = &self.every else { return false };
        let usual = cron.first_after(state.used_on_clock()).unwrap_or(Seconds::MAX);
        let is_replaced = self.by_hint(state, usual).is_some_and(|(_, until)| *now.end() < until);
        let next = || cron.first_after(slot).is_none_or(|next| next > *now.start());
        !is_replaced && slot > state.used_on_clock() && slot <= *now.end() && cron.has(slot) && next()
    }
}

// === impl Due ===

impl Due {
    /// Tells whether a slot is the latest that had passed, at some time of a range.
    fn allows(&self, slot: Seconds, now: &RangeInclusive<Seconds>) -> bool {
        if slot > *now.end() {
            return false;
        }
        let Some(step) = self.step else { return self.at.contains(&slot) };
        let width = self.at.end() - self.at.start();
        let is_on_step = slot >= *self.at.start() && (slot - self.at.start()).rem_euclid(step.max(1)) <= width;
        is_on_step && slot + step > *now.start()
    }
}

fn whole_seconds(text: &str) -> Option<Seconds> {
    Seconds::try_from(duration::parse(text).ok()?.as_secs()).ok()
}

#[cfg(test)]
mod tests;
