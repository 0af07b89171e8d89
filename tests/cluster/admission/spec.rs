//! A bad value is refused with a message that names the field, and a value just within the limits is accepted.

use anyhow::{Context as _, Result};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::{Map, Value, json};
use wfe_api::WorkflowExecution;

use super::objects::{Namespaced, expect, good, good_but, refusal, report};

const TARGET: &str = "/spec/targetResource";
const PARAMETERS: &str = "/spec/parameters";
const TIMEOUT: &str = "/spec/executionConfig/timeout";
const DIGEST: &str = "/spec/workflowRef/containerDigest";
const BEFORE: &str = "/spec/startBefore";
const RECOVERY: &str = "/spec/recoveryOf";
const IMAGE: &str = "/spec/workflowRef/containerImage";
const ACCOUNT: &str = "/spec/executionConfig/serviceAccountName";

/// Returns `count` parameters with valid keys.
fn parameters(count: usize) -> Value {
    Value::Object((0..count).map(|n| (format!("KEY_{n}"), json!(""))).collect::<Map<_, _>>())
}

/// Returns eight parameters. Seven have 8192 characters including the key. The value of the last one has `last`
/// characters.
fn large(last: usize) -> Value {
    let lengths = std::iter::repeat_n(8190, 7).chain([last]).enumerate();
    Value::Object(lengths.map(|(n, length)| (format!("K{n}"), json!("\u{e4}".repeat(length)))).collect::<Map<_, _>>())
}

fn digest(digits: &str) -> Value {
    json!(format!("sha256:{digits}"))
}

#[tokio::test]
async fn what_names_no_target_is_refused_with_the_right_form() -> Result<()> {
    let form: &[&str] = &["spec.targetResource", "must be namespace/kind/name or kind/name"];
    let namespace: &[&str] = &["spec.targetResource", "must be a DNS label"];
    let kind: &[&str] = &["spec.targetResource", "must be a DNS subdomain"];
    let name: &[&str] = &["spec.targetResource", "the name must have at most 253 letters"];
    let namespaced: &[&str] = &["spec.targetResource", "must be namespace/kind/name", "have a namespace"];
    let cluster_scoped: &[&str] = &["spec.targetResource", "must be kind/name", "have no namespace"];
    let first: &[&str] = &[
        "spec.targetResource: must be namespace/kind/name with the namespace first, e.g. payment/deployment/api",
        "write the kind with its group, e.g. jobs/certificate.cert-manager.io/tls",
    ];
    let rows = [
        (TARGET, json!(null), &["spec.targetResource: Required value"][..]),
        (TARGET, json!(7), &["spec.targetResource", "must be of type string"]),
        (TARGET, json!(""), form),
        (TARGET, json!("node"), form),
        (TARGET, json!("a/b/c/d"), form),
        (TARGET, json!("/deployment/api"), form),
        (TARGET, json!("payment//api"), form),
        (TARGET, json!("payment/deployment/"), form),
        (TARGET, json!("/node"), form),
        (TARGET, json!("node/"), form),
        (TARGET, json!("/"), form),
        (TARGET, json!("//"), form),
        (TARGET, json!("Payment/deployment/api"), namespace),
        (TARGET, json!("pay ment/deployment/api"), namespace),
        (TARGET, json!("-payment/deployment/api"), namespace),
        (TARGET, json!("pay.ment/deployment/api"), namespace),
        (TARGET, json!(format!("{}/deployment/api", "n".repeat(64))), namespace),
        (TARGET, json!("payment/deploy_ment/api"), kind),
        (TARGET, json!("payment/deployments./api"), kind),
        (TARGET, json!("-node/worker-1"), kind),
        (TARGET, json!(format!("{}/worker-1", "k".repeat(254))), kind),
        (TARGET, json!("payment/deployment/50%"), name),
        (TARGET, json!("payment/deployment/a%2Fb"), name),
        (TARGET, json!("payment/deployment/."), name),
        (TARGET, json!("payment/deployment/.."), name),
        (TARGET, json!("node/.."), name),
        (TARGET, json!("payment/deployment/api\n"), name),
        (TARGET, json!("payment/deployment/a b"), name),
        (TARGET, json!("payment/deployment/\u{e4}pi"), name),
        (TARGET, json!("payment/deployment/-api"), name),
        (TARGET, json!(format!("{}/x", "k".repeat(64))), kind),
        (TARGET, json!("deployment/slow-api"), namespaced),
        (TARGET, json!("Deploy/slow-api"), namespaced),
        (TARGET, json!("deployments.v1.apps/slow-api"), namespaced),
        (TARGET, json!("payment/node/worker-1"), cluster_scoped),
        (TARGET, json!("payment/Nodes/worker-1"), cluster_scoped),
        (TARGET, json!("payment/no.v1/worker-1"), cluster_scoped),
        (TARGET, json!("deployment/payment/api"), first),
        (TARGET, json!("Deployment/payment/api"), first),
        (TARGET, json!("deploy/payment/api"), first),
        (TARGET, json!("node/payment/worker-1"), first),
        (TARGET, json!("jobs/certificate/tls"), first),
        (TARGET, json!(format!("node/{}", "x".repeat(254))), name),
        (TARGET, json!("x".repeat(572)), &["spec.targetResource: Too long"]),
    ];
    check_refusals(&rows).await
}

