//! Computes when a schedule runs next (section 12.2). The functions are pure and cannot fail.

use std::borrow::Cow;
use std::time::Duration;

use super::{Every, Hint, Missed, Outcome, Plan, Schedule, ScheduleStatus, Wish};
use crate::Time;
use crate::backoff::{Backoff, share_of};
use crate::moment::{after, before, just_after, round_up};
use crate::name::Uid;
use crate::words::words;

/// How many times the wait of an interval is doubled at most.
const MAX_EXPONENT: u32 = 5;

/// The highest number of missed slots of a cron expression that is counted.
pub const MOST_MISSED: u32 = 100;

/// Slots are whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// A future slot, with the reason for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The slot.
    pub at: Time,
    /// Why the slot is at this time.
    pub why: PlannedBy,
}

words! {
    /// Names what determines the time of the next run (section 12.2).
    pub enum PlannedBy {
        /// The interval.
        Interval,
        /// The cron expression.
        Cron,
        /// The interval, lengthened after failures.
        Backoff,
        /// A hint.
        Hint,
        /// A hint, delayed by `minInterval`.
        ClampedMin,
        /// A backoff or a hint, shortened by `maxInterval`.
        ClampedMax,
        /// The latest of several missed slots.
        CatchUp,
        /// A second try after the last run lost a race for the target. There is no third try.
        Again,
    }
}

/// The part of a schedule's past on which its next slot depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The start of the plan: no slot up to this time runs.
    pub since: Time,
    /// The time from which slots are counted, if that is neither the last slot nor the start of the plan
    /// (`status.phase`).
    pub phase: Option<Time>,
    /// The last slot of this plan that was used.
    pub last: Option<Last>,
    /// The number of failures in a row.
    pub failures: u32,
    /// By how much all slots are delayed.
    pub offset: Duration,
}

/// A slot that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// The slot.
    pub slot: Time,
    /// When the slot's child ended, if it has ended.
    pub ended_at: Option<Time>,
    /// Whether the slot's child lost a race for the target, and was not itself a second try.
    pub lost: bool,
}

/// The next slot of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRun {
    /// The slot: in the future, or due if it is not later than now.
    pub planned: Planned,
    /// The first slot that is due, which is earlier than `planned` if several slots were missed.
    pub due: Time,
    /// The slots that passed between the last used one and this one, if this one is due. A late slot counts as passed,
    /// too.
    pub missed: Option<Missed>,
    /// Set if the slot has been due for longer than `startingDeadlineSeconds` allows; contains the slot after it.
    pub late: Option<Option<Planned>>,
    /// Until when this is the next slot: then its hint expires, or it is too late to make up for the slot before.
    /// `None` if time alone does not change that.
    pub until: Option<Time>,
}

/// Plans the next run. `None` only for a cron expression without any further slot.
#[must_use]
pub fn plan_next_run(plan: &Plan, hint: Option<&Hint>, past: Past, now: Time) -> Option<NextRun> {
    let next = planned(plan, hint, past, now);
    again(plan, past, next.as_ref(), now).or(next)
}

/// Plans a second try for a slot whose child lost a race for the target. There is only one, within
/// `startingDeadlineSeconds` and before the next slot is due (section 12.2). A hint that counts takes precedence.
fn again(plan: &Plan, past: Past, next: Option<&NextRun>, now: Time) -> Option<NextRun> {
    let is_hinted = next.is_some_and(|next| next.until.is_some());
    let last = past.last.filter(|last| last.lost && !is_hinted)?;
    let at = last.ended_at.map_or(last.slot, round_up).max(after(last.slot, SECOND));
    let late = plan.deadline.map(|deadline| just_after(after(last.slot, deadline)));
    let until = late.into_iter().chain(next.map(|next| next.due)).min();
    let planned = Planned { at, why: PlannedBy::Again };
    let counts = until.is_none_or(|until| now.max(at) < until);
    counts.then_some(NextRun { planned, due: at, missed: None, late: None, until })
}

