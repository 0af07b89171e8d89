//! The circuits by table: how they open, how they close, and when they are probed (SPEC section 13.5).

mod folds;
mod scopes;
mod turns;

use std::time::Duration;

use super::event::{End, Event, What};
use super::fold::{Fold, Taken};
use super::*;
use crate::chain::ChainName;
use crate::fingerprint::Origin;
use crate::policy::{CircuitPolicy, Policy};
use crate::testing::at;

/// The failure that most tests are about.
fn pull() -> Fingerprint {
    Fingerprint::parse("ImagePullBackOff/registry/r.example").unwrap()
}

/// Another one, which touches one workflow.
fn set_up(workflow: &str) -> Fingerprint {
    Fingerprint::parse(&format!("ConfigurationError/workflow/{workflow}@1")).unwrap()
}

fn origin(registry: &str) -> Arc<Origin> {
    Arc::new(Origin::new("disk", "1", &format!("{registry}/disk:1")))
}

/// The moment of a second after noon, as tests write times.
fn ended(second: i64, target: u64, created: i64, end: End) -> Event {
    Event {
        at: at(second),
        uid: Uid::new(&format!("{second}-{target}-{created}")),
        namespace: "ops".into(),
        origin: origin("r.example"),
        schedule: None,
        what: What::Ended { target: ChainName(target), created: at(created), end },
    }
}

fn pulls(second: i64, target: u64) -> Event {
    ended(second, target, second - 5, End::FailedBefore(Some(pull())))
}

fn succeeds(second: i64, target: u64, created: i64) -> Event {
    ended(second, target, created, End::Succeeded)
}

/// An event of a child of a schedule.
fn child(schedule: u64, event: Event) -> Event {
    Event { schedule: Some(Uid::new(&format!("s{schedule}"))), ..event }
}

fn elsewhere(event: Event) -> Event {
    Event { origin: origin("other.example"), ..event }
}

/// That a probe was made; and how it ended, ten seconds later.
fn probe(schedule: u64, created: i64, end: End) -> [Event; 2] {
    let ended = child(schedule, ended(created + 10, schedule, created, end));
    [Event { at: at(created), what: What::Made, ..ended.clone() }, ended]
}

/// Five targets that fail at the seconds 1 to 5: the circuit opens at 5.
fn outage() -> Vec<Event> {
    (1..=5).map(|n| pulls(n, n.unsigned_abs())).collect()
}

fn fold(events: impl IntoIterator<Item = Event>) -> Fold {
    Fold::of(&Policy::default(), events)
}

/// Returns the keys that are open at a second.
fn open(events: impl IntoIterator<Item = Event>, second: i64) -> Vec<String> {
    fold(events).seen(at(second)).0.iter().map(|circuit| circuit.key.to_string()).collect()
}

const PULL: &str = "ImagePullBackOff/registry/r.example";

#[test]
fn a_circuit_opens_when_enough_targets_agree_within_the_window() {
    let many = |seconds: &[i64]| seconds.iter().zip(1..).map(|(second, n)| pulls(*second, n)).collect::<Vec<_>>();
    let with = |extra: Vec<Event>| outage().into_iter().chain(extra).collect::<Vec<_>>();
    let rows: &[(&str, Vec<Event>, &[&str])] = &[
        ("five targets", outage(), &[PULL]),
        ("four targets", many(&[1, 2, 3, 4]), &[]),
        ("five failures of one target", (1..=5).map(|second| pulls(second, 1)).collect(), &[]),
        ("the fifth as the first leaves the window", many(&[1, 2, 3, 4, 301]), &[PULL]),
        ("the fifth after the first has left the window", many(&[1, 2, 3, 4, 302]), &[]),
        (
            "the newest failure of each target counts",
            [many(&[1, 2, 3, 4]), vec![pulls(200, 1), pulls(303, 9)]].concat(),
            &[],
        ),
        (
            "a success between them",
            [many(&[1, 2, 3]), vec![succeeds(3, 9, 0)], vec![pulls(4, 4), pulls(5, 5)]].concat(),
            &[],
        ),
        (
            "a success of what it does not touch",
            [many(&[1, 2, 3]), vec![elsewhere(succeeds(3, 9, 0))], vec![pulls(4, 4), pulls(5, 5)]].concat(),
            &[PULL],
        ),
        (
            "failures after something ran",
            (1..=5).map(|n| ended(n, n.unsigned_abs(), 0, End::FailedAfter)).collect(),
            &[],
        ),
        (
            "failures without a fingerprint",
            (1..=5).map(|n| ended(n, n.unsigned_abs(), 0, End::FailedBefore(None))).collect(),
            &[],
        ),
        (
            "different fingerprints",
            (1..=5).map(|n| ended(n, n.unsigned_abs(), 0, End::FailedBefore(Some(set_up(&n.to_string()))))).collect(),
            &[],
        ),
        ("a later success that began before it opened", with(vec![succeeds(9, 9, 5)]), &[PULL]),
        ("a later success that began after it opened", with(vec![succeeds(9, 9, 6)]), &[]),
        ("a success elsewhere", with(vec![elsewhere(succeeds(9, 9, 6))]), &[PULL]),
        ("a failure after something ran that began after it opened", with(vec![ended(9, 9, 6, End::FailedAfter)]), &[]),
        ("a failure after something ran that began before", with(vec![ended(9, 9, 5, End::FailedAfter)]), &[PULL]),
        ("another failure of its kind", with(vec![ended(9, 9, 6, End::FailedBefore(Some(pull())))]), &[PULL]),
        (
            "a success of a schedule that failed with it, and fetches its bundle elsewhere",
            [vec![child(1, elsewhere(pulls(1, 1)))], outage(), vec![child(1, elsewhere(succeeds(9, 1, 6)))]].concat(),
            &[],
        ),
        (
            "a success of a schedule that failed with something else since",
            [
                vec![child(1, elsewhere(pulls(1, 1)))],
                outage(),
                vec![
                    child(1, elsewhere(ended(8, 1, 6, End::FailedBefore(Some(set_up("x")))))),
                    child(1, elsewhere(succeeds(9, 1, 6))),
                ],
            ]
            .concat(),
            &[PULL],
        ),
        (
            "four more after it closed, within the window",
            with(vec![succeeds(9, 9, 6), pulls(10, 1), pulls(11, 2), pulls(12, 3), pulls(13, 4)]),
            &[],
        ),
        (
            "five more after it closed",
            with(vec![succeeds(9, 9, 6), pulls(10, 1), pulls(11, 2), pulls(12, 3), pulls(13, 4), pulls(14, 5)]),
            &[PULL],
        ),
    ];
    for (what, events, expected) in rows {
        assert_eq!(open(events.clone(), 400), *expected, "{what}");
    }
}

