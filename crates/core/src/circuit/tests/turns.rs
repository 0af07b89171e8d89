//! Whose turn it is to probe.

use super::super::turn::{GRANTED_FOR, Turns};
use super::*;

fn uid(n: u64) -> Uid {
    Uid::new(&format!("s{n}"))
}

fn opened(failed_probes: u32) -> OpenCircuit {
    let mut circuit = fold(outage()).seen(at(10)).0.remove(0);
    circuit.failed_probes = failed_probes;
    circuit
}

fn turn(turns: &mut Turns, failed_probes: u32, second: i64) -> Option<Uid> {
    let mut open = [opened(failed_probes)];
    turns.give(&mut open, at(second));
    open[0].turn.clone()
}

fn key() -> Vec<CircuitKey> {
    vec![CircuitKey::Of(pull())]
}

#[test]
fn the_turn_goes_round_among_those_that_wait() {
    let mut turns = Turns::default();
    assert_eq!(turn(&mut turns, 0, 10), None);
    (0..10).for_each(|n| turns.wait(&uid(n), key()));
    turns.wait(&uid(99), vec![CircuitKey::All]);
    let drawn: Vec<Uid> = (0..20).map(|k| turn(&mut turns, k, 10).unwrap()).collect();
    assert!(drawn.iter().all(|drawn| *drawn != uid(99)), "it does not hold that one");
    assert!(drawn.iter().collect::<std::collections::HashSet<_>>().len() > 4, "{drawn:?}");
    assert_eq!(turn(&mut turns, 3, 10), Some(drawn[3].clone()), "the draw is the same for ever");
    turns.leave(&drawn[3]);
    assert_ne!(turn(&mut turns, 3, 10), Some(drawn[3].clone()));
}

#[test]
fn who_makes_its_child_keeps_the_turn_for_a_while() {
    let mut turns = Turns::default();
    turns.wait(&uid(1), key());
    let first = turn(&mut turns, 0, 10).unwrap();
    turns.make(&first, key(), at(100));
    (2..40).for_each(|n| turns.wait(&uid(n), key()));
    assert_eq!(turn(&mut turns, 0, 101), Some(first.clone()));
    // Decided again, it does not get more time.
    turns.make(&first, key(), at(120));
    let over = 100 + i64::try_from(GRANTED_FOR.as_secs()).unwrap();
    assert_eq!(turn(&mut turns, 0, over - 1), Some(first.clone()));
    let second = turn(&mut turns, 0, over).unwrap();
    assert_ne!(second, first);
    // It waits again, and lets the others go first until a probe is made.
    turns.wait(&first, key());
    (2..40).map(uid).filter(|it| *it != second).for_each(|it| turns.leave(&it));
    assert_eq!(turn(&mut turns, 0, over + 1), Some(second.clone()));
    turns.leave(&second);
    assert_eq!(turn(&mut turns, 0, over + 2), Some(first), "nobody else can");
}

#[test]
fn when_no_circuit_is_open_nobody_waits() {
    let mut turns = Turns::default();
    turns.wait(&uid(1), key());
    turns.give(&mut [], at(10));
    assert_eq!(turn(&mut turns, 0, 10), None);
}
