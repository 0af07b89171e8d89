use super::*;
use crate::Time;
use proptest::prelude::*;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Returns a time on 1 June 2026.
fn day(clock: &str) -> Time {
    time(&format!("2026-06-01T{clock}Z"))
}

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// Slots every `seconds` seconds, with the limits that the API sets.
fn every(seconds: u64) -> Plan {
    crate::testing::every(seconds)
}

/// A past whose last slot was at 12:00:00, with a run that ended at 12:00:10, after some failures.
fn past(failures: u32) -> Past {
    let last = Last { slot: day("12:00:00"), ended_at: Some(day("12:00:10")), lost: false };
    Past { since: day("11:00:00"), phase: None, last: Some(last), failures, offset: Duration::ZERO }
}

/// A past in which the plan began at a time and nothing has run since.
fn fresh(since: Time) -> Past {
    Past { since, phase: None, last: None, failures: 0, offset: Duration::ZERO }
}

fn wants(wish: Wish, expires: &str) -> Hint {
    Hint { wish, expires_at: day(expires) }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn next(plan: &Plan, hint: Option<&Hint>, past: Past, now: Time) -> (Time, PlannedBy) {
    let planned = plan_next_run(plan, hint, past, now).unwrap().planned;
    (planned.at, planned.why)
}

/// Returns the next slot, computed a second after the last child ended.
fn soon(plan: &Plan, hint: Option<&Hint>, failures: u32) -> (Time, PlannedBy) {
    next(plan, hint, past(failures), day("12:00:11"))
}

#[test]
fn an_interval_doubles_with_each_failure_five_times_at_the_most() {
    use PlannedBy::{Backoff, Interval};
    let waits = |failures| {
        let planned = soon(&every(60), None, failures);
        let base = if failures == 0 { day("12:00:00") } else { day("12:00:10") };
        ((planned.0 - base).num_seconds(), planned.1)
    };
    let row: Vec<_> = [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(waits).into();
    assert_eq!(
        row,
        [
            (60, Interval),
            (120, Backoff),
            (240, Backoff),
            (480, Backoff),
            (960, Backoff),
            (1920, Backoff),
            (1920, Backoff),
            (1920, Backoff)
        ]
    );
    assert_eq!(soon(&every(60), None, 5).0, day("12:32:10"));
}

#[test]
fn backoff_is_cut_at_the_longest_interval_and_an_interval_never() {
    let cut = Plan { max_interval: seconds(600), ..every(60) };
    assert_eq!(soon(&cut, None, 4), (day("12:10:10"), PlannedBy::ClampedMax));
    assert_eq!(soon(&cut, None, 3), (day("12:08:10"), PlannedBy::Backoff));
    let exact = Plan { max_interval: seconds(960), ..every(60) };
    assert_eq!(soon(&exact, None, 4), (day("12:16:10"), PlannedBy::Backoff), "nothing was cut");
    let odd = Plan { max_interval: seconds(30), ..every(60) };
    assert_eq!(soon(&odd, None, 0), (day("12:01:00"), PlannedBy::Interval));
    let odd = Plan { min_interval: HOUR, ..every(60) };
    assert_eq!(soon(&odd, None, 0), (day("12:01:00"), PlannedBy::Interval));
}

#[test]
fn after_a_failure_it_rests_from_the_end_of_the_child() {
    let ended = |at: Option<&str>| {
        let last = Last { slot: day("12:00:00"), ended_at: at.map(day), lost: false };
        next(&every(60), None, Past { last: Some(last), ..past(1) }, day("12:00:11")).0
    };
    assert_eq!(ended(Some("12:00:10")), day("12:02:10"));
    assert_eq!(ended(Some("12:00:10.001")), day("12:02:11"), "nothing runs early");
    assert_eq!(ended(Some("11:59:00")), day("12:02:00"), "an end before the slot is a wrong clock");
    assert_eq!(ended(None), day("12:02:00"));
}

#[test]
fn a_hint_takes_the_place_of_what_was_due_within_the_clamps() {
    let half = wants(Wish::Interval(seconds(30)), "13:00:00");
    assert_eq!(soon(&every(60), Some(&half), 5), (day("12:01:00"), PlannedBy::ClampedMin));
    let quick = Plan { min_interval: seconds(10), ..every(60) };
    assert_eq!(soon(&quick, Some(&half), 5), (day("12:00:30"), PlannedBy::Hint));
    let exact = Plan { min_interval: seconds(30), ..every(60) };
    assert_eq!(soon(&exact, Some(&half), 5), (day("12:00:30"), PlannedBy::Hint), "nothing was cut");
    let half_an_hour = Plan { max_interval: seconds(1800), ..every(60) };
    let late = wants(Wish::At(day("12:45:00")), "13:00:00");
    assert_eq!(soon(&half_an_hour, Some(&late), 0), (day("12:30:00"), PlannedBy::ClampedMax));
    let exact = wants(Wish::At(day("12:30:00")), "13:00:00");
    assert_eq!(soon(&half_an_hour, Some(&exact), 0), (day("12:30:00"), PlannedBy::Hint));
    let odd = wants(Wish::At(day("12:10:00.001")), "13:00:00");
    assert_eq!(soon(&every(60), Some(&odd), 0).0, day("12:10:01"), "a slot is a whole second");
    let long = Plan { max_interval: seconds(60), ..every(60) };
    assert_eq!(soon(&long, Some(&late), 5), (day("12:01:10"), PlannedBy::ClampedMax), "what backoff says is cut too");
}

#[test]
fn a_hint_may_wish_for_what_was_due_without_it_though_that_is_later_than_the_longest_interval() {
    let odd = Plan { max_interval: seconds(30), ..every(60) };
    let hour = wants(Wish::Interval(HOUR), "13:30:00");
    assert_eq!(soon(&odd, Some(&hour), 0), (day("12:01:00"), PlannedBy::ClampedMax));
}

#[test]
fn before_the_first_slot_a_hint_counts_from_the_beginning_of_the_plan() {
    let at = |wish| next(&every(60), Some(&wants(wish, "13:30:00")), fresh(day("13:00:20")), day("13:00:21"));
    assert_eq!(
        at(Wish::Interval(seconds(30))),
        (day("13:00:50"), PlannedBy::Hint),
        "there is no slot to keep away from"
    );
    assert_eq!(at(Wish::At(day("13:00:22"))), (day("13:00:22"), PlannedBy::Hint));
    assert_eq!(at(Wish::At(day("13:00:20"))), (day("13:01:20"), PlannedBy::Interval), "the plan began after it");
    let short = Plan { max_interval: seconds(120), ..every(60) };
    let late = wants(Wish::Interval(HOUR), "15:00:00");
    assert_eq!(next(&short, Some(&late), fresh(day("13:00:20")), day("13:00:21")).0, day("13:02:20"));
}

#[test]
fn a_hint_that_expired_or_is_spent_does_not_count() {
    let ignores = |hint: Hint, now: &str| {
        let said = ignored(&hint, past(1), day(now));
        let planned = plan_next_run(&every(60), Some(&hint), past(1), day(now)).unwrap();
        assert_eq!(said.is_some(), planned.until.is_none(), "{hint:?}");
        (said.is_some(), planned.planned)
    };
    let usual = Planned { at: day("12:02:10"), why: PlannedBy::Backoff };
    let at = |clock| Wish::At(day(clock));
    let half = || Wish::Interval(seconds(90));
    assert_eq!(ignores(wants(half(), "12:00:12"), "12:00:12"), (true, usual), "expired just now");
    assert!(!ignores(wants(half(), "12:00:13"), "12:00:12").0, "it expires in a second");
    assert_eq!(ignores(wants(at("12:00:00"), "13:00:00"), "12:00:12"), (true, usual), "its slot has run");
    assert_eq!(ignores(wants(at("11:30:00"), "13:00:00"), "12:00:12"), (true, usual), "a later one has");
    assert!(!ignores(wants(at("12:00:01"), "13:00:00"), "12:00:12").0, "an edit brings it again");
    assert!(!ignores(wants(at("12:00:00.5"), "13:00:00"), "12:00:12").0, "rounded up, it has not");
}

#[test]
fn the_slot_of_a_hint_is_one_slot_however_late_it_is() {
    let now = day("12:20:30");
    let plan = |deadline| Plan { deadline, max_interval: seconds(600), ..every(60) };
    let hints = [
        (Wish::At(day("12:05:00")), "12:05:00", PlannedBy::Hint),
        (Wish::At(day("12:00:30")), "12:01:00", PlannedBy::ClampedMin),
        (Wish::At(day("12:45:00")), "12:10:00", PlannedBy::ClampedMax),
    ];
    for (wish, slot, why) in hints {
        let hint = wants(wish, "13:00:00");
        let planned = |deadline, now| plan_next_run(&plan(deadline), Some(&hint), past(0), now).unwrap();
        let found = planned(None, now);
        let expected = Planned { at: day(slot), why };
        assert_eq!((found.planned, found.due, found.missed, found.late), (expected, day(slot), None, None));
        assert_eq!(found.until, Some(day("13:00:00")));
        // A hint that is too late to run must not delay the slots after it.
        let deadline = Some(seconds(20));
        let in_time = planned(deadline, day(slot) + seconds(20));
        assert_eq!((in_time.planned, in_time.late), (expected, None));
        assert_eq!(in_time.until, Some(just_after(day(slot) + seconds(20))));
        assert_eq!(planned(deadline, just_after(day(slot) + seconds(20))).until, None, "it is late at once");
        let late = planned(Some(seconds(40)), now);
        assert_eq!((late.planned.at, late.until), (day("12:20:00"), None), "what is due without it");
    }
}

#[test]
fn several_missed_slots_become_one_the_latest() {
    let at = |plan: &Plan, now| plan_next_run(plan, None, past(0), now).unwrap();
    let found = at(&every(60), day("12:07:30"));
    let expected = Planned { at: day("12:07:00"), why: PlannedBy::CatchUp };
    assert_eq!((found.planned, found.due, found.late), (expected, day("12:01:00"), None));
    assert_eq!(found.missed, Some(Missed { slot: day("12:06:00"), count: 6 }));

    let one = at(&every(60), day("12:01:59"));
    assert_eq!((one.planned.why, one.missed), (PlannedBy::Interval, None));
    let two = at(&every(60), day("12:02:00"));
    assert_eq!((two.planned.at, two.missed), (day("12:02:00"), Some(Missed { slot: day("12:01:00"), count: 1 })));
}

#[test]
fn later_than_its_deadline_a_slot_is_missed_too() {
    let strict = Plan { deadline: Some(seconds(20)), ..every(60) };
    let at = |now| plan_next_run(&strict, None, past(0), now).unwrap();
    let late = at(day("12:07:30"));
    assert_eq!(late.planned.at, day("12:07:00"));
    assert_eq!(late.missed, Some(Missed { slot: day("12:07:00"), count: 7 }));
    assert_eq!(late.late, Some(Some(Planned { at: day("12:08:00"), why: PlannedBy::Interval })));
    assert_eq!(at(day("12:07:20")).late, None, "at the deadline it runs");
    let just = at(just_after(day("12:01:20")));
    assert_eq!(just.missed, Some(Missed { slot: day("12:01:00"), count: 1 }));
    assert!(just.late.is_some());
    assert_eq!(at(day("12:00:59")).late, None, "it lies ahead");
}

#[test]
fn a_plan_that_begins_anew_runs_nothing_at_once() {
    let first = |plan: &Plan, past, now| next(plan, None, past, now);
    let began = fresh(day("13:00:20"));
    assert_eq!(first(&every(60), began, day("13:00:20")), (day("13:01:20"), PlannedBy::Interval));
    assert_eq!(first(&every(60), Past { failures: 4, ..began }, day("13:00:20")).0, day("13:01:20"));
    let later = Past { offset: seconds(7), ..began };
    assert_eq!(first(&every(60), later, day("13:00:20")).0, day("13:01:27"), "its share of the spread");
    let spread = Past { offset: seconds(7), ..past(0) };
    assert_eq!(first(&every(60), spread, day("12:00:20")).0, day("12:01:00"), "the last slot has it already");
}

/// Slots of a cron expression in UTC, with the limits that the API sets.
fn cron(expression: &str) -> Plan {
    let cron = crate::schedule::cron::Cron::parse(expression, "UTC").unwrap();
    Plan { every: Every::Cron(std::sync::Arc::new(cron)), min_interval: seconds(60), ..every(60) }
}

#[test]
fn cron_reads_no_failures_and_runs_nothing_at_once() {
    let five = cron("*/5 * * * *");
    for failures in [0, 1, 7, u32::MAX] {
        assert_eq!(soon(&five, None, failures), (day("12:05:00"), PlannedBy::Cron), "after {failures} failures");
    }
    let began = |clock| next(&five, None, fresh(day(clock)), day(clock));
    assert_eq!(began("13:00:20"), (day("13:05:00"), PlannedBy::Cron));
    assert_eq!(began("13:05:00"), (day("13:10:00"), PlannedBy::Cron), "a slot at the beginning is of the plan before");
}

#[test]
fn a_hint_moves_a_cron_slot_within_its_month() {
    let monthly = cron("0 2 1 * *");
    let used = Last { slot: day("02:00:00"), ended_at: Some(day("02:00:10")), lost: false };
    let past = Past {
        since: time("2026-05-01T00:00:00Z"),
        phase: None,
        last: Some(used),
        failures: 0,
        offset: Duration::ZERO,
    };
    let at = |wish: &str| {
        let hint = Hint { wish: Wish::At(time(wish)), expires_at: time("2026-08-01T00:00:00Z") };
        next(&monthly, Some(&hint), past, day("03:00:00"))
    };
    assert_eq!(at("2026-06-20T12:00:00Z"), (time("2026-06-20T12:00:00Z"), PlannedBy::Hint));
    assert_eq!(at("2026-07-03T12:00:00Z"), (time("2026-07-01T02:00:00Z"), PlannedBy::ClampedMax));
}

#[test]
fn missed_cron_slots_become_one_and_are_counted_to_a_hundred() {
    let at = |plan: &Plan, now| plan_next_run(plan, None, past(0), now).unwrap();
    let five = cron("*/5 * * * *");
    let found = at(&five, day("12:17:00"));
    assert_eq!(
        (found.planned.at, found.planned.why, found.due),
        (day("12:15:00"), PlannedBy::CatchUp, day("12:05:00"))
    );
    assert_eq!(found.missed, Some(Missed { slot: day("12:10:00"), count: 2 }));
    let one = at(&five, day("12:09:59"));
    assert_eq!((one.planned.why, one.missed), (PlannedBy::Cron, None));
    let two = at(&five, day("12:10:00"));
    assert_eq!((two.planned.at, two.missed), (day("12:10:00"), Some(Missed { slot: day("12:05:00"), count: 1 })));
    let many = at(&five, time("2026-06-03T12:00:00Z")).missed.unwrap();
    assert_eq!((many.slot, many.count), (time("2026-06-03T11:55:00Z"), MOST_MISSED));

    let strict = Plan { deadline: Some(seconds(20)), ..cron("*/5 * * * *") };
    let late = at(&strict, day("12:15:21"));
    assert_eq!(late.missed, Some(Missed { slot: day("12:15:00"), count: 3 }));
    assert_eq!(late.late, Some(Some(Planned { at: day("12:20:00"), why: PlannedBy::Cron })));
    assert_eq!(at(&strict, day("12:15:20")).late, None);
    let days = at(&strict, time("2026-06-03T12:00:21Z")).missed.unwrap();
    assert_eq!(days.count, MOST_MISSED, "with the one that is late");
}

#[test]
fn a_spread_moves_every_cron_slot_by_the_same() {
    let later = Past { offset: seconds(42), ..past(0) };
    let five = cron("*/5 * * * *");
    let used = |slot: &str| Past { last: Some(Last { slot: day(slot), ended_at: None, lost: false }), ..later };
    assert_eq!(next(&five, None, used("12:00:42"), day("12:01:00")).0, day("12:05:42"));
    assert_eq!(next(&five, None, used("12:00:42"), day("12:05:41")).0, day("12:05:42"));
    assert_eq!(next(&five, None, used("12:00:42"), day("12:11:00")).0, day("12:10:42"));
    assert_eq!(
        next(&five, None, Past { last: None, ..later }, day("11:00:00")).0,
        day("11:00:42"),
        "later than 11:00:00"
    );
}

#[test]
fn the_share_of_the_spread_is_the_same_for_ever_and_differs_between_schedules() {
    let share = |uid: &str| offset(&Uid::new(uid), HOUR);
    assert_eq!(share("a"), share("a"));
    let shares: Vec<Duration> = (0..100).map(|n| share(&format!("schedule-{n}"))).collect();
    assert!(shares.iter().all(|share| *share < HOUR && share.subsec_nanos() == 0));
    let early = shares.iter().filter(|share| **share < HOUR / 2).count();
    assert!((30..=70).contains(&early), "{early} of 100 are in the first half");
    assert_eq!(offset(&Uid::new("a"), Duration::ZERO), Duration::ZERO);
}

#[test]
fn the_past_of_a_schedule_is_that_of_its_plan() {
    let mut schedule = crate::testing::schedule("a");
    let now = crate::testing::at(50);
    let last = Last { slot: crate::testing::at(0), ended_at: Some(crate::testing::at(10)), lost: false };
    assert_eq!(schedule.past(now).last, Some(last));
    schedule.status.planned_from = Some(crate::testing::at(0));
    assert_eq!(schedule.past(now).last, None, "a slot at the very beginning is of the plan before");
    schedule.status.planned_from = None;
    assert_eq!((schedule.past(now).since, schedule.past(now).last), (now, None));
    schedule.plan = Ok(Plan { spread: HOUR, ..every(60) });
    assert_eq!(schedule.past(now).offset, offset(&schedule.id.uid, HOUR));
    schedule.plan = Err("odd".into());
    assert_eq!(schedule.next_run(now), None);
}

fn moment() -> impl Strategy<Value = Time> {
    prop_oneof![
        6 => (0..20_000_i64, prop::sample::select(vec![0, 0, 0, 1, 999_999_999]))
            .prop_map(|(second, nanos)| Time::from_timestamp(1_800_000_000 + second, nanos).unwrap()),
        1 => (i64::MIN..i64::MAX).prop_map(|second| Time::from_timestamp(second / 1_200_000, 0).unwrap()),
        1 => prop::sample::select(vec![Time::MIN_UTC, Time::MAX_UTC, Time::UNIX_EPOCH]),
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        8 => (1..4000_u64).prop_map(Duration::from_secs),
        1 => prop::sample::select(vec![HOUR, DAY, DAY * 30, Duration::MAX, Duration::from_secs(u64::from(u32::MAX))]),
    ]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    (duration(), duration(), duration(), prop::option::weighted(0.3, duration())).prop_map(
        |(interval, min_interval, max_interval, deadline)| Plan {
            every: Every::Interval(interval),
            min_interval: min_interval.min(interval),
            max_interval: max_interval.max(interval),
            spread: Duration::ZERO,
            deadline,
        },
    )
}

fn any_hint() -> impl Strategy<Value = Option<Hint>> {
    let wish = prop_oneof![moment().prop_map(Wish::At), duration().prop_map(Wish::Interval)];
    prop::option::of((wish, moment()).prop_map(|(wish, expires_at)| Hint { wish, expires_at }))
}

fn any_past() -> impl Strategy<Value = Past> {
    let last = (moment(), prop::option::weighted(0.9, moment()));
    let failures = prop_oneof![4 => 0..9_u32, 1 => Just(u32::MAX)];
    (moment(), prop::option::weighted(0.8, last), failures, 0..100_u64).prop_map(|(since, last, failures, offset)| {
        Past {
            since,
            phase: None,
            last: last.map(|(slot, ended_at)| Last { slot, ended_at, lost: false }).filter(|last| last.slot > since),
            failures,
            offset: Duration::from_secs(offset),
        }
    })
}

/// Returns whether a time is the last representable one, after which there is no slot.
fn is_at_the_end_of_time(time: Time) -> bool {
    time == Time::MAX_UTC
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_slot_lies_after_all_that_were_used(
        plan in any_plan(),
        hint in any_hint(),
        past in any_past(),
        now in moment(),
    ) {
        let next = plan_next_run(&plan, hint.as_ref(), past, now).unwrap();
        prop_assert_eq!(Some(next), plan_next_run(&plan, hint.as_ref(), past, now));
        let slots = [Some(next.planned.at), Some(next.due), next.late.flatten().map(|it| it.at)];
        for slot in slots.into_iter().flatten().filter(|slot| !is_at_the_end_of_time(*slot)) {
            prop_assert!(slot > past.since, "{:?}", next);
            prop_assert!(past.last.is_none_or(|last| slot > last.slot), "{:?}", next);
        }
        if let Some(missed) = next.missed.filter(|_| !is_at_the_end_of_time(next.planned.at)) {
            prop_assert!(missed.slot > past.since && missed.slot <= next.planned.at && missed.count > 0);
            prop_assert!(next.planned.at <= now);
        }
        prop_assert!(next.due <= next.planned.at);
        prop_assert!(next.planned.at == next.due || next.planned.at <= now, "no later one is taken early");
        prop_assert!(next.until.is_none_or(|until| until > now));
        prop_assert!(next.late.is_none() || next.late.flatten().is_some_and(|it| it.at > now || is_at_the_end_of_time(it.at)));
    }

    #[test]
    fn a_later_now_never_gives_an_earlier_slot(plan in any_plan(), past in any_past(), one in moment(), two in moment()) {
        let at = |now| plan_next_run(&plan, None, past, now).unwrap();
        let (early, late) = (at(one.min(two)), at(one.max(two)));
        prop_assert!(early.planned.at <= late.planned.at, "{:?}, {:?}", early, late);
        let count = |next: NextRun| next.missed.map_or(0, |missed| missed.count);
        prop_assert!(early.late.is_some() || count(early) <= count(late), "{:?}, {:?}", early, late);
    }

    #[test]
    fn no_input_overflows(
        plan in any_plan(),
        hint in any_hint(),
        past in any_past(),
        now in moment(),
        zero in any::<bool>(),
    ) {
        let none = Duration::ZERO;
        let zeros = Plan { every: Every::Interval(none), min_interval: none, max_interval: none, ..plan.clone() };
        let plan = if zero { zeros } else { plan };
        prop_assert!(plan_next_run(&plan, hint.as_ref(), past, now).is_some());
    }
}
