//! Illegal changes of the phase are refused for every user.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::objects::{Namespaced, Refusal, entering, expect, failure_details, refusal, report, run_ref, skip_details};

const PHASES: [&str; 6] = ["", "Pending", "Running", "Completed", "Failed", "Skipped"];
const LATER: &str = "2026-01-02T04:00:00Z";

#[tokio::test]
async fn phases_only_move_forward() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for from in PHASES {
        for to in PHASES {
            let allowed = from == to
                || match from {
                    "" => matches!(to, "Pending" | "Running" | "Failed" | "Skipped"),
                    "Pending" => matches!(to, "Running" | "Failed" | "Skipped"),
                    "Running" => matches!(to, "Completed" | "Failed"),
                    _ => false,
                };
            let words: &[&str] = if allowed { &[] } else { &["status.phase: may go from none to Pending"] };
            let name = namespaced.create_in(from).await?;
            let answer = namespaced.try_status(&name, entering(to)).await?;
            expect(&mut failures, &format!("{from:?} to {to:?}"), words, answer);
        }
    }
    let name = namespaced.create_in("").await?;
    namespaced.must(&name, json!({"observedGeneration": 1})).await?;
    let answer = namespaced.try_status(&name, entering("Completed")).await?;
    expect(&mut failures, "a status without phase to Completed", &["status.phase: may go from none"], answer);
    report(&failures)
}

#[tokio::test]
async fn a_status_is_never_removed() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for phase in PHASES.into_iter().filter(|phase| !phase.is_empty()) {
        let name = namespaced.create_in(phase).await?;
        // The API server then fills in the default status, which has no phase.
        let stays = ["status.phase: may go from none"];
        let answer = namespaced.try_status(&name, json!(null)).await?;
        expect(&mut failures, &format!("{phase}: null"), &stays, answer);
        let answer = namespaced.try_replace_status(&name, None).await?;
        expect(&mut failures, &format!("{phase}: replaced by none"), &stays, answer);
        let answer = namespaced.try_replace_status(&name, Some(json!({}))).await?;
        expect(&mut failures, &format!("{phase}: emptied"), &["status.phase: may go from none"], answer);
        // A write to the main resource leaves the status unchanged.
        let patch = Patch::Merge(json!({"status": null}));
        let object = namespaced.api.patch(&name, &PatchParams::default(), &patch).await?;
        if object.data["status"]["phase"] != phase {
            failures.push(format!("{phase}: removed through the main resource"));
        }
    }
    report(&failures)
}

