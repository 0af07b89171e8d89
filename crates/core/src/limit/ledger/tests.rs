use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::limit::Limit;
use crate::testing::at;

type Key = u8;

fn limits(max: &[u32]) -> Limits {
    let limit = |(place, max_running): (usize, &u32)| Limit {
        name: format!("l{place}").into(),
        kind: None,
        workflow_id: None,
        namespace: None,
        max_running: *max_running,
    };
    max.iter().enumerate().map(limit).collect()
}

fn set(positions: &[usize]) -> LimitSet {
    LimitSet(positions.iter().fold(0, |set, position| set | 1 << position))
}

/// Returns the request of a target. A target with a higher number is younger.
fn ask(key: Key, positions: &[usize]) -> Ask {
    Ask { limits: set(positions), since: at(key.into()), uid: uid(key) }
}

fn uid(key: Key) -> Uid {
    Uid::new(&format!("u{key:03}"))
}

/// Returns a ledger whose targets were all decided on.
fn ledger(max: &[u32]) -> Ledger<Key> {
    Ledger::new(limits(max), [], at(0))
}

fn asks(ledger: &mut Ledger<Key>, key: Key, positions: &[usize]) {
    ledger.decided(&key, vec![ask(key, positions)], false, at(0));
}

fn give(ledger: &mut Ledger<Key>) -> Vec<Key> {
    ledger.give(at(0)).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn the_oldest_gets_the_free_place_and_a_place_is_free_when_its_target_is() {
    let mut ledger = ledger(&[2]);
    for key in [4, 2, 3, 1] {
        asks(&mut ledger, key, &[0]);
    }
    assert_eq!(give(&mut ledger), [1, 2]);
    assert_eq!(ledger.counts(), [Count { running: 2, waiting: 2 }]);
    assert!(ledger.seen(&1).are_given_to(&uid(1)) && !ledger.seen(&3).are_given_to(&uid(3)));
    assert_eq!(give(&mut ledger), [0; 0]);
    // The place counts once, although it was given and the view shows it, too.
    ledger.decided(&1, vec![], true, at(0));
    ledger.hold(&1, set(&[0]));
    assert_eq!(ledger.counts()[0].running, 2);
    ledger.decided(&1, vec![], false, at(0));
    assert_eq!((give(&mut ledger), ledger.counts()[0].running), (vec![], 2));
    ledger.hold(&1, set(&[]));
    assert_eq!(give(&mut ledger), [3]);
}

#[test]
fn a_place_that_the_next_decision_does_not_use_goes_to_the_next_in_the_line() {
    let mut ledger = ledger(&[1]);
    asks(&mut ledger, 1, &[0]);
    asks(&mut ledger, 2, &[0]);
    assert_eq!(give(&mut ledger), [1]);
    ledger.decided(&1, vec![], false, at(0));
    assert_eq!(give(&mut ledger), [2]);
    ledger.forget(&2);
    assert_eq!(ledger.counts(), [Count::default()]);
}

#[test]
fn the_last_free_place_is_kept_for_the_oldest_and_no_more_than_that() {
    let mut ledger = ledger(&[1, 2]);
    ledger.hold(&9, set(&[0]));
    asks(&mut ledger, 1, &[0, 1]);
    for key in [2, 3] {
        asks(&mut ledger, key, &[1]);
    }
    assert_eq!(give(&mut ledger), [2], "one of two places is kept for target 1");
    ledger.hold(&9, set(&[]));
    assert_eq!(give(&mut ledger), [1]);
    ledger.decided(&2, vec![], false, at(0));
    assert_eq!(give(&mut ledger), [3]);
}

#[test]
fn a_target_gets_one_place_though_it_asks_for_several() {
    let mut ledger = ledger(&[1, 1]);
    ledger.decided(&1, vec![ask(1, &[0]), Ask { uid: uid(7), ..ask(1, &[1]) }], false, at(0));
    asks(&mut ledger, 2, &[1]);
    assert_eq!(ledger.seen(&2), SeenPlaces { given: None, taken: vec![0, 0], ahead: Some(1) }.into());
    assert_eq!(give(&mut ledger), [1, 2]);
    assert!(ledger.seen(&1).are_given_to(&uid(1)));
}

#[test]
fn above_a_lowered_maximum_nothing_is_given() {
    let mut ledger = ledger(&[1]);
    for key in [7, 8, 9] {
        ledger.hold(&key, set(&[0]));
    }
    asks(&mut ledger, 1, &[0]);
    assert_eq!(give(&mut ledger), [0; 0]);
    ledger.hold(&7, set(&[]));
    ledger.hold(&8, set(&[]));
    assert_eq!(give(&mut ledger), [0; 0]);
    ledger.hold(&9, set(&[]));
    assert_eq!(give(&mut ledger), [1]);
}

#[test]
fn no_place_is_given_before_each_target_was_decided_on_or_none_could_be_for_ten_seconds() {
    let mut ledger = Ledger::new(limits(&[1]), [1, 2, 3], at(0));
    ledger.decided(&2, vec![ask(2, &[0])], false, at(8));
    ledger.forget(&3);
    assert_eq!(ledger.give(at(17)), []);
    let mut waited = ledger.clone();
    assert_eq!(waited.give(at(18)), [(2, set(&[0]))]);
    ledger.decided(&1, vec![ask(1, &[0])], false, at(9));
    assert_eq!(ledger.give(at(9)), [(1, set(&[0]))]);
}

#[test]
fn the_place_in_the_line_is_counted_over_all_lines_of_a_limit() {
    let mut ledger = ledger(&[1, 1]);
    ledger.hold(&90, set(&[0, 1]));
    for (key, positions) in [(1, &[0][..]), (2, &[1]), (3, &[0, 1]), (4, &[0])] {
        asks(&mut ledger, key, positions);
    }
    let ahead = |key: Key| match ledger.seen(&key) {
        Places(Some(seen)) => seen.ahead,
        Places(None) => None,
    };
    assert_eq!([1, 2, 3, 4, 5].map(ahead), [Some(0), Some(0), Some(2), Some(2), None]);
}

#[test]
fn ten_thousand_wait_behind_one_place_and_each_has_its_turn() {
    let mut ledger = Ledger::new(limits(&[1]), [], at(0));
    for key in 0..10_000_u32 {
        let ask = Ask { limits: set(&[0]), since: at(i64::from(key)), uid: Uid::new(&key.to_string()) };
        ledger.decided(&key, vec![ask], false, at(0));
    }
    for key in 0..10_000_u32 {
        assert_eq!(ledger.give(at(0)), [(key, set(&[0]))]);
        ledger.decided(&key, vec![], false, at(0));
    }
    assert_eq!(ledger.counts(), [Count::default()]);
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Key, u32),
    Leave(Key),
    Use(Key),
    Hold(Key, u32),
    Forget(Key),
    Give,
}

