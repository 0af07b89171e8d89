//! A triage by a pipeline, with a kill of the operator between any two of its writes (section 13.2). After any of the
//! kills, one execution analyses, its verdict is applied once, and the schedule continues when a person resumes it.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use wfe_simulation::outcome::Outcome;
use wfe_simulation::plan::{Fault, Millis, Plan, Trouble};
use wfe_simulation::world::{How, play};

/// The plan without a kill.
const SCENARIO: &str = "tests/scenarios/an-analyst-that-pauses-holds-its-schedule-until-a-person-resumes.json";
/// How long the operator is down after a kill.
const DOWN: Millis = 20_000;

fn plan() -> Plan {
    Plan::read(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(SCENARIO)).unwrap()
}

/// Plays a plan, and checks what must be true after any kill.
fn played(plan: &Plan, what: &str) -> Outcome {
    let outcome = play(plan, How { lines: true }).unwrap();
    assert!(outcome.violations.is_empty(), "{what}: {:#?}", outcome.violations);
    let count = |name: &str| outcome.counts.get(name).copied().unwrap_or_default();
    assert_eq!(["triages", "analysts", "verdicts"].map(count), [1, 1, 1], "{what}");
    let schedule = outcome.executions.iter().find(|line| line.starts_with("schedule ")).unwrap();
    assert!(schedule.contains("0 failures, last Completed"), "{what}: {schedule}");
    assert!(schedule.ends_with("triage Over by Pipeline verdict PauseAndNotify"), "{what}: {schedule}");
    outcome
}

/// Returns the writes and their times, from the record of the evidence to the end of the pause.
fn writes(outcome: &Outcome) -> Vec<(Millis, String)> {
    let all = outcome.lines.iter().filter_map(|line| {
        let mut words = line.splitn(5, ' ');
        let (at, _, method, uri, body) =
            (words.next()?, words.next()?, words.next()?, words.next()?, words.next().unwrap_or_default());
        let is_write = method != "GET" && !uri.contains("/leases") && !uri.contains("/events");
        is_write.then(|| (at.parse().unwrap(), format!("{method} {uri} {body}")))
    });
    let all: Vec<(Millis, String)> = all.collect();
    let first = all.iter().position(|(_, write)| write.contains("Analysing")).unwrap();
    all[first..].iter().take_while(|(at, _)| *at < 400_000).cloned().collect()
}

#[test]
fn a_triage_goes_on_wherever_the_operator_was_killed() {
    let plan = plan();
    let writes = writes(&played(&plan, "no kill"));
    assert!(writes.len() > 6, "{writes:#?}");
    for (number, (sent, write)) in writes.iter().enumerate() {
        // One kill comes before the write arrives, the other after the write was executed and answered.
        for from in [*sent, sent + 100] {
            let mut killed = plan.clone();
            killed.faults.push(Fault { from, to: from + DOWN, replica: None, what: Trouble::Crash });
            let shown: String = write.chars().take(120).collect();
            played(&killed, &format!("killed at {from}, at write {number}: {shown}"));
        }
    }
}
