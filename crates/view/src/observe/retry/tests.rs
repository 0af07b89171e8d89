//! Tests how the index reads `spec.retry` and `status.attempts` with any content.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use wfe_core::execution::{Execution, ExecutionState};
use wfe_core::name::{ExecutionId, Uid};
use wfe_core::target::OwnerRead;

use super::*;
use crate::index::ExecutionRecord;
use crate::observe::{observe_execution, observe_owner};

/// Reads an execution with this policy and status. Without a phase, the execution is undecided.
fn observed(retry: &Value, status: &Value) -> ExecutionRecord {
    let spec = json!({
        "targetResource": "payment/deployment/payment-api",
        "workflowRef": {"workflowId": "restart", "version": "1", "containerImage": "registry.example/restart:1"},
        "retry": retry,
    });
    let object = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowExecution",
        "metadata": {"name": "n", "namespace": "ops", "uid": "u"}, "spec": spec, "status": status,
    });
    observe_execution(&serde_json::from_value(object).unwrap(), "kubernaut-workflows").unwrap()
}

fn on_attempts(attempts: &Value) -> Execution {
    let run = json!({"name": "wfe-x-1", "uid": "r", "namespace": "kubernaut-workflows"});
    let started = "2027-01-01T00:00:00Z";
    let status = json!({"phase": "Running", "startTime": started, "pipelineRunRef": run, "attempts": attempts});
    observed(&json!(true), &status).execution
}

fn at(text: &str) -> Option<Time> {
    parse_moment(text)
}

#[test]
fn conditions_know_the_reasons_of_failures() {
    assert_eq!(wfe_condition::REASONS, FailureReason::ALL.map(FailureReason::as_str));
}

#[test]
fn a_policy_that_cannot_be_used_ends_its_execution_before_anything_runs() {
    for (retry, said) in [
        (json!("3"), "spec.retry: must be "),
        (json!(21), "spec.retry: must be "),
        (json!({"tries": 3}), "spec.retry.tries: is not known"),
        (json!({"initialDelay": "1500ms"}), "spec.retry.initialDelay: must be "),
        (json!({"initialDelay": "1h", "maxAttempts": 20, "maxDuration": "2h"}), "spec.retry.maxDuration: is too short"),
        // Only the exact sum of the delays shows that this duration is too short.
        (json!({"initialDelay": "1m", "maxDelay": "1h", "maxDuration": "3m"}), "spec.retry.maxDuration: 3m0s is too"),
        (json!({"retryWhen": "1 +"}), "spec.retry.retryWhen: is not a CEL expression"),
        (json!({"stopWhen": "x == 1"}), "spec.retry.stopWhen: uses `x`, "),
        (json!({"stopWhen": "attempt"}), "spec.retry.stopWhen: yields int, "),
        (
            json!({"retryWhen": "reason == 'ImagePullBackoff'"}),
            "spec.retry.retryWhen: compares reason with `ImagePullBackoff`, which it never is: the reasons are OOMKilled, ",
        ),
    ] {
        let ExecutionRecord { execution, request, .. } = observed(&retry, &json!({}));
        let ExecutionState::Undecided { unusable: Some(why), .. } = &execution.state else {
            panic!("{retry}: {:?}", execution.state)
        };
        assert!(why.starts_with(said), "{retry}: {why}");
        assert_eq!((execution.retry, request), (None, None), "{retry}");
    }
}

#[test]
fn a_policy_is_read_until_the_execution_has_ended_and_so_is_what_it_runs() {
    let policy = json!({"maxAttempts": 5, "retryWhen": "statusCode >= 500 || error != ''"});
    for (retry, phase, is_read, has_request) in [
        (&policy, "", true, true),
        (&policy, "Pending", true, true),
        (&policy, "Running", true, true),
        (&policy, "Completed", false, false),
        (&policy, "Failed", false, false),
        (&policy, "Skipped", false, false),
        (&json!(null), "", false, true),
        (&json!(null), "Running", false, false),
        (&json!(false), "Running", false, false),
        (&json!("bad"), "Running", false, false),
    ] {
        let record = observed(retry, &json!({"phase": phase}));
        let read = record.execution.retry.as_ref().map(|it| it.policy.max_attempts);
        assert_eq!(read, is_read.then_some(5), "{retry} {phase}");
        assert_eq!(record.request.is_some(), has_request, "{retry} {phase}");
    }
}