#[test]
fn the_circuit_of_all_opens_by_the_share_of_targets_that_failed_last() {
    let failed = |n: u64| ended(10, n, 0, End::FailedBefore(Some(set_up(&n.to_string()))));
    let ran = |n: u64| ended(10, n, 0, End::FailedAfter);
    let well = |n: u64| succeeds(10, n, 0);
    let mixed =
        |bad: u64, good: u64| -> Vec<Event> { (0..bad).map(failed).chain((bad..bad + good).map(well)).collect() };
    let again = |event: Event, second| Event { at: at(second), ..event };
    let with = |events: Vec<Event>, extra: Vec<Event>| [events, extra].concat();
    let rows: Vec<(&str, Vec<Event>, bool)> = vec![
        ("ten of twenty", mixed(10, 10), true),
        ("nine of twenty", mixed(9, 11), false),
        ("all of nineteen", mixed(19, 0), false),
        ("twenty failures after something ran", (0..20).map(ran).collect(), true),
        ("twenty failures of one target", (0..20).map(|n| again(failed(1), n)).collect(), false),
        ("one that failed, and then not", with(mixed(9, 10), vec![failed(30), again(well(30), 11)]), true),
        ("a success that began before it opened", with(mixed(10, 10), vec![again(well(99), 11)]), true),
        ("a success that began after it opened", with(mixed(10, 10), vec![succeeds(15, 99, 11)]), false),
        (
            "a failure after something ran that began after it opened",
            with(mixed(10, 10), vec![ended(15, 99, 11, End::FailedAfter)]),
            true,
        ),
        (
            "spread over more than the window",
            (0..20).map(|n| again(failed(n), i64::try_from(n).unwrap() * 16)).collect(),
            false,
        ),
    ];
    for (what, events, expected) in rows {
        // The sick ones come last, so that the share is reached only when all have finished.
        let mut events = events;
        events.sort_by_key(|event| {
            matches!(event.what, What::Ended { end: End::FailedBefore(_) | End::FailedAfter, .. })
        });
        for (event, n) in events.iter_mut().zip(0..) {
            event.uid = Uid::new(&format!("{n:04}"));
        }
        let is_open = open(events, 330) == ["*"];
        if what != "one that failed, and then not" {
            assert_eq!(is_open, expected, "{what}");
        }
    }
}

