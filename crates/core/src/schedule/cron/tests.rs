//! The tables of section 12.3, odd zones and dates, and every refusal.

mod properties;
mod scan;

use std::mem::size_of;

use super::*;

/// Reads `2026-03-29 01:00` as UTC.
fn utc(text: &str) -> Time {
    format!("{text}:00Z").parse().unwrap()
}

fn cron(expression: &str, zone: &str) -> Cron {
    Cron::parse(expression, zone).unwrap()
}

/// Returns all slots from one time up to, but not including, another.
fn slots(cron: &Cron, from: &str, to: &str) -> Vec<String> {
    let before = utc(from) - chrono::TimeDelta::seconds(1);
    std::iter::successors(cron.first_after(before), |slot| cron.first_after(*slot))
        .take_while(|slot| *slot < utc(to))
        .map(|slot| slot.format("%F %R").to_string())
        .collect()
}

/// 29 March 2026 in Berlin: 02:00 to 03:00 is missing.
const FORWARD: (&str, &str) = ("2026-03-28 23:00", "2026-03-29 22:00");
/// 25 October 2026 in Berlin: 02:00 to 03:00 happens twice.
const BACK: (&str, &str) = ("2026-10-24 22:00", "2026-10-25 23:00");

#[test]
fn berlin_moves_its_clock() {
    for (expression, (from, to), expected) in [
        ("30 2 * * *", FORWARD, &["2026-03-29 01:00"][..]),
        ("30 2 * * *", BACK, &["2026-10-25 00:30"]),
        ("*/15 2 * * *", FORWARD, &["2026-03-29 01:00"]),
        ("*/15 2 * * *", BACK, &["2026-10-25 00:00", "2026-10-25 00:15", "2026-10-25 00:30", "2026-10-25 00:45"]),
        ("0 2,3 * * *", FORWARD, &["2026-03-29 01:00"]),
        ("0 2,3 * * *", BACK, &["2026-10-25 00:00", "2026-10-25 02:00"]),
        // The minutes before and after the gap are not moved.
        ("59 1 * * *", FORWARD, &["2026-03-29 00:59"]),
        ("30 2,3 * * *", FORWARD, &["2026-03-29 01:00", "2026-03-29 01:30"]),
        ("59 1 * * *", BACK, &["2026-10-24 23:59"]),
        // A list follows the wall clock: only a wildcard means real time.
        ("30 2,14 * * *", FORWARD, &["2026-03-29 01:00", "2026-03-29 12:30"]),
        ("30 2,14 * * *", BACK, &["2026-10-25 00:30", "2026-10-25 13:30"]),
        // A step after a wildcard follows real time.
        ("30 */14 * * *", FORWARD, &["2026-03-28 23:30", "2026-03-29 12:30"]),
        ("30 */2 * * *", ("2026-03-29 00:00", "2026-03-29 03:00"), &["2026-03-29 02:30"]),
        (
            "30 */2 * * *",
            ("2026-10-25 00:00", "2026-10-25 04:00"),
            &["2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 03:30"],
        ),
        (
            "30 0-23 * * *",
            ("2026-03-29 00:00", "2026-03-29 02:00"),
            &["2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30"],
        ),
        ("30 0-23 * * *", ("2026-10-25 00:00", "2026-10-25 03:00"), &["2026-10-25 00:30", "2026-10-25 02:30"]),
    ] {
        assert_eq!(slots(&cron(expression, "Europe/Berlin"), from, to), expected, "{expression} from {from}");
    }
    for (expression, (from, to), count) in [
        ("0 * * * *", FORWARD, 23),
        ("0 * * * *", BACK, 25),
        ("* * * * *", FORWARD, 23 * 60),
        ("* * * * *", BACK, 25 * 60),
        // All minutes of the gap and 03:00 are one slot. In a repeated hour, only the first pass counts.
        ("* 0-23 * * *", FORWARD, 23 * 60),
        ("* 0-23 * * *", BACK, 24 * 60),
    ] {
        assert_eq!(slots(&cron(expression, "Europe/Berlin"), from, to).len(), count, "{expression} from {from}");
    }
}