#[test]
fn attempts_are_read_as_they_are_written() {
    let ended = json!({
        "attempt": 1, "pipelineRun": "wfe-x-1", "startTime": "2027-01-01T00:00:00Z",
        "completionTime": "2027-01-01T00:00:09Z", "started": "False", "reason": "ImagePullBackOff", "message": "no image",
    });
    let waits = json!({"attempt": 2, "delay": "1.5s", "notBefore": "2027-01-01T00:00:11Z"});
    let execution = on_attempts(&json!([waits, ended]));
    let retry = execution.retry.as_ref().unwrap();
    let end = AttemptEnd {
        completed_at: at("2027-01-01T00:00:09Z").unwrap(),
        started: Ran::No,
        reason: Some(FailureReason::ImagePullBackOff),
        message: "no image".into(),
    };
    let first = Attempt {
        run: Some("wfe-x-1".into()),
        started_at: at("2027-01-01T00:00:00Z"),
        end: Some(end),
        ..Attempt::default()
    };
    let (delay, not_before) = (Some(Duration::from_millis(1500)), at("2027-01-01T00:00:11Z"));
    assert_eq!(retry.attempts, [first, Attempt { delay, not_before, ..Attempt::default() }], "in their order");
    assert_eq!(execution.next_attempt().map(|next| (next.attempt, next.of)), Some((2, 3)));
}

#[test]
fn attempts_that_somebody_has_edited_are_read_as_far_as_they_go() {
    let read = |attempts: &Value| on_attempts(attempts).retry.unwrap();
    for none in [json!(null), json!(7), json!("x"), json!({}), json!([]), json!([1, null, {}, {"attempt": "1"}])] {
        let retry = read(&none);
        assert_eq!((retry.attempts.len(), retry.current()), (0, 1), "{none}");
    }
    let gaps =
        read(&json!([{"attempt": 9}, {"attempt": 3, "started": "Maybe", "completionTime": "2027-01-01T00:00:09Z"}]));
    let ends: Vec<(u32, Ran)> = gaps.ended().map(|(number, end)| (number, end.started)).collect();
    assert_eq!((ends, gaps.current()), (vec![(1, Ran::Unknown)], 2), "each counts, in their order");
    let many: Vec<Value> = (1..=1_000_000).map(|number| json!({"attempt": number})).collect();
    assert_eq!(attempts(&Value::Array(many)).len(), 20);
}

#[test]
fn the_owner_of_a_finished_run_is_over_waits_or_is_late() {
    let owner = |uid: &str| ExecutionId { namespace: "ops".into(), name: "n".into(), uid: Uid::new(uid) };
    let read = |uid: &str, phase: &str, attempts: &Value| {
        let status = json!({"phase": phase, "startTime": "2027-01-01T00:00:00Z", "attempts": attempts});
        let object = json!({
            "metadata": {"name": "n", "namespace": "ops", "uid": "u"}, "spec": {"retry": 3}, "status": status,
        });
        observe_owner(&owner(uid), Some(&serde_json::from_value(object).unwrap()))
    };
    let waits = json!([{"attempt": 1}, {"attempt": 2, "notBefore": "2027-01-01T00:00:11Z"}]);
    let begun = json!([{"attempt": 1}, {"attempt": 2, "startTime": "2027-01-01T00:00:11Z"}]);
    assert_eq!(observe_owner(&owner("u"), None), OwnerRead::Over);
    for phase in ["Completed", "Failed", "Skipped"] {
        assert_eq!(read("u", phase, &waits), OwnerRead::Over, "{phase}");
    }
    assert_eq!(read("other", "Running", &waits), OwnerRead::Over, "another has its name");
    for (phase, attempts) in
        [("Running", &begun), ("Running", &json!(null)), ("", &waits), ("Pending", &waits), ("Odd", &waits)]
    {
        assert_eq!(read("u", phase, attempts), OwnerRead::Late, "{phase} {attempts}");
    }
    let unreadable = serde_json::from_value(json!({"metadata": {}})).unwrap();
    assert_eq!(observe_owner(&owner("u"), Some(&unreadable)), OwnerRead::Late);
    let OwnerRead::Waits { started_at, next } = read("u", "Running", &waits) else { panic!("it waits") };
    assert_eq!((Some(started_at), next.attempt, next.of), (at("2027-01-01T00:00:00Z"), 2, 3));
    assert_eq!((Some(next.not_before), Some(next.ends_by)), (at("2027-01-01T00:00:11Z"), at("2027-01-02T00:00:00Z")));
}

proptest! {
    #[test]
    fn no_attempt_of_any_shape_is_a_panic(
        entries in prop::collection::vec(
            prop::collection::hash_map(
                prop::sample::select(vec![
                    "attempt", "delay", "notBefore", "pipelineRun", "startTime", "completionTime", "started", "reason",
                    "message",
                ]),
                prop_oneof![
                    any::<i64>().prop_map(Value::from),
                    ".{0,20}".prop_map(Value::from),
                    Just(json!("2027-01-01T00:00:09Z")),
                    Just(json!([{}])),
                ],
                0..9,
            ),
            0..30,
        )
    ) {
        let execution = on_attempts(&json!(entries));
        prop_assert!(execution.retry.as_ref().is_some_and(|retry| retry.attempts.len() <= 20));
        let _ = execution.next_attempt();
    }
}
