//! When a schedule runs next (section 12.2): pure and total.

use std::borrow::Cow;
use std::time::Duration;

use super::{Every, Hint, Missed, Outcome, Plan, Schedule, ScheduleStatus, Wish};
use crate::Time;
use crate::backoff::{Backoff, share_of};
use crate::moment::{after, before, just_after, round_up};
use crate::name::Uid;
use crate::words::words;

/// How often the wait of an interval is doubled at most.
const MAX_EXPONENT: u32 = 5;

/// How many missed slots of a cron expression are counted.
pub const MOST_MISSED: u32 = 100;

/// Slots are whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// A slot that lies ahead, with the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The slot.
    pub at: Time,
    /// Why then.
    pub why: PlannedBy,
}

words! {
    /// Says what the time of the next run follows from (section 12.2).
    pub enum PlannedBy {
        /// The interval.
        Interval,
        /// The cron expression.
        Cron,
        /// The interval, made longer by failures.
        Backoff,
        /// A hint.
        Hint,
        /// A hint, put off by `minInterval`.
        ClampedMin,
        /// A backoff or a hint, cut by `maxInterval`.
        ClampedMax,
        /// Several slots were missed, and the latest of them runs.
        CatchUp,
        /// The last run lost a race for the target, and is made up for once.
        Again,
    }
}

/// The part of a schedule's past that its next slot depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The beginning of the plan: no slot up to this one runs.
    pub since: Time,
    /// What slots count from, if that is neither the last slot nor the beginning of the plan (`status.phase`).
    pub phase: Option<Time>,
    /// The last slot of this plan that was used.
    pub last: Option<Last>,
    /// How many failures there are in a row.
    pub failures: u32,
    /// By how much all slots are later.
    pub offset: Duration,
}

/// A slot that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// The slot.
    pub slot: Time,
    /// When its child ended, if it has.
    pub ended_at: Option<Time>,
    /// Whether its child lost a race for the target, and did not itself make up for another one.
    pub lost: bool,
}

/// The next slot of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRun {
    /// The slot: ahead, or due where it is not later than now.
    pub planned: Planned,
    /// The first slot that was due: an earlier one, if several were missed.
    pub due: Time,
    /// The slots that passed between the last used one and this one, if it is due. A late slot has passed, too.
    pub missed: Option<Missed>,
    /// Whether it is due for longer than `startingDeadlineSeconds` allows; then the slot after it.
    pub late: Option<Option<Planned>>,
    /// Until when this is the next slot: the hint for it expires, or it is too late to make up for the slot before.
    /// None if time alone does not end it.
    pub until: Option<Time>,
}

/// Plans the next run. None only for a cron expression without any further slot.
#[must_use]
pub fn plan_next_run(plan: &Plan, hint: Option<&Hint>, past: Past, now: Time) -> Option<NextRun> {
    let next = planned(plan, hint, past, now);
    again(plan, past, next.as_ref(), now).or(next)
}

/// Plans to make up for a slot whose child lost a race for the target: once, within `startingDeadlineSeconds` and
/// before the next slot is due (section 12.2). A hint that counts takes its place.
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

/// Plans the slot of a hint. None if the hint does not count. A hint that is too late for its slot is spent, so that
/// the plan without the hint continues; with an interval the slot after that one comes.
fn hinted(plan: &Plan, hint: &Hint, past: Past, usual: Option<Planned>, now: Time) -> Option<NextRun> {
    if ignored(hint, past, now).is_some() {
        return None;
    }
    let from = past.last.map_or(past.since, |last| last.slot);
    let wished = match hint.wish {
        Wish::At(at) => round_up(at),
        Wish::Interval(interval) => after(from, interval),
    };
    // The regular slot is always allowed, so that a monthly schedule can be moved within its month.
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
            // Several missed slots are one run, as without a hint (section 12.4).
            let step = (planned.at - from).to_std().unwrap_or(SECOND).max(SECOND);
            let (at, missed) = latest_of(planned.at, step, now);
            let why = if missed.is_some() { PlannedBy::CatchUp } else { planned.why };
            Some(if at <= now && is_late(at) {
                let planned = Planned { at: after(at, step), ..planned };
                NextRun { planned, due: planned.at, ..asked }
            } else {
                // A slot that is held past its deadline gives way to the next one, unless that has come by then.
                let late = plan.deadline.filter(|deadline| *deadline < step).map(|it| just_after(after(at, it)));
                let until = late.map_or(hint.expires_at, |late| late.min(hint.expires_at));
                NextRun { planned: Planned { at, why }, missed, until: Some(until), ..asked }
            })
        }
    }
}