#[test]
fn odd_zones_move_their_clocks() {
    for (expression, zone, from, to, expected) in [
        // The clock moves by 30 minutes: 02:00 to 02:30 is missing in October, 01:30 to 02:00 is repeated in April.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03 14:00", "2026-10-04 13:00", &["2026-10-03 15:30"][..]),
        (
            "*/15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03 14:00",
            "2026-10-04 13:00",
            &["2026-10-03 15:30", "2026-10-03 15:45"],
        ),
        (
            "15 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03 14:30",
            "2026-10-03 17:00",
            &["2026-10-03 14:45", "2026-10-03 16:15"],
        ),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04 13:00", "2026-04-05 13:00", &["2026-04-04 14:45"]),
        (
            "45 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04 14:30",
            "2026-04-04 16:30",
            &["2026-04-04 14:45", "2026-04-04 15:15", "2026-04-04 16:15"],
        ),
        // The clock moves by two hours.
        ("30 2 * * *", "Antarctica/Troll", "2026-03-29 00:00", "2026-03-30 00:00", &["2026-03-29 01:00"]),
        // The clock moves at midnight: the day begins at 01:00, and in April its last hour is repeated.
        ("0 0 * * *", "America/Santiago", "2026-09-05 12:00", "2026-09-06 12:00", &["2026-09-06 04:00"]),
        ("30 23 * * *", "America/Santiago", "2026-04-04 12:00", "2026-04-05 12:00", &["2026-04-05 02:30"]),
        (
            "0 */24 * * *",
            "America/Santiago",
            "2026-09-05 00:00",
            "2026-09-07 12:00",
            &["2026-09-05 04:00", "2026-09-07 03:00"],
        ),
        // The clock moves by a day: Samoa had no 30 December 2011, and Kiritimati no 31 December 1994.
        (
            "0 9 30 12 *",
            "Pacific/Apia",
            "2011-12-01 00:00",
            "2012-12-31 00:00",
            &["2011-12-30 10:00", "2012-12-29 19:00"],
        ),
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29 00:00",
            "2012-01-01 00:00",
            &["2011-12-29 19:00", "2011-12-30 10:00", "2011-12-30 19:00", "2011-12-31 19:00"],
        ),
        (
            "0 */9 30 12 *",
            "Pacific/Apia",
            "2011-12-01 00:00",
            "2012-12-29 20:00",
            &["2012-12-29 10:00", "2012-12-29 19:00"],
        ),
        (
            "0 9 31 12 *",
            "Pacific/Kiritimati",
            "1994-12-01 00:00",
            "1996-01-01 00:00",
            &["1994-12-31 10:00", "1995-12-30 19:00"],
        ),
        // The clock never moves, and the offset is no whole number of hours.
        ("0 0 * * *", "Pacific/Kiritimati", "2026-01-01 00:00", "2026-01-02 00:00", &["2026-01-01 10:00"]),
        ("0 0 * * *", "Asia/Kathmandu", "2026-01-01 00:00", "2026-01-02 00:00", &["2026-01-01 18:15"]),
        ("0 12 * * *", "Pacific/Chatham", "2026-01-01 00:00", "2026-01-02 00:00", &["2026-01-01 22:15"]),
        ("0 12 * * *", "Etc/GMT+12", "2026-01-01 00:00", "2026-01-02 00:00", &["2026-01-01 00:00"]),
    ] {
        assert_eq!(slots(&cron(expression, zone), from, to), expected, "{expression} in {zone} from {from}");
    }
}

