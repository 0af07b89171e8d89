//! What holds of the fold for any events, in any order of arrival.

use proptest::prelude::*;

use super::super::state::{MOST_COUNTED, MOST_OPEN, MOST_TARGETS};
use super::*;

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        2 => Just(End::Succeeded),
        6 => Just(End::FailedBefore(Some(pull()))),
        2 => (0..3_u8).prop_map(|n| End::FailedBefore(Some(set_up(&n.to_string())))),
        1 => Just(End::FailedBefore(None)),
        2 => Just(End::FailedAfter),
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

/// Events of different executions: what is said twice of one execution is the same event, which arrives twice.
fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_event(), 0..80).prop_map(|events| {
        let named = |(n, event): (usize, Event)| Event { uid: Uid::new(&n.to_string()), ..event };
        events.into_iter().enumerate().map(named).collect()
    })
}

fn seen(fold: &mut Fold) -> Vec<(Vec<OpenCircuit>, Vec<ClosedCircuit>)> {
    [0, 1000, 2000, 4000, 9000].map(|second| fold.seen(at(second))).into()
}

proptest! {
    #[test]
    fn the_order_of_arrival_changes_nothing(
        events in any_events(),
        order in prop::collection::vec(any::<u16>(), 80),
        asks in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut shuffled: Vec<_> = events.iter().cloned().zip(order).collect();
        shuffled.sort_by_key(|(_, order)| *order);
        let mut fold = Fold::new(&Policy::default());
        for ((event, _), asks) in shuffled.into_iter().zip(asks) {
            prop_assert_eq!(fold.take([event]), Taken::Yes);
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
        prop_assert!(Fold::of(&policy, events).seen(at(4000)).0.is_empty(), "there are nine targets");
    }

    #[test]
    fn a_circuit_holds_only_where_something_failed_unless_it_holds_all(
        events in any_events(),
    ) {
        let failed_in = |key: &CircuitKey, name: &str| events.iter().any(|event| match &event.what {
            What::Ended { end: End::FailedBefore(Some(with)), .. } if *key == CircuitKey::Of(with.clone()) => {
                *event.namespace == *name
            }
            What::Ended { end: End::FailedBefore(_) | End::FailedAfter, .. } if *key == CircuitKey::All => {
                *event.namespace == *name
            }
            _ => false,
        });
        let parties = |key: &CircuitKey| ["a", "b", "c", "d", "e", "f"].iter().filter(|it| failed_in(key, it)).count();
        let (open, closed) = fold(events.clone()).seen(at(4000));
        let open = open.iter().map(|circuit| (&circuit.key, &circuit.scope));
        for (key, scope) in open.chain(closed.iter().map(|circuit| (&circuit.key, &circuit.scope))) {
            match scope.namespaces() {
                Some(some) => {
                    prop_assert!((1..5).contains(&some.len()), "{some:?}");
                    prop_assert!(some.iter().all(|name| failed_in(key, name) && scope.has(name)), "{some:?}");
                }
                None => prop_assert!(parties(key) >= 5),
            }
        }
    }

    #[test]
    fn a_probe_is_never_due_at_once_nor_later_than_the_longest_wait(
        events in any_events(),
    ) {
        for circuit in fold(events).seen(at(4000)).0 {
            prop_assert!(circuit.next_probe_at >= circuit.opened_at + Duration::from_mins(1));
            prop_assert!(circuit.next_probe_at <= at(4000) + Duration::from_mins(10));
            prop_assert!(circuit.failed >= 5 && circuit.failed <= circuit.of);
        }
    }
}

#[test]
fn what_is_older_than_all_that_is_kept_is_refused() {
    let mut fold = fold([]);
    for second in 0..20_000 {
        assert_eq!(fold.take([succeeds(second, 1, 0)]), Taken::Yes);
        if second % 100 == 0 {
            let _ = fold.seen(at(second));
        }
    }
    let _ = fold.seen(at(20_000));
    assert_eq!(fold.take([pulls(1, 2)]), Taken::TooOld);
    assert_eq!(fold.take([pulls(19_000, 2)]), Taken::Yes);
}

#[test]
fn what_is_kept_of_a_flood_is_limited() {
    let count = 30_000_u64;
    let flood = (0..count).flat_map(|n| {
        let second = i64::try_from(n / 200).unwrap();
        let schedule = |event: Event| child(n, Event { uid: Uid::new(&format!("{n:08}")), ..event });
        // Five targets agree on each fingerprint, and then one on each of many.
        let workflow = if n < count / 2 { n / 5 } else { n };
        [schedule(ended(second, n, 0, End::FailedBefore(Some(set_up(&workflow.to_string())))))]
    });
    let policy = Policy {
        circuits: CircuitPolicy {
            breaker_threshold: crate::backoff::Thousandths::ONE,
            breaker_minimum: 10_000,
            ..CircuitPolicy::default()
        },
        ..Policy::default()
    };
    let mut fold = Fold::of(&policy, flood.chain([succeeds(0, count, 0)]));
    let [open, closed, counted, newest, schedules] = fold.state().sizes();
    assert_eq!(open, MOST_OPEN + 1, "with that of all");
    assert!(closed <= 100 && counted <= MOST_COUNTED && newest <= MOST_TARGETS && schedules <= 20_000);
}
