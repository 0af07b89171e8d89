//! Row 8: which schedules an open circuit holds, which of them has the turn, and what happens after the circuit closes
//! (section 13.5).

use super::*;
use crate::action::Probe;
use crate::circuit::{Asks, ClosedCircuit, Closing, OpenCircuit};
use crate::fingerprint::Fingerprint;
use crate::schedule::Child;

const PULL: &str = "ImagePullBackOff/registry/registry.example";
const OTHER: &str = "Unknown/cluster";

/// A circuit that opened at second 20. Its next probe is due at second 80, and it closes by itself at second 1220.
fn open(said: &str, turn: Option<&str>) -> OpenCircuit {
    open_circuit(said, 20, 1220, turn)
}

fn beside(schedules: Vec<Schedule>, open: Vec<OpenCircuit>, closed: Vec<ClosedCircuit>) -> Target {
    Target { circuits: circuits(open, closed), ..scheduled(Target::default(), schedules) }
}

fn decided_under(schedule: &Schedule, open: Vec<OpenCircuit>, second: i64) -> Decision {
    decide(&beside(vec![schedule.clone()], open, vec![]), &Policy::default(), at(second))
}

/// A schedule whose last run ended at second 10 with this outcome and fingerprint. Its next slot is at second 60.
fn ended_with(said: &str, outcome: Outcome) -> Schedule {
    with(|it| {
        let fingerprint = Fingerprint::parse(said);
        it.status.last_run = Some(LastRun { fingerprint, ..last_run(0, Some((outcome, 10))) });
    })
}

fn failed() -> Schedule {
    ended_with(PULL, Outcome::Failed)
}

/// A schedule whose last run was cancelled, and whose earlier children do not exist any more.
fn cancelled() -> Schedule {
    with(|it| it.status.last_run = Some(last_run(0, Some((Outcome::Cancelled, 10)))))
}

/// A schedule whose last run was cancelled. The run before it ended with this outcome, and its child still exists.
fn ended_after(outcome: Outcome) -> Schedule {
    let mut schedule = cancelled();
    let fingerprint = Fingerprint::parse(PULL);
    let state = ChildState::Ended { outcome, at: Some(at(-50)), reason: None, fingerprint };
    schedule.children = vec![Child { uid: Uid::new("c"), slot: at(-60), created: at(-60), state }];
    schedule
}

fn failed_and(change: impl FnOnce(&mut Schedule)) -> Schedule {
    let mut failed = failed();
    change(&mut failed);
    failed
}

/// A schedule whose slot is missed after twenty seconds.
fn strict() -> Schedule {
    failed_and(|it| plan(it).deadline = Some(Duration::from_secs(20)))
}

fn asks() -> Asks {
    Asks { circuit: Fingerprint::parse(PULL).unwrap(), failures: 0 }
}

#[test]
fn an_open_circuit_holds_what_failed_with_it_last_and_nothing_else() {
    let earlier = failed_and(|it| it.status.planned_from = Some(at(5)));
    let young = OpenCircuit { holds_from: at(600), ..open(PULL, None) };
    for (what, schedule, circuit, second, row) in [
        ("it has not failed, and fetches from that registry", schedule("s"), open(PULL, None), 75, "10 otherwise"),
        ("it has not failed, and runs in that cluster", schedule("s"), open(OTHER, None), 75, "10 otherwise"),
        ("it failed with it last", failed(), open(PULL, None), 75, "8 circuit"),
        ("it failed with something else", failed(), open(OTHER, None), 75, "10 otherwise"),
        ("it was cancelled since", ended_after(Outcome::Failed), open(PULL, None), 75, "8 circuit"),
        ("it was cancelled since it completed", ended_after(Outcome::Completed), open(PULL, None), 75, "10 otherwise"),
        ("it was cancelled, and nothing is left of the failure", cancelled(), open(PULL, None), 75, "10 otherwise"),
        ("it completed last", ended_with(PULL, Outcome::Completed), open(PULL, None), 75, "10 otherwise"),
        ("it failed with it in an earlier plan", earlier, open(PULL, None), 75, "10 otherwise"),
        ("a success of another has closed it a short time ago", failed(), young.clone(), 599, "10 otherwise"),
        ("and by now long ago", failed(), young, 600, "8 circuit"),
        ("its slot lies ahead", failed(), open(PULL, None), 59, "6 slot ahead"),
        ("it is suspended", failed_and(|it| it.suspended = true), open(PULL, Some("s")), 85, "3 suspended"),
        ("its turn", failed(), open(PULL, Some("s")), 80, "10 otherwise"),
        ("its turn, later", failed(), open(PULL, Some("s")), 79, "8 circuit"),
        ("the turn of another", failed(), open(PULL, Some("t")), 80, "8 circuit"),
        ("its turn, and it is late", strict(), open(PULL, Some("s")), 81, "9 late"),
        ("late, and held", strict(), open(PULL, Some("t")), 81, "8 circuit"),
    ] {
        let decision = decided_under(&schedule, vec![circuit], second);
        assert_eq!(self::row(&decision), row, "{what}");
        let is_held = decision.schedules[0].1.held == Some(HeldBy::CircuitOpen);
        assert_eq!(is_held, row == "8 circuit", "{what}");
    }
}