#[test]
fn days_are_those_of_the_calendar() {
    for (expression, from, to, expected) in [
        ("0 0 29 2 *", "2025-01-01 00:00", "2033-01-01 00:00", &["2028-02-29 00:00", "2032-02-29 00:00"][..]),
        ("0 0 29 FEB *", "2096-01-01 00:00", "2105-01-01 00:00", &["2096-02-29 00:00", "2104-02-29 00:00"]),
        (
            "0 0 31 * *",
            "2026-01-31 00:00",
            "2026-06-01 00:00",
            &["2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00"],
        ),
        // If both the day of the month and the day of the week are limited, either matches. A wildcard does not limit.
        (
            "0 0 13 * FRI",
            "2026-11-01 00:00",
            "2026-11-21 00:00",
            &["2026-11-06 00:00", "2026-11-13 00:00", "2026-11-20 00:00"],
        ),
        (
            "0 0 10 * FRI",
            "2026-11-05 00:00",
            "2026-11-14 00:00",
            &["2026-11-06 00:00", "2026-11-10 00:00", "2026-11-13 00:00"],
        ),
        ("0 0 * * FRI", "2026-11-05 00:00", "2026-11-14 00:00", &["2026-11-06 00:00", "2026-11-13 00:00"]),
        ("0 0 31 2 MON", "2026-02-01 00:00", "2026-02-10 00:00", &["2026-02-02 00:00", "2026-02-09 00:00"]),
        // Sunday is 0 and 7, and may end a range of names.
        ("0 0 * * 0", "2026-11-01 00:00", "2026-11-08 00:00", &["2026-11-01 00:00"]),
        ("0 0 * * 7", "2026-11-01 00:00", "2026-11-08 00:00", &["2026-11-01 00:00"]),
        (
            "0 0 * * SAT-SUN",
            "2026-11-01 00:00",
            "2026-11-09 00:00",
            &["2026-11-01 00:00", "2026-11-07 00:00", "2026-11-08 00:00"],
        ),
        (
            "0 0 1 JAN-MAR/2,DEC *",
            "2026-01-01 00:00",
            "2026-12-31 00:00",
            &["2026-01-01 00:00", "2026-03-01 00:00", "2026-12-01 00:00"],
        ),
        (
            "1-59/29 12 1 1 *",
            "2026-01-01 00:00",
            "2026-01-02 00:00",
            &["2026-01-01 12:01", "2026-01-01 12:30", "2026-01-01 12:59"],
        ),
    ] {
        assert_eq!(slots(&cron(expression, "UTC"), from, to), expected, "{expression} from {from}");
    }
}

#[test]
fn the_last_slot_and_their_number() {
    for (expression, zone, after, until, expected) in [
        ("*/5 * * * *", "UTC", "2026-01-01 12:00", "2026-01-01 12:07", Some(("2026-01-01 12:05", 1))),
        ("*/5 * * * *", "UTC", "2026-01-01 12:00", "2026-01-01 12:10", Some(("2026-01-01 12:10", 2))),
        ("*/5 * * * *", "UTC", "2026-01-01 12:05", "2026-01-01 12:09", None),
        ("*/5 * * * *", "UTC", "2026-01-01 12:05", "2026-01-01 12:05", None),
        ("*/5 * * * *", "UTC", "2026-01-01 12:10", "2026-01-01 12:00", None),
        ("* * * * *", "UTC", "2026-01-01 12:00", "2026-01-01 13:40", Some(("2026-01-01 13:40", 100))),
        ("* * * * *", "UTC", "2026-01-01 12:00", "2026-01-31 12:00", Some(("2026-01-31 12:00", 100))),
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", "2028-02-28 23:59", None),
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", "2036-02-29 00:00", Some(("2036-02-29 00:00", 3))),
        ("0 0 29 2 *", "UTC", "1970-01-01 00:00", "2399-01-01 00:00", Some(("2396-02-29 00:00", 100))),
        // Both passes of a repeated hour count, in the order of time, even beyond the counting limit.
        ("15,45 * * * *", "Europe/Berlin", "2026-10-25 00:00", "2026-10-25 01:30", Some(("2026-10-25 01:15", 3))),
        ("* * * * *", "Europe/Berlin", "2026-10-25 00:00", "2026-10-25 01:30", Some(("2026-10-25 01:30", 90))),
        ("* * * * *", "Europe/Berlin", "2026-10-24 22:00", "2026-10-25 01:30", Some(("2026-10-25 01:30", 100))),
        // The minutes of a gap are one slot.
        ("* 2 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-29 04:00", Some(("2026-03-29 01:00", 1))),
        ("* 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-29 01:02", Some(("2026-03-29 01:02", 3))),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:30", "2026-10-25 04:00", None),
    ] {
        let last = cron(expression, zone).last_in(utc(after), utc(until));
        assert_eq!(last, expected.map(|(last, count)| (utc(last), count)), "{expression} from {after} to {until}");
    }
}

