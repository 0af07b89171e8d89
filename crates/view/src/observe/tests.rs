//! Tests that rule 0 accepts everything that the builder of `wfe-api` makes, and every target that the builder writes.

use proptest::prelude::*;
use serde_json::json;
use wfe_api::{WorkflowExecution, target_resource};
use wfe_core::execution::Recorded::{Effective, Ineffective, Not};
use wfe_core::guard::Unguarded;

use super::*;

/// Reads an execution as if the API server had sent it.
fn observed(execution: &WorkflowExecution) -> ExecutionRecord {
    let mut object = serde_json::to_value(execution).unwrap();
    object["metadata"]["uid"] = json!("0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11");
    observe_execution(&serde_json::from_value(object).unwrap(), "kubernaut-workflows").unwrap()
}

/// Generates parts of targets: most are valid, the others nearly valid.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z][-a-z0-9]{0,4}[a-z0-9]",
        2 => "[a-zA-Z0-9.-]{0,6}",
        1 => "[a-zA-Z./%: ä-]{0,6}",
        1 => prop_oneof![62..65_usize, 252..255_usize].prop_map(|length| "x".repeat(length)),
    ]
}

proptest! {
    #[test]
    fn a_target_is_written_exactly_where_it_is_read(
        namespace in prop::option::of(part()),
        kind in part(),
        name in part(),
    ) {
        let parts: Vec<&str> = namespace.iter().chain([&kind, &name]).map(String::as_str).collect();
        let written = target_resource(namespace.as_deref(), &kind, &name);
        // A slash in a part would shift the following parts, so the builder refuses it.
        if parts.iter().any(|part| part.contains('/')) {
            prop_assert!(written.is_err());
        } else {
            prop_assert_eq!(written.is_ok(), TargetName::parse(&parts.join("/")).is_ok(), "{:?}", written);
        }
    }

    #[test]
    fn what_is_built_can_be_used(
        target in prop::collection::vec(part(), 1..4),
        digest in "sha256:([0-9a-f]{64}|[0-9a-f]{0,4})",
        inside in "(@sha256:0{0,64})?",
        key in "[A-Z_]{1,15}|TARGET_RESOURCE",
        timeout in 0..100_000_u64,
    ) {
        let built = WorkflowExecution::builder("payment-restart")
            .namespace("payment")
            .target(target.join("/"))
            .workflow("restart", "1.0", format!("registry.example/restart:1.0{inside}"))
            .parameter(key, "value")
            .timeout(std::time::Duration::from_secs(timeout));
        for built in [built.clone().build(), built.digest(digest).build()].into_iter().flatten() {
            let record = observed(&built);
            prop_assert!(record.request.is_some(), "{:?}", record.execution.state);
            prop_assert!(record.target.is_some());
            prop_assert_eq!(record.execution.timeout, Some(std::time::Duration::from_secs(timeout)));
        }
    }
}

fn read(spec: &Value, status: &Value) -> Execution {
    let object = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
        "metadata": {"name": "n", "namespace": "ops", "uid": "u"}, "spec": spec, "status": status,
    });
    observe_execution(&serde_json::from_value(object).unwrap(), "kubernaut-workflows").unwrap().execution
}

#[test]
fn what_it_runs_is_read_for_fingerprints() {
    let image = "Registry.example:5000/workflows/restart:1.0";
    let spec = json!({"workflowRef": {"workflowId": "restart", "version": "1.0", "containerImage": image}});
    let expected =
        Origin { workflow_id: "restart".into(), version: "1.0".into(), registry: "registry.example:5000".into() };
    assert_eq!(*read(&spec, &json!({})).origin, expected);
    assert_eq!(*read(&json!({"workflowRef": 7}), &json!({})).origin, Origin::new("", "", ""));
}

#[test]
fn what_a_status_does_not_say_of_a_failure_is_not_made_up() {
    let failed = |status: &Value| match read(&json!({}), status).state {
        ExecutionState::Failed(failed) => failed,
        other => panic!("{other:?}"),
    };
    let time = |text: &str| parse_moment(text);
    let whole = failed(&json!({
        "phase": "Failed", "completionTime": "2027-01-01T00:00:02Z", "nextAllowedExecution": "2027-01-01T00:01:01Z",
        "failureDetails": {"reason": "Forbidden", "failedAt": "2027-01-01T00:00:01Z", "wasExecutionFailure": false},
    }));
    assert_eq!((whole.reason, whole.was_execution_failure), (FailureReason::Forbidden, false));
    assert_eq!((whole.failed_at, whole.completed_at), (time("2027-01-01T00:00:01Z"), time("2027-01-01T00:00:02Z")));
    assert_eq!(whole.next_allowed_execution, time("2027-01-01T00:01:01Z"));
    assert_eq!((whole.fingerprint, whole.shared_outage), (None, false), "an operator before circuits wrote it");
    for (fingerprint, shared, expected) in [
        (json!("Unknown/cluster"), json!(true), (Some("Unknown/cluster"), true)),
        (json!("Unknown/cluster"), json!(false), (Some("Unknown/cluster"), false)),
        (json!("everything"), json!("true"), (None, false)),
        (json!(7), json!(1), (None, false)),
    ] {
        let details = json!({"fingerprint": fingerprint, "sharedOutage": shared});
        let read = failed(&json!({"phase": "Failed", "failureDetails": details}));
        assert_eq!((read.fingerprint.as_ref().map(Fingerprint::as_str), read.shared_outage), expected, "{details}");
    }
    let odd = failed(&json!({"phase": "Failed", "completionTime": 7, "failureDetails": {"failedAt": "soon"}}));
    assert_eq!((odd.was_execution_failure, odd.failed_at, odd.completed_at), (true, None, None));
}