#[test]
fn who_waits_for_a_turn_is_held_by_nothing_else() {
    let circuit = || vec![open(PULL, None)];
    let probe = |schedule: &Schedule, second| decided_under(schedule, circuit(), second).schedules[0].1.probe.clone();
    assert_eq!(probe(&failed(), 75), Probe::Awaits(asks()));
    assert_eq!(probe(&strict(), 80), Probe::Awaits(asks()));
    assert_eq!(decided_under(&strict(), circuit(), 80).wake, Some(at(80) + Duration::from_nanos(1)), "it becomes late");
    assert_eq!(probe(&strict(), 81), Probe::None);
    assert_eq!(decided_under(&strict(), circuit(), 100).wake, Some(at(120)), "another slot comes");
    for other in [failed_and(|it| it.suspended = true), failed_and(|it| it.paused = Some(pause("x"))), at_work(60)] {
        assert_eq!(probe(&other, 75), Probe::None);
    }
    let blocked = Target {
        executions: target(vec![broke("p", "x", 1, 0)], vec![]).executions,
        ..beside(vec![failed()], circuit(), vec![])
    };
    let decision = decide(&blocked, &Policy::default(), at(75));
    assert_eq!((row(&decision), &decision.schedules[0].1.probe), ("7 target", &Probe::None));
    let makes = decided_under(&failed(), vec![open(PULL, Some("s"))], 85);
    assert_eq!(makes.schedules[0].1.probe, Probe::Makes(asks()));
}

#[test]
fn a_hold_says_which_circuit_and_the_decision_when_it_is_probed() {
    let circuit = OpenCircuit { failed: 12, failed_probes: 3, ..open(PULL, Some("s")) };
    let decision = decided_under(&failed(), vec![circuit], 75);
    let status = &only_record(&decision).status;
    let Held::By { reason: HeldBy::CircuitOpen, message } = &status.held else { panic!("{:?}", status.held) };
    let opened = crate::moment::shown(at(20));
    assert_eq!(**message, format!("circuit {PULL} is open since {opened}, when 12 targets had failed with it"));
    let because = &decision.schedules[0].1.asked.last().unwrap().1;
    let due = crate::moment::shown(at(80));
    let probes = format!("failed probes: 3; the next may be made at {due}, and is made by this schedule");
    assert_eq!(*because, format!("held, CircuitOpen: {message}; {probes}"));
    assert_eq!((status.failure_count, &status.last_run), (0, &failed().status.last_run), "a hold is no failure");
    assert_eq!(decision.wake, Some(at(80)), "its turn comes");
    assert_eq!(decided_under(&failed(), vec![open(PULL, Some("t"))], 75).wake, Some(at(1220)), "it closes");
}

#[test]
fn after_a_closing_what_was_held_goes_on_one_after_the_other() {
    let uids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let policy = Policy::default();
    let named = |uid: &str| Schedule { id: schedule(uid).id, ..failed() };
    // The number of seconds from a closing until each schedule continues.
    let goes_on = |closed: i64| -> Vec<i64> {
        let first = |uid: &&str| {
            let makes = |second: &i64| {
                let target = beside(vec![named(uid)], vec![], vec![closed_circuit(PULL, closed, Closing::Success)]);
                let decision = decide(&target, &policy, at(*second));
                decision.actions.iter().any(|action| matches!(action, Action::CreateChild { .. }))
            };
            let first = (closed..closed + 100).find(makes).unwrap();
            assert!((first..closed + 100).all(|second| makes(&second)), "nothing holds {uid} again");
            first - closed
        };
        uids.iter().map(first).collect()
    };
    let moments = goes_on(600);
    assert!(moments.iter().all(|second| (0..60).contains(second)), "{moments:?}");
    assert!(moments.iter().collect::<std::collections::BTreeSet<_>>().len() > 4, "{moments:?}");
    assert_ne!(moments, goes_on(700), "not always in the same order");
    for (what, schedule, closed) in [
        ("it was not due when that closed", named("a"), closed_circuit(PULL, 59, Closing::Probe)),
        ("it failed with something else", named("a"), closed_circuit(OTHER, 600, Closing::Probe)),
        ("it has not failed", schedule("a"), closed_circuit(PULL, 600, Closing::Probe)),
        ("it failed later", named("a"), closed_circuit(PULL, 9, Closing::Probe)),
    ] {
        let second = (closed.closed_at - at(0)).num_seconds().max(60);
        let decision = decide(&beside(vec![schedule], vec![], vec![closed]), &policy, at(second));
        assert_eq!(row(&decision), "10 otherwise", "{what}");
    }
    // Schedules are also spread after a circuit that closed by itself, even before the view shows it as closed.
    let quiet = beside(vec![named("a")], vec![open(PULL, None)], vec![]);
    let decision = decide(&quiet, &policy, at(1220));
    assert_eq!((row(&decision), decision.schedules[0].1.held), ("8 circuit", Some(HeldBy::CircuitOpen)));
    assert_eq!(row(&decide(&quiet, &policy, at(1280))), "10 otherwise");
}
