//! Which schedule has the turn to probe.

use super::super::turn::{Asks, GRANTED_FOR, Turns};
use super::*;
use crate::name::ScheduleId;

fn id(namespace: &str, n: u64) -> ScheduleId {
    ScheduleId { namespace: namespace.into(), name: format!("s{n}").into(), uid: Uid::new(&format!("s{n}")) }
}

fn uid(n: u64) -> Uid {
    id("ops", n).uid
}

fn asks(failures: u32) -> Asks {
    Asks { circuit: pull(), failures }
}

/// Returns the schedule that has the turn at a second. `probes` are the probes that each namespace has made.
fn turn(turns: &mut Turns, probes: &[(&str, u32)], second: i64) -> Option<Uid> {
    let mut circuit = fold(outage()).seen(at(10)).open.remove(0);
    circuit.probes = Arc::new(probes.iter().map(|(namespace, count)| ((*namespace).into(), *count)).collect());
    let mut open = [circuit];
    turns.give(&mut open, at(second));
    open[0].turn.clone()
}

#[test]
fn the_namespace_that_has_probed_least_goes_first_and_in_it_who_has_failed_least() {
    let mut turns = Turns::default();
    assert_eq!(turn(&mut turns, &[], 10), None);
    (0..40).for_each(|n| turns.wait(&id("crowd", n), asks(3)));
    turns.wait(&id("crowd", 40), asks(2));
    turns.wait(&id("victim", 50), asks(9));
    turns.wait(&id("elsewhere", 60), Asks { circuit: set_up("x"), failures: 0 });
    assert_eq!(turn(&mut turns, &[("victim", 1)], 10), Some(uid(40)));
    assert_eq!(turn(&mut turns, &[("crowd", 1)], 10), Some(uid(50)));
    assert_eq!(turn(&mut turns, &[("crowd", 1), ("victim", 1)], 10), Some(uid(40)));
    // Schedule 40 now has the most failures, and one of the others gets the turn.
    turns.wait(&id("crowd", 40), asks(4));
    let drawn = turn(&mut turns, &[("crowd", 1), ("victim", 2)], 10).unwrap();
    assert!(drawn != uid(40) && drawn != uid(50), "{drawn}");
    turns.leave(&drawn);
    assert_ne!(turn(&mut turns, &[("crowd", 1), ("victim", 2)], 10), Some(drawn));
}

#[test]
fn who_makes_its_child_keeps_the_turn_for_a_while() {
    let mut turns = Turns::default();
    turns.wait(&id("ops", 1), asks(1));
    assert_eq!(turn(&mut turns, &[], 10), Some(uid(1)));
    turns.make(&id("ops", 1), asks(1), at(100));
    (2..40).for_each(|n| turns.wait(&id("ops", n), asks(0)));
    assert_eq!(turn(&mut turns, &[], 101), Some(uid(1)));
    // A second decision does not extend the turn.
    turns.make(&id("ops", 1), asks(1), at(120));
    let over = 100 + i64::try_from(GRANTED_FOR.as_secs()).unwrap();
    assert_eq!(turn(&mut turns, &[], over - 1), Some(uid(1)));
    let second = turn(&mut turns, &[], over).unwrap();
    assert_ne!(second, uid(1));
    // The schedule waits again. The others go first until a probe is made.
    turns.wait(&id("ops", 1), asks(1));
    (2..40).map(uid).filter(|it| *it != second).for_each(|it| turns.leave(&it));
    assert_eq!(turn(&mut turns, &[], over + 1), Some(second.clone()));
    turns.leave(&second);
    assert_eq!(turn(&mut turns, &[], over + 2), Some(uid(1)), "nobody else can");
}

#[test]
fn when_no_circuit_is_open_nobody_waits() {
    let mut turns = Turns::default();
    turns.wait(&id("ops", 1), asks(0));
    turns.give(&mut [], at(10));
    assert_eq!(turn(&mut turns, &[], 10), None);
}
