//! Every status has a view, and every view a next step.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::WorkflowExecution;

const AT: &str = "2026-01-02T03:04:05Z";

fn with_status(status: &Value) -> Value {
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {"name": "payment-restart", "namespace": "payment"},
        "spec": {
            "workflowRef": {"workflowId": "restart", "version": "1", "containerImage": "i"},
            "targetResource": "payment/deployment/payment-api",
        },
        "status": status,
    })
}

fn typed(object: &Value) -> WorkflowExecution {
    serde_json::from_value(object.clone()).unwrap()
}

/// Returns the view of an object, which is the same from JSON and from the type.
fn view(object: &Value) -> StatusView {
    let view = StatusView::of_json(object);
    assert_eq!(StatusView::of(&typed(object)), view);
    view
}

fn details(reason: &str, ran: bool) -> Value {
    json!({
        "failedTaskIndex": 1, "failedTaskName": "apply-memory-increase", "failedStepName": "kubectl-patch",
        "reason": reason, "message": "cannot patch deployments.apps", "exitCode": 1, "failedAt": AT,
        "executionTimeBeforeFailure": "45s", "naturalLanguageSummary": "Task 2 of 3 failed.",
        "wasExecutionFailure": ran, "requiresManualReview": ran,
    })
}

fn failed(reason: &str, ran: bool) -> Value {
    with_status(&json!({"phase": "Failed", "completionTime": AT, "failureDetails": details(reason, ran)}))
}

fn skipped(details: &Value) -> Value {
    let mut details = details.clone();
    details["skippedAt"] = json!(AT);
    details["message"] = json!("why");
    with_status(&json!({"phase": "Skipped", "completionTime": AT, "skipDetails": details}))
}

fn earlier(remaining: &Value) -> Value {
    let mut earlier = json!({
        "name": "earlier", "workflowId": "restart", "completedAt": AT, "outcome": "Completed",
        "targetResource": "payment/deployment/payment-api",
    });
    if !remaining.is_null() {
        earlier["cooldownRemaining"] = remaining.clone();
    }
    earlier
}

#[test]
fn a_failure_says_what_it_has_in_common_with_others() {
    let common = |change: &Value| {
        let mut object = failed("ImagePullBackOff", false);
        for (key, value) in change.as_object().unwrap() {
            object["status"]["failureDetails"][key] = value.clone();
        }
        let StatusView::Failed(failure) = view(&object) else { panic!("{object}") };
        (failure.details.fingerprint.clone(), failure.is_shared())
    };
    let fingerprint = "ImagePullBackOff/registry/registry.example";
    let said = json!({"fingerprint": fingerprint, "sharedOutage": true});
    assert_eq!(common(&said), (Some(fingerprint.to_owned()), true));
    assert_eq!(common(&json!({"fingerprint": fingerprint})), (Some(fingerprint.to_owned()), false));
    assert_eq!(common(&json!({"sharedOutage": false})), (None, false));
}

fn retry_after(moment: &str, why: &str) -> NextStep {
    NextStep::RetryAfter { not_before: Time(moment.parse().unwrap()), why: why.to_owned() }
}

fn person(why: &str) -> NextStep {
    NextStep::PersonMustAct { why: why.to_owned() }
}

fn wait_for(namespace: Option<&str>, name: &str) -> NextStep {
    let holder = Holder { namespace: namespace.map(str::to_owned), name: name.to_owned() };
    NextStep::WaitFor { holder, why: "why".to_owned() }
}

#[test]
fn what_has_not_ended_is_watched() {
    let condition = |status: &str| {
        json!({
            "type": "Waiting", "status": status, "reason": "Paused", "message": "m", "lastTransitionTime": AT,
        })
    };
    for (status, phase, waits) in [
        (json!(null), None, false),
        (json!({}), None, false),
        (json!({"phase": "Pending", "conditions": [condition("True")]}), Some(crate::Phase::Pending), true),
        (json!({"phase": "Pending", "conditions": [condition("False")]}), Some(crate::Phase::Pending), false),
        (json!({"phase": "Running", "startTime": AT}), Some(crate::Phase::Running), false),
    ] {
        let view = view(&with_status(&status));
        let StatusView::InProgress(progress) = &view else { panic!("{view:?}") };
        assert_eq!((progress.phase, progress.waits_for.is_some()), (phase, waits), "{status}");
        assert_eq!(view.next_step(), NextStep::Watch);
    }
}