/// Keys become names of Tekton's params, which `$(params.KEY)` inserts into scripts and other fields.
#[tokio::test]
async fn hostile_keys_of_parameters_are_refused() -> Result<()> {
    let keys = [
        "$(params.OTHER)",
        "A$(context.pipelineRun.name)",
        "A.B",
        "A[*]",
        "A B",
        "A\n",
        "A\u{0}",
        "A\u{1b}[2J",
        "A;rm",
        "A/../B",
        "__PROTO__",
        "\u{410}", // a letter of another alphabet
        "A\u{202e}B",
        "\u{ff21}",
    ];
    let words: &[&str] = &["spec.parameters", "UPPER_SNAKE_CASE"];
    check_refusals(&keys.map(|key| (PARAMETERS, json!({key: "x"}), words))).await
}

#[tokio::test]
async fn bad_input_is_refused_by_name() -> Result<()> {
    let image: &[&str] = &["spec.workflowRef.containerImage", "must be an image reference"];
    let size: &[&str] = &["spec.parameters", "at most 65536 characters together"];
    let keys: &[&str] = &["spec.parameters", "UPPER_SNAKE_CASE"];
    let variable: &[&str] = &["spec.parameters", "must not refer to a variable of Tekton"];
    let timeout: &[&str] = &["spec.executionConfig.timeout", "must be a Go duration from 1s to 24h"];
    let pins: &[&str] = &["spec.workflowRef.containerDigest", "must be sha256: followed by 64"];
    let recovery: &[&str] = &["spec.recoveryOf", "must be the name of a WorkflowExecution"];
    let account: &[&str] = &["spec.executionConfig.serviceAccountName", "must be a DNS subdomain"];
    let rows = [
        (PARAMETERS, json!({"ready_timeout": "90s"}), keys),
        (PARAMETERS, json!({"Ready": "90s"}), keys),
        (PARAMETERS, json!({"READY-TIMEOUT": "90s"}), keys),
        (PARAMETERS, json!({"_READY": "90s"}), keys),
        (PARAMETERS, json!({"1ST": "90s"}), keys),
        (PARAMETERS, json!({"": "90s"}), keys),
        (PARAMETERS, json!({"GOOD": "", "bad": ""}), keys),
        (PARAMETERS, json!({"GOOD": "", "RUN": "wfe-$(context.pipelineRun.name)"}), variable),
        (PARAMETERS, json!({"RESULT": "$(tasks[0])"}), variable),
        (PARAMETERS, json!({"A".repeat(254): ""}), keys),
        (PARAMETERS, parameters(65), &["spec.parameters", "at most 64"]),
        (PARAMETERS, json!({"BIG": "x".repeat(8193)}), &["spec.parameters.BIG: Too long"]),
        (PARAMETERS, large(8191), size),
        (PARAMETERS, json!({"NUMBER": 1}), &["spec.parameters.NUMBER", "must be of type string"]),
        (PARAMETERS, json!({"TARGET_RESOURCE": "node/x"}), &["spec.parameters", "TARGET_RESOURCE is reserved"]),
        (DIGEST, json!(""), pins),
        (DIGEST, digest(&"0".repeat(63)), pins),
        (DIGEST, digest(&"0F".repeat(32)), pins),
        (DIGEST, digest(&"0g".repeat(32)), pins),
        (DIGEST, json!(format!("sha512:{}", "0".repeat(64))), pins),
        (DIGEST, digest(&"0".repeat(65)), &["spec.workflowRef.containerDigest: Too long"]),
        (TIMEOUT, json!(""), timeout),
        (TIMEOUT, json!("-5m"), timeout),
        (TIMEOUT, json!("0s"), timeout),
        (TIMEOUT, json!("999ms"), timeout),
        (TIMEOUT, json!("24h0m1s"), timeout),
        (TIMEOUT, json!("86401s"), timeout),
        (TIMEOUT, json!("99999999999999999999h"), timeout),
        (TIMEOUT, json!("banana"), timeout),
        (TIMEOUT, json!("1d"), timeout),
        (TIMEOUT, json!("10 min"), timeout),
        (TIMEOUT, json!("30"), timeout),
        (TIMEOUT, json!("1".repeat(33)), &["spec.executionConfig.timeout: Too long"]),
        (TIMEOUT, json!(30), &["spec.executionConfig.timeout", "must be of type string"]),
        (ACCOUNT, json!(""), account),
        (ACCOUNT, json!("Runner"), account),
        (ACCOUNT, json!("run/ner"), account),
        (ACCOUNT, json!("x".repeat(254)), &["spec.executionConfig.serviceAccountName: Too long"]),
        (RECOVERY, json!(""), recovery),
        (RECOVERY, json!("Payment"), recovery),
        (RECOVERY, json!("payment/restart"), recovery),
        (RECOVERY, json!("x".repeat(254)), &["spec.recoveryOf: Too long"]),
        ("/spec/ttlSecondsAfterFinished", json!(-1), &["spec.ttlSecondsAfterFinished", "greater than or equal to 0"]),
        ("/spec/ttlSecondsAfterFinished", json!("1h"), &["spec.ttlSecondsAfterFinished", "must be of type integer"]),
        ("/spec/confidence", json!(-0.01), &["spec.confidence", "greater than or equal to 0"]),
        ("/spec/confidence", json!(1.01), &["spec.confidence", "less than or equal to 1"]),
        ("/spec/rationale", json!("x".repeat(32_769)), &["spec.rationale: Too long"]),
        ("/spec/workflowRef", json!(null), &["spec.workflowRef: Required value"]),
        ("/spec/workflowRef/workflowId", json!(null), &["spec.workflowRef.workflowId: Required value"]),
        ("/spec/workflowRef/workflowId", json!(""), &["spec.workflowRef.workflowId", "at least 1"]),
        ("/spec/workflowRef/workflowId", json!("x".repeat(254)), &["spec.workflowRef.workflowId: Too long"]),
        ("/spec/workflowRef/version", json!(null), &["spec.workflowRef.version: Required value"]),
        ("/spec/workflowRef/version", json!("x".repeat(129)), &["spec.workflowRef.version: Too long"]),
        ("/spec/workflowRef/containerImage", json!(null), &["spec.workflowRef.containerImage: Required value"]),
        ("/spec/workflowRef/containerImage", json!(""), &["spec.workflowRef.containerImage", "at least 1"]),
        ("/spec/workflowRef/containerImage", json!("x".repeat(513)), &["spec.workflowRef.containerImage: Too long"]),
        (IMAGE, json!("UPPER/x"), image),
        (IMAGE, json!("registry.example/a b"), image),
        (IMAGE, json!("registry.example/restart@sha256:aa"), image),
        (IMAGE, json!("[::g]:5000/restart"), image),
        (IMAGE, json!(format!("registry.example/{}:1", "x".repeat(256))), &["the path", "at most 255 characters"]),
        ("/spec/remediationRequestRef/name", json!(null), &["spec.remediationRequestRef.name: Required value"]),
        ("/spec/remediationRequestRef/uid", json!("x".repeat(129)), &["spec.remediationRequestRef.uid: Too long"]),
        ("/spec", json!(null), &["spec: Required value"]),
    ];
    check_refusals(&rows).await
}

