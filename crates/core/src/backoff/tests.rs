use super::*;
use proptest::prelude::*;

const MINUTES: Backoff = Backoff::doubling(Duration::from_mins(1), Duration::from_mins(10), 4);

fn at(seconds: i64) -> Time {
    Time::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

#[test]
fn doubles_up_to_the_maximum() {
    let waits: Vec<_> = (0..=6).map(|failures| MINUTES.after(failures)).collect();
    assert_eq!(waits, [0, 1, 2, 4, 8, 10, 10].map(Duration::from_mins));
}

#[test]
fn each_parameter_has_its_effect() {
    let seconds = |backoff: Backoff| (1..=5).map(|n| backoff.after(n).as_secs()).collect::<Vec<_>>();
    assert_eq!(seconds(Backoff { base: Duration::from_secs(2), ..MINUTES }), [2, 4, 8, 16, 32]);
    assert_eq!(seconds(Backoff { max: Duration::from_mins(3), ..MINUTES }), [60, 120, 180, 180, 180]);
    assert_eq!(seconds(Backoff { max_exponent: 1, ..MINUTES }), [60, 120, 120, 120, 120]);
    assert_eq!(seconds(Backoff { max_exponent: 0, ..MINUTES }), [60; 5]);
    assert_eq!(seconds(Backoff { multiplier: Thousandths(1500), ..MINUTES }), [60, 90, 135, 202, 303]);
    assert_eq!(seconds(Backoff { multiplier: Thousandths::ZERO, ..MINUTES }), [60; 5], "it never shrinks");
    assert_eq!(seconds(Backoff { base: Duration::from_hours(1), ..MINUTES }), [600; 5], "the maximum holds at once");
}

#[test]
fn a_share_is_from_0_to_1_and_rounded_to_thousandths() {
    for (share, thousandths) in [
        (0.0, Some(0)),
        (0.000_4, Some(0)),
        (0.000_6, Some(1)),
        (0.25, Some(250)),
        (0.999_4, Some(999)),
        (1.0, Some(1000)),
        (1.000_1, None),
        (-0.000_1, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
    ] {
        assert_eq!(Thousandths::share(share), thousandths.map(Thousandths), "{share}");
    }
}

#[test]
fn jitter_is_the_same_for_a_key_and_spreads_over_keys() {
    let jittered = Backoff { jitter: Thousandths(250), ..MINUTES };
    assert_eq!(jittered.jittered(3, "node/a"), jittered.jittered(3, "node/a"));
    let waits: std::collections::BTreeSet<_> = (0..50).map(|n| jittered.jittered(3, &format!("node/{n}"))).collect();
    assert_eq!(waits.len(), 50);
    assert!(waits.iter().all(|wait| (Duration::from_mins(4)..=Duration::from_mins(5)).contains(wait)), "{waits:?}");
    assert!(waits.last().unwrap().as_secs() - waits.first().unwrap().as_secs() > 40, "{waits:?}");
    assert_ne!(jittered.jittered(3, "node/a") * 2, jittered.jittered(4, "node/a"), "each failure draws anew");
}

#[test]
fn a_quiet_time_ends_the_row_and_a_time_that_is_not_known_does_not() {
    let quiet = Some(Duration::from_secs(100));
    for (newest_first, quiet, count) in [
        (vec![], quiet, 0),
        (vec![Some(at(0)), Some(at(-10))], quiet, 2),
        (vec![Some(at(-99)), Some(at(-198))], quiet, 2),
        (vec![Some(at(-99)), Some(at(-199))], quiet, 1),
        (vec![Some(at(-100)), Some(at(-101))], quiet, 0),
        (vec![Some(at(-100)), Some(at(-101))], None, 2),
        (vec![Some(at(500)), Some(at(450))], quiet, 2),
        (vec![None, Some(at(-5000)), Some(at(-5001))], quiet, 3),
    ] {
        assert_eq!(failures_in_a_row(newest_first.clone(), quiet, at(0)), count, "{newest_first:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn is_monotone_and_bounded_for_any_input(
        base: Duration,
        max: Duration,
        multiplier: u32,
        jitter: u32,
        max_exponent: u32,
        failures: u32,
        key in "[a-z/]{0,12}",
    ) {
        let (multiplier, jitter) = (Thousandths(multiplier), Thousandths(jitter));
        let backoff = Backoff { base, multiplier, max, max_exponent, jitter };
        let wait = backoff.after(failures);
        prop_assert!(wait <= max);
        prop_assert!(wait <= backoff.after(failures.saturating_add(1)));
        let jittered = backoff.jittered(failures, &key);
        prop_assert!(wait <= jittered && jittered <= wait.saturating_mul(2));
        if jitter == Thousandths::ZERO {
            prop_assert_eq!(wait, jittered);
        }
    }

    #[test]
    fn is_the_formula_where_that_fits(base in 1_u64..1000, max in 1_u64..1_000_000, max_exponent in 0_u32..12, n in 1_u32..20) {
        let backoff = Backoff::doubling(Duration::from_secs(base), Duration::from_secs(max), max_exponent);
        let expected = (base << (n - 1).min(max_exponent)).min(max);
        prop_assert_eq!(backoff.after(n), Duration::from_secs(expected));
    }
}