#[test]
fn what_is_tried_again_is_watched_with_its_attempt() {
    let ended = json!({
        "attempt": 1, "pipelineRun": "wfe-1", "startTime": AT, "completionTime": AT, "started": "False",
        "reason": "ImagePullBackOff", "message": "m",
    });
    let waiting = json!({"attempt": 2, "delay": "1s", "notBefore": AT});
    let running = json!({"attempt": 2, "delay": "1s", "notBefore": AT, "pipelineRun": "wfe-2", "startTime": AT});
    let at = |moment: &str| Some(Time(moment.parse().unwrap()));
    for (retry, attempts, number, of, not_before) in [
        (json!(true), json!([running.clone()]), 2, 3, None),
        (json!(5), json!([ended.clone(), waiting.clone()]), 2, 5, at(AT)),
        (json!({"maxAttempts": 4}), json!([ended.clone(), running]), 2, 4, None),
        // The attempts may be in any order, and the policy may be unreadable.
        (json!(5), json!([waiting.clone(), ended.clone()]), 2, 5, at(AT)),
        (json!("5"), json!([ended.clone(), waiting]), 2, 2, at(AT)),
        (json!(null), json!([ended]), 1, 1, None),
    ] {
        let mut object = with_status(&json!({"phase": "Running", "startTime": AT, "attempts": attempts}));
        object["spec"]["retry"] = retry;
        let view = view(&object);
        let StatusView::InProgress(progress) = &view else { panic!("{view:?}") };
        assert_eq!(progress.attempt, Some(Attempt { number, of, not_before }), "{object}");
        assert_eq!(view.next_step(), NextStep::Watch);
    }
    let StatusView::InProgress(undecided) = view(&with_status(&json!({}))) else { panic!() };
    assert_eq!(undecided.attempt, None);
}

#[test]
fn what_completed_needs_nothing() {
    let view = view(&with_status(&json!({"phase": "Completed", "completionTime": AT, "duration": "1m30s"})));
    let StatusView::Completed { completed_at: Some(at), duration: Some(duration) } = &view else { panic!("{view:?}") };
    assert_eq!((at.0.to_string().as_str(), duration.as_str()), (AT, "1m30s"));
    assert_eq!(view.next_step(), NextStep::Nothing);
}

#[test]
fn after_a_failure_the_evidence_decides() {
    let summary = "Task 2 of 3 failed.";
    let backing_off = {
        let mut object = failed("ResourceExhausted", false);
        object["status"]["nextAllowedExecution"] = json!("2026-01-02T03:06:05Z");
        object
    };
    let unusable = |shared: Value| {
        let mut object = failed("ConfigurationError", false);
        object["status"]["nextAllowedExecution"] = json!("2026-01-02T03:06:05Z");
        object["status"]["failureDetails"]["sharedOutage"] = shared;
        object
    };
    let exhausting = |block: &str| {
        let mut object = failed("ImagePullBackOff", false);
        object["status"]["conditions"] = json!([{
            "type": "Blocked", "status": block, "reason": "ExhaustedRetries", "message": "m", "lastTransitionTime": AT,
        }]);
        object
    };
    let cleared = {
        let mut object = failed("Unknown", true);
        object["status"]["clearance"] =
            json!({"clearedBy": "jane", "clearedAt": "2026-01-02T04:00:00Z", "reason": "r"});
        object
    };
    let cancelled = {
        let mut object = failed("Unknown", false);
        object["spec"]["cancellation"] = json!({"reason": "wrong cluster", "requestedBy": "jane"});
        object
    };
    for (object, next) in [
        (failed("Forbidden", true), NextStep::PickAlternative { why: summary.to_owned() }),
        (backing_off, retry_after("2026-01-02T03:06:05Z", summary)),
        // The status has no backoff: wait for a minute.
        (failed("ImagePullBackOff", false), retry_after("2026-01-02T03:05:05Z", summary)),
        (failed("ConfigurationError", false), person(summary)),
        // The same spec would fail again, unless many targets share the failure.
        (unusable(json!(null)), person(summary)),
        (unusable(json!(true)), retry_after("2026-01-02T03:06:05Z", summary)),
        (failed("DeadlineExceeded", false), person(summary)),
        // Nothing runs on the target until a person clears it.
        (exhausting("True"), person(summary)),
        (exhausting("False"), retry_after("2026-01-02T03:05:05Z", summary)),
        (cleared, retry_after("2026-01-02T04:00:00Z", summary)),
        (cancelled, person(summary)),
    ] {
        assert_eq!(view(&object).next_step(), next, "{object:#}");
    }
}

