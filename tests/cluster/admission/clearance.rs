//! Which users may clear a target, at which time, and how many times.

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::{Value, json};

use super::objects::{Refusal, entering, expect, good, good_but, refusal, report};
use super::people::{self, ANN, BOB, JANE, ROBOT, Stage};

const POLICY: &str = "clearance.workflowexecutions.kubernaut.ai";

fn cleared(cleared_by: &str) -> Value {
    json!({"spec": {"clearance": {"reason": "disk replaced", "clearedBy": cleared_by}}})
}

/// Tries to clear an execution as this user.
async fn clear_as(stage: &Stage, user: &str, name: &str, cleared_by: &str) -> Result<Refusal> {
    stage.patch_as(user, name, cleared(cleared_by)).await
}

#[tokio::test]
async fn only_who_may_clear_does_and_in_the_own_name() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let not_allowed = |user: &str| {
        let namespace = &stage.namespaced.namespace;
        [
            POLICY.to_owned(),
            format!("spec.clearance: {user} may not clear this WorkflowExecution; ask for the right to update"),
            format!("workflowexecutions/clearance (group kubernaut.ai) in namespace {namespace}"),
        ]
    };
    let not_you = |user: &str| {
        let own = format!("spec.clearance.clearedBy: must be your own user name, {user}");
        [POLICY.to_owned(), own.clone(), own]
    };
    let rows = [
        (BOB, BOB, Some(not_allowed(BOB))),
        (BOB, JANE, Some(not_allowed(BOB))),
        (ANN, ANN, Some(not_allowed(ANN))),
        (JANE, BOB, Some(not_you(JANE))),
        (JANE, "Jane", Some(not_you(JANE))),
        (ROBOT, "robot", Some(not_you(ROBOT))),
        (ROBOT, JANE, Some(not_you(ROBOT))),
        (JANE, JANE, None),
        (ROBOT, ROBOT, None),
    ];
    let mut failures = Vec::new();
    for (user, cleared_by, words) in rows {
        let name = stage.namespaced.create_in("Failed").await?;
        let words: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
        let answer = clear_as(&stage, user, &name, cleared_by).await?;
        expect(&mut failures, &format!("{user} as {cleared_by}"), &words, answer);
    }
    report(&failures)
}

#[tokio::test]
async fn the_right_to_clear_can_be_given_for_one_execution() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    for name in ["hers", "his"] {
        let object = serde_json::from_value(good_but("/metadata/name", json!(name))?)?;
        stage.namespaced.api.create(&PostParams::default(), &object).await?;
        stage.namespaced.must(name, entering("Failed")).await?;
    }
    let mut failures = Vec::new();
    expect(&mut failures, "hers", &[], clear_as(&stage, ANN, "hers", ANN).await?);
    expect(&mut failures, "his", &["ann may not clear"], clear_as(&stage, ANN, "his", ANN).await?);
    report(&failures)
}

#[tokio::test]
async fn who_may_cancel_may_not_therefore_clear() -> Result<()> {
    let stage = Stage::new("cancellation").await?;
    let name = stage.namespaced.create_in("Failed").await?;
    let mut failures = Vec::new();
    expect(&mut failures, "clear", &["jane may not clear"], clear_as(&stage, JANE, &name, JANE).await?);
    report(&failures)
}

#[tokio::test]
async fn only_what_has_failed_can_be_cleared() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let mut failures = Vec::new();
    for (phase, this_one) in [
        ("", "has no phase yet"),
        ("Pending", "is Pending"),
        ("Running", "is Running"),
        ("Completed", "is Completed"),
        ("Skipped", "is Skipped"),
    ] {
        let name = stage.namespaced.create_in(phase).await?;
        let words = format!("spec.clearance: may be set only on an execution that is Failed; this one {this_one}");
        expect(&mut failures, phase, &[&words], clear_as(&stage, JANE, &name, JANE).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn a_clearance_is_never_there_from_the_start() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let mut object = good();
    object["spec"]["clearance"] = cleared(JANE)["spec"]["clearance"].clone();
    let mut failures = Vec::new();
    let words = ["spec.clearance: may not be set when the object is created"];
    expect(&mut failures, "create", &words, stage.namespaced.try_create(object.clone()).await?);
    object["metadata"] = json!({"name": "applied"});
    let apply = PatchParams::apply("test").force();
    let answer = stage.namespaced.api.patch("applied", &apply, &Patch::Apply(&object)).await;
    expect(&mut failures, "apply", &words, refusal(answer)?);
    report(&failures)
}

#[tokio::test]
async fn a_clearance_stays_as_it_is() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let stays: &[&str] = &["spec.clearance: may not change or be removed once set; what fails later"];
    let name = stage.namespaced.create_in("Failed").await?;
    let mut failures = Vec::new();
    expect(&mut failures, "cleared", &[], clear_as(&stage, JANE, &name, JANE).await?);
    for (user, change, words) in [
        (ROBOT, json!({"reason": "disk replaced", "clearedBy": ROBOT}), stays),
        (JANE, json!({"reason": "another"}), stays),
        (JANE, json!({"clearedBy": ROBOT}), stays),
        (JANE, json!(null), stays),
        (JANE, json!({"clearedBy": null}), &["spec.clearance.clearedBy: Required value"]),
        (JANE, json!({"reason": "disk replaced"}), &[]),
        (BOB, json!({"reason": "disk replaced", "clearedBy": JANE}), &[]),
    ] {
        let row = format!("{user}: {change}");
        let answer = stage.patch_as(user, &name, json!({"spec": {"clearance": change}})).await?;
        expect(&mut failures, &row, words, answer);
    }
    // The administrator may do everything else. A PUT instead of a PATCH is refused too.
    let mut object = stage.namespaced.api.get(&name).await?;
    object.data["spec"].as_object_mut().context("no spec")?.remove("clearance");
    let answer = stage.namespaced.api.replace(&name, &PostParams::default(), &object).await;
    expect(&mut failures, "replaced", stays, refusal(answer)?);
    // The operator writes this record. It may change every status, but must not clear.
    let recorded =
        json!({"clearance": {"reason": "disk replaced", "clearedBy": JANE, "clearedAt": "2026-01-02T03:04:05Z"}});
    expect(&mut failures, "recorded", &[], stage.namespaced.try_status(&name, recorded).await?);
    report(&failures)
}