#[tokio::test]
async fn a_time_that_is_none_is_refused_by_name() -> Result<()> {
    let moment: &[&str] = &["spec.startBefore", "must be of type date-time"];
    let years: &[&str] = &["spec.startBefore: must lie in the years 1970 to 9998"];
    let rows = [
        (BEFORE, json!(""), moment),
        (BEFORE, json!("tomorrow"), moment),
        (BEFORE, json!("2026-01-02"), moment),
        (BEFORE, json!("2026-01-02T03:04:05"), moment),
        (BEFORE, json!("2026-01-02 03:04:05Z"), moment),
        (BEFORE, json!("2026-13-02T03:04:05Z"), moment),
        (BEFORE, json!("2026-02-30T03:04:05Z"), moment),
        (BEFORE, json!("2026-01-02T24:00:00Z"), moment),
        (BEFORE, json!("2026-01-02T03:04:60Z"), moment),
        (BEFORE, json!("2026-01-02T03:04:05+25:00"), &["spec.startBefore", "Invalid date-time"]),
        (BEFORE, json!("2026-01-02T03:04:05+0100"), moment),
        (BEFORE, json!("0000-01-01T00:00:00Z"), years),
        (BEFORE, json!("1969-12-31T23:59:59Z"), years),
        (BEFORE, json!("9999-12-31T23:59:59Z"), years),
        (BEFORE, json!("2026-01-02T03:04:05.1234567890Z"), &["spec.startBefore", "should match"]),
        (BEFORE, json!("99999-01-01T00:00:00Z"), moment),
        (BEFORE, json!(1_767_323_045), moment),
    ];
    check_refusals(&rows).await
}

