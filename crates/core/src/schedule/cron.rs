//! Cron: the slots of an expression in a time zone (section 12.3).
//!
//! croner parses the expression and iterates over the minutes of the wall clock. [`slots`] converts these minutes into
//! times, with the compiled-in zone database. croner could calculate in zones itself. But it gives up on a gap of more
//! than two hours, and treats an hour field such as `2,14` as a wildcard.

mod slots;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use chrono::{NaiveDate, NaiveTime};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};

use self::slots::Slots;
use crate::Time;

/// The longest expression that the CRD accepts. Typical expressions need less than 40 characters.
const LONGEST: usize = 128;

/// The years of the calendar. croner stores each year of an expression separately, and its own calendar has 5,000. In
/// 1970 by UTC, the clocks of some zones still show 1969.
const YEARS: RangeInclusive<i32> = 1969..=2400;
/// The first of the last eight years of the calendar. A search that starts here takes at most eight years of the
/// calendar. Every expression with slots has a slot in any eight years, even 29 February around a year such as 2100.
const EIGHT_YEARS_BEFORE_THE_END: i32 = *YEARS.end() - 8;

/// Why an expression and a zone have no slots. The text addresses the person who wrote them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// The expression is longer than the CRD allows.
    #[error("spec.cron is longer than {LONGEST} characters: shorten it, or make several schedules")]
    Long,
    /// The expression does not have five fields.
    #[error(
        "spec.cron is not five fields with one blank between them: write minute, hour, day of month, month and day of \
         week, as in \"30 2 * * MON\"; seconds, years and names such as @daily are not supported"
    )]
    Shape,
    /// A field is not one that croner and section 12.1 accept.
    #[error(
        "spec.cron has {text:?} for the {field}: use numbers {range}, \"*\", lists such as \"1,2\", ascending ranges \
         such as \"1-5\", and steps such as \"*/2\" or \"1-5/2\""
    )]
    Field {
        /// The name of the field.
        field: &'static str,
        /// The field as written.
        text: String,
        /// The values that the field may have.
        range: &'static str,
    },
    /// A step follows a single value, which other tools interpret in two ways.
    #[error("spec.cron has {text:?} for the {field}: a step follows \"*\" or a range, so write {instead:?}")]
    Step {
        /// The name of the field.
        field: &'static str,
        /// The item of the field as written.
        text: String,
        /// The spelling with a range.
        instead: String,
    },
    /// No day of the calendar matches.
    #[error(
        "spec.cron {0:?} has no slot within 8 years: no such day of the month exists, so change the day or the month"
    )]
    Never(String),
    /// The zone database does not have the zone.
    #[error(
        "spec.timeZone {0:?} is not in the operator's time zone database ({version}): use a name such as \
         \"Europe/Berlin\" or \"UTC\", or update the operator if the zone is new",
        version = chrono_tz::IANA_TZDB_VERSION
    )]
    Zone(String),
}

/// The slots of a cron expression in a zone (section 12.3).
///
/// croner's form of an expression takes 7 kB, most of which is one byte for each of 5,000 years. It is created again
/// for each query, which takes some microseconds, as only the years of [`YEARS`] are set. Thousands of schedules
/// therefore need little memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    expression: Box<str>,
    zone: Tz,
}

