//! Draws faults for bugs that need two coincidences within seconds, which are too rare otherwise. These draws do not
//! affect the rest of the plan.

use fastrand::Rng;

use super::{LASTS, MINUTE, SECOND, pick};
use crate::plan::{Act, Create, Fault, Millis, Operation, Plan, Trouble};

/// One of this many plans has the first kind of coincidence, and another one the second. The remainder of the seed
/// selects them.
const EACH: u64 = 32;
/// How long the permission is missing: longer than the delayed work needs, although the operator retries it only every
/// half a minute.
const WITHOUT_RIGHT: Millis = 4 * MINUTE;
/// The time at which the operators have been working for a while. An execution that then gets no status in time was
/// overlooked.
const SETTLED: Millis = 5 * MINUTE;

/// Adds a coincidence to a plan.
pub(super) fn add(plan: &mut Plan, seed: u64) {
    let mut chance = Rng::with_seed(seed.rotate_left(29) ^ 0x3EE7);
    match seed % EACH {
        9 => start_in_gap(plan, &mut chance),
        24 => crowd_without_right(plan, &mut chance),
        _ => {}
    }
}

/// A container starts while the watch of pods is broken, and its pod is deleted before Tekton has seen the start. The
/// run therefore reports that nothing ran. After the gap, the watch begins again with a list.
fn start_in_gap(plan: &mut Plan, chance: &mut Rng) {
    for number in 0..4 {
        let at = chance.u64(MINUTE..LASTS);
        let name = format!("ops/gap-{number}");
        let story = pick(chance, &["timeout-of-task-before", "timeout-of-run-before", "timeout-while-image-is-pulled"]);
        create(plan, at, &name, &own_target(number), story);
        // The watch shows the waiting pod before the gap. The story's time-out deletes the pod during the gap.
        let starts = at + chance.u64(2 * SECOND..6 * SECOND);
        plan.acts.push(Act { at: starts, what: Operation::StartPods(name) });
        let from = starts - chance.u64(100..SECOND);
        let to = at + chance.u64(10 * SECOND..14 * SECOND);
        let refused = Trouble::WatchRefused { resource: "pods".to_owned(), code: 500 };
        plan.faults.push(Fault { from, to, replica: None, what: refused });
        let compacted = to.saturating_sub(chance.u64(0..SECOND));
        plan.faults.push(Fault { from: compacted, to: compacted, replica: None, what: Trouble::Compacted });
    }
}

/// The permission to create runs is missing while one execution after the other is created. There is no other fault.
fn crowd_without_right(plan: &mut Plan, chance: &mut Rng) {
    let from = chance.u64(SETTLED..LASTS);
    let denied = Trouble::Denied { verb: "create".to_owned(), resource: "pipelineruns".to_owned() };
    plan.faults = vec![Fault { from, to: from + WITHOUT_RIGHT, replica: None, what: denied }];
    for number in 0..6 {
        let at = from + chance.u64(0..WITHOUT_RIGHT);
        create(plan, at, &format!("ops/crowd-{number}"), &own_target(0), "success");
    }
}

/// Returns a target that no other part of the plan uses, so that its execution can run at once.
fn own_target(number: usize) -> String {
    format!("node/worker-node-9{number}")
}

fn create(plan: &mut Plan, at: Millis, name: &str, target: &str, story: &str) {
    let create = Create {
        name: name.to_owned(),
        target: target.to_owned(),
        workflow: format!("of-{}", name.rsplit('/').next().unwrap_or_default()),
        story: story.to_owned(),
        ..Create::default()
    };
    plan.acts.push(Act { at, what: Operation::Create(create) });
}
