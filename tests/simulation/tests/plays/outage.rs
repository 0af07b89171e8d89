//! A registry is down during the slots of many schedules that use it (section 13.5). The tests measure how many times
//! the schedules run, and how soon all run again, with and without circuits. `docs/testing-records.md` contains the
//! numbers.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use wfe_simulation::plan::{Act, Fault, Millis, NAMESPACES, NewSchedule, Operation, Plan, Trouble};
use wfe_simulation::world::{How, play};

const SECOND: Millis = 1000;
const MINUTE: Millis = 60 * SECOND;
/// When the registry goes down. All schedules exist after a minute, and have then run once or twice.
const DOWN_FROM: Millis = 3 * MINUTE;
const WITHOUT_CIRCUITS: [&str; 2] = ["--outage-targets=0", "--breaker-threshold=0"];

/// The cost of an outage.
#[derive(Debug)]
struct Cost {
    /// The number of executions that were created while the registry was down.
    runs: usize,
    /// How many of these were created more than a minute after the beginning of the outage. With circuits, they are the
    /// probes.
    later: usize,
    /// The time from the end of the outage until every schedule has had a success. `None` if a schedule had none by the
    /// end of the play.
    recovered_after: Option<Millis>,
    /// The most executions that were created within one second after the end of the outage.
    at_once: usize,
}

/// Plays an outage of `minutes` with this many schedules, each of which runs once a minute, and continues for `after`.
/// The schedules are distributed over these namespaces.
fn outage(namespaces: &[&str], schedules: u64, minutes: u64, after: u64, flags: &[&str]) -> Cost {
    let in_turn: Vec<_> = namespaces.iter().cycle().take(schedules.try_into().unwrap()).collect();
    let schedule = |number: u64| NewSchedule {
        name: format!("{}/tick-{number}", in_turn[usize::try_from(number).unwrap()]),
        target: format!("node/worker-{number}"),
        workflow: "cleanup".to_owned(),
        story: "success".to_owned(),
        spec: json!({"interval": "1m"}),
        ..NewSchedule::default()
    };
    let to = DOWN_FROM + minutes * MINUTE;
    let acts = (0..schedules)
        .map(|number| Act { at: number * MINUTE / schedules, what: Operation::Schedule(schedule(number)) });
    let end = Act { at: to + after * MINUTE, what: Operation::Touch("ops/nobody".to_owned()) };
    let down = Trouble::RegistryDown { registry: "registry.test".to_owned() };
    let plan = Plan {
        seed: schedules,
        replicas: 1,
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        tekton: "v1.12.0".to_owned(),
        acts: acts.chain([end]).collect(),
        faults: vec![Fault { from: DOWN_FROM, to, replica: None, what: down }],
    };
    let outcome = play(&plan, How { lines: true }).unwrap();
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
    cost(&outcome.lines, schedules, to)
}

/// Computes the cost of an outage that ended at this time from the lines of the record.
fn cost(lines: &[String], schedules: u64, to: Millis) -> Cost {
    let mut made = Vec::new();
    let mut recovered: BTreeMap<String, Millis> = BTreeMap::new();
    for line in lines {
        let mut words = line.splitn(5, ' ');
        let (at, _, method, uri) =
            (words.next().unwrap(), words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (at, body) = (at.parse::<Millis>().unwrap(), words.next().unwrap_or_default());
        let path = uri.split('?').next().unwrap_or_default();
        if method == "POST" && path.ends_with("/workflowexecutions") && !body.contains("-triage\"") {
            made.push(at);
        }
        if method == "PATCH" && at >= to && body.contains("\"phase\":\"Completed\"") {
            let name = path.trim_end_matches("/status").rsplit('/').next().unwrap_or_default();
            let schedule = name.rsplit_once('-').unwrap_or_default().0.to_owned();
            recovered.entry(schedule).or_insert(at - to);
        }
    }
    let all_run = recovered.len() as u64 == schedules;
    let seconds: BTreeSet<Millis> = made.iter().filter(|at| **at >= to).map(|at| at / SECOND).collect();
    let in_second = |second: &Millis| made.iter().filter(|at| *at / SECOND == *second).count();
    let down = DOWN_FROM..to;
    Cost {
        runs: made.iter().filter(|at| down.contains(at)).count(),
        later: made.iter().filter(|at| (down.start + MINUTE..to).contains(at)).count(),
        recovered_after: recovered.values().copied().max().filter(|_| all_run),
        at_once: seconds.iter().map(in_second).max().unwrap_or_default(),
    }
}

/// Ten minutes and forty schedules. Each schedule fails once, in the first minute, and waits for two minutes. The
/// circuit has probes after 2, 4 and 8 minutes. The next probe is after 16 minutes, six minutes after the outage.
/// Without circuits, each schedule fails after 0, 2 and 6 minutes.
#[test]
fn a_registry_that_is_down_is_asked_by_one_schedule_at_a_time() {
    let tenants = [&NAMESPACES[..], &["ops"]];
    for namespaces in tenants.into_iter().take(if super::all() { 2 } else { 1 }) {
        let with = outage(namespaces, 40, 10, 9, &[]);
        println!("with circuits, in {namespaces:?}: {with:?}");
        assert_eq!((with.runs, with.later), (43, 3), "{with:?}");
        assert!(with.recovered_after.is_some_and(|it| it <= 8 * MINUTE), "{with:?}");
        assert!(with.at_once <= 5, "they go on one after the other: {with:?}");
    }
}

#[test]
fn without_circuits_each_schedule_asks_by_itself() {
    let without = outage(&["ops"], 40, 10, 9, &WITHOUT_CIRCUITS);
    println!("without: {without:?}");
    assert!(without.runs >= 100, "{without:?}");
}

/// An hour and two hundred schedules (only with `WFE_TEST_ALL=1`).
#[test]
fn an_outage_of_an_hour_costs_each_a_failure_and_eight_probes() {
    if !super::all() {
        return;
    }
    let with = outage(&["ops"], 200, 60, 9, &[]);
    println!("with circuits: {with:?}");
    assert_eq!((with.runs, with.later), (208, 8), "{with:?}");
    assert!(with.recovered_after.is_some_and(|it| it <= 8 * MINUTE), "{with:?}");
    assert!(with.at_once <= 16, "they go on one after the other: {with:?}");
    // The play ends with the outage: the schedules' own backoff would delay the recovery by another half an hour, with
    // thousands of executions.
    let without = outage(&["ops"], 200, 60, 0, &WITHOUT_CIRCUITS);
    println!("without: {without:?}");
    assert!(without.runs > 900, "{without:?}");
}