fn planned(plan: &Plan, hint: Option<&Hint>, past: Past, now: Time) -> Option<NextRun> {
    let usual = without_hint(plan, past);
    if let Some(next) = hint.and_then(|hint| hinted(plan, hint, past, usual, now)) {
        return Some(next);
    }
    let due = usual?;
    let ahead = NextRun { planned: due, due: due.at, missed: None, late: None, until: None };
    if now < due.at {
        return Some(ahead);
    }
    let (at, missed) = latest(plan, due, past, now);
    let why = if missed.is_some() { PlannedBy::CatchUp } else { due.why };
    let next = NextRun { planned: Planned { at, why }, missed, ..ahead };
    let is_late = plan.deadline.is_some_and(|deadline| after(at, deadline) < now);
    if !is_late {
        return Some(next);
    }
    let count = missed.map_or(0, |missed| missed.count).saturating_add(1).min(most_missed(plan));
    Some(NextRun { missed: Some(Missed { slot: at, count }), late: Some(following(plan, at, past)), ..next })
}

/// Plans the slot of a hint. `None` if the hint does not count. If it is too late for the slot, the plan without the
/// hint continues. A hint with an interval moves on to its next slot instead.
fn hinted(plan: &Plan, hint: &Hint, past: Past, usual: Option<Planned>, now: Time) -> Option<NextRun> {
    if ignored(hint, past, now).is_some() {
        return None;
    }
    let from = past.last.map_or(past.since, |last| last.slot);
    let wished = match hint.wish {
        Wish::At(at) => round_up(at),
        Wish::Interval(interval) => after(from, interval),
    };
    // The regular slot is always allowed, so that a hint can move a monthly schedule within its month.
    let latest = after(from, plan.max_interval).max(usual.map_or(Time::MIN_UTC, |usual| usual.at));
    let earliest = past.last.map(|last| after(last.slot, plan.min_interval)).filter(|earliest| wished < *earliest);
    let planned = match earliest {
        Some(earliest) => Planned { at: earliest.min(latest), why: PlannedBy::ClampedMin },
        None if wished > latest => Planned { at: latest, why: PlannedBy::ClampedMax },
        None => Planned { at: wished, why: PlannedBy::Hint },
    };
    let is_late = |at: Time| plan.deadline.is_some_and(|deadline| after(at, deadline) < now);
    let asked = NextRun { planned, due: planned.at, missed: None, late: None, until: Some(hint.expires_at) };
    match hint.wish {
        Wish::At(_) => {
            let late = plan.deadline.map(|deadline| just_after(after(planned.at, deadline)));
            let until = late.map_or(hint.expires_at, |late| late.min(hint.expires_at));
            (now < until).then_some(NextRun { until: Some(until), ..asked })
        }
        Wish::Interval(_) => {
            // Several missed slots cause a single run, as without a hint (section 12.4).
            let step = (planned.at - from).to_std().unwrap_or(SECOND).max(SECOND);
            let (at, missed) = latest_of(planned.at, step, now);
            let why = if missed.is_some() { PlannedBy::CatchUp } else { planned.why };
            Some(if at <= now && is_late(at) {
                let planned = Planned { at: after(at, step), ..planned };
                NextRun { planned, due: planned.at, ..asked }
            } else {
                // A slot that is held past its deadline is replaced by the next one, unless that is already due.
                let late = plan.deadline.filter(|deadline| *deadline < step).map(|it| just_after(after(at, it)));
                let until = late.map_or(hint.expires_at, |late| late.min(hint.expires_at));
                NextRun { planned: Planned { at, why }, missed, until: Some(until), ..asked }
            })
        }
    }
}

