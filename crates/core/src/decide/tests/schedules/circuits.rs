//! Row 8: what an open circuit holds, whose turn it is, and what follows its closing (section 13.5).

use super::*;
use crate::action::Probe;
use crate::circuit::{CircuitKey, Circuits, ClosedCircuit, Closing, OpenCircuit, Scope};
use crate::fingerprint::Fingerprint;

const PULL: &str = "ImagePullBackOff/registry/registry.example";

fn key(said: &str) -> CircuitKey {
    Fingerprint::parse(said).map_or(CircuitKey::All, CircuitKey::Of)
}

/// The namespace of all schedules here, unless a test says otherwise.
fn own() -> Scope {
    Scope::of(["ops".into()], at(20))
}

/// A circuit that opened at second 20: its next probe is due at second 80, and it is quiet at second 1220.
fn open(said: &str, turn: Option<&str>) -> OpenCircuit {
    OpenCircuit {
        key: key(said),
        scope: own(),
        opened_at: at(20),
        failed: 5,
        of: 5,
        failed_probes: 0,
        next_probe_at: at(80),
        quiet_at: at(1220),
        turn: turn.map(Uid::new),
    }
}

fn closed(said: &str, second: i64) -> ClosedCircuit {
    ClosedCircuit { key: key(said), scope: own(), opened_at: at(20), closed_at: at(second), why: Closing::Past }
}

fn beside(schedules: Vec<Schedule>, open: Vec<OpenCircuit>, closed: Vec<ClosedCircuit>) -> Target {
    Target { circuits: Circuits::new(open, closed), ..scheduled(Target::default(), schedules) }
}

fn decided_under(schedule: &Schedule, open: Vec<OpenCircuit>, second: i64) -> Decision {
    decide(&beside(vec![schedule.clone()], open, vec![]), &Policy::default(), at(second))
}

fn failed_with(said: &str, outcome: Outcome) -> Schedule {
    with(|it| {
        let last = LastRun { fingerprint: Fingerprint::parse(said), ..last_run(0, Some((outcome, 10))) };
        (it.status.last_run, it.workflow_id) = (Some(last), "x".into());
        it.origin = std::sync::Arc::new(crate::fingerprint::Origin::new("x", "1", "elsewhere.example/x:1"));
    })
}

#[test]
fn an_open_circuit_holds_what_it_touches() {
    let earlier = Schedule {
        status: ScheduleStatus { planned_from: Some(at(5)), ..failed_with(PULL, Outcome::Failed).status },
        ..failed_with(PULL, Outcome::Failed)
    };
    let strict = with(|it| plan(it).deadline = Some(Duration::from_secs(20)));
    for (what, schedule, circuit, second, row) in [
        ("its registry", schedule("s"), open(PULL, None), 75, "8 circuit"),
        ("another registry", schedule("s"), open("ImagePullBackOff/registry/other", None), 75, "10 otherwise"),
        ("its workflow", schedule("s"), open("ConfigurationError/workflow/wf@1", None), 75, "8 circuit"),
        ("a task of its workflow", schedule("s"), open("Unknown/workflow/wf@1/task", None), 75, "8 circuit"),
        ("another version", schedule("s"), open("ConfigurationError/workflow/wf@2", None), 75, "10 otherwise"),
        ("all", schedule("s"), open("*", None), 75, "8 circuit"),
        ("the cluster", schedule("s"), open("Forbidden/cluster", None), 75, "8 circuit"),
        ("what it failed with last", failed_with(PULL, Outcome::Failed), open(PULL, None), 200, "8 circuit"),
        ("what it did not fail with", failed_with(PULL, Outcome::Completed), open(PULL, None), 200, "10 otherwise"),
        ("what it failed with in another plan", earlier, open(PULL, None), 200, "10 otherwise"),
        ("its slot lies ahead", schedule("s"), open("*", None), 59, "6 slot ahead"),
        ("it is suspended", with(|it| it.suspended = true), open("*", Some("s")), 85, "3 suspended"),
        ("its child is at work", at_work(60), open("*", Some("s")), 85, "5 child at work"),
        ("its turn", schedule("s"), open("*", Some("s")), 80, "10 otherwise"),
        ("its turn, later", schedule("s"), open("*", Some("s")), 79, "8 circuit"),
        ("the turn of another", schedule("s"), open("*", Some("t")), 80, "8 circuit"),
        ("its turn, and it is late", strict.clone(), open("*", Some("s")), 81, "9 late"),
        ("late, and held", strict, open("*", Some("t")), 81, "8 circuit"),
        ("it is quiet", with(|it| it.status.last_run = Some(last_run(1200, None))), open("*", None), 1220, "2 outcome"),
    ] {
        let decision = decided_under(&schedule, vec![circuit], second);
        assert_eq!(self::row(&decision), row, "{what}");
        let is_held = decision.schedules[0].1.held == Some(HeldBy::CircuitOpen);
        assert_eq!(is_held, row == "8 circuit", "{what}");
    }
}