#[test]
fn every_skip_reason_has_its_step() {
    let busy = |name: &str| {
        json!({
            "reason": "ResourceBusy",
            "conflictingWorkflow": {"name": name, "workflowId": "w", "targetResource": "node/worker-1"},
        })
    };
    let recent = |reason: &str, remaining: Value| json!({"reason": reason, "recentRemediation": earlier(&remaining)});
    let a_minute_later = "2026-01-02T03:05:05Z";
    for (details, next) in [
        (busy("holder"), wait_for(None, "holder")),
        (busy("other/holder"), wait_for(Some("other"), "holder")),
        (json!({"reason": "ResourceBusy"}), retry_after(a_minute_later, "why")),
        (recent("RecentlyRemediated", json!("4m30s")), retry_after("2026-01-02T03:08:35Z", "why")),
        (recent("RecentlyRemediated", json!("0s")), retry_after(AT, "why")),
        (recent("RecentlyRemediated", json!("1h0m0.5s")), retry_after("2026-01-02T04:04:05.5Z", "why")),
        (recent("RecentlyRemediated", json!(null)), retry_after(a_minute_later, "why")),
        (recent("RecentlyRemediated", json!("soon")), retry_after(a_minute_later, "why")),
        (recent("RecentlyRemediated", json!("-5m")), retry_after(a_minute_later, "why")),
        (json!({"reason": "RecentlyRemediated"}), retry_after(a_minute_later, "why")),
        (recent("ExhaustedRetries", json!(null)), person("why")),
        (json!({"reason": "ExhaustedRetries"}), person("why")),
        (recent("PreviousExecutionFailed", json!(null)), person("why")),
    ] {
        assert_eq!(view(&skipped(&details)).next_step(), next, "{details}");
    }
}

#[test]
fn what_cannot_be_understood_says_so() {
    for (status, words) in [
        (json!({"phase": "Failed"}), "failureDetails are missing"),
        (json!({"phase": "Skipped"}), "skipDetails are missing"),
        (json!({"phase": "Exploded"}), "unknown variant `Exploded`"),
        (json!({"phase": 7}), "the status is not as this program knows it"),
        (json!("Failed"), "the status is not as this program knows it"),
        (json!({"phase": "Failed", "failureDetails": details("Gremlins", true)}), "unknown variant `Gremlins`"),
        (
            json!({"phase": "Skipped", "skipDetails": {"reason": "TooTired", "message": "", "skippedAt": AT}}),
            "TooTired",
        ),
        (json!({"phase": "Completed", "completionTime": "yesterday"}), "the status is not as this program knows it"),
    ] {
        let view = StatusView::of_json(&with_status(&status));
        let StatusView::Unclear { problem } = &view else { panic!("{view:?}") };
        assert!(problem.contains(words), "{problem}");
        assert_eq!(view.next_step(), person(problem));
    }
}

#[test]
fn a_target_is_released_when_the_execution_has_ended_and_drained() {
    let lock = |status: &str, reason: &str| {
        json!([{
            "type": "TargetLocked", "status": status, "reason": reason, "message": "", "lastTransitionTime": AT,
        }])
    };
    for (status, released) in [
        (json!({}), false),
        (json!({"phase": "Running", "conditions": lock("True", "Held")}), false),
        (json!({"phase": "Completed", "conditions": lock("True", "Draining")}), false),
        (json!({"phase": "Completed", "conditions": lock("False", "Free")}), true),
        (json!({"phase": "Failed"}), true),
        (json!({"phase": "Skipped"}), true),
    ] {
        assert_eq!(typed(&with_status(&status)).has_released_target(), released, "{status}");
    }
}

#[test]
fn time_left_ends_at_the_moment() {
    let step = retry_after("2026-01-02T03:05:05Z", "");
    for (now, left) in [(AT, 60), ("2026-01-02T03:05:04Z", 1), ("2026-01-02T03:05:05Z", 0), ("2027-01-02T03:05:05Z", 0)]
    {
        assert_eq!(step.time_left(&Time(now.parse().unwrap())), Some(Duration::from_secs(left)), "{now}");
    }
    assert_eq!(NextStep::Watch.time_left(&Time(AT.parse().unwrap())), None);
}

