//! The messages for people, with their names and numbers.

use super::*;

fn said(row: &Row) -> String {
    judged(row).explain("node/n")
}

#[test]
fn an_explanation_tells_what_each_rule_compared_and_what_would_change_it() {
    let past = vec![completed("s", "w", 1, -1000), stalled("f1", "w", 2, -10, 50), stalled("f2", "x", 3, 0, 120)];
    let text = said(&row("", past, 30, BACKOFF));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "0 unusable spec: its spec can be used");
    assert_eq!(lines[5], "clearance: it is known of each clearance whether it counts");
    assert_eq!(lines[6], "2 previous execution failed: the last that ran, ops/wfe-s, completed");
    assert_eq!(lines[7], "3 exhausted retries: 2 failures in a row before anything ran, of 5");
    assert_eq!(
        lines[8],
        "4 backoff: skipped, RecentlyRemediated: backoff: ops/wfe-f2 (workflow x) failed on node/n at \
         2027-01-15T08:00:00Z before anything ran, failure 2 in a row; a new WorkflowExecution can run from \
         2027-01-15T08:02:00Z on, or when ops/wfe-f2 is deleted (until 2027-01-15T08:02:00Z)"
    );
    assert_eq!(lines.len(), 9, "{text}");
    let text = said(&row("", vec![], 0, OTHERWISE));
    assert_eq!(text.lines().last(), Some("6 otherwise: it runs"));
}

#[test]
fn without_a_limit_no_number_of_failures_is_too_many() {
    let past = (1..=9).map(|number| stalled(&format!("f{number}"), "w", number, 0, 50)).collect();
    let endless = row("", past, 50, OTHERWISE).policy(|policy| policy.max_consecutive_failures = 0);
    let said = said(&endless);
    let line = said.lines().find(|line| line.starts_with(EXHAUSTED));
    assert_eq!(
        line,
        Some("3 exhausted retries: 9 failures in a row before anything ran; no number is too many"),
        "{said}"
    );
}

#[test]
fn who_is_paused_is_told_by_what_and_what_ends_it() {
    let everywhere = |policy: &mut Policy| policy.paused_by = Some("ConfigMap ops/config".into());
    let namespace = |asks: &mut Execution| asks.paused = Some(pause("upgrade, ask sre"));
    let all = "pause: waits, Paused: nothing new starts anywhere: ConfigMap ops/config says paused: true; ask whoever has \
               set that, it ends with paused: false";
    let one = "pause: waits, Paused: namespace ops is paused: upgrade, ask sre; the pause ends when the annotation \
               kubernaut.ai/paused is removed from namespace ops";
    let silent = |asks: &mut Execution| asks.paused = Some(pause(""));
    for (row, words) in [
        (row("", vec![], 0, "pause").policy(everywhere), all),
        (row("", vec![], 0, "pause").with(namespace).policy(everywhere), all),
        (row("", vec![], 0, "pause").with(namespace), one),
        (row("", vec![], 0, "pause").with(silent), "namespace ops is paused: no reason is given; the pause ends"),
    ] {
        let text = said(&row);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn who_is_skipped_beside_a_run_is_told_that_the_same_workflow_cools_down_first() {
    let conflict = crate::ending::Conflict {
        holder: id("holder"),
        workflow_id: "w".into(),
        started_at: at(0),
        deleted: false,
        draining: false,
        next: None,
        unanswered: None,
    };
    let message = crate::ending::Skip::ResourceBusy(conflict).message("node/n");
    let words = "; when it has ended, a new WorkflowExecution can run, of the same workflow only after the cooldown if it \
                 succeeds";
    assert!(message.ends_with(words), "{message}");
}

#[test]
fn the_execution_at_fault_is_named_with_what_is_odd_about_it() {
    let undated = past("odd", "w", 1, ExecutionState::Completed { started_at: None, completed_at: None });
    let text = said(&row("", vec![undated], 0, COOLDOWN));
    assert!(
        text.contains("ops/wfe-odd (workflow w) completed on node/n at a time that its status does not say"),
        "{text}"
    );
    assert!(text.contains("delete ops/wfe-odd to go on"), "{text}");
}

#[test]
fn who_is_blocked_is_told_how_to_go_on() {
    let broken = || vec![broke("b", "w", 1, 0)];
    let text = said(&row("", broken(), 9, BROKEN));
    assert!(
        text.contains(
            "see what it left behind, then clear ops/wfe-b (spec.clearance) or create a WorkflowExecution of another \
             workflow with recoveryOf: wfe-b"
        ),
        "{text}"
    );
    let text = said(&row("", broken(), 9, BROKEN).recovers("wfe-b"));
    assert!(text.contains("recoveryOf names it, but this workflow has itself failed"), "{text}");
    let failures: Vec<_> = (1..=5).map(|n| stalled(&format!("f{n}"), "w", n, 0, 600)).collect();
    let quiet = |policy: &mut Policy| policy.failure_quiet_period = Some(Duration::from_hours(1));
    let text = said(&row("", failures, 9, EXHAUSTED).policy(quiet));
    assert!(text.contains("5 executions in a row on node/n failed before anything ran (the limit is 5)"), "{text}");
    assert!(text.contains("then clear ops/wfe-f5 (spec.clearance), or wait until 2027-01-15T09:00:00Z"), "{text}");
}