impl Cron {
    /// Parses an expression of section 12.1 and an IANA zone name.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, CronError> {
        if expression.chars().count() > LONGEST {
            return Err(CronError::Long);
        }
        let texts: Vec<&str> = expression.split(' ').collect();
        let texts: [&str; 5] = texts.try_into().map_err(|_| CronError::Shape)?;
        if texts.iter().any(|text| text.is_empty() || text.starts_with('@')) {
            return Err(CronError::Shape);
        }
        let parsed = clock(expression);
        for (index, (field, text)) in FIELDS.iter().zip(texts).enumerate() {
            if let Some((text, instead)) = field.step_of_a_value(text) {
                return Err(CronError::Step { field: field.name, text, instead });
            }
            if !field.allows(text) || parsed.is_none() && !is_field(index, text) {
                return Err(CronError::Field { field: field.name, text: text.into(), range: field.range });
            }
        }
        let clock = parsed.ok_or(CronError::Shape)?;
        let start =
            NaiveDate::from_ymd_opt(EIGHT_YEARS_BEFORE_THE_END, 1, 1).unwrap_or_default().and_time(NaiveTime::MIN);
        if clock.find_next_occurrence(&start, true).is_err() {
            return Err(CronError::Never(expression.into()));
        }
        // The CRD allows a name of 64 characters. The error message repeats no more than that.
        let zone = zone.parse().map_err(|_| CronError::Zone(zone.chars().take(64).collect()))?;
        Ok(Self { expression: expression.into(), zone })
    }

    /// Returns the expression as written.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the zone.
    #[must_use]
    pub fn zone_name(&self) -> &'static str {
        self.zone.name()
    }

    /// Formats a time as the clocks of the zone show it, such as `2026-03-29 03:00:00 CEST`.
    #[must_use]
    pub fn in_zone(&self, time: Time) -> String {
        time.with_timezone(&self.zone).format("%Y-%m-%d %H:%M:%S %Z").to_string()
    }

    /// Returns the first slot after a time. `None` from November 2399 on, where the calculation ends.
    #[must_use]
    pub fn first_after(&self, time: Time) -> Option<Time> {
        self.slots()?.first_after(time)
    }

    /// Returns the last slot that is after `after` and not after `until`, and the number of slots in that range, up to
    /// 100.
    #[must_use]
    pub fn last_in(&self, after: Time, until: Time) -> Option<(Time, u32)> {
        self.slots()?.last_in(after, until)
    }

    /// Returns the slots of the expression. Never `None`, because `parse` has parsed the same expression.
    fn slots(&self) -> Option<Slots> {
        let clock = clock(&self.expression)?;
        let real_time = self.expression.split(' ').nth(1)?.starts_with('*');
        Some(Slots::new(clock, self.zone, real_time))
    }
}

fn clock(expression: &str) -> Option<croner::Cron> {
    let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Required).build();
    parser.parse(&format!("0 {expression} {}-{}", YEARS.start(), YEARS.end())).ok()
}

/// Returns whether croner takes a field. croner's errors do not name the field, so it is parsed alone.
fn is_field(index: usize, text: &str) -> bool {
    let mut alone = ["*"; 5];
    alone[index] = text;
    clock(&alone.join(" ")).is_some()
}

/// What section 12.1 allows in a field.
struct Field {
    name: &'static str,
    range: &'static str,
    /// The highest value of the field.
    last: &'static str,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", range: "from 0 to 59", last: "59", names: &[] },
    Field { name: "hour", range: "from 0 to 23", last: "23", names: &[] },
    Field { name: "day of month", range: "from 1 to 31", last: "31", names: &[] },
    Field {
        name: "month",
        range: "from 1 to 12 or names from JAN to DEC",
        last: "12",
        names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    },
    Field {
        name: "day of week",
        range: "from 0 (Sunday) to 7 (Sunday) or names from SUN to SAT",
        last: "6",
        names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    },
];

impl Field {
    /// Finds a step that follows a single value, and returns the item with its spelling as a range.
    fn step_of_a_value(&self, text: &str) -> Option<(String, String)> {
        let number = |text: &str| !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.split(',').find_map(|item| {
            let (value, step) = item.split_once('/')?;
            let is_value = number(value) || self.names.contains(&value);
            (is_value && number(step)).then(|| (item.to_owned(), format!("{value}-{}/{step}", self.last)))
        })
    }

    /// Returns whether section 12.1 allows a text in the field. The crate croner accepts more: `L`, `W`, `#`, `?` and
    /// `+`, empty list items, names of another field, lower case, and names without a separator (`JANFEB` would be
    /// December).
    fn allows(&self, text: &str) -> bool {
        let number = |text: &str| matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = |text: &str| number(text) || self.names.contains(&text);
        text.split(',').all(|item| {
            let (range, step) = item.split_once('/').unwrap_or((item, "1"));
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            number(step) && (range == "*" || value(from) && value(to))
        })
    }
}