#[tokio::test]
async fn a_clearance_can_be_bound_to_what_was_looked_at() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let name = stage.namespaced.create_in("Failed").await?;
    let seen = stage.namespaced.api.get(&name).await?;
    let bound = |uid: Option<String>, version: Option<String>| {
        let mut patch = cleared(JANE);
        patch["metadata"] = json!({"uid": uid, "resourceVersion": version});
        patch
    };
    stage.namespaced.must(&name, json!({"consecutiveFailures": null, "observedGeneration": 1})).await?;
    let now = stage.namespaced.api.get(&name).await?;
    ensure!(now.resource_version() != seen.resource_version(), "nothing has changed");
    let answer = stage.patch_as(JANE, &name, bound(seen.uid(), seen.resource_version())).await;
    let conflict = answer.as_ref().err().and_then(|error| error.downcast_ref());
    ensure!(matches!(conflict, Some(kube::Error::Api(status)) if status.code == 409), "{answer:?}");
    let mut failures = Vec::new();
    let another = bound(Some("0d3b9a52".to_owned()), now.resource_version());
    expect(&mut failures, "another", &["metadata.uid", "immutable"], stage.patch_as(JANE, &name, another).await?);
    let this_one = bound(now.uid(), now.resource_version());
    expect(&mut failures, "this one", &[], stage.patch_as(JANE, &name, this_one).await?);
    report(&failures)
}

#[tokio::test]
async fn kubectl_clears_as_the_book_says() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let name = stage.namespaced.create_in("Failed").await?;
    let kubectl = async |user: &str, arguments: &[&str]| {
        let arguments = [&["--as", user, "--namespace", &stage.namespaced.namespace], arguments].concat();
        stage.namespaced.control_plane.kubectl(&arguments).await
    };
    let clear = async |user: &str| {
        let whoami = ["auth", "whoami", "--output", "jsonpath={.status.userInfo.username}"];
        let patch = cleared(&kubectl(user, &whoami).await?).to_string();
        kubectl(user, &["patch", "wfe", &name, "--type", "merge", "--patch", &patch]).await
    };
    let refused = clear(BOB).await;
    ensure!(refused.as_ref().is_err_and(|why| why.to_string().contains("bob may not clear")), "{refused:?}");
    let patched = clear(JANE).await?;
    ensure!(patched.trim() == format!("workflowexecution.kubernaut.ai/{name} patched"), "{patched}");
    let clearance = &stage.namespaced.api.get(&name).await?.data["spec"]["clearance"];
    ensure!(*clearance == json!({"reason": "disk replaced", "clearedBy": "jane"}), "{clearance}");
    Ok(())
}

#[tokio::test]
async fn a_malformed_clearance_is_refused_by_name() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let api = &stage.namespaced.api;
    let name = stage.namespaced.create_in("Failed").await?;
    // The policy requires the name of the user, who is the administrator here.
    let good = json!({"reason": "disk replaced", "clearedBy": "admin"});
    let with = |field: &str, value: Value| {
        let mut clearance = good.clone();
        clearance[field] = value;
        clearance
    };
    let rows = [
        (json!(true), &["spec.clearance", "must be of type object"][..]),
        (json!({}), &["spec.clearance.reason: Required value", "spec.clearance.clearedBy: Required value"]),
        (with("reason", json!("")), &["spec.clearance.reason", "at least 1"]),
        (with("reason", json!(7)), &["spec.clearance.reason", "must be of type string"]),
        (with("reason", json!("x".repeat(1025))), &["spec.clearance.reason: Too long"]),
        (with("clearedBy", json!("")), &["spec.clearance.clearedBy", "at least 1"]),
        (with("clearedBy", json!("x".repeat(1025))), &["spec.clearance.clearedBy: Too long"]),
        (with("clearedAt", json!("2026-01-02T03:04:05Z")), &["unknown field \"spec.clearance.clearedAt\""]),
        (json!(null), &[]),
        (good.clone(), &[]),
        (with("reason", json!("x".repeat(1024))), &[]),
        (with("reason", json!("lines\nand \u{1f980}")), &[]),
    ];
    let strict =
        PatchParams { dry_run: true, field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let mut failures = Vec::new();
    for (clearance, words) in rows {
        let row = format!("{:.80}", clearance.to_string());
        let patch = Patch::Merge(json!({"spec": {"clearance": clearance}}));
        expect(&mut failures, &row, words, refusal(api.patch(&name, &strict, &patch).await)?);
    }
    report(&failures)
}

#[tokio::test]
async fn the_policy_on_clearances_fits_the_kind() -> Result<()> {
    people::expect_policy_fits("clearance", "clearedBy").await
}