#[test]
fn a_circuit_holds_no_schedule_of_a_namespace_that_has_not_failed_with_it() {
    let elsewhere = |mut schedule: Schedule| {
        schedule.id.namespace = "shop".into();
        schedule
    };
    let of = |names: &[&str], said: &str| OpenCircuit {
        scope: Scope::of(names.iter().map(|name| (*name).into()), at(20)),
        ..open(said, None)
    };
    for (what, schedule, circuit, second, is_held) in [
        ("its registry", schedule("s"), of(&["ops"], PULL), 75, false),
        ("all", schedule("s"), of(&["ops"], "*"), 75, false),
        ("the cluster", schedule("s"), of(&["ops"], "Forbidden/cluster"), 75, false),
        ("what it failed with last", failed_with(PULL, Outcome::Failed), of(&["ops"], PULL), 200, false),
        ("by now its namespace too", schedule("s"), of(&["ops", "shop"], PULL), 75, true),
        ("all namespaces", schedule("s"), of(&["a", "b", "c", "d", "e"], PULL), 75, true),
    ] {
        let row = row(&decided_under(&elsewhere(schedule), vec![circuit], second));
        assert_eq!(row, if is_held { "8 circuit" } else { "10 otherwise" }, "{what}");
    }
    // Its closing spreads what it held, and the turn of a circuit that does not hold it lets nothing through.
    let spread = beside(vec![elsewhere(schedule("s"))], vec![], vec![closed(PULL, 600)]);
    assert_eq!(row(&decide(&spread, &Policy::default(), at(600))), "10 otherwise");
    let spread = beside(vec![schedule("s")], vec![], vec![closed(PULL, 600)]);
    assert_eq!(row(&decide(&spread, &Policy::default(), at(600))), "8 circuit");
    let both = vec![open(PULL, Some("s")), of(&["shop"], "*")];
    assert_eq!(row(&decided_under(&elsewhere(schedule("s")), both, 85)), "8 circuit");
}

#[test]
fn the_turn_of_one_circuit_passes_all() {
    let both = |second| vec![open(PULL, Some("s")), OpenCircuit { next_probe_at: at(900), ..open("*", Some(second)) }];
    assert_eq!(row(&decided_under(&schedule("s"), both("t"), 85)), "10 otherwise");
    let decision = decided_under(&schedule("s"), both("t"), 85);
    assert_eq!(decision.schedules[0].1.probe, Probe::Makes(vec![key(PULL), key("*")]));
    let elsewhere = failed_with("*", Outcome::Completed);
    assert_eq!(row(&decided_under(&elsewhere, both("t"), 85)), "8 circuit", "a turn of what does not touch it");
}

