//! Which users may cancel, at which time, and how many times.

use anyhow::{Context as _, Result};
use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::{Value, json};

use super::objects::{Refusal, entering, expect, good, good_but, refusal, report};
use super::people::{self, ANN, BOB, JANE, ROBOT, Stage};

const POLICY: &str = "cancellation.workflowexecutions.kubernaut.ai";

fn cancelled(requested_by: &str) -> Value {
    json!({"spec": {"cancellation": {"reason": "wrong cluster", "requestedBy": requested_by}}})
}

/// Tries to cancel an execution as this user.
async fn cancel_as(stage: &Stage, user: &str, name: &str, requested_by: &str) -> Result<Refusal> {
    stage.patch_as(user, name, cancelled(requested_by)).await
}

#[tokio::test]
async fn only_who_may_cancel_does_and_in_the_own_name() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    let not_allowed = |user: &str| {
        let namespace = &stage.namespaced.namespace;
        [
            POLICY.to_owned(),
            format!("spec.cancellation: {user} may not cancel this WorkflowExecution; ask for the right to update"),
            format!("workflowexecutions/cancellation (group kubernaut.ai) in namespace {namespace}"),
        ]
    };
    let not_you = |user: &str| {
        let own = format!("spec.cancellation.requestedBy: must be your own user name, {user}");
        [POLICY.to_owned(), own.clone(), own]
    };
    let rows = [
        (BOB, "", BOB, Some(not_allowed(BOB))),
        (BOB, "", JANE, Some(not_allowed(BOB))),
        (ANN, "", ANN, Some(not_allowed(ANN))),
        (JANE, "", BOB, Some(not_you(JANE))),
        (JANE, "", "Jane", Some(not_you(JANE))),
        (JANE, "", "robot", Some(not_you(JANE))),
        (ROBOT, "", "robot", Some(not_you(ROBOT))),
        (ROBOT, "", JANE, Some(not_you(ROBOT))),
        (JANE, "", JANE, None),
        (JANE, "Pending", JANE, None),
        (JANE, "Running", JANE, None),
        (ROBOT, "Running", ROBOT, None),
        (BOB, "Running", BOB, Some(not_allowed(BOB))),
        (BOB, "Completed", BOB, Some(not_allowed(BOB))),
    ];
    let mut failures = Vec::new();
    for (user, phase, requested_by, words) in rows {
        let name = stage.namespaced.create_in(phase).await?;
        let words: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
        let answer = cancel_as(&stage, user, &name, requested_by).await?;
        expect(&mut failures, &format!("{user} on {phase:?} as {requested_by}"), &words, answer);
    }
    report(&failures)
}

