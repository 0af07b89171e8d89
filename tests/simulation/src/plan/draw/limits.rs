//! Draws limits of how many targets may be busy at once, with a wave of executions for them.

use fastrand::Rng;

use super::{LASTS, MINUTE, SECOND, drains_for_ever, pick};
use crate::plan::{Act, Create, Operation, Plan};

/// The first seed that may have limits. The hashes of earlier seeds show that the feature costs nothing without limits.
const FROM: u64 = 200;
/// From seed [`FROM`] on, one plan in this many has limits.
const EACH: u64 = 4;
/// The limits of a plan: one for all targets, two that overlap, or two that share only some targets.
const LIMITS: [&str; 4] = [
    r#"[{"name":"all","maxRunning":1}]"#,
    r#"[{"name":"all","maxRunning":3},{"name":"nodes","kind":"node","maxRunning":1}]"#,
    r#"[{"name":"restarts","workflowId":"restart","maxRunning":1},{"name":"nodes","kind":"node","maxRunning":2}]"#,
    r#"[{"name":"payment","namespace":"payment","maxRunning":1},{"name":"restarts","workflowId":"restart","maxRunning":2}]"#,
];

/// Adds limits to some plans.
pub(super) fn add(plan: &mut Plan, seed: u64) {
    if seed < FROM || seed % EACH != 3 {
        return;
    }
    let mut chance = Rng::with_seed(seed.rotate_left(41) ^ 0x11F7);
    plan.flags.push(format!("--limits={}", pick(&mut chance, &LIMITS)));
    // A target that drains for ever would count for its limit for ever, so some executions would never end.
    plan.acts.retain(|act| !matches!(&act.what, Operation::Create(create) if drains_for_ever(create)));
    let at = chance.u64(MINUTE..LASTS);
    for number in 0..chance.u64(3..10) {
        let target =
            if chance.bool() { format!("node/wave-{number}") } else { format!("payment/deployment/wave-{number}") };
        let create = Create {
            name: format!("ops/wave-{number}"),
            target,
            workflow: pick(&mut chance, &["restart", "cleanup"]).to_owned(),
            story: "success".to_owned(),
            ..Create::default()
        };
        plan.acts.push(Act { at: at + chance.u64(0..10 * SECOND), what: Operation::Create(create) });
    }
}
