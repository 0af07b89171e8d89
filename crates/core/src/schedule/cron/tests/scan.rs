//! Compares every slot of several years with a second implementation, which tries each minute.

use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;

use super::super::*;
use super::utc;

/// The scanned expressions: each shape of section 12.3, and each way to select days. Each has few slots a day, which
/// keeps the scan of years short.
const EXPRESSIONS: [&str; 12] = [
    "30 2 * * *",
    "*/15 2 * * *",
    "0 * * * *",
    "0 2,3 * * *",
    "15,45 */3 * * *",
    "59 0-23/5 * * *",
    "0 0 * * *",
    "10-50/20 23,0,1 1-7 * SUN",
    "0 */24 13 * 5",
    "45 1-3 * 3,4,9,10 0",
    "0 12 29 2 *",
    "1 1 31 */2 *",
];

/// Zones that move their clocks at odd hours or by odd amounts, or have changed their rules.
const ZONES: [&str; 30] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Europe/Volgograd",
    "America/New_York",
    "America/St_Johns",
    "America/Havana",
    "America/Santiago",
    "America/Asuncion",
    "America/Sao_Paulo",
    "America/Caracas",
    "America/Scoresbysund",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Africa/Juba",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Australia/Adelaide",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Norfolk",
    "Pacific/Kiritimati",
    "Antarctica/Troll",
];

/// A field as the set of its values.
struct Values(Vec<u32>);

impl Values {
    fn new(text: &str, from: u32, to: u32) -> Self {
        let name = |name: &str| ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"].iter().position(|day| *day == name);
        let number = |text: &str| name(text).map_or_else(|| text.parse().unwrap(), |day| u32::try_from(day).unwrap());
        Self(
            text.split(',')
                .flat_map(|item| {
                    let (range, step) = item.split_once('/').unwrap_or((item, "1"));
                    let range = match range.split_once('-') {
                        _ if range == "*" => from..=to,
                        Some((from, to)) => number(from)..=number(to),
                        None => number(range)..=number(range),
                    };
                    range.step_by(step.parse().unwrap())
                })
                .collect(),
        )
    }

    fn has(&self, value: u32) -> bool {
        self.0.contains(&value)
    }
}

/// An expression, parsed without croner.
struct Reading {
    minutes: Values,
    hours: Values,
    days: Option<Values>,
    months: Values,
    weekdays: Option<Values>,
    real_time: bool,
}

impl Reading {
    fn new(expression: &str) -> Self {
        let [minutes, hours, days, months, weekdays]: [&str; 5] =
            expression.split(' ').collect::<Vec<_>>().try_into().unwrap();
        Self {
            minutes: Values::new(minutes, 0, 59),
            hours: Values::new(hours, 0, 23),
            days: (days != "*").then(|| Values::new(days, 1, 31)),
            months: Values::new(months, 1, 12),
            weekdays: (weekdays != "*").then(|| Values::new(weekdays, 0, 6)),
            real_time: hours.starts_with('*'),
        }
    }

    fn matches(&self, minute: NaiveDateTime) -> bool {
        let day = |days: &Values| days.has(minute.day());
        let weekday = |days: &Values| days.has(minute.weekday().num_days_from_sunday());
        self.minutes.has(minute.minute())
            && self.hours.has(minute.hour())
            && self.months.has(minute.month())
            && match (&self.days, &self.weekdays) {
                (None, None) => true,
                (Some(days), None) => day(days),
                (None, Some(days)) => weekday(days),
                (Some(days), Some(weekdays)) => day(days) || weekday(weekdays),
            }
    }
}