#[tokio::test]
async fn the_right_can_be_given_for_one_execution() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    for name in ["hers", "his"] {
        let object = serde_json::from_value(good_but("/metadata/name", json!(name))?)?;
        stage.namespaced.api.create(&PostParams::default(), &object).await?;
    }
    let mut failures = Vec::new();
    expect(&mut failures, "hers", &[], cancel_as(&stage, ANN, "hers", ANN).await?);
    expect(&mut failures, "his", &["ann may not cancel"], cancel_as(&stage, ANN, "his", ANN).await?);
    report(&failures)
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    let mut failures = Vec::new();
    for phase in ["Completed", "Failed", "Skipped"] {
        let name = stage.namespaced.create_in(phase).await?;
        let words = [&*format!("spec.cancellation: may be set only while the execution goes on; this one is {phase}")];
        expect(&mut failures, phase, &words, cancel_as(&stage, JANE, &name, JANE).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn a_cancellation_is_never_there_from_the_start() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    let mut object = good();
    object["spec"]["cancellation"] = cancelled(JANE)["spec"]["cancellation"].clone();
    let mut failures = Vec::new();
    let words = ["spec.cancellation: may not be set when the object is created"];
    expect(&mut failures, "create", &words, stage.namespaced.try_create(object.clone()).await?);
    object["metadata"] = json!({"name": "applied"});
    let apply = PatchParams::apply("test").force();
    let answer = stage.namespaced.api.patch("applied", &apply, &Patch::Apply(&object)).await;
    expect(&mut failures, "apply", &words, refusal(answer)?);
    report(&failures)
}

#[tokio::test]
async fn a_cancellation_stays_as_it_is() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    let stays: &[&str] = &["spec.cancellation: may not change or be removed once set"];
    let mut failures = Vec::new();
    for phase in ["", "Running", "Failed"] {
        let name = stage.namespaced.create_in(if phase == "Failed" { "Running" } else { phase }).await?;
        expect(&mut failures, "cancelled", &[], cancel_as(&stage, JANE, &name, JANE).await?);
        if phase == "Failed" {
            // The operator writes this status. It may change every status, but must not cancel.
            stage.namespaced.must(&name, entering(phase)).await?;
        }
        for (user, change, words) in [
            (JANE, json!({"reason": "another"}), stays),
            (JANE, json!({"requestedBy": ROBOT}), stays),
            (ROBOT, json!({"requestedBy": ROBOT}), stays),
            (ROBOT, json!({"reason": "another", "requestedBy": ROBOT}), stays),
            (JANE, json!(null), stays),
            (JANE, json!({"requestedBy": null}), &["spec.cancellation.requestedBy: Required value"]),
            (JANE, json!({"reason": "wrong cluster"}), &[]),
            (BOB, json!({"reason": "wrong cluster", "requestedBy": JANE}), &[]),
        ] {
            let row = format!("{phase:?}, {user}: {change}");
            let answer = stage.patch_as(user, &name, json!({"spec": {"cancellation": change}})).await?;
            expect(&mut failures, &row, words, answer);
        }
        // The administrator may do everything else. A PUT instead of a PATCH is refused too.
        let mut object = stage.namespaced.api.get(&name).await?;
        object.data["spec"].as_object_mut().context("no spec")?.remove("cancellation");
        let answer = stage.namespaced.api.replace(&name, &PostParams::default(), &object).await;
        expect(&mut failures, &format!("{phase:?}, replaced"), stays, refusal(answer)?);
        // For the rest of the object, the same changes as before are allowed.
        let label = json!({"metadata": {"labels": {"team": "payment"}}});
        expect(&mut failures, "a label", &[], stage.patch_as(BOB, &name, label).await?);
        let answer = stage.patch_as(BOB, &name, json!({"spec": {"confidence": 0.6}})).await?;
        expect(&mut failures, "confidence", &["spec.confidence: is immutable once created"], answer);
    }
    report(&failures)
}

#[tokio::test]
async fn a_malformed_cancellation_is_refused_by_name() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    let api = &stage.namespaced.api;
    let name = stage.namespaced.create_in("").await?;
    // The policy requires the name of the user, who is the administrator here.
    let good = json!({"reason": "wrong cluster", "requestedBy": "admin"});
    let with = |field: &str, value: Value| {
        let mut cancellation = good.clone();
        cancellation[field] = value;
        cancellation
    };
    let rows = [
        (json!("stop"), &["spec.cancellation", "must be of type object"][..]),
        (json!(true), &["spec.cancellation", "must be of type object"]),
        (json!([]), &["spec.cancellation", "must be of type object"]),
        (json!({}), &["spec.cancellation.reason: Required value", "spec.cancellation.requestedBy: Required value"]),
        (with("reason", json!(null)), &["spec.cancellation.reason: Required value"]),
        (with("reason", json!("")), &["spec.cancellation.reason", "at least 1"]),
        (with("reason", json!(7)), &["spec.cancellation.reason", "must be of type string"]),
        (with("reason", json!("x".repeat(1025))), &["spec.cancellation.reason: Too long"]),
        (with("requestedBy", json!(null)), &["spec.cancellation.requestedBy: Required value"]),
        (with("requestedBy", json!("")), &["spec.cancellation.requestedBy", "at least 1"]),
        (with("requestedBy", json!("x".repeat(1025))), &["spec.cancellation.requestedBy: Too long"]),
        (with("requestedby", json!("admin")), &["unknown field \"spec.cancellation.requestedby\""]),
        (json!(null), &[]),
        (good.clone(), &[]),
        (with("reason", json!("x".repeat(1024))), &[]),
        (with("reason", json!("lines\nand \u{1f980}")), &[]),
    ];
    let strict =
        PatchParams { dry_run: true, field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let mut failures = Vec::new();
    for (cancellation, words) in rows {
        let row = format!("{:.80}", cancellation.to_string());
        let patch = Patch::Merge(json!({"spec": {"cancellation": cancellation}}));
        expect(&mut failures, &row, words, refusal(api.patch(&name, &strict, &patch).await)?);
    }
    report(&failures)
}

#[tokio::test]
async fn the_policy_fits_the_kind() -> Result<()> {
    people::expect_policy_fits("cancellation", "requestedBy").await
}
