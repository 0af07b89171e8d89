//! Properties of any expression, zone and time.

use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::*;

/// Generates a field: a wildcard, values, a range, or steps of either.
fn field(from: u32, to: u32) -> impl Strategy<Value = String> {
    let range = (from..=to, from..=to).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
    prop_oneof![
        4 => Just("*".to_owned()),
        4 => (from..=to).prop_map(|value| value.to_string()),
        1 => (1_u32..40).prop_map(|step| format!("*/{step}")),
        1 => range.clone(),
        1 => (range.clone(), 1_u32..40).prop_map(|(range, step)| format!("{range}/{step}")),
        1 => (from..=to, range).prop_map(|(value, range)| format!("{value},{range}")),
    ]
}

fn crons() -> impl Strategy<Value = Cron> {
    let fields = (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7));
    (fields, select(&chrono_tz::TZ_VARIANTS[..])).prop_filter_map("no such day", |((m, h, d, mon, w), zone)| {
        match Cron::parse(&format!("{m} {h} {d} {mon} {w}"), zone.name()) {
            Err(CronError::Never(_)) => None,
            cron => Some(cron.unwrap()),
        }
    })
}

/// Generates times. Most are from the present era in whole seconds; some are any representable time.
fn times() -> impl Strategy<Value = Time> {
    let (least, greatest) = (Time::MIN_UTC.timestamp(), Time::MAX_UTC.timestamp());
    prop_oneof![4 => 0_i64..4_000_000_000, 1 => least..=greatest]
        .prop_map(|seconds| Time::from_timestamp(seconds, 0).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_first_slot_is_after_a_time_and_moves_with_it(cron in crons(), a in times(), b in times()) {
        let (earlier, later) = (a.min(b), a.max(b));
        let (first, second) = (cron.first_after(earlier), cron.first_after(later));
        prop_assert!(first.is_none_or(|slot| slot > earlier));
        prop_assert!(second.is_none_or(|slot| slot > later));
        match (first, second) {
            // No slot lies between a time and the first slot after it.
            (Some(first), _) if first > later => prop_assert_eq!(Some(first), second),
            (Some(first), Some(second)) => prop_assert!(first < second),
            (Some(_), None) => {}
            (None, second) => prop_assert_eq!(second, None),
        }
    }

    #[test]
    fn the_last_slot_is_what_the_first_ones_lead_to(cron in crons(), after in times(), count in 1_usize..120) {
        let slots: Vec<Time> = std::iter::successors(cron.first_after(after), |slot| cron.first_after(*slot))
            .take(count)
            .collect();
        let Some(last) = slots.last().copied() else { return Ok(()) };
        let counted = u32::try_from(slots.len().min(100)).unwrap();
        prop_assert_eq!(cron.last_in(after, last), Some((last, counted)));
        let before = last - TimeDelta::seconds(1);
        prop_assert_eq!(cron.last_in(before, last), Some((last, 1)));
        let previous = slots.iter().rev().nth(1).copied();
        prop_assert_eq!(cron.last_in(after, before).map(|(slot, _)| slot), previous);
        prop_assert_eq!(cron.last_in(last, last), None);
    }

    #[test]
    fn any_text_is_parsed_or_refused(expression in "[ -~]{0,20}|[0-9*,/ A-Z-]{0,30}|(([0-9*,/L#?+-]{1,4}) ){4}[0-9*]", zone in "[ -~]{0,20}") {
        if let Ok(cron) = Cron::parse(&expression, "Europe/Berlin") {
            prop_assert!(cron.first_after(Time::UNIX_EPOCH).is_some());
        }
        let _ = Cron::parse("* * * * *", &zone);
    }
}
