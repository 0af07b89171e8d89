//! Cron expressions in UTC: five fields, read anew. An expression that it does not understand is none.

use wfe_core::Time;

use crate::moment::Seconds;

const MINUTE: Seconds = 60;
/// How far ahead a slot is looked for: a year and a day, in minutes. Sparser ones are not judged.
const AHEAD: Seconds = 367 * 24 * 60;
const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The minutes at which something runs.
#[derive(Debug)]
pub(crate) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both kinds of day are limited: then either matches.
    either_day: bool,
}

impl Cron {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let [minute, hour, day, month, weekday] = <[&str; 5]>::try_from(text.split(' ').collect::<Vec<_>>()).ok()?;
        let weekdays = set(weekday, 0, 7, &DAYS, 0)?;
        Some(Self {
            minutes: set(minute, 0, 59, &[], 0)?,
            hours: set(hour, 0, 23, &[], 0)?,
            days: set(day, 1, 31, &[], 0)?,
            months: set(month, 1, 12, &MONTHS, 1)?,
            // Both 0 and 7 are Sunday.
            weekdays: weekdays | weekdays >> 7,
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        })
    }

    /// Tells whether a time is a slot.
    pub(crate) fn has(&self, at: Seconds) -> bool {
        use chrono::{Datelike as _, Timelike as _};
        let Some(time) = Time::from_timestamp(at, 0) else { return false };
        let is_in = |set: u64, value: u32| set >> value & 1 == 1;
        let (day, weekday) =
            (is_in(self.days, time.day()), is_in(self.weekdays, time.weekday().num_days_from_sunday()));
        let is_day = if self.either_day { day || weekday } else { day && weekday };
        time.second() == 0
            && is_in(self.minutes, time.minute())
            && is_in(self.hours, time.hour())
            && is_in(self.months, time.month())
            && is_day
    }

    /// Returns the first slot after a time.
    pub(crate) fn first_after(&self, at: Seconds) -> Option<Seconds> {
        let first = at.div_euclid(MINUTE) + 1;
        (first..first + AHEAD).map(|minute| minute * MINUTE).find(|slot| self.has(*slot))
    }
}

/// Reads one field as a set of bits. `first` is the number of the first name.
fn set(field: &str, least: u32, most: u32, names: &[&str], first: u32) -> Option<u64> {
    let number = |text: &str| {
        let place = names.iter().position(|one| *one == text).and_then(|at| u32::try_from(at).ok());
        let number = place.map(|at| at + first).or_else(|| text.parse().ok())?;
        (least..=most).contains(&number).then_some(number)
    };
    let mut bits = 0;
    for part in field.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step = step.map_or(Some(1), |step| step.parse::<usize>().ok().filter(|step| *step > 0))?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(range)?, if part.contains('/') { most } else { number(range)? }),
        };
        (from..=to).step_by(step).for_each(|value| bits |= 1 << value);
    }
    Some(bits)
}
