//! Converts wall-clock minutes into times, in a zone whose clock is moved (section 12.3).
//!
//! ```text
//!  clock moved forward                      clock moved back
//!  01:59 │ 03:00      02:30 is in the gap   02:59 │ 02:00      02:30 is repeated
//!        └ the first moment after the gap         └ the second pass begins
//! ```

use chrono::{NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{GapInfo, Tz};

use crate::Time;

/// The highest number of missed slots that is counted. A higher exact number helps no reader.
const MOST: u32 = 100;

/// No slot lies before 1970.
const EARLIEST: Time = Time::UNIX_EPOCH;

/// The time after which there is no slot: 157,000 days after 1970, in November 2399. The calendar ends a year later.
/// Every search therefore ends, and no sum of a time and an offset overflows.
fn latest() -> Time {
    EARLIEST + TimeDelta::days(157_000)
}

/// The smallest and the greatest offset from UTC that a zone has within a day of a time.
struct Offsets {
    least: TimeDelta,
    greatest: TimeDelta,
}

/// The slots of one expression in one zone.
pub(super) struct Slots {
    clock: croner::Cron,
    zone: Tz,
    real_time: bool,
}

impl Slots {
    pub(super) fn new(clock: croner::Cron, zone: Tz, real_time: bool) -> Self {
        Self { clock, zone, real_time }
    }

    /// Returns the first slot after a time.
    ///
    /// Minutes are read in the order of the wall clock. Around a repeated hour, the clock shows some minutes twice, so
    /// this is not the order of time. The search therefore begins with the minute that the clock shows under the
    /// smallest offset. It ends at a minute that is not before the slot that was found, even under the greatest offset.
    pub(super) fn first_after(&self, time: Time) -> Option<Time> {
        let time = time.max(EARLIEST);
        if time >= latest() {
            return None;
        }
        let mut minute = time.naive_utc() + self.offsets(time).least;
        let mut first: Option<Time> = None;
        while let Ok(next) = self.clock.find_next_occurrence(&minute, false) {
            minute = next;
            first = self.moments(minute).filter(|moment| *moment > time).chain(first).min();
            if first.is_some_and(|first| minute >= first.naive_utc() + self.offsets(first).greatest) {
                break;
            }
        }
        first.filter(|first| *first <= latest())
    }

    /// Returns the last slot that is after `after` and not after `until`, and how many there are.
    ///
    /// Uses the same search as [`first_after`](Self::first_after), backwards.
    pub(super) fn last_in(&self, after: Time, until: Time) -> Option<(Time, u32)> {
        let (after, until) = (after.max(EARLIEST), until.min(latest()));
        if after >= until {
            return None;
        }
        let end = after.naive_utc() + self.offsets(after).least;
        // croner's search starts one second before the given minute.
        let mut minute = until.naive_utc() + self.offsets(until).greatest + TimeDelta::seconds(1);
        let (mut last, mut previous, mut count): (Option<Time>, Option<Time>, u32) = (None, None, 0);
        while let Ok(next) = self.clock.find_previous_occurrence(&minute, false) {
            minute = next;
            let settled = |last: Time| minute <= last.naive_utc() + self.offsets(last).least;
            if minute <= end || count >= MOST && last.is_some_and(settled) {
                break;
            }
            for moment in self.moments(minute).filter(|moment| after < *moment && *moment <= until) {
                // All minutes of a gap, and the first minute after it, are one slot.
                if previous.replace(moment) != Some(moment) {
                    count += 1;
                }
                last = last.max(Some(moment));
            }
        }
        last.map(|last| (last, count.min(MOST)))
    }

    /// Returns the slots of a matching minute. In real time, a gap has no slot and a repeated minute has two. By the
    /// wall clock, a gap has a slot at its end, and a repeated minute has one in its first pass.
    fn moments(&self, minute: NaiveDateTime) -> impl Iterator<Item = Time> {
        let moment = self.zone.from_local_datetime(&minute);
        let gap = || GapInfo::new(&minute, &self.zone).and_then(|gap| gap.end);
        let first = moment.earliest().or_else(|| if self.real_time { None } else { gap() });
        let second = if self.real_time { moment.latest().filter(|second| Some(*second) != first) } else { None };
        first.into_iter().chain(second).map(|moment| moment.to_utc())
    }

    /// Returns the offsets around a time. A day on each side is enough: no zone has moved its clock by more, or twice
    /// in a day.
    fn offsets(&self, time: Time) -> Offsets {
        let offset = |time: Time| {
            let offset = self.zone.offset_from_utc_datetime(&time.naive_utc()).fix();
            TimeDelta::seconds(offset.local_minus_utc().into())
        };
        let (before, now, later) = (offset(time - TimeDelta::days(1)), offset(time), offset(time + TimeDelta::days(1)));
        Offsets { least: before.min(now).min(later), greatest: before.max(now).max(later) }
    }
}