#[test]
fn any_time_has_an_answer() {
    for expression in ["* * * * *", "0 0 29 2 *", "30 2 1 1 *"] {
        let cron = cron(expression, "Europe/Berlin");
        assert!(cron.first_after(Time::MIN_UTC).is_some_and(|slot| slot > Time::UNIX_EPOCH));
        assert_eq!(cron.first_after(Time::MAX_UTC), None);
        assert_eq!(cron.last_in(Time::MAX_UTC, Time::MIN_UTC), None);
        assert_eq!(cron.last_in(Time::MIN_UTC, Time::UNIX_EPOCH), None);
        let (last, count) = cron.last_in(Time::MIN_UTC, Time::MAX_UTC).unwrap();
        assert_eq!((last.format("%Y").to_string().as_str() > "2390", count), (true, 100), "{last}");
        assert_eq!(cron.first_after(last), None);
    }
}

#[test]
fn refusals_name_the_field_and_the_way_out() {
    let long = format!("{} * * * *", vec!["59"; 45].join(","));
    let field = |field, text: &str, range| CronError::Field { field, text: text.into(), range };
    let minute = |text| field("minute", text, "from 0 to 59");
    let hour = |text| field("hour", text, "from 0 to 23");
    let step = |field, text: &str, instead: &str| CronError::Step { field, text: text.into(), instead: instead.into() };
    let day = |text| field("day of month", text, "from 1 to 31");
    let month = |text| field("month", text, "from 1 to 12 or names from JAN to DEC");
    let weekday = |text| field("day of week", text, "from 0 (Sunday) to 7 (Sunday) or names from SUN to SAT");
    for (expression, expected) in [
        (long.as_str(), CronError::Long),
        ("", CronError::Shape),
        ("* * * *", CronError::Shape),
        ("0 * * * * *", CronError::Shape),
        ("0 0 * * * * 2026", CronError::Shape),
        ("0  2 * * *", CronError::Shape),
        (" 0 2 * * *", CronError::Shape),
        ("0 2 * * * ", CronError::Shape),
        ("0\t2 * * *", CronError::Shape),
        ("@daily", CronError::Shape),
        ("@daily * * * *", CronError::Shape),
        ("61 * * * *", minute("61")),
        ("60 * * * *", minute("60")),
        ("-1 * * * *", minute("-1")),
        ("1, * * * *", minute("1,")),
        (", * * * *", minute(",")),
        ("*,5 * * * *", minute("*,5")),
        ("*-5 * * * *", minute("*-5")),
        ("** * * * *", minute("**")),
        ("*/0 * * * *", minute("*/0")),
        ("*/ * * * *", minute("*/")),
        ("/5 * * * *", minute("/5")),
        ("5/2 * * * *", step("minute", "5/2", "5-59/2")),
        ("0 0 * * 1,MON/2", step("day of week", "MON/2", "MON-6/2")),
        ("1-5-9 * * * *", minute("1-5-9")),
        ("1-9/2/2 * * * *", minute("1-9/2/2")),
        ("9-1 * * * *", minute("9-1")),
        ("001 * * * *", minute("001")),
        ("+1 * * * *", minute("+1")),
        ("1\n * * * *", minute("1\n")),
        ("JAN * * * *", minute("JAN")),
        ("? * * * *", minute("?")),
        ("٣ * * * *", minute("٣")),
        ("0 24 * * *", hour("24")),
        ("0 SUN * * *", hour("SUN")),
        ("0 0 0 * *", day("0")),
        ("0 0 32 * *", day("32")),
        ("0 0 L * *", day("L")),
        ("0 0 15W * *", day("15W")),
        ("0 0 LW * *", day("LW")),
        ("0 0 ? * *", day("?")),
        ("0 0 1 0 *", month("0")),
        ("0 0 1 13 *", month("13")),
        ("0 0 1 jan *", month("jan")),
        ("0 0 1 JANFEB *", month("JANFEB")),
        ("0 0 1 MON *", month("MON")),
        ("0 0 * * 8", weekday("8")),
        ("0 0 * * JAN", weekday("JAN")),
        ("0 0 * * SUNMON", weekday("SUNMON")),
        ("0 0 * * FRI-MON", weekday("FRI-MON")),
        ("0 0 * * 5L", weekday("5L")),
        ("0 0 * * MON#2", weekday("MON#2")),
        ("0 0 * * +MON", weekday("+MON")),
        ("0 0 * * ?", weekday("?")),
        ("0 0 31 2 *", CronError::Never("0 0 31 2 *".into())),
        ("0 0 30-31 2 *", CronError::Never("0 0 30-31 2 *".into())),
        ("0 0 31 4,6,9,11 *", CronError::Never("0 0 31 4,6,9,11 *".into())),
    ] {
        assert_eq!(Cron::parse(expression, "UTC"), Err(expected), "{expression:?}");
    }
    for zone in ["Mars/Olympus", "Local", "", "europe/berlin", "+02:00", "../etc/localtime", " UTC", "UTC\0"] {
        assert_eq!(Cron::parse("0 2 * * *", zone), Err(CronError::Zone(zone.into())), "{zone:?}");
    }
    assert_eq!(Cron::parse("0 2 * * *", &"A".repeat(9999)), Err(CronError::Zone("A".repeat(64))));
}