#[test]
fn an_analysis_is_told_field_by_field() {
    let told = PreviousExecution::of(&typed(&failed("Forbidden", true))).unwrap();
    let expected = json!({
        "workflowExecutionRef": "payment-restart",
        "failure": {
            "failedStepIndex": 1,
            "failedStepName": "apply-memory-increase",
            "reason": "Forbidden",
            "message": "cannot patch deployments.apps",
            "exitCode": 1,
            "failedAt": AT,
            "executionTime": "45s",
        },
        "naturalLanguageSummary": "Task 2 of 3 failed.",
    });
    assert_eq!(serde_json::to_value(&told).unwrap(), expected);
    assert_eq!(serde_json::from_value::<PreviousExecution>(expected).unwrap(), told);

    let mut object = failed("Unknown", true);
    object["status"]["failureDetails"].as_object_mut().unwrap().remove("exitCode");
    let told = serde_json::to_value(PreviousExecution::of(&typed(&object)).unwrap()).unwrap();
    assert!(told["failure"].get("exitCode").is_none(), "{told}");

    assert_eq!(PreviousExecution::of(&typed(&with_status(&json!({"phase": "Running"})))), None);
    assert_eq!(PreviousExecution::of(&typed(&with_status(&json!(null)))), None);
}

/// Generates JSON of a few levels.
fn anything() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just(AT),
        Just("Failed"),
        Just("Skipped"),
        Just("ResourceBusy"),
        Just("-9223372036854775808s"),
        Just("")
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from)
    ];
    let key = prop_oneof![
        Just("phase"),
        Just("failureDetails"),
        Just("skipDetails"),
        Just("attempts"),
        Just("reason"),
        Just("message"),
        Just("skippedAt"),
        Just("conditions"),
        Just("recentRemediation"),
        Just("cooldownRemaining")
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_status_holds_there_is_a_next_step(status in anything()) {
        let _ = StatusView::of_json(&with_status(&status)).next_step();
    }

    #[test]
    fn no_wait_overflows(wait in "-?[0-9]{1,20}(h|m|s|ns)", at in 0..253_402_207_200_i64) {
        let at = k8s_openapi::jiff::Timestamp::from_second(at).unwrap();
        let mut object = skipped(&json!({"reason": "RecentlyRemediated", "recentRemediation": earlier(&json!(wait))}));
        object["status"]["skipDetails"]["skippedAt"] = serde_json::to_value(Time(at)).unwrap();
        let step = StatusView::of_json(&object).next_step();
        prop_assert!(step.time_left(&Time(at)).is_some(), "{step:?}");
    }
}

/// The recorded step has the same action as the next step, whatever the status is.
#[test]
fn the_recorded_step_is_the_next_step_in_short() {
    let mut blocked = failed("ImagePullBackOff", false);
    blocked["status"]["conditions"] = json!([{
        "type": "Blocked", "status": "True", "reason": "ExhaustedRetries", "message": "m", "lastTransitionTime": AT,
    }]);
    let busy = json!({"reason": "ResourceBusy", "conflictingWorkflow": {
        "namespace": "a", "name": "b", "workflowId": "w", "targetResource": "node/n",
    }});
    for (object, action, not_before) in [
        (with_status(&json!({"phase": "Completed", "completionTime": AT})), "Nothing", None),
        (failed("Unknown", true), "PickAlternative", None),
        (failed("ImagePullBackOff", false), "RetryAfter", Some("2026-01-02T03:05:05Z")),
        (blocked, "PersonMustAct", None),
        (failed("ConfigurationError", false), "PersonMustAct", None),
        (skipped(&busy), "WaitFor", None),
        (
            skipped(&json!({"reason": "RecentlyRemediated", "recentRemediation": earlier(&json!("1m"))})),
            "RetryAfter",
            Some("2026-01-02T03:05:05Z"),
        ),
        (
            skipped(&json!({"reason": "ExhaustedRetries", "recentRemediation": earlier(&json!(null))})),
            "PersonMustAct",
            None,
        ),
    ] {
        let step = view(&object).recorded_step().unwrap();
        assert_eq!(json!(step.action), action, "{object}");
        assert_eq!(step.not_before.map(|at| at.0.to_string()).as_deref(), not_before, "{object}");
        assert!(!step.why.is_empty() && step.why.len() <= 128, "{}", step.why);
    }
    assert_eq!(view(&with_status(&json!({"phase": "Running"}))).recorded_step(), None);
    let mut cancelled = failed("Unknown", true);
    cancelled["status"]["conditions"] = json!([{
        "type": "Succeeded", "status": "False", "reason": "Cancelled", "message": "m", "lastTransitionTime": AT,
    }]);
    let step = StatusView::of_status(&typed(&cancelled).status.unwrap()).recorded_step().unwrap();
    assert_eq!((json!(step.action), &*step.why), (json!("PersonMustAct"), "a person cancelled it"));
}