#[tokio::test]
async fn what_a_status_says_agrees_with_its_phase() -> Result<()> {
    let with = |phase: &str, more: Value| {
        let mut status = entering(phase);
        if let (Some(status), Value::Object(more)) = (status.as_object_mut(), more) {
            status.extend(more);
        }
        status
    };
    let failing = |more: Value| {
        let mut details = failure_details();
        if let (Some(details), Value::Object(more)) = (details.as_object_mut(), more) {
            details.extend(more);
        }
        with("Failed", json!({"failureDetails": details}))
    };
    let run = run_ref(2);
    let failed_only: &[&str] = &["status.failureDetails: must be present exactly when phase is Failed"];
    let skipped_only: &[&str] = &["status.skipDetails: must be present exactly when phase is Skipped"];
    let ends: &[&str] = &["status.completionTime: is required when phase is"];
    let rows: Vec<(&str, Value, &[&str])> = vec![
        ("", json!({"failureDetails": failure_details()}), failed_only),
        ("Running", json!({"failureDetails": failure_details()}), failed_only),
        ("Running", with("Completed", json!({"failureDetails": failure_details()})), failed_only),
        ("Running", with("Failed", json!({"failureDetails": null})), failed_only),
        ("", json!({"skipDetails": skip_details()}), skipped_only),
        ("Running", with("Failed", json!({"skipDetails": skip_details()})), skipped_only),
        ("", with("Skipped", json!({"skipDetails": null})), skipped_only),
        ("Running", json!({"phase": "Completed"}), ends),
        ("", with("Failed", json!({"completionTime": null})), ends),
        ("", with("Skipped", json!({"completionTime": null})), ends),
        ("", with("Skipped", json!({"pipelineRunRef": run})), &["status.pipelineRunRef: must be absent"]),
        ("", with("Skipped", json!({"startTime": LATER})), &["status.startTime: must be absent"]),
        ("", with("Skipped", json!({"duration": "0s"})), &["status.duration: must be absent"]),
        ("Running", json!({"startTime": LATER}), &["status.startTime: may not change"]),
        ("Running", json!({"startTime": null}), &["status.startTime: may not change"]),
        ("Running", json!({"pipelineRunRef": null}), &["status.pipelineRunRef: may not be removed while phase is"]),
        ("Running", json!({"pipelineRunRef": run}), &["status.pipelineRunRef: may change only to the run of an"]),
        ("Running", json!({"pipelineRunRef": {"namespace": null}}), &["status.pipelineRunRef.namespace: Required"]),
        ("Running", json!({"pipelineRunRef": {"namespace": ""}}), &["status.pipelineRunRef.namespace", "at least 1"]),
        ("Running", json!({"pipelineRunRef": {"namespace": "n".repeat(64)}}), &["pipelineRunRef.namespace: Too long"]),
        ("Running", with("Failed", json!({"duration": "1m30s"})), &[]),
        ("", failing(json!({"wasExecutionFailure": true})), &["failureDetails.requiresManualReview: must equal"]),
        ("", failing(json!({"wasExecutionFailure": true, "requiresManualReview": true})), &[]),
        ("", failing(json!({"reason": "Error"})), &["failureDetails.reason: Unsupported value"]),
        ("", failing(json!({"executionTimeBeforeFailure": "-1s"})), &["executionTimeBeforeFailure: must be a Go"]),
        ("", failing(json!({"failedTaskIndex": -1})), &["failureDetails.failedTaskIndex"]),
        ("", failing(json!({"naturalLanguageSummary": "x".repeat(1001)})), &["naturalLanguageSummary: Too long"]),
        ("", json!({"phase": "Done"}), &["status.phase: Unsupported value"]),
        ("", json!({"consecutiveFailures": -1}), &["status.consecutiveFailures"]),
        ("", json!({"runSequence": -1}), &["status.runSequence"]),
        ("", json!({"runSequence": i64::MAX}), &[]),
        ("Running", json!({"duration": "banana"}), &["status.duration: must be a Go duration"]),
        ("Running", json!({"pipelineRunStatus": {"status": "Done"}}), &["pipelineRunStatus.status: Unsupported"]),
    ];
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for (from, status, words) in rows {
        let row = format!("{from:?}, then {:.120}", status.to_string());
        let name = namespaced.create_in(from).await?;
        expect(&mut failures, &row, words, namespaced.try_status(&name, status).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn a_final_status_stays_as_it_is() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for phase in ["Completed", "Failed", "Skipped"] {
        let name = namespaced.create_in(phase).await?;
        for (field, value) in [
            ("target", json!("node/worker-1")),
            ("startTime", json!(LATER)),
            ("completionTime", json!(LATER)),
            ("duration", json!("5s")),
            ("pipelineRunRef", run_ref(9)),
            ("runSequence", json!(9)),
            ("pipelineRunStatus", json!({"status": "True"})),
            ("attempts", json!([{"attempt": 1}])),
            ("failureReason", json!("another")),
            ("failureDetails", json!({"message": "another"})),
            ("skipDetails", json!({"message": "another"})),
            ("consecutiveFailures", json!(9)),
            ("nextAllowedExecution", json!(LATER)),
        ] {
            let answer = namespaced.try_status(&name, json!({field: value})).await?;
            // The refusal may be about other details that are missing, so the test checks only the name of the field.
            expect(&mut failures, &format!("{phase}, {field}"), &[&format!("status.{field}")], answer);
        }
        let answer: Refusal = namespaced.try_status(&name, entering(phase)).await?;
        expect(&mut failures, &format!("{phase}, written again"), &[], answer);
        for free in [
            json!({"observedGeneration": 2}),
            json!({"clearance": {"clearedBy": "jane", "clearedAt": LATER, "reason": "looked at it"}}),
            json!({"conditions": [{
                "type": "TargetLocked", "status": "False", "reason": "Free", "message": "", "lastTransitionTime": LATER,
            }]}),
        ] {
            let row = format!("{phase}, {free}");
            expect(&mut failures, &row, &[], namespaced.try_status(&name, free).await?);
        }
    }
    report(&failures)
}

#[tokio::test]
async fn a_status_write_cannot_change_the_spec() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let name = namespaced.create_in("").await?;
    let patch = Patch::Merge(json!({"spec": {"confidence": 0.9}, "status": {"phase": "Pending"}}));
    let answer = namespaced.api.patch_status(&name, &PatchParams::default(), &patch).await;
    assert_eq!(refusal(answer)?, None);
    assert_eq!(namespaced.api.get(&name).await?.data["spec"]["confidence"], json!(0.5));
    Ok(())
}