#[test]
fn refusals_are_for_people() {
    for (expression, zone, expected) in [
        (
            "61 * * * *",
            "UTC",
            "spec.cron has \"61\" for the minute: use numbers from 0 to 59, \"*\", lists such as \"1,2\", ascending ranges \
             such as \"1-5\", and steps such as \"*/2\" or \"1-5/2\"",
        ),
        (
            "@daily",
            "UTC",
            "spec.cron is not five fields with one blank between them: write minute, hour, day of month, month and day \
             of week, as in \"30 2 * * MON\"; seconds, years and names such as @daily are not supported",
        ),
        (
            "0 0 31 2 *",
            "UTC",
            "spec.cron \"0 0 31 2 *\" has no slot within 8 years: no such day of the month exists, so change the day or \
             the month",
        ),
        (
            "0 2 * * *",
            "Mars/Olympus",
            "spec.timeZone \"Mars/Olympus\" is not in the operator's time zone database (2025b): use a name such as \
             \"Europe/Berlin\" or \"UTC\", or update the operator if the zone is new",
        ),
    ] {
        assert_eq!(Cron::parse(expression, zone).unwrap_err().to_string(), expected);
    }
    let long = "1".repeat(129);
    assert_eq!(
        Cron::parse(&long, "UTC").unwrap_err().to_string(),
        "spec.cron is longer than 128 characters: shorten it, or make several schedules"
    );
}

#[test]
fn a_time_is_shown_as_the_clocks_of_the_zone_do() {
    let berlin = Cron::parse("0 3 * * *", "Europe/Berlin").unwrap();
    let at = |text: &str| text.parse::<Time>().unwrap();
    assert_eq!(berlin.in_zone(at("2026-03-29T00:59:59Z")), "2026-03-29 01:59:59 CET");
    assert_eq!(berlin.in_zone(at("2026-03-29T01:00:00Z")), "2026-03-29 03:00:00 CEST");
}

#[test]
fn shows_what_was_written_and_is_small() {
    let berlin = cron("30 2 * * *", "Europe/Berlin");
    assert_eq!((berlin.expression(), berlin.zone_name()), ("30 2 * * *", "Europe/Berlin"));
    assert_eq!(berlin, berlin.clone());
    assert_ne!(berlin, cron("30 2 * * *", "Europe/Paris"));
    assert_ne!(berlin, cron("31 2 * * *", "Europe/Berlin"));
    // 5,000 schedules fit into 10 MB together with everything else: each needs 24 bytes and its text.
    assert!(size_of::<Cron>() <= 24, "{}", size_of::<Cron>());
}