#[test]
fn after_the_end_a_condition_of_one_that_goes_on_is_noticed() {
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2027-01-01T00:00:01Z"});
    let noticed = |phase: &str, condition: &Value| {
        read(&json!({}), &json!({"phase": phase, "conditions": [condition]})).draining_shown
    };
    for (kind, status, reason) in [
        ("TargetLocked", "True", "Held"),
        ("TargetLocked", "True", "Draining"),
        ("Waiting", "True", "Turn"),
        ("Retrying", "True", "Backoff"),
        ("Succeeded", "Unknown", "Running"),
    ] {
        let shown = condition(kind, status, reason);
        for phase in ["Completed", "Failed", "Skipped"] {
            assert!(noticed(phase, &shown), "{phase}: {shown}");
        }
        for phase in ["Pending", "Running", "OfALaterVersion"] {
            assert_eq!(noticed(phase, &shown), reason == "Draining", "{phase}: {shown}");
        }
    }
    for (kind, status, reason) in [
        ("TargetLocked", "False", "Free"),
        ("Succeeded", "False", "Unknown"),
        ("Retrying", "False", "Exhausted"),
        ("Started", "Unknown", "RunGone"),
        ("Blocked", "True", "ExhaustedRetries"),
    ] {
        assert!(!noticed("Failed", &condition(kind, status, reason)), "{kind}");
    }
}

#[test]
fn a_block_is_read_while_it_stands_or_its_recovery_has_ended_it() {
    for (status, reason, shown) in [
        ("True", "PreviousExecutionFailed", Some("PreviousExecutionFailed")),
        ("False", "Recovered", Some("Recovered")),
        ("False", "Lifted", None),
        ("Unknown", "Recovered", None),
    ] {
        let blocked = json!({"type": "Blocked", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2027-01-01T00:00:01Z"});
        let execution = read(&json!({}), &json!({"phase": "Failed", "conditions": [blocked]}));
        assert_eq!(execution.blocked_shown.as_deref(), shown, "{status} {reason}");
    }
}

#[test]
fn a_clearance_is_read_from_the_spec_and_what_became_of_it_from_the_status() {
    let spec = json!({"clearance": {"reason": "looked", "clearedBy": "jo"}, "recoveryOf": "wfe-1"});
    let ineffective = json!({"type": "ClearanceIneffective", "status": "True", "reason": "NothingBlocked",
        "message": "", "lastTransitionTime": "2027-01-01T00:00:01Z"});
    let unguarded = |status: &str, reason: &str| {
        json!({"type": "Unguarded", "status": status, "reason": reason,
        "message": "", "lastTransitionTime": "2027-01-01T00:00:01Z"})
    };
    let since = Time::from_timestamp(1_798_761_601, 0).unwrap();
    let said = |counts| Some(Unguarded { since, counts });
    let (ignored, counts) = (unguarded("True", "ClearanceUnguarded"), unguarded("False", "ClearanceCounts"));
    let other = unguarded("True", "CancellationUnguarded");
    for (status, recorded, unguarded) in [
        (json!({"phase": "Failed"}), Not, None),
        (json!({"phase": "Failed", "clearance": {"clearedBy": "jo"}}), Effective, None),
        (json!({"phase": "Failed", "conditions": [ineffective]}), Ineffective, None),
        (json!({"phase": "Failed", "conditions": [ignored]}), Not, said(false)),
        (json!({"phase": "Failed", "conditions": [counts.clone()]}), Not, said(true)),
        (json!({"phase": "Failed", "conditions": [counts], "clearance": {"clearedBy": "jo"}}), Effective, said(true)),
        (json!({"phase": "Failed", "conditions": [other]}), Not, None),
    ] {
        let execution = read(&spec, &status);
        let expected = Clearance { reason: "looked".into(), cleared_by: "jo".into(), recorded, unguarded };
        assert_eq!(
            (execution.clearance.as_deref(), execution.recovery_of.as_deref()),
            (Some(&expected), Some("wfe-1"))
        );
    }
    assert_eq!(read(&json!({}), &json!({"phase": "Failed"})).clearance, None);
}