/// Returns why a hint does not count, if it does not count.
#[must_use]
pub fn ignored(hint: &Hint, past: Past, now: Time) -> Option<&'static str> {
    let is_used = |at: Time| past.last.is_some_and(|last| at <= last.slot) || at <= past.since;
    match hint.wish {
        _ if hint.expires_at <= now => Some("spec.hint: it has expired (expiresAt); set a later one, or remove it"),
        Wish::At(at) if is_used(round_up(at)) => {
            Some("spec.hint: nextRunAt is not after the last slot, or not after the plan began; it has no effect")
        }
        Wish::At(_) | Wish::Interval(_) => None,
    }
}

fn without_hint(plan: &Plan, past: Past) -> Option<Planned> {
    match &plan.every {
        Every::Interval(interval) => {
            let failures = past.failures;
            let longest = plan.max_interval.max(*interval);
            let usual = |from: Time| Planned { at: on_grid(past, *interval, from), why: PlannedBy::Interval };
            let Some(last) = past.last else { return Some(usual(past.since)) };
            if failures == 0 {
                return Some(usual(last.slot));
            }
            // The schedule waits after a failure, counted from the end of the failed child.
            let base = last.ended_at.map_or(last.slot, |ended_at| round_up(ended_at).max(last.slot));
            let wait = Backoff::doubling(*interval, longest, MAX_EXPONENT).after(failures.saturating_add(1));
            let unlimited = Backoff::doubling(*interval, Duration::MAX, MAX_EXPONENT).after(failures.saturating_add(1));
            let why = if wait < unlimited { PlannedBy::ClampedMax } else { PlannedBy::Backoff };
            Some(Planned { at: after(base, wait), why })
        }
        Every::Cron(_) => following(plan, past.last.map_or(past.since, |last| last.slot), past),
    }
}

/// Returns the time from which the slots of an interval are counted: each slot is a whole number of intervals later.
fn phase(past: Past) -> Time {
    past.phase.or(past.last.map(|last| last.slot)).unwrap_or_else(|| after(past.since, past.offset))
}

/// Returns the first slot of an interval after a time, but never one before the first slot of the plan.
fn on_grid(past: Past, interval: Duration, from: Time) -> Time {
    after(phase_kept(interval, past, from).max(phase(past)), interval)
}

/// Returns the time from which the slots of an interval are counted when the template changes. This is the last slot
/// that has passed, so that the next slot stays the same (section 12.2).
#[must_use]
pub fn phase_kept(interval: Duration, past: Past, now: Time) -> Time {
    let every = i64::try_from(interval.as_secs().max(1)).unwrap_or(i64::MAX);
    let since_slot = (now - phase(past)).num_seconds().rem_euclid(every);
    before(now, Duration::from_secs(since_slot.unsigned_abs()))
}

/// Returns the time from which slots are counted after a run of this slot; `None` if that is the slot itself. A run
/// that a hint requested does not move the other slots. `past` is the state before the run.
#[must_use]
pub fn phase_after(plan: &Plan, past: Past, slot: Time) -> Option<Time> {
    match &plan.every {
        Every::Interval(interval) => {
            let usual = without_hint(plan, past)?.at;
            let is_usual =
                slot >= usual && (slot - usual).num_seconds().unsigned_abs().is_multiple_of(interval.as_secs().max(1));
            (!is_usual).then(|| phase_kept(*interval, past, slot))
        }
        Every::Cron(_) => past.phase.filter(|phase| before(slot, past.offset) <= *phase),
    }
}

/// Returns the slot after another one.
fn following(plan: &Plan, slot: Time, past: Past) -> Option<Planned> {
    match &plan.every {
        Every::Interval(interval) => Some(Planned { at: after(slot, *interval), why: PlannedBy::Interval }),
        Every::Cron(cron) => {
            // A slot that ran before the spread was changed does not run again (section 12.2).
            let from = before(slot, past.offset).max(past.phase.unwrap_or(Time::MIN_UTC));
            let at = after(cron.first_after(from)?, past.offset);
            Some(Planned { at, why: PlannedBy::Cron })
        }
    }
}