/// Tries a table of changes to the valid object, each with a pointer and another value. The refusal must contain all
/// words of the row.
async fn check_refusals(rows: &[(&str, Value, &[&str])]) -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for (pointer, value, words) in rows {
        let row = format!("{pointer} = {:.60}", value.to_string());
        expect(&mut failures, &row, words, namespaced.try_create(good_but(pointer, value.clone())?).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn what_is_only_just_good_is_accepted_and_can_be_read() -> Result<()> {
    let longest_kind = [63, 63, 63, 61].map(|length| "k".repeat(length)).join(".");
    let longest_target = format!("{}/{longest_kind}/{}", "n".repeat(63), "x".repeat(253));
    let rows = [
        ("/metadata/generateName", json!("everything-set-")),
        (TARGET, json!("node/worker-1")),
        (TARGET, json!("payment/Deployment/api")),
        (TARGET, json!("payment/deployments.apps/api")),
        (TARGET, json!("payment/deploy/api")),
        (TARGET, json!("clusterrole/system:node")),
        (TARGET, json!("node/Worker_1.example")),
        (TARGET, json!("NO.v1/worker-1")),
        (TARGET, json!("payment/Po.v1/api:0@1")),
        (TARGET, json!("certificate/tls")),
        (TARGET, json!("web/certificate/tls")),
        (TARGET, json!("jobs/certificate.cert-manager.io/tls")),
        (TARGET, json!("jobs/deployment/api")),
        (IMAGE, json!("[::1]:5000/restart:1.0")),
        (IMAGE, json!(format!("registry.example/{}:1", "x".repeat(255)))),
        (TARGET, json!("0/0/0")),
        (TARGET, json!(longest_target)),
        (PARAMETERS, json!(null)),
        (PARAMETERS, json!({})),
        (PARAMETERS, parameters(64)),
        (PARAMETERS, json!({"A": "", "A_1": "", "TARGET_RESOURCES": "", "A".repeat(253): ""})),
        (PARAMETERS, json!({"BIG": "x".repeat(8192)})),
        (PARAMETERS, large(8190)),
        (PARAMETERS, json!({"TEXT": "lines\nand \u{1f980}, $(params.x) and \"quotes\""})),
        (DIGEST, json!(null)),
        (TIMEOUT, json!(null)),
        (TIMEOUT, json!("1s")),
        (TIMEOUT, json!("24h")),
        (TIMEOUT, json!("86400s")),
        (TIMEOUT, json!("1h30m")),
        (TIMEOUT, json!("1.5h")),
        (TIMEOUT, json!("1500ms")),
        (ACCOUNT, json!(null)),
        (ACCOUNT, json!("a.b-c.d")),
        (RECOVERY, json!(null)),
        (RECOVERY, json!("x".repeat(253))),
        (BEFORE, json!(null)),
        (BEFORE, json!("1970-01-01T00:00:00Z")),
        (BEFORE, json!("9998-12-31T23:59:59Z")),
        (BEFORE, json!("2026-01-02T03:04:05.999999999Z")),
        (BEFORE, json!("2026-01-02T03:04:05.123456+00:00")),
        (BEFORE, json!("2026-01-02T03:04:05,5-00:00")),
        (BEFORE, json!("2026-01-02T03:04:05+14:00")),
        (BEFORE, json!("2026-01-02T03:04:05+24:00")),
        ("/spec/executionConfig", json!({})),
        ("/spec/executionConfig", json!(null)),
        ("/spec/confidence", json!(0)),
        ("/spec/confidence", json!(1)),
        ("/spec/confidence", json!(null)),
        ("/spec/rationale", json!("x".repeat(32_768))),
        ("/spec/remediationRequestRef", json!(null)),
        ("/spec/remediationRequestRef", json!({"name": "rr-1"})),
        (IMAGE, json!("i")),
        (IMAGE, json!("REGISTRY.example:5000/a/b__c:V1")),
        // Only the operator reports contradicting digests, because a rule of the CRD would have to parse image
        // references.
        (
            "/spec/workflowRef/containerImage",
            json!(format!("registry.example/workflows/restart@sha256:{}", "1".repeat(64))),
        ),
    ];
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for (pointer, value) in rows {
        let row = format!("{pointer} = {:.60}", value.to_string());
        let object = good_but(pointer, value)?;
        serde_json::from_value::<WorkflowExecution>(object.clone()).context(row.clone())?;
        expect(&mut failures, &row, &[], namespaced.try_create(object).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn nothing_is_accepted_and_ignored() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let name = namespaced.create_in("").await?;
    let strict = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let mut failures = Vec::new();
    for field in ["retries", "ttlSeconds", "targetresource"] {
        let answer = namespaced.api.patch(&name, &strict, &Patch::Merge(json!({"spec": {field: "x"}}))).await;
        let words = [&*format!("unknown field \"spec.{field}\"")];
        expect(&mut failures, field, &words, refusal(answer)?);
    }
    report(&failures)
}

#[tokio::test]
async fn spec_is_immutable() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let name = namespaced.create_in("").await?;
    let mut changes = vec![
        json!({"targetResource": "node/worker-2"}),
        json!({"parameters": {"MORE": "1"}}),
        json!({"parameters": {"READY_TIMEOUT": null}}),
        json!({"confidence": 0.6}),
        json!({"workflowRef": {"version": "1.1"}}),
        json!({"workflowRef": {"containerDigest": null}}),
        json!({"executionConfig": {"timeout": "11m"}}),
        json!({"executionConfig": null}),
        json!({"startBefore": "2099-01-01T00:00:01Z"}),
        json!({"recoveryOf": "another"}),
        json!({"ttlSecondsAfterFinished": 1}),
        json!({"retry": {"maxAttempts": 4}}),
    ];
    for field in good()["spec"].as_object().context("spec is no object")?.keys() {
        changes.push(json!({field: null}));
    }
    let mut failures = Vec::new();
    for change in changes {
        let patch = Patch::Merge(json!({"spec": change}));
        let answer = namespaced.api.patch(&name, &PatchParams::default(), &patch).await;
        let field = change.as_object().and_then(|change| change.keys().next()).context("changes nothing")?;
        let required = matches!(&**field, "targetResource" | "workflowRef") && change[field].is_null();
        let why = if required { "Required value" } else { "is immutable once created" };
        expect(&mut failures, &change.to_string(), &[&format!("spec.{field}: {why}")], refusal(answer)?);
    }
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": "payment"}}, "spec": {"confidence": 0.5}}));
    let answer = namespaced.api.patch(&name, &PatchParams::default(), &patch).await;
    expect(&mut failures, "a label, and the same spec", &[], refusal(answer)?);
    report(&failures)
}

#[tokio::test]
async fn a_status_cannot_be_created() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let object = serde_json::from_value(good_but("/status", json!({"phase": "Completed"}))?)?;
    let created = namespaced.api.create(&PostParams::default(), &object).await?;
    assert_eq!(created.data["status"], crate::expect::unwritten(), "{}", created.name_any());
    Ok(())
}