fn any_step() -> impl Strategy<Value = Step> {
    let (key, sets) = (0..12_u8, 1..8_u32);
    prop_oneof![
        4 => (key.clone(), sets.clone()).prop_map(|(key, limits)| Step::Ask(key, limits)),
        1 => key.clone().prop_map(Step::Leave),
        2 => key.clone().prop_map(Step::Use),
        2 => (key.clone(), 0..8_u32).prop_map(|(key, limits)| Step::Hold(key, limits)),
        1 => key.prop_map(Step::Forget),
        4 => Just(Step::Give),
    ]
}

/// The expected contents of the ledger, without sorted lines and counts.
#[derive(Default)]
struct Plain {
    held: BTreeMap<Key, LimitSet>,
    given: BTreeMap<Key, LimitSet>,
    asks: BTreeMap<Key, LimitSet>,
}

impl Plain {
    fn running(&self, position: usize) -> u32 {
        let keys: BTreeSet<&Key> = self
            .held
            .iter()
            .chain(&self.given)
            .filter(|(_, limits)| limits.contains(position))
            .map(|(key, _)| key)
            .collect();
        u32::try_from(keys.len()).unwrap()
    }

    /// Gives places by checking every request in the order of age.
    fn give(&mut self, max: &[u32]) -> Vec<Key> {
        let (mut kept, mut given) = (LimitSet::default(), Vec::new());
        for (key, limits) in self.asks.clone() {
            let room = |position: usize| {
                let free = i64::from(max[position]) - i64::from(self.running(position));
                free > i64::from(kept.contains(position))
            };
            if limits.positions().all(room) {
                self.asks.remove(&key);
                self.given.insert(key, limits);
                given.push(key);
            } else {
                kept = kept.union(limits);
            }
        }
        given
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn places_are_given_oldest_first_never_above_the_maximum_and_each_line_empties(
        max in prop::collection::vec(1..4_u32, 3),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let (mut ledger, mut plain) = (ledger(&max), Plain::default());
        for step in steps {
            match step {
                Step::Ask(key, limits) => {
                    let limits = LimitSet(limits);
                    let ask = Ask { limits, since: at(key.into()), uid: uid(key) };
                    ledger.decided(&key, vec![ask], false, at(0));
                    plain.given.remove(&key);
                    plain.asks.insert(key, limits);
                }
                Step::Leave(key) => {
                    ledger.decided(&key, vec![], false, at(0));
                    plain.given.remove(&key);
                    plain.asks.remove(&key);
                }
                Step::Use(key) if plain.given.contains_key(&key) => {
                    ledger.decided(&key, vec![], true, at(0));
                }
                Step::Use(_) => {}
                Step::Hold(key, limits) => {
                    ledger.hold(&key, LimitSet(limits));
                    plain.held.insert(key, LimitSet(limits));
                }
                Step::Forget(key) => {
                    ledger.forget(&key);
                    plain.held.remove(&key);
                    plain.given.remove(&key);
                    plain.asks.remove(&key);
                }
                Step::Give => {
                    let before: Vec<u32> = ledger.counts().iter().map(|count| count.running).collect();
                    prop_assert_eq!(give(&mut ledger), plain.give(&max));
                    for (position, count) in ledger.counts().iter().enumerate() {
                        let is_within = count.running <= max[position] || count.running == before[position];
                        prop_assert!(is_within, "{:?} of {:?}", count, max);
                    }
                }
            }
            for (position, count) in ledger.counts().iter().enumerate() {
                let waiting = plain.asks.values().filter(|limits| limits.contains(position)).count();
                prop_assert_eq!(*count, Count { running: plain.running(position), waiting });
            }
        }
        // When everything ends, the line empties, and the oldest request is never overtaken.
        let keys: Vec<Key> = plain.held.keys().chain(plain.given.keys()).copied().collect();
        for key in keys {
            ledger.hold(&key, LimitSet::default());
            let of = |limits: &LimitSet| Ask { limits: *limits, since: at(key.into()), uid: uid(key) };
            let asked = plain.asks.get(&key).map(of);
            ledger.decided(&key, asked.into_iter().collect(), false, at(0));
        }
        while let Some(oldest) = plain.asks.keys().next().copied() {
            let given = give(&mut ledger);
            prop_assert!(given.contains(&oldest), "{} waits, and {:?} got places", oldest, given);
            for key in given {
                ledger.decided(&key, vec![], false, at(0));
                plain.asks.remove(&key);
            }
        }
    }
}
