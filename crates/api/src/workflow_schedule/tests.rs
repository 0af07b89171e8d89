//! Every field is unchanged after writing and reading, and an absent field is not written. The admission rules that are
//! regular expressions are tried here; the tests against the API server try all rules.

use regex::Regex;
use serde_json::{Value, json};
use wfe_core::schedule::child_name;

use super::{KIND, WorkflowSchedule, rules};
use crate::{RemediationRequestRef, limits};

/// A schedule with every field. No real schedule can set all of them at once.
fn full() -> Value {
    let time = "2026-01-02T03:04:05Z";
    json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowSchedule",
        "metadata": {"name": "nightly", "namespace": "payment"},
        "spec": {
            "interval": "5m",
            "cron": "0 2 * * MON-FRI",
            "timeZone": "Europe/Berlin",
            "spread": "1m",
            "minInterval": "1m",
            "maxInterval": "24h",
            "startingDeadlineSeconds": 600,
            "suspend": true,
            "template": {
                "metadata": {"labels": {"team": "payment"}, "annotations": {"example.com/why": "it leaks"}},
                "spec": {
                    "workflowRef": {
                        "workflowId": "deployment-restart", "version": "1.0",
                        "containerImage": "registry.example/workflows/deployment-restart:1.0",
                        "containerDigest": format!("sha256:{}", "0f".repeat(32)),
                    },
                    "targetResource": "payment/deployment/payment-api",
                    "parameters": {"READY_TIMEOUT": "90s"},
                    "executionConfig": {"timeout": "10m", "serviceAccountName": "runner"},
                    "rationale": "it leaks memory",
                    "ttlSecondsAfterFinished": 604_800,
                    "retry": {"maxAttempts": 3},
                },
            },
            "history": {"successful": 1, "failed": 2},
            "hint": {"nextRunAt": time, "interval": "30s", "expiresAt": "2026-01-02T03:14:05Z", "reason": "quiet"},
            "triage": {
                "analyst": "Pipeline", "after": 3,
                "workflowRef": {
                    "workflowId": "analyst", "version": "1.0",
                    "containerImage": "registry.example/workflows/analyst:1.0",
                    "containerDigest": format!("sha256:{}", "0f".repeat(32)),
                },
                "serviceAccountName": "analyst", "timeout": "5m",
                "allowAdjust": ["interval", "timeout", "parameters.READY_TIMEOUT"],
            },
            "resume": {"triage": "nightly-1767323045", "reason": "it is mended", "resumedBy": "jane"},
        },
        "status": {
            "observedGeneration": 2,
            "revision": "0123456789abcdef",
            "plannedFrom": time,
            "phase": time,
            "failureCount": 1,
            "lastRun": {
                "name": "nightly-1767323045", "slot": time, "again": true, "startedAt": time, "endedAt": time, "outcome": "Failed",
                "reason": "ImagePullBackOff", "fingerprint": "ImagePullBackOff/registry/registry.example",
                "message": "no such image",
            },
            "lastSuccessTime": time,
            "lastMissed": {"slot": time, "count": 3},
            "nextRunTime": time,
            "nextRunReason": "Backoff",
            "triage": {
                "of": "nightly-1767323045", "at": time, "analyst": "Pipeline",
                "run": {"name": "nightly-1767323045-triage", "uid": "4f1a2b3c-0000-4000-8000-000000000001"},
                "fingerprint": "ImagePullBackOff/registry/registry.example", "evidence": "0f".repeat(32),
                "verdict": "AdjustConfig", "why": "it is slow", "fix": "more memory",
                "refused": ["parameters.OTHER: allowAdjust does not list it"], "state": "Adjusted",
            },
            "adjust": {"interval": "10m", "timeout": "20m", "parameters": {"READY_TIMEOUT": "180s"}},
            "conditions": [{
                "type": "Held", "status": "False", "reason": "Released", "message": "", "lastTransitionTime": time,
                "observedGeneration": 2,
            }],
        },
    })
}

/// Fails on the first property of `schema` that `value` does not set. A retry policy is not examined, because some of
/// its forms have no fields.
fn assert_full(path: &str, schema: &Value, value: &Value) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(!value[name].is_null(), "the sample does not set {path}");
        if name != "retry" {
            assert_full(&path, property, &value[name]);
        }
    }
    if schema["items"].is_object() {
        assert_full(&format!("{path}[]"), &schema["items"], &value[0]);
    }
}

#[test]
fn every_field_survives_reading_and_writing() {
    let crds = serde_json::to_value(crate::crds()).unwrap();
    assert_full("", &crds[1]["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &full());

    let read: WorkflowSchedule = serde_json::from_value(full()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full());
}

#[test]
fn what_is_absent_is_not_written() {
    let least = json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowSchedule",
        "metadata": {"name": "least"},
        "spec": {"template": {"spec": {
            "workflowRef": {"workflowId": "w", "version": "1", "containerImage": "i"},
            "targetResource": "node/worker-1",
        }}},
        "status": {},
    });
    let read: WorkflowSchedule = serde_json::from_value(least.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), least);
}

#[test]
fn a_bad_retry_policy_does_not_hide_the_rest_of_the_spec() {
    for retry in [json!("3"), json!([]), json!({"maxAttempts": "many"}), json!(1e300)] {
        let mut object = full();
        object["spec"]["template"]["spec"]["retry"] = retry.clone();
        let read: WorkflowSchedule = serde_json::from_value(object).unwrap();
        assert_eq!(read.spec.template.spec.retry, Some(retry));
    }
}

