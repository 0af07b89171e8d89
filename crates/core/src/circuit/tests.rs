//! Tables about circuits: when they open, when they close, and when they are probed (section 13.5).

mod folds;
mod turns;

use std::time::Duration;

use super::event::{End, Event, What};
use super::fold::{Fold, Taken};
use super::*;
use crate::chain::ChainName;
use crate::fingerprint::Origin;
use crate::policy::{CircuitPolicy, Policy};
use crate::testing::at;

/// The failure in most tests.
fn pull() -> Fingerprint {
    Fingerprint::parse("ImagePullBackOff/registry/r.example").unwrap()
}

/// Another failure, which concerns one workflow.
fn set_up(workflow: &str) -> Fingerprint {
    Fingerprint::parse(&format!("ConfigurationError/workflow/{workflow}@1")).unwrap()
}

fn origin(registry: &str) -> Arc<Origin> {
    Arc::new(Origin::new("disk", "1", &format!("{registry}/disk:1")))
}

/// An execution that ended at one second after noon, and was created at another.
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

fn before(with: Fingerprint) -> End {
    End::Failed { fingerprint: Some(with), before_start: true }
}

/// A failure after something ran.
fn half_way() -> End {
    End::Failed { fingerprint: Some(set_up("disk")), before_start: false }
}

fn pulls(second: i64, target: u64) -> Event {
    ended(second, target, second - 5, before(pull()))
}

fn succeeds(second: i64, target: u64, began: i64) -> Event {
    ended(second, target, began, End::Succeeded { started_at: at(began) })
}

/// An event of a child of a schedule.
fn child(schedule: u64, event: Event) -> Event {
    Event { schedule: Some(Uid::new(&format!("s{schedule}"))), ..event }
}

fn elsewhere(event: Event) -> Event {
    Event { origin: origin("other.example"), ..event }
}

/// The creation of a probe, and its end ten seconds later.
fn probe(schedule: u64, created: i64, end: End) -> [Event; 2] {
    let ended = child(schedule, ended(created + 10, schedule, created, end));
    [Event { at: at(created), what: What::Made, ..ended.clone() }, ended]
}

/// Five targets that fail in the seconds 1 to 5: the circuit opens at 5.
fn outage() -> Vec<Event> {
    (1..=5).map(|n| pulls(n, n.unsigned_abs())).collect()
}

fn fold(events: impl IntoIterator<Item = Event>) -> Fold {
    Fold::of(&Policy::default(), events)
}

/// Returns the fingerprints whose circuits are open at a second.
fn open(events: impl IntoIterator<Item = Event>, second: i64) -> Vec<String> {
    fold(events).seen(at(second)).open.iter().map(|circuit| circuit.fingerprint.to_string()).collect()
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
            "a success between them that began before them",
            [many(&[1, 2, 3]), vec![succeeds(3, 9, 0)], vec![pulls(4, 4), pulls(5, 5)]].concat(),
            &[PULL],
        ),
        (
            "a success between them that began after the second",
            [many(&[1, 2, 5]), vec![succeeds(6, 9, 3)], vec![pulls(7, 4), pulls(8, 5), pulls(9, 6)]].concat(),
            &[],
        ),
        (
            "and two more after it",
            [many(&[1, 2, 5]), vec![succeeds(6, 9, 3)], (7..11).map(|n| pulls(n, n.unsigned_abs())).collect()].concat(),
            &[PULL],
        ),
        (
            "a success elsewhere between them",
            [many(&[1, 2, 3]), vec![elsewhere(succeeds(4, 9, 4))], vec![pulls(5, 4), pulls(5, 5)]].concat(),
            &[PULL],
        ),
        ("failures after something ran", (1..=5).map(|n| ended(n, n.unsigned_abs(), 0, half_way())).collect(), &[]),
        (
            "failures without a fingerprint",
            (1..=5)
                .map(|n| ended(n, n.unsigned_abs(), 0, End::Failed { fingerprint: None, before_start: true }))
                .collect(),
            &[],
        ),
        (
            "different fingerprints",
            (1..=5).map(|n| ended(n, n.unsigned_abs(), 0, before(set_up(&n.to_string())))).collect(),
            &[],
        ),
        ("a later success that began before it opened", with(vec![succeeds(9, 9, 5)]), &[PULL]),
        ("a later success that began after it opened", with(vec![succeeds(9, 9, 6)]), &[]),
        (
            "one that was made before and began after it opened",
            with(vec![ended(9, 9, 0, End::Succeeded { started_at: at(6) })]),
            &[],
        ),
        ("a success elsewhere", with(vec![elsewhere(succeeds(9, 9, 6))]), &[PULL]),
        ("a failure after something ran that began after it opened", with(vec![ended(9, 9, 6, half_way())]), &[PULL]),
        ("another failure of its kind", with(vec![ended(9, 9, 6, before(pull()))]), &[PULL]),
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
                vec![child(1, elsewhere(ended(8, 1, 6, before(set_up("x"))))), child(1, elsewhere(succeeds(9, 1, 6)))],
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