/// Returns the latest slot that is not later than now, and the slots that were missed from the first due slot to it.
fn latest(plan: &Plan, due: Planned, past: Past, now: Time) -> (Time, Option<Missed>) {
    match &plan.every {
        Every::Interval(interval) => latest_of(due.at, *interval, now),
        Every::Cron(cron) => {
            // Returns the last slot that is later than `from` and not later than `until`, with the number of slots in
            // that range.
            let last_in = |from: Time, until: Time| {
                let (slot, count) = cron.last_in(before(from, past.offset), before(until, past.offset))?;
                Some((after(slot, past.offset), count))
            };
            let Some((at, _)) = last_in(due.at, now) else { return (due.at, None) };
            // The first due slot was missed, and so were those between it and the latest.
            let between = last_in(due.at, before(at, SECOND));
            let (slot, between) = between.unwrap_or((due.at, 0));
            (at, Some(Missed { slot, count: between.saturating_add(1).min(MOST_MISSED) }))
        }
    }
}

/// Does the same as [`latest`] for slots at a fixed interval.
fn latest_of(due: Time, interval: Duration, now: Time) -> (Time, Option<Missed>) {
    let every = interval.as_secs().max(1);
    let passed = (now - due).num_seconds().max(0).unsigned_abs() / every;
    let at = after(due, Duration::from_secs(passed * every)); // no later than now
    let count = u32::try_from(passed).unwrap_or(u32::MAX);
    (at, (count > 0).then(|| Missed { slot: before(at, interval), count }))
}

fn most_missed(plan: &Plan) -> u32 {
    match plan.every {
        Every::Interval(_) => u32::MAX,
        Every::Cron(_) => MOST_MISSED,
    }
}

/// Returns by how much all slots of a schedule are delayed: always the same share of the spread.
#[must_use]
pub fn offset(uid: &Uid, spread: Duration) -> Duration {
    Duration::from_secs(share_of(&uid.to_string(), 0, spread.as_secs()))
}

impl Schedule {
    /// Returns the part of the schedule's past on which its next slot depends. If no plan has begun, the plan begins
    /// now.
    #[must_use]
    pub fn past(&self, now: Time) -> Past {
        self.past_by(&self.status, now)
    }

    /// Returns the same as [`past`](Self::past), for a status that is not written yet.
    #[must_use]
    pub fn past_by(&self, status: &ScheduleStatus, now: Time) -> Past {
        let since = status.planned_from.unwrap_or(now);
        let last = status.last_run.as_ref().filter(|last| last.slot > since);
        let spread = self.plan.as_ref().map_or(Duration::ZERO, |plan| plan.spread);
        Past {
            since,
            phase: status.phase,
            last: last.map(|last| Last {
                slot: last.slot,
                ended_at: last.ended_at,
                lost: !last.again && matches!(last.outcome, Some(Outcome::Skipped | Outcome::TooLate)),
            }),
            failures: status.failure_count,
            offset: offset(&self.id.uid, spread),
        }
    }

    /// Returns the plan with a status that may not be written yet: values that a triage has adjusted replace those of
    /// the spec. `None` if the spec cannot be used.
    #[must_use]
    pub fn plan_by(&self, status: &ScheduleStatus) -> Option<Cow<'_, Plan>> {
        let plan = self.plan.as_ref().ok()?;
        let adjusted = status.adjust.as_ref().and_then(|adjust| adjust.interval);
        Some(match (adjusted, &plan.every) {
            (Some(interval), Every::Interval(_)) => {
                Cow::Owned(Plan { every: Every::Interval(interval), ..plan.clone() })
            }
            _ => Cow::Borrowed(plan),
        })
    }

    /// Plans the next run. `None` if the spec cannot be used, or no slot is left.
    #[must_use]
    pub fn next_run(&self, now: Time) -> Option<NextRun> {
        plan_next_run(self.plan_by(&self.status)?.as_ref(), self.hint.as_deref(), self.past(now), now)
    }
}

#[cfg(test)]
mod tests;