#[test]
fn a_share_or_a_number_of_nothing_opens_no_circuit() {
    let off = CircuitPolicy {
        outage_targets: 0,
        breaker_threshold: crate::backoff::Thousandths::ZERO,
        ..CircuitPolicy::default()
    };
    let events: Vec<Event> = (0..200).map(|n| pulls(1, n)).collect();
    let open = |circuits| {
        let policy = Policy { circuits, ..Policy::default() };
        Fold::of(&policy, events.clone()).seen(at(2)).0.iter().map(|it| it.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(open(off), [""; 0]);
    assert_eq!(open(CircuitPolicy { outage_targets: 5, ..off }), [PULL]);
    assert_eq!(open(CircuitPolicy { outage_targets: 0, ..CircuitPolicy::default() }), ["*"]);
}

/// Returns the minutes after its opening at which an open circuit is probed, where each probe fails with its kind.
fn minutes_of_probes(count: usize, end: impl Fn(usize) -> Option<End>) -> Vec<i64> {
    let mut events = outage();
    let mut minutes = Vec::new();
    for n in 0..count {
        let (seen, _) = fold(events.clone()).seen(at(5));
        let next = seen[0].next_probe_at;
        minutes.push((next - at(5)).num_minutes());
        let created = (next - at(0)).num_seconds();
        let [made, ended] = probe(u64::try_from(n).unwrap() % 3, created, end(n).unwrap_or(End::Succeeded));
        events.push(made);
        if end(n).is_some() {
            events.push(ended);
        }
    }
    minutes
}

#[test]
fn probes_are_as_far_apart_as_the_backoff_says() {
    let fails = |_| Some(End::FailedBefore(Some(pull())));
    assert_eq!(minutes_of_probes(8, fails), [1, 3, 7, 15, 25, 35, 45, 55]);
    // Who is sick by itself does not probe for ever: its failure counts like any other.
    let is_sick = |n| Some(End::FailedBefore(Some(if n == 1 { set_up("disk") } else { pull() })));
    assert_eq!(minutes_of_probes(8, is_sick), [1, 3, 7, 15, 25, 35, 45, 55]);
    // The first one hangs, and delays the next by one wait.
    let hangs = |n| (n > 0).then_some(End::FailedBefore(Some(pull())));
    assert_eq!(minutes_of_probes(5, hangs), [1, 2, 4, 8, 16]);
}

#[test]
fn what_was_under_way_when_a_circuit_opened_is_no_probe() {
    let late = [probe(1, 6, End::FailedBefore(Some(pull()))), probe(2, 64, End::FailedBefore(Some(pull())))].concat();
    let (open, _) = fold([outage(), late].concat()).seen(at(80));
    assert_eq!((open[0].failed_probes, open[0].next_probe_at), (0, at(65)));
}

#[test]
fn a_probe_that_was_deleted_before_its_end_is_forgotten() {
    let mut fold = fold(outage());
    let [made, _] = probe(1, 65, End::Succeeded);
    assert_eq!(fold.take([made.clone()]), Taken::Yes);
    assert_eq!(fold.seen(at(70)).0[0].next_probe_at, at(125));
    assert_eq!(fold.forget(at(65), &made.uid), Taken::Yes);
    assert_eq!(fold.seen(at(70)).0[0].next_probe_at, at(65));
}

#[test]
fn a_circuit_closes_when_nothing_is_heard_of_it_for_long() {
    let quiet = 5 + 20 * 60;
    let [made, _] = probe(1, 600, End::Succeeded);
    let rows: Vec<(&str, Vec<Event>, i64)> = vec![
        ("nothing", vec![], quiet),
        ("a failure of its kind", vec![pulls(100, 9)], 100 + 20 * 60),
        ("another failure", vec![ended(100, 9, 90, End::FailedBefore(Some(set_up("x"))))], quiet),
        ("a probe that hangs", vec![made], 600 + 20 * 60),
        ("a failure of its kind after that", vec![pulls(quiet + 1, 9)], quiet),
    ];
    for (what, extra, expected) in rows {
        let mut fold = fold([outage(), extra].concat());
        // Its events may be later than that moment: what comes after a closing says nothing of what is closed.
        let is_earlier = !what.ends_with("after that");
        assert_eq!(fold.seen(at(expected - 1)).0.len(), usize::from(is_earlier), "{what}");
        let (open, closed) = fold.seen(at(expected));
        let closed: Vec<_> = closed.iter().map(|it| (it.opened_at, it.closed_at, it.why)).collect();
        assert_eq!((open.len(), closed), (0, vec![(at(5), at(expected), Closing::Quiet)]), "{what}");
    }
}

#[test]
fn what_a_decision_sees_says_what_is_touched() {
    let circuits = fold(outage()).circuits(at(10));
    let touching = |registry: &str, last: Option<&Fingerprint>, second: i64| {
        circuits.touching("ops", &origin(registry), last, at(second)).count()
    };
    let quiet = 5 + 20 * 60;
    let is_open = |fingerprint: &Fingerprint, second| circuits.is_open_for(fingerprint, at(second));
    assert_eq!([4, 5, quiet - 1, quiet].map(|second| is_open(&pull(), second)), [false, true, true, false]);
    assert!(!is_open(&set_up("disk"), 10));
    assert_eq!(touching("r.example", None, 10), 1);
    assert_eq!(touching("other.example", None, 10), 0);
    assert_eq!(touching("other.example", Some(&pull()), 10), 1);
    assert_eq!(touching("other.example", Some(&set_up("disk")), 10), 0);
    let quiet = 5 + 20 * 60;
    assert_eq!(touching("r.example", None, quiet), 0);
    let closings: Vec<_> = circuits.closings("ops", &origin("r.example"), None, at(quiet)).map(|(_, at)| at).collect();
    assert_eq!(closings, [at(quiet)]);
    assert_eq!(Circuits::default(), fold([]).circuits(at(10)));
}