/// Returns the share of failing targets at a second, if the policy considers it too large.
fn degraded(events: impl IntoIterator<Item = Event>, second: i64) -> Option<(u32, u32)> {
    fold(events).seen(at(second)).degraded.map(|share| (share.failed, share.of))
}

#[test]
fn the_share_is_of_targets_that_only_failed_within_the_window() {
    let failed = |n: u64| ended(10, n, 0, before(set_up(&n.to_string())));
    let ran = |n: u64| ended(10, n, 0, half_way());
    let mixed = |bad: u64, good: u64| -> Vec<Event> {
        (0..bad).map(failed).chain((bad..bad + good).map(|n| succeeds(10, n, 0))).collect()
    };
    let with = |events: Vec<Event>, extra: Vec<Event>| [events, extra].concat();
    // The tenth target succeeded long before the others ended, and then failed with them.
    let flaky = || -> Vec<Event> {
        let others = (0..20).map(|n| if n < 10 { pulls(200, n) } else { succeeds(200, n, 190) });
        others.chain([succeeds(10, 9, 0)]).collect()
    };
    let rows = [
        ("ten of twenty", mixed(10, 10), 20, Some((10, 20))),
        ("nine of twenty", mixed(9, 11), 20, None),
        ("all of nineteen", mixed(19, 0), 20, None),
        ("twenty failures after something ran", (0..20).map(ran).collect(), 20, Some((20, 20))),
        ("twenty failures of one target", (0..20).map(|n| ended(n, 1, 0, half_way())).collect(), 20, None),
        ("one that failed, and then not", with(mixed(10, 10), vec![succeeds(11, 1, 0)]), 20, None),
        ("one that did not fail, and then did", with(mixed(9, 11), vec![pulls(11, 9)]), 20, None),
        ("the same, as long as its success is in the window", flaky(), 310, None),
        ("the same, after that", flaky(), 311, Some((10, 20))),
        ("at the end of the window", mixed(10, 10), 310, Some((10, 20))),
        ("after the window", mixed(10, 10), 311, None),
    ];
    for (what, events, second, expected) in rows {
        assert_eq!(degraded(events.clone(), second), expected, "{what}");
        assert_eq!(degraded(events.into_iter().rev(), second), expected, "{what}, in the other order");
    }
}

#[test]
fn a_share_or_a_number_of_nothing_says_nothing() {
    let off = CircuitPolicy {
        outage_targets: 0,
        breaker_threshold: crate::backoff::Thousandths::ZERO,
        ..CircuitPolicy::default()
    };
    let events: Vec<Event> = (0..200).map(|n| pulls(1, n)).collect();
    let seen = |circuits| {
        let seen = Fold::of(&Policy { circuits, ..Policy::default() }, events.clone()).seen(at(2));
        (seen.open.len(), seen.degraded.is_some())
    };
    assert_eq!(seen(off), (0, false));
    assert_eq!(seen(CircuitPolicy { outage_targets: 5, ..off }), (1, false));
    assert_eq!(seen(CircuitPolicy { outage_targets: 0, ..CircuitPolicy::default() }), (0, true));
}

/// Five schedules that fail in the seconds 1 to 5, each on its own target.
fn schedules_fail() -> Vec<Event> {
    (1..=5_i64).map(|n| child(n.unsigned_abs(), pulls(n, n.unsigned_abs()))).collect()
}

/// Returns the minutes from the opening of a circuit to each of its probes. Each probe ends with `end`.
fn minutes_of_probes(count: usize, end: impl Fn(usize) -> Option<End>) -> Vec<i64> {
    let mut events = schedules_fail();
    let mut minutes = Vec::new();
    for n in 0..count {
        let next = fold(events.clone()).seen(at(5)).open[0].next_probe_at;
        minutes.push((next - at(5)).num_minutes());
        let created = (next - at(0)).num_seconds();
        let [made, ended] = probe(u64::try_from(n).unwrap() % 5 + 1, created, end(n).unwrap_or(before(pull())));
        events.push(made);
        if end(n).is_some() {
            events.push(ended);
        }
    }
    minutes
}

#[test]
fn probes_are_as_far_apart_as_the_backoff_says() {
    let fails = |_| Some(before(pull()));
    assert_eq!(minutes_of_probes(8, fails), [1, 3, 7, 15, 25, 35, 45, 55]);
    // A probe that fails with another fingerprint shows nothing about this circuit, but has used its wait.
    let is_sick = |n| Some(before(if n == 1 { set_up("disk") } else { pull() }));
    assert_eq!(minutes_of_probes(5, is_sick), [1, 3, 5, 9, 17]);
    // The first probe hangs, and delays the next one by one wait.
    let hangs = |n| (n > 0).then_some(before(pull()));
    assert_eq!(minutes_of_probes(5, hangs), [1, 2, 4, 8, 16]);
}

