//! Rule 2 with its scopes, recoveries and clearances, and rules 3 to 5 with clearances (section 6).

use super::*;
use crate::execution::Recorded::{Effective, Ineffective, Not};
use crate::guard::Guard::{InForce, Missing, Recorded, Unknown};
use crate::policy::Scope;

fn workflow_scope(policy: &mut Policy) {
    policy.previous_execution_failed_scope = Scope::Workflow;
}

fn failures() -> Vec<Execution> {
    (1..=5).map(|n| stalled(&format!("f{n}"), "w", n, -600, -500)).collect()
}

/// Five failures. The last one makes the next execution wait, and is cleared.
fn exhausted_and(recorded: crate::execution::Recorded) -> Vec<Execution> {
    let mut past = failures();
    past[4] = cleared(stalled("f5", "w", 5, -1, 599), recorded);
    past
}

pub(super) fn rows() -> Vec<Row> {
    [scope(), recovery(), clearance()].concat()
}

fn scope() -> Vec<Row> {
    let broken = || vec![broke("b", "w", 1, 0)];
    let healed = |workflow| vec![broke("b", "w", 1, 0), completed("s", workflow, 2, 1)];
    let later = || vec![broke("b", "w", 1, 0), stalled("f", "w", 2, 1, 2)];
    vec![
        row("scope Target blocks another workflow", broken(), 9, BROKEN).workflow("other"),
        row("scope Workflow lets another workflow run", broken(), 9, OTHERWISE)
            .workflow("other")
            .policy(workflow_scope),
        row("scope Workflow blocks the same workflow", broken(), 9, BROKEN).policy(workflow_scope),
        row("in scope Target any success lifts the block", healed("other"), 9, OTHERWISE),
        row("in scope Workflow another one's success lifts nothing", healed("other"), 9, BROKEN).policy(workflow_scope),
        row("in scope Workflow its own success lifts the block", healed("w"), 900, OTHERWISE).policy(workflow_scope),
        row("a later pre-execution failure lifts nothing", later(), 9, BROKEN),
    ]
}

fn recovery() -> Vec<Row> {
    let w1 = || vec![broke("b1", "w1", 1, 0)];
    let w1_w2 = || [w1(), vec![broke("b2", "w2", 2, 1)]].concat();
    let between = || vec![broke("b1", "w1", 1, 0), completed("s", "w9", 2, 1), broke("b2", "w2", 3, 2)];
    let elsewhere = |execution: &mut Execution| execution.id.namespace = "other".into();
    let stalled_since = || [w1(), vec![stalled("f", "w2", 2, 1, 2)]].concat();
    vec![
        row("a recovery by another workflow runs", w1(), 9, OTHERWISE).workflow("w2").recovers("wfe-b1"),
        row("a recovery by another workflow from the same bundle does not", w1(), 9, BROKEN)
            .workflow("w2")
            .bundle("w1")
            .recovers("wfe-b1"),
        row("w1, w2 and the bundle of w1 go in a circle", w1_w2(), 9, BROKEN)
            .workflow("w3")
            .bundle("w1")
            .recovers("wfe-b2"),
        row("a recovery by the same workflow from another bundle does not", w1(), 9, BROKEN)
            .workflow("w1")
            .bundle("w2")
            .recovers("wfe-b1"),
        row("a recovery by the same workflow does not", w1(), 9, BROKEN).workflow("w1").recovers("wfe-b1"),
        row("a recovery of something else does not", w1(), 9, BROKEN).workflow("w2").recovers("wfe-b9"),
        row("a recovery of a namesake in another namespace does not", w1(), 9, BROKEN)
            .workflow("w2")
            .recovers("wfe-b1")
            .with(elsewhere),
        row("a recovery of the failure before the last does not", w1_w2(), 9, BROKEN).workflow("w3").recovers("wfe-b1"),
        row("w1, w2, w1 goes in a circle", w1_w2(), 9, BROKEN).workflow("w1").recovers("wfe-b2"),
        row("w1, w2, w3 does not", w1_w2(), 9, OTHERWISE).workflow("w3").recovers("wfe-b2"),
        row("after a success w1 is no circle", between(), 9, OTHERWISE).workflow("w1").recovers("wfe-b2"),
        row("a recovery that stalled may be tried again", stalled_since(), 9, OTHERWISE)
            .workflow("w2")
            .recovers("wfe-b1"),
        row("in scope Workflow the same workflow is no recovery", w1(), 9, BROKEN)
            .workflow("w1")
            .recovers("wfe-b1")
            .policy(workflow_scope),
    ]
}

/// A failure that was cleared. `counts` is what its status reports about the policy.
fn said(counts: Option<bool>) -> Vec<Execution> {
    vec![cleared_unguarded(broke("b", "w", 1, 0), counts)]
}

fn clearance() -> Vec<Row> {
    let broken = |recorded| vec![cleared(broke("b", "w", 1, 0), recorded)];
    let w1_w2 = vec![cleared(broke("b1", "w1", 1, 0), Effective), broke("b2", "w2", 2, 1)];
    let stalled_and = |recorded| vec![cleared(stalled("f", "w", 1, 0, 60), recorded)];
    let hot = vec![completed("s", "w", 1, -2), cleared(broke("b", "w", 2, -1), Effective)];
    let older = vec![broke("b1", "w", 1, 0), cleared(broke("b2", "w", 2, 1), Not)];
    let mut counted = failures();
    counted[1] = cleared(stalled("f2", "w", 2, -600, -500), Effective);
    vec![
        row("a clearance lifts rule 2", broken(Effective), 1, OTHERWISE),
        row("a clearance acts before it is recorded", broken(Not), 1, OTHERWISE),
        row("a clearance that was ineffective stays so", broken(Ineffective), 1, BROKEN),
        row("a clearance covers what came before", older, 2, OTHERWISE),
        row("a clearance does not cover what came after", w1_w2.clone(), 2, BROKEN),
        row("what was cleared is no circle", w1_w2, 2, OTHERWISE).workflow("w1").recovers("wfe-b2"),
        row("a clearance lifts rules 3 and 4", exhausted_and(Effective), 0, OTHERWISE),
        row("a clearance lifts rules 3 and 4 before it is recorded", exhausted_and(Not), 0, OTHERWISE),
        row("an ineffective clearance lifts nothing", exhausted_and(Ineffective), 0, EXHAUSTED),
        row("what came after a clearance counts", counted, 0, OTHERWISE),
        row("a backoff alone is no block to clear", stalled_and(Not), 1, BACKOFF),
        row("what a clearance has covered backs nothing off", stalled_and(Effective), 1, OTHERWISE),
        row("a clearance does not lift rule 5", hot, 0, COOLDOWN),
        row("what was recorded as effective stays so, whatever is known", broken(Effective), 1, OTHERWISE)
            .guarded(Missing),
        row("a clearance acts while its policy is in force", said(None), 1, OTHERWISE).guarded(InForce),
        row("a clearance lifts nothing while its policy is missing", said(None), 1, BROKEN).guarded(Missing),
        row("nor where the status says so already", said(Some(false)), 1, BROKEN).guarded(Missing),
        row("it acts as soon as the policy is back", said(Some(false)), 1, OTHERWISE).guarded(InForce),
        row("what was recorded as counting stays so", said(Some(true)), 1, OTHERWISE).guarded(Missing),
        row("and is not asked again", said(Some(true)), 1, OTHERWISE).guarded(Unknown),
        row("who does not look goes by the status", said(Some(false)), 1, BROKEN).guarded(Recorded),
    ]
}