/// Returns why a hint does not count, if it does not.
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
            // After a failure the schedule rests.
            let base = last.ended_at.map_or(last.slot, |ended_at| round_up(ended_at).max(last.slot));
            let wait = Backoff::doubling(*interval, longest, MAX_EXPONENT).after(failures.saturating_add(1));
            let unlimited = Backoff::doubling(*interval, Duration::MAX, MAX_EXPONENT).after(failures.saturating_add(1));
            let why = if wait < unlimited { PlannedBy::ClampedMax } else { PlannedBy::Backoff };
            Some(Planned { at: after(base, wait), why })
        }
        Every::Cron(_) => following(plan, past.last.map_or(past.since, |last| last.slot), past),
    }
}

/// Returns what the slots of an interval count from: they are whole intervals later.
fn phase(past: Past) -> Time {
    past.phase.or(past.last.map(|last| last.slot)).unwrap_or_else(|| after(past.since, past.offset))
}

/// Returns the first slot of an interval after a time, but none before the first of all.
fn on_grid(past: Past, interval: Duration, from: Time) -> Time {
    after(phase_kept(interval, past, from).max(phase(past)), interval)
}

/// Returns what the slots of an interval count from when the plan continues with another template at a time: the last
/// slot that has passed, so that the next slot stays the same (section 12.2).
#[must_use]
pub fn phase_kept(interval: Duration, past: Past, now: Time) -> Time {
    let every = i64::try_from(interval.as_secs().max(1)).unwrap_or(i64::MAX);
    let since_slot = (now - phase(past)).num_seconds().rem_euclid(every);
    before(now, Duration::from_secs(since_slot.unsigned_abs()))
}

/// Returns what slots count from after a run of this slot, if that is not the slot itself: a run by a hint does not
/// move the others. `past` is the state before.
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

/// Returns the slot that comes after another.
fn following(plan: &Plan, slot: Time, past: Past) -> Option<Planned> {
    match &plan.every {
        Every::Interval(interval) => Some(Planned { at: after(slot, *interval), why: PlannedBy::Interval }),
        Every::Cron(cron) => {
            // No slot runs again that ran before the spread was changed (section 12.2).
            let from = before(slot, past.offset).max(past.phase.unwrap_or(Time::MIN_UTC));
            let at = after(cron.first_after(from)?, past.offset);
            Some(Planned { at, why: PlannedBy::Cron })
        }
    }
}

/// Returns the latest slot that is not later than now, and those that passed before it since the first due slot.
fn latest(plan: &Plan, due: Planned, past: Past, now: Time) -> (Time, Option<Missed>) {
    match &plan.every {
        Every::Interval(interval) => latest_of(due.at, *interval, now),
        Every::Cron(cron) => {
            // The last slot that is later than `from` and not later than `until`, with how many there are.
            let last_in = |from: Time, until: Time| {
                let (slot, count) = cron.last_in(before(from, past.offset), before(until, past.offset))?;
                Some((after(slot, past.offset), count))
            };
            let Some((at, _)) = last_in(due.at, now) else { return (due.at, None) };
            // The one that was due has passed, and those between it and the latest.
            let between = last_in(due.at, before(at, SECOND));
            let (slot, between) = between.unwrap_or((due.at, 0));
            (at, Some(Missed { slot, count: between.saturating_add(1).min(MOST_MISSED) }))
        }
    }
}

/// The same for slots at a fixed interval.
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

/// Returns by how much all slots of a schedule are later: always the same share of the spread.
#[must_use]
pub fn offset(uid: &Uid, spread: Duration) -> Duration {
    Duration::from_secs(share_of(&uid.to_string(), 0, spread.as_secs()))
}

impl Schedule {
    /// Returns the part of its past that its next slot depends on; the plan begins now if none has begun.
    #[must_use]
    pub fn past(&self, now: Time) -> Past {
        self.past_by(&self.status, now)
    }

    /// The same with a status that is not written yet.
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

    /// Returns its plan with a status that may not be written yet: values that a triage has adjusted replace those of
    /// the spec. None if its spec cannot be used.
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

    /// Plans its next run. None if its spec cannot be used, or it has no slot any more.
    #[must_use]
    pub fn next_run(&self, now: Time) -> Option<NextRun> {
        plan_next_run(self.plan_by(&self.status)?.as_ref(), self.hint.as_deref(), self.past(now), now)
    }
}

#[cfg(test)]
mod tests;