#[test]
fn only_a_child_of_what_was_held_is_a_probe() {
    let probes = |extra: Vec<Event>| {
        let open = fold([schedules_fail(), extra].concat()).seen(at(200)).open.remove(0);
        (open.failed_probes, (open.next_probe_at - at(0)).num_seconds(), open.probes.get("ops").copied())
    };
    let fails = |schedule, created| probe(schedule, created, before(pull())).to_vec();
    assert_eq!(probes(vec![]), (0, 65, None));
    assert_eq!(probes(fails(1, 65)), (1, 65 + 120, Some(1)));
    assert_eq!(probes(fails(1, 64)), (0, 65, None), "it was under way when the opening became known");
    assert_eq!(probes(fails(9, 65)), (0, 65, None), "it had not failed with it");
    let elsewhere = vec![child(1, ended(30, 1, 6, before(set_up("x"))))];
    assert_eq!(probes([elsewhere, fails(1, 65)].concat()), (0, 65, None), "it had failed with something else since");
    let executions: Vec<Event> = (60..90).map(|n| pulls(n, n.unsigned_abs())).collect();
    assert_eq!(probes(executions), (0, 65, None), "no schedule made it");
}

#[test]
fn after_the_success_of_another_a_circuit_that_opens_again_holds_nobody_for_a_while() {
    let again = |closes: Event| {
        let five: Vec<Event> = (100..105).map(|n| pulls(n, n.unsigned_abs())).collect();
        let open = fold([schedules_fail(), vec![closes], five].concat()).seen(at(110)).open.remove(0);
        ((open.opened_at - at(0)).num_seconds(), (open.holds_from - at(0)).num_seconds())
    };
    assert_eq!(again(succeeds(90, 9, 80)), (104, 90 + 600));
    let [_, probe] = probe(1, 80, End::Succeeded { started_at: at(80) });
    assert_eq!(again(probe), (104, 104));
    let closings = |events: Vec<Event>| fold(events).seen(at(110)).closed.iter().map(|it| it.why).collect::<Vec<_>>();
    assert_eq!(closings([schedules_fail(), vec![succeeds(90, 9, 80)]].concat()), [Closing::Success]);
}

#[test]
fn a_probe_that_was_deleted_before_its_end_is_forgotten() {
    let mut fold = fold(schedules_fail());
    let [made, _] = probe(1, 65, before(pull()));
    assert_eq!(fold.take([made.clone()]), Taken::Yes);
    assert_eq!(fold.seen(at(70)).open[0].next_probe_at, at(125));
    assert_eq!(fold.forget(at(65), &made.uid), Taken::Yes);
    assert_eq!(fold.seen(at(70)).open[0].next_probe_at, at(65));
}

#[test]
fn a_circuit_closes_when_nothing_is_heard_of_it_for_long() {
    let quiet = 5 + 20 * 60;
    let [made, _] = probe(1, 600, before(pull()));
    let rows: Vec<(&str, Vec<Event>, i64)> = vec![
        ("nothing", vec![], quiet),
        ("a failure of its kind", vec![pulls(100, 9)], 100 + 20 * 60),
        ("another failure", vec![ended(100, 9, 90, before(set_up("x")))], quiet),
        ("a probe that hangs", vec![made], 600 + 20 * 60),
        ("a failure of its kind after that", vec![pulls(quiet + 1, 9)], quiet),
    ];
    for (what, extra, expected) in rows {
        let mut fold = fold([schedules_fail(), extra].concat());
        // The fold may have later events. An event after the closing does not affect a closed circuit.
        let is_earlier = !what.ends_with("after that");
        assert_eq!(fold.seen(at(expected - 1)).open.len(), usize::from(is_earlier), "{what}");
        let seen = fold.seen(at(expected));
        let closed: Vec<_> = seen.closed.iter().map(|it| (it.opened_at, it.closed_at, it.why)).collect();
        assert_eq!((seen.open.len(), closed), (0, vec![(at(5), at(expected), Closing::Quiet)]), "{what}");
    }
}

#[test]
fn what_a_decision_sees_says_what_is_held() {
    let circuits = fold(outage()).circuits(at(10));
    let quiet = 5 + 20 * 60;
    let is_open = |fingerprint: &Fingerprint, second| circuits.is_open_for(fingerprint, at(second));
    assert_eq!([4, 5, quiet - 1, quiet].map(|second| is_open(&pull(), second)), [false, true, true, false]);
    assert!(!is_open(&set_up("disk"), 10));
    let holds = |last: Option<Fingerprint>, second| circuits.holding(last.as_ref(), at(second)).is_some();
    assert_eq!([holds(Some(pull()), 10), holds(Some(set_up("x")), 10), holds(None, 10)], [true, false, false]);
    assert!(!holds(Some(pull()), quiet));
    let closing = |failed, second| circuits.closing(&pull(), at(failed), at(second));
    assert_eq!(closing(9, 10), None);
    assert_eq!(closing(9, quiet), Some((at(quiet), Closing::Quiet)));
    assert_eq!(closing(quiet + 1, quiet), None, "it failed later");
    assert_eq!(Circuits::default(), fold([]).circuits(at(10)));
}
