//! Draws schedules, operations by people on them, and faults that concern only schedules. These draws do not affect the
//! rest of the plan.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{BEFORE_ANYTHING_RAN, LASTS, MINUTE, SECOND, TARGETS, WORKFLOWS, pick};
use crate::plan::{Act, Edit, Fault, Hint, Millis, NAMESPACES, NewSchedule, Operation, Plan, Trouble};

/// Specs with short and long intervals or with cron, with and without limits.
const SPECS: [&str; 9] = [
    r#"{"interval": "5s"}"#,
    r#"{"interval": "20s"}"#,
    r#"{"interval": "20s", "startingDeadlineSeconds": 10}"#,
    r#"{"interval": "1m", "history": {"successful": 1, "failed": 0}}"#,
    r#"{"interval": "30s", "maxInterval": "1m", "history": {"successful": 0, "failed": 1}}"#,
    r#"{"interval": "1m", "spread": "20s"}"#,
    r#"{"interval": "2m"}"#,
    r#"{"cron": "* * * * *"}"#,
    r#"{"cron": "*/2 * * * *", "startingDeadlineSeconds": 20}"#,
];

/// In one of this many plans the operators are down for a day.
const AWAY: u64 = 15;
const DAY: Millis = 24 * 60 * MINUTE;

/// Adds schedules to a plan.
pub(super) fn add(plan: &mut Plan, seed: u64) {
    let mut chance = Rng::with_seed(seed.rotate_left(17) ^ 0x5C4E_D01E);
    let is_calm = plan.faults.is_empty();
    for number in 0..chance.usize(1..4) {
        let name = format!("{}/tick-{number}", pick(&mut chance, &NAMESPACES));
        let schedule = draw(&name, &mut chance);
        let at = chance.u64(0..LASTS / 3);
        people(plan, &schedule, at, &mut chance);
        plan.acts.push(Act { at, what: Operation::Schedule(schedule) });
    }
    if !is_calm {
        faults(plan, &mut chance);
    }
    if !is_calm && seed % AWAY == 2 {
        let from = chance.u64(MINUTE..LASTS / 2);
        plan.faults.push(Fault { from, to: from + DAY, replica: None, what: Trouble::Crash });
        // Without this act, the play would end too early to show what follows.
        plan.acts.push(Act { at: from + DAY + 3 * MINUTE, what: Operation::Touch("ops/fix-0".to_owned()) });
    }
}

fn draw(name: &str, chance: &mut Rng) -> NewSchedule {
    let story = |chance: &mut Rng| match chance.u8(0..4) {
        0 => pick(chance, &BEFORE_ANYTHING_RAN).to_owned(),
        1 => "exit-first".to_owned(),
        _ => "success".to_owned(),
    };
    let then = (0..chance.usize(0..5)).map(|_| story(chance)).collect();
    NewSchedule {
        name: name.to_owned(),
        target: pick(chance, &TARGETS).to_owned(),
        workflow: pick(chance, &WORKFLOWS).to_owned(),
        story: story(chance),
        then,
        registry: None,
        spec: serde_json::from_str(pick(chance, &SPECS)).unwrap_or_default(),
    }
}

/// Adds operations by people on a schedule and its children.
fn people(plan: &mut Plan, schedule: &NewSchedule, created: Millis, chance: &mut Rng) {
    let name = || schedule.name.clone();
    let edit = |spec: Value| Operation::EditSchedule(Edit { name: schedule.name.clone(), spec });
    for _ in 0..chance.usize(0..5) {
        let at = created + chance.u64(SECOND..LASTS);
        let later = at + chance.u64(SECOND..3 * MINUTE);
        let mut does = |at: Millis, what: Operation| plan.acts.push(Act { at, what });
        match chance.u8(0..10) {
            0 | 1 => {
                does(at, edit(json!({"suspend": true})));
                does(later, edit(json!({"suspend": null})));
            }
            2 => does(at, edit(json!({"interval": "15s", "cron": null, "maxInterval": null, "spread": null}))),
            3 => {
                let after = chance.bool().then(|| chance.u32(0..90));
                let interval = after.is_none().then(|| "10s".to_owned());
                does(at, Operation::Hint(Hint { name: name(), after, interval, lasts: chance.u32(91..300) }));
            }
            4 => {
                does(at, Operation::DeleteSchedule(name()));
                does(at + chance.u64(0..30 * SECOND), Operation::Schedule(schedule.clone()));
            }
            5 => does(at, Operation::WipeSchedule(name())),
            6 => does(at, Operation::DeleteChild(name())),
            7 => does(at, Operation::CancelChild(name())),
            _ => does(at, Operation::ClearChild(name())),
        }
    }
}

/// Draws faults that concern only schedules.
fn faults(plan: &mut Plan, chance: &mut Rng) {
    for _ in 0..chance.usize(0..3) {
        let resource = || "workflowschedules".to_owned();
        let from = chance.u64(0..LASTS);
        let to = from + chance.u64(SECOND..3 * MINUTE);
        let replica = chance.bool().then(|| chance.u8(0..plan.replicas));
        let denied =
            |verb: &str, resource: &str| Trouble::Denied { verb: verb.to_owned(), resource: resource.to_owned() };
        let what = match chance.u8(0..9) {
            0 => Trouble::WatchLate { resource: resource(), by: chance.u64(10..20 * SECOND) },
            1 => Trouble::WatchSilent { resource: resource() },
            2 => Trouble::WatchRefused { resource: resource(), code: [403, 410, 500][chance.usize(0..3)] },
            3 => Trouble::KindMissing { resource: resource() },
            4 => denied("create", "workflowexecutions"),
            5 => denied("patch", "workflowschedules"),
            6 => Trouble::AnswerLost { percent: 50 },
            7 => Trouble::Late { percent: 20, by: chance.u64(SECOND..30 * SECOND) },
            _ => Trouble::Crash,
        };
        plan.faults.push(Fault { from, to, replica, what });
    }
}
