//! A day of a schedule with a malformed workflow (section 12): how many times the workflow runs if the wait doubles
//! after each failure. Without these waits, each slot would have a run. `docs/schedules.md` contains the numbers.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use serde_json::json;
use wfe_simulation::plan::{Act, Create, Edit, NewSchedule, Operation, Plan};
use wfe_simulation::world::{How, play};

const SECOND: u64 = 1000;
const DAY: u64 = 24 * 60 * 60 * SECOND;

/// Plays a schedule with this interval for this time, and returns the number of its executions. At half-time another
/// client creates an execution on the same target.
fn runs(interval: u64, lasts: u64) -> usize {
    let name = "ops/tick".to_owned();
    let schedule = NewSchedule {
        name: name.clone(),
        target: "ops/statefulset/db".to_owned(),
        workflow: "cleanup".to_owned(),
        story: "bad-graph".to_owned(),
        spec: json!({"interval": format!("{interval}s"), "history": {"failed": 3}}),
        ..NewSchedule::default()
    };
    let other = Create {
        name: "ops/other".to_owned(),
        target: schedule.target.clone(),
        workflow: "restart".to_owned(),
        story: "success".to_owned(),
        ..Create::default()
    };
    let end = Edit { name, spec: json!({"suspend": true}) };
    let acts = [
        (0, Operation::Schedule(schedule)),
        (lasts / 2, Operation::Create(other)),
        (lasts, Operation::EditSchedule(end)),
    ];
    let plan = Plan {
        seed: interval,
        replicas: 1,
        flags: Vec::new(),
        tekton: "v1.12.0".to_owned(),
        acts: acts.into_iter().map(|(at, what)| Act { at, what }).collect(),
        faults: Vec::new(),
    };
    let outcome = play(&plan, How { lines: true }).unwrap();
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
    let others: Vec<&String> = outcome.executions.iter().filter(|it| it.starts_with("ops/other ")).collect();
    assert_eq!(others, ["ops/other Completed Completed"], "the failures of the schedule are not its target's");
    let made = |line: &&String| {
        let mut words = line.splitn(5, ' ').skip(2);
        words.next() == Some("POST") && words.next().is_some_and(|uri| uri.contains("/workflowexecutions?"))
    };
    outcome.lines.iter().filter(made).count()
}

/// The workflow runs in 26 of the 720 slots in an hour. With `WFE_TEST_ALL=1` the test plays whole days, with 17,280
/// and 1,440 slots.
#[test]
fn a_malformed_workflow_runs_less_and_less_often() {
    assert_eq!(runs(5, DAY / 24), 26);
    if std::env::var_os("WFE_TEST_ALL").is_some() {
        assert_eq!([runs(5, DAY), runs(60, DAY)], [544, 49]);
    }
}