#[test]
fn who_waits_for_a_turn_is_held_by_nothing_else() {
    let strict = with(|it| plan(it).deadline = Some(Duration::from_secs(20)));
    let awaits = Probe::Awaits(vec![key("*")]);
    let circuit = || vec![open("*", None)];
    assert_eq!(decided_under(&schedule("s"), circuit(), 75).schedules[0].1.probe, awaits);
    assert_eq!(decided_under(&strict, circuit(), 80).schedules[0].1.probe, awaits);
    assert_eq!(decided_under(&strict, circuit(), 80).wake, Some(at(80) + Duration::from_nanos(1)), "it becomes late");
    assert_eq!(decided_under(&strict, circuit(), 81).schedules[0].1.probe, Probe::None);
    assert_eq!(decided_under(&strict, circuit(), 100).wake, Some(at(120)), "another slot comes");
    for other in [with(|it| it.suspended = true), with(|it| it.paused = Some(pause("x"))), at_work(60)] {
        assert_eq!(decided_under(&other, circuit(), 75).schedules[0].1.probe, Probe::None);
    }
    let blocked = Target {
        executions: target(vec![broke("p", "x", 1, 0)], vec![]).executions,
        ..beside(vec![schedule("s")], circuit(), vec![])
    };
    let decision = decide(&blocked, &Policy::default(), at(75));
    assert_eq!((row(&decision), &decision.schedules[0].1.probe), ("7 target", &Probe::None));
}

#[test]
fn a_hold_says_which_circuit_and_the_decision_when_it_is_probed() {
    let of_all = OpenCircuit { failed: 12, of: 20, failed_probes: 3, ..open("*", Some("s")) };
    let decision = decided_under(&schedule("s"), vec![open(PULL, Some("t")), of_all], 75);
    let status = &only_record(&decision).status;
    let Held::By { reason: HeldBy::CircuitOpen, message } = &status.held else { panic!("{:?}", status.held) };
    let opened = crate::moment::shown(at(20));
    assert_eq!(
        **message,
        format!("circuit * is open since {opened}, when 12 of 20 targets had failed; 1 more circuits hold it")
    );
    let because = &decision.schedules[0].1.asked.last().unwrap().1;
    let due = crate::moment::shown(at(80));
    let probes = format!("failed probes: 3; the next may be made at {due}, and is made by this schedule");
    assert_eq!(*because, format!("held, CircuitOpen: {message}; {probes}; it holds schedules of namespace ops"));
    assert_eq!((status.failure_count, &status.last_run), (0, &schedule("s").status.last_run), "a hold is no failure");
    assert_eq!(decision.wake, Some(at(80)), "its turn comes");
    assert_eq!(decided_under(&schedule("s"), vec![open("*", Some("t"))], 75).wake, Some(at(1220)), "it closes");
}

#[test]
fn after_a_closing_what_was_held_goes_on_one_after_the_other() {
    let uids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let policy = Policy::default();
    let mut moments: Vec<i64> = uids
        .iter()
        .map(|uid| {
            let makes = |second: i64| {
                let target = beside(vec![schedule(uid)], vec![], vec![closed("*", 600)]);
                let decision = decide(&target, &policy, at(second));
                decision.actions.iter().any(|action| matches!(action, Action::CreateChild { .. }))
            };
            let first = (600..700).find(|second| makes(*second)).unwrap();
            assert!((first..700).all(makes), "nothing holds {uid} again");
            first
        })
        .collect();
    assert!(moments.iter().all(|second| (600..660).contains(second)), "{moments:?}");
    moments.sort_unstable();
    moments.dedup();
    assert!(moments.len() > 4, "{moments:?}");
    // What was not due when it closed was not held by it.
    let fresh = beside(vec![schedule("a")], vec![], vec![closed("*", 59)]);
    assert_eq!(row(&decide(&fresh, &policy, at(60))), "10 otherwise");
    // Nor is what it does not touch.
    let other = beside(vec![schedule("a")], vec![], vec![closed("ImagePullBackOff/registry/other", 600)]);
    assert_eq!(row(&decide(&other, &policy, at(600))), "10 otherwise");
    // One that closed by itself spreads too, before the view says so.
    let quiet = beside(vec![schedule("a")], vec![open("*", None)], vec![]);
    let decision = decide(&quiet, &policy, at(1220));
    assert_eq!((row(&decision), decision.schedules[0].1.held), ("8 circuit", Some(HeldBy::CircuitOpen)));
    assert_eq!(row(&decide(&quiet, &policy, at(1280))), "10 otherwise");
}
