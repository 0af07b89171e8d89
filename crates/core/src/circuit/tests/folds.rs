//! Properties of the fold for any events in any order of arrival.

use proptest::prelude::*;

use super::super::counted::MOST_COUNTED;
use super::super::fold::MOST_KEPT;
use super::super::share::MOST as MOST_TARGETS;
use super::super::state::MOST_OPEN;
use super::*;

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        2 => (0..4000_i64).prop_map(|began| End::Succeeded { started_at: at(began) }),
        8 => Just(before(pull())),
        2 => (0..3_u8).prop_map(|n| before(set_up(&n.to_string()))),
        1 => Just(End::Failed { fingerprint: None, before_start: true }),
        1 => Just(half_way()),
    ]
}

prop_compose! {
    fn any_event()(
        end in any_end(),
        (second, took) in (0..4000_i64, 0..300_i64),
        target in 0..9_u64,
        schedule in prop::option::of(0..4_u64),
        (is_elsewhere, is_made) in (any::<bool>(), prop::bool::weighted(0.2)),
        namespace in prop::sample::select(vec!["a", "a", "a", "b", "b", "c", "d", "e", "f"]),
    ) -> Event {
        let event = Event { namespace: namespace.into(), ..ended(second, target, second - took, end) };
        let event = if is_elsewhere { elsewhere(event) } else { event };
        match schedule {
            Some(schedule) if is_made => Event { what: What::Made, ..child(schedule, event) },
            Some(schedule) => child(schedule, event),
            None => event,
        }
    }
}

/// Generates events of different executions. Two events of one execution are the same event, which arrives twice.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_event(), 0..80).prop_map(|events| {
        let named = |(n, event): (usize, Event)| Event { uid: Uid::new(&n.to_string()), ..event };
        events.into_iter().enumerate().map(named).collect()
    })
}

fn seen(fold: &mut Fold) -> Vec<Seen> {
    [4000, 4100, 5000, 9000].map(|second| fold.seen(at(second))).into()
}

proptest! {
    #[test]
    fn the_order_of_arrival_changes_nothing(
        events in any_events(),
        late in prop::collection::vec(0..40_i64, 80),
        asks in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut arriving: Vec<_> = events.iter().cloned().zip(late).collect();
        arriving.sort_by_key(|(event, late)| event.at + Duration::from_secs(late.unsigned_abs()));
        let mut fold = Fold::new(&Policy::default());
        let mut known = Vec::new();
        for ((event, _), asks) in arriving.into_iter().zip(asks) {
            known.push(event.clone());
            if fold.take([event]) == Taken::TooOld {
                fold = Fold::of(&Policy::default(), known.clone());
            }
            if asks {
                let _ = fold.seen(at(2000));
            }
        }
        let mut scratch = Fold::of(&Policy::default(), events);
        prop_assert_eq!(fold.state(), scratch.state());
        prop_assert_eq!(seen(&mut fold), seen(&mut scratch));
    }

    #[test]
    fn fewer_targets_than_asked_for_open_nothing(
        events in any_events(),
        outage_targets in 10..20_u32,
    ) {
        let circuits = CircuitPolicy { outage_targets, ..CircuitPolicy::default() };
        let policy = Policy { circuits, ..Policy::default() };
        prop_assert!(Fold::of(&policy, events).seen(at(4000)).open.is_empty(), "there are nine targets");
    }

    #[test]
    fn a_probe_is_never_due_at_once_nor_later_than_the_longest_wait(
        events in any_events(),
    ) {
        for circuit in fold(events).seen(at(4000)).open {
            prop_assert!(circuit.next_probe_at >= circuit.opened_at + Duration::from_mins(1));
            prop_assert!(circuit.next_probe_at <= at(4000) + Duration::from_mins(10));
            prop_assert!(circuit.failed >= 5 && circuit.holds_from >= circuit.opened_at);
        }
    }
}

#[test]
fn what_comes_late_is_folded_anew_and_what_is_older_than_the_window_changes_nothing() {
    let mut fold = fold([]);
    for second in 0..1_000 {
        assert_eq!(fold.take([succeeds(second, 1, 0)]), Taken::Yes);
        let _ = fold.seen(at(second));
        // This event is a second late, as with a watch that delivers the ends of several targets.
        assert_eq!(fold.take([succeeds(second - 1, 2, 0)]), Taken::Yes);
    }
    assert_eq!(fold.take([pulls(990, 3)]), Taken::Yes);
    assert_eq!(fold.take([pulls(900, 3)]), Taken::TooOld);
    let before = fold.state().clone();
    assert_eq!(fold.take([pulls(600, 3)]), Taken::Yes);
    assert_eq!(*fold.state(), before);
}

/// Each decision looks at the circuits, so a flood must not be folded again at each look.
#[test]
fn each_end_of_a_flood_is_folded_once() {
    let count = 2 * MOST_KEPT as u64;
    for seconds in [1, 100] {
        let end = |n: u64| {
            let second = i64::try_from(n * seconds / count).unwrap();
            Event { uid: Uid::new(&format!("{n:08}")), ..succeeds(second, n, 0) }
        };
        let mut fold = fold([]);
        let mut applied = 0;
        for first in (0..count).step_by(512) {
            assert_eq!(fold.take((first..first + 512).map(end)), Taken::Yes);
            applied += fold.settle();
            assert_eq!(fold.settle(), 0, "nothing is new");
        }
        assert_eq!(applied as u64, count, "within {seconds} s");
        assert_eq!(fold.state(), Fold::of(&Policy::default(), (0..count).map(end)).state());
    }
}

#[test]
fn what_is_kept_of_a_flood_is_limited() {
    let count = 30_000_u64;
    let flood = (0..count).flat_map(|n| {
        let second = i64::try_from(n / 200).unwrap();
        let schedule = |event: Event| child(n, Event { uid: Uid::new(&format!("{n:08}")), ..event });
        // In the first half, five targets share each fingerprint. In the second half, each fingerprint has one target.
        let workflow = if n < count / 2 { n / 5 } else { n };
        [schedule(ended(second, n, 0, before(set_up(&workflow.to_string()))))]
    });
    let mut fold = Fold::of(&Policy::default(), flood.chain([succeeds(0, count, 0)]));
    let [open, closed, counted, schedules] = fold.state().sizes();
    assert_eq!(open, MOST_OPEN);
    assert!(closed <= 100 && counted <= MOST_COUNTED && schedules <= 20_000, "{closed} {counted} {schedules}");
    assert!(fold.targets() <= MOST_TARGETS);
}