/// Reads the clock at every minute from one time to another. By the wall clock, a matching minute has a slot when the
/// clock first shows it or skips it.
fn scan(zone: Tz, expressions: &[&str], from: Time, to: Time) -> usize {
    let shown = |time: Time| {
        time.naive_utc()
            + TimeDelta::seconds(zone.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc().into())
    };
    let readings: Vec<Reading> = expressions.iter().map(|expression| Reading::new(expression)).collect();
    let crons: Vec<Cron> = expressions.iter().map(|expression| Cron::parse(expression, zone.name()).unwrap()).collect();
    let slots: Vec<_> = crons.iter().map(|cron| cron.slots().unwrap()).collect();
    let mut next: Vec<Option<Time>> = slots.iter().map(|slots| slots.first_after(from)).collect();
    let mut seen: Vec<Vec<Time>> = vec![vec![]; expressions.len()];
    let mut latest_shown = shown(from);
    let mut time = from;
    while time < to {
        time += TimeDelta::minutes(1);
        let clock = shown(time);
        let new = (clock - latest_shown).num_minutes();
        latest_shown = latest_shown.max(clock);
        for (index, reading) in readings.iter().enumerate() {
            let expected = if reading.real_time {
                reading.matches(clock)
            } else {
                (0..new).any(|back| reading.matches(clock - TimeDelta::minutes(back)))
            };
            let expression = expressions[index];
            assert_eq!(expected, next[index] == Some(time), "{expression} in {zone} at {time}: {:?}", next[index]);
            if expected {
                next[index] = slots[index].first_after(time);
                seen[index].push(time);
                check_last(&slots[index], from, &seen[index], expression);
            }
        }
    }
    seen.iter().map(Vec::len).sum()
}

/// Checks the last slot of windows that end at the newest slot. It does so only for some slots, because each check goes
/// far back.
fn check_last(slots: &super::super::slots::Slots, from: Time, seen: &[Time], expression: &str) {
    let newest = seen.len() - 1;
    for back in [0, 1, 7, 99, 150] {
        if newest.is_multiple_of(13) && back <= newest {
            let after = if back == newest { from } else { seen[newest - back - 1] };
            let count = u32::try_from(back + 1).unwrap().min(100);
            assert_eq!(slots.last_in(after, seen[newest]), Some((seen[newest], count)), "{expression} after {after}");
        }
    }
}

/// Scans every day on which a zone moves its clock, and the days around it.
fn scan_moves(zone: &str, from: &str, to: &str) -> usize {
    let zone: Tz = zone.parse().unwrap();
    let offset = |time: &DateTime<_>| zone.offset_from_utc_datetime(&time.naive_utc()).fix();
    let mut moves = 0;
    let mut day = utc(from);
    while day < utc(to) {
        let next = day + TimeDelta::days(1);
        if offset(&day) != offset(&next) {
            let expressions: Vec<&str> = EXPRESSIONS.into_iter().chain(["* * * * *", "*/7 0-23 * * *"]).collect();
            scan(zone, &expressions, day - TimeDelta::days(1), next + TimeDelta::days(1));
            moves += 1;
        }
        day = next;
    }
    moves
}

#[test]
fn slots_are_those_of_a_scan_where_clocks_move() {
    for (zone, from, to, moves) in [
        ("Europe/Berlin", "2026-01-01 00:00", "2027-01-01 00:00", 2),
        ("Australia/Lord_Howe", "2026-01-01 00:00", "2027-01-01 00:00", 2),
        ("America/Santiago", "2026-01-01 00:00", "2027-01-01 00:00", 2),
        ("Antarctica/Troll", "2026-01-01 00:00", "2027-01-01 00:00", 2),
        ("Africa/Casablanca", "2026-01-01 00:00", "2027-01-01 00:00", 2),
        ("Asia/Pyongyang", "2015-01-01 00:00", "2019-01-01 00:00", 2),
        ("Pacific/Apia", "2011-12-01 00:00", "2012-01-10 00:00", 1),
        ("Pacific/Kiritimati", "1994-12-01 00:00", "1995-02-01 00:00", 1),
        ("Pacific/Kwajalein", "1993-08-01 00:00", "1993-09-01 00:00", 1),
    ] {
        assert_eq!(scan_moves(zone, from, to), moves, "{zone}");
    }
}

#[test]
fn slots_are_those_of_a_scan_of_30_zones_over_10_years() {
    let all = std::env::var_os("WFE_TEST_ALL").is_some_and(|value| value == "1");
    let (zones, to) = if all { (&ZONES[..], "2029-12-31 00:00") } else { (&ZONES[8..10], "2020-03-01 00:00") };
    let scan_all = |zones: &[&str]| {
        for zone in zones {
            let slots = scan(zone.parse().unwrap(), &EXPRESSIONS, utc("2020-01-01 00:00"), utc(to));
            assert!(slots > 1_000, "{zone}: {slots}");
        }
    };
    // The whole scan takes minutes and outlasts the other tests, so two threads share it.
    let (half, rest) = zones.split_at(zones.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| scan_all(half));
        scan_all(rest);
    });
}