#[test]
fn the_names_of_children_fit_every_schedule() {
    let longest = "n".repeat(limits::SCHEDULE_NAME as usize);
    // The last second of the year 9998: no hint can name a later time.
    let slot = |seconds| wfe_core::Time::from_timestamp(seconds, 0).unwrap();
    let name = child_name(&longest, slot(253_370_764_799));
    assert!(name.len() + "-triage".len() <= limits::NAME as usize, "{name}");
    assert_eq!(child_name("nightly", slot(0)), "nightly-0");
}

#[test]
fn the_reference_of_a_child_names_the_kind() {
    let schedule: WorkflowSchedule = serde_json::from_value(full()).unwrap();
    let object = serde_json::to_value(&schedule).unwrap();
    let reference = RemediationRequestRef { kind: Some(KIND.to_owned()), ..RemediationRequestRef::default() };
    assert_eq!(serde_json::to_value(reference).unwrap()["kind"], object["kind"]);
}

/// Returns the regular expression in a rule.
fn pattern(rule: &kube::core::Rule) -> Regex {
    let (_, rest) = rule.rule.split_once("matches(r'").unwrap();
    Regex::new(rest.split_once("')").unwrap().0).unwrap()
}

#[test]
fn a_duration_is_in_whole_seconds_and_has_few_digits() {
    let form = pattern(&rules::duration("spec.interval", "1s", "720h"));
    for good in ["1s", "60s", "5m", "1h", "1h30m", "1h30s", "2m3s", "1h2m3s", "00001s", "99999h99999m99999s"] {
        assert!(form.is_match(good), "{good}");
    }
    let bad =
        ["", "5", "0", "-5m", "+5m", "1500ms", "1.5s", "1 m", " 1m", "1m ", "1m1h", "1d", "1M", "100000s", "s", "1s\n"];
    for bad in bad {
        assert!(!form.is_match(bad), "{bad:?}");
    }
}

#[test]
fn a_cron_expression_has_five_fields_of_values_in_their_ranges() {
    let form = pattern(&rules::cron());
    for good in [
        "* * * * *",
        "*/5 * * * *",
        "0 2 * * MON-FRI",
        "0,30 8-18/2 1,15 JAN,JUL *",
        "0 0 31 2 *",
        "0 0 * DEC SUN",
        "05 23 09 12 7",
        "10-59/15 0-23/05 1-31 JAN-MAR SUN-SAT/2",
        "0 0 1,15-20/2,*/3 * 1,3,5",
    ] {
        assert!(form.is_match(good), "{good}");
    }
    for bad in [
        "",
        "*",
        "* * * *",
        "* * * * * *",
        "* *  * * *",
        " * * * * *",
        "* * * * * ",
        "*\t* * * *",
        "@daily",
        "0 0 L * *",
        "0 0 1W * *",
        "0 0 * * MON#1",
        "0 0 ? * *",
        "0 0 * * mon",
        "0 0 * Jan *",
        "0 0 * * MONDAY",
        "JAN * * * *",
        "0 0 * MON *",
        "0 0 * * JAN",
        "+1 * * * *",
        "* * * * *\n",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "10/15 * * * *",
        "* * * * MON/2",
        "*/0 * * * *",
        "*/100 * * * *",
        "1,,2 * * * *",
        "1-5-9 * * * *",
        "*-5 * * * *",
        "001 * * * *",
    ] {
        assert!(!form.is_match(bad), "{bad:?}");
    }
}

#[test]
fn keys_and_values_of_a_template_are_those_that_objects_may_have() {
    let (keys, values) = (pattern(&rules::keys("x")), pattern(&rules::values_of_labels("x")));
    for good in ["team", "Team_1.x", "example.com/team", "a.b-c.d/T", &"k".repeat(63)] {
        assert!(keys.is_match(good), "{good}");
    }
    for bad in ["", "/", "a/", "/a", "a/b/c", "-a", "a-", "Example.com/team", "a b", "\u{e4}", &"k".repeat(64)] {
        assert!(!keys.is_match(bad), "{bad:?}");
    }
    for good in ["", "x", "1.0_a-B", &"v".repeat(63)] {
        assert!(values.is_match(good), "{good}");
    }
    for bad in ["-x", "x.", "a b", "a/b", "\u{e4}", &"v".repeat(64)] {
        assert!(!values.is_match(bad), "{bad:?}");
    }
}

#[test]
fn a_triage_adjusts_fields_that_it_can_name() {
    let rule = rules::adjustable();
    let (_, rest) = rule.rule.split_once("matches('").unwrap();
    let form = Regex::new(rest.split_once("')").unwrap().0).unwrap();
    let longest = format!("parameters.{}", "K".repeat(limits::PARAMETER_KEY as usize));
    assert_eq!(longest.len(), limits::TRIAGE_FIELD as usize);
    for good in ["interval", "timeout", "parameters.K", "parameters.READY_TIMEOUT_2", &longest] {
        assert!(form.is_match(good), "{good}");
    }
    let bad = [
        "",
        "Interval",
        "cron",
        "parameters",
        "parameters.",
        "parameters.k",
        "parameters.1",
        "parameters.A.B",
        " timeout",
    ];
    for bad in bad.into_iter().chain([&*format!("{longest}K"), "timeout\n"]) {
        assert!(!form.is_match(bad), "{bad:?}");
    }
}
