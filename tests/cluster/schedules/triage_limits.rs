//! Bad triage fields in the spec and in the status are refused with a message that names the field. Fields just within
//! the limits are accepted.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{ControlPlane, Options, manifests, repository};

use super::admission::{Row, check, check_refused};
use super::objects::{Schedules, but, by_cron, good};
use crate::admission::objects::{Namespaced, expect, refusal, report};

/// Returns the largest list of fields that a triage may adjust. Each has the longest possible name.
pub(super) fn most_adjustable() -> Value {
    (0..16).map(|n| format!("parameters.{}", longest_key(n))).collect()
}

/// Returns a parameter key of the maximum length.
fn longest_key(n: usize) -> String {
    format!("K{}{n:03}", "_".repeat(249))
}

#[tokio::test]
async fn a_triage_that_contradicts_itself_is_refused_by_name() -> Result<()> {
    let needed: &[&str] = &["spec.triage.workflowRef: is required with analyst Pipeline"];
    let analysts: &[&str] = &["spec.triage.analyst: Unsupported value"];
    let beyond = [(json!(0), "greater than or equal to 1"), (json!(11), "less than or equal to 10")];
    let account: &[&str] = &["spec.triage.serviceAccountName: must be a DNS subdomain"];
    let image: &[&str] = &["spec.triage.workflowRef.containerImage: must be an image reference"];
    let digest: &[&str] = &["spec.triage.workflowRef.containerDigest: must be sha256:"];
    let rows: &[Row<'_>] = &[
        (&[("triage/workflowRef", json!(null))], needed),
        (&[("triage", json!({"analyst": "Pipeline"}))], needed),
        (&[("triage/analyst", json!("Oracle"))], analysts),
        (&[("triage/analyst", json!(""))], analysts),
        (&[("triage/after", beyond[0].0.clone())], &["spec.triage.after", beyond[0].1]),
        (&[("triage/after", beyond[1].0.clone())], &["spec.triage.after", beyond[1].1]),
        (&[("triage/after", json!("3"))], &["spec.triage.after", "must be of type integer"]),
        (&[("triage/serviceAccountName", json!("Analyst"))], account),
        (&[("triage/serviceAccountName", json!(""))], account),
        (&[("triage/serviceAccountName", json!("a".repeat(254)))], &["spec.triage.serviceAccountName: Too long"]),
        (&[("triage/workflowRef/containerImage", json!("Upper/Case"))], image),
        (&[("triage/workflowRef/containerDigest", json!("sha256:0"))], digest),
        (&[("triage/workflowRef/workflowId", json!(""))], &["spec.triage.workflowRef.workflowId"]),
        (&[("triage", json!("BuiltIn"))], &["spec.triage", "must be of type object"]),
    ];
    check(&good(), rows).await?;
    for analyst in [json!("Off"), json!("BuiltIn"), json!(null)] {
        for (field, value) in [("serviceAccountName", "analyst"), ("timeout", "5m")] {
            let words = format!("spec.triage.{field}: may be set only with analyst Pipeline");
            let mut triage = json!({field: value});
            if !analyst.is_null() {
                triage["analyst"] = analyst.clone();
            }
            check_refused(&good(), "triage", &[&words], &[triage]).await?;
        }
        let words: &[&str] = &["spec.triage.workflowRef: may be set only with analyst Pipeline"];
        check(&good(), &[(&[("triage/analyst", analyst)], words)]).await?;
    }
    let words = "spec.triage.timeout: must be a duration in whole seconds from 1m to 1h, e.g.";
    let bad = ["", "0s", "59s", "1h1s", "61m", "-5m", "1.5m", "60", "banana", "90000ms"];
    check_refused(&good(), "triage/timeout", &[words], &bad.map(|text| json!(text))).await
}

#[tokio::test]
async fn what_a_triage_cannot_adjust_is_refused_by_name() -> Result<()> {
    let names = "spec.triage.allowAdjust: must list interval, timeout or parameters.<KEY>";
    let bad = [
        "",
        "cron",
        "Interval",
        "targetResource",
        "workflowRef",
        "parameters",
        "parameters.",
        "parameters.*",
        "parameters.ready_timeout",
        "parameters.READY TIMEOUT",
        "template.spec.parameters.READY_TIMEOUT",
        "interval ",
        "interval\n",
    ];
    check_refused(&good(), "triage/allowAdjust", &[names], &bad.map(|text| json!([text]))).await?;
    let keys = "spec.triage.allowAdjust: parameters.<KEY> must name a key of spec.template.spec.parameters";
    let absent = [json!(["parameters.OTHER"]), json!(["interval", "parameters.READY_TIMEOUT_"])];
    check_refused(&good(), "triage/allowAdjust", &[keys], &absent).await?;
    check(&good(), &[(&[("template/spec/parameters", json!(null))], &[keys])]).await?;
    let twice =
        [json!(["interval", "interval"]), json!(["parameters.READY_TIMEOUT", "timeout", "parameters.READY_TIMEOUT"])];
    check_refused(&good(), "triage/allowAdjust", &["spec.triage.allowAdjust: must list each field once"], &twice)
        .await?;
    let many: Value = (0..17).map(|n| format!("parameters.K{n}")).collect();
    check_refused(&good(), "triage/allowAdjust", &["spec.triage.allowAdjust: Too many"], &[many]).await?;
    let long = json!([format!("parameters.{}X", longest_key(1))]);
    check_refused(&good(), "triage/allowAdjust", &["spec.triage.allowAdjust[0]: Too long"], &[long]).await?;
    check_refused(&good(), "triage/allowAdjust", &["must be of type array"], &[json!("interval")]).await?;
    let vain = "spec.triage.allowAdjust: may list interval only beside spec.interval, as no verdict changes a cron";
    let listed = [json!(["interval"]), json!(["timeout", "interval", "parameters.READY_TIMEOUT"])];
    check_refused(&by_cron()?, "triage/allowAdjust", &[vain], &listed).await?;
    // The same applies to an edit of the template or of the plan.
    let schedules = Schedules::new().await?;
    let name = schedules.create(good()).await?;
    let mut failures = Vec::new();
    let change = json!({"template": {"spec": {"parameters": {"READY_TIMEOUT": null}}}});
    expect(&mut failures, "the parameter goes", &[keys], schedules.try_spec(&name, change).await?);
    let change = json!({"interval": null, "spread": null, "cron": "0 2 * * *"});
    expect(&mut failures, "the interval goes", &[vain], schedules.try_spec(&name, change).await?);
    report(&failures)
}

/// Installs the shipped CRD of schedules, without the rules whose message contains `without`.
async fn install(client: &Client, without: Option<&str>) -> Result<()> {
    let path = repository().join("crds/kubernaut.ai_workflowschedules.yaml");
    let mut crd = manifests::read(&path)?.pop().context("no type")?;
    if let Some(words) = without {
        let rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
        let rules = crd.pointer_mut(rules).and_then(Value::as_array_mut).context("no rules")?;
        let all = rules.len();
        rules.retain(|it| !it["message"].as_str().unwrap_or_default().contains(words));
        ensure!(rules.len() + 1 == all, "{} rules of {all} say {words:?}", all - rules.len());
    }
    manifests::apply(client, &crd).await?;
    Ok(())
}

/// A user can suspend a schedule even if the stored schedule violates a rule that was added later.
#[tokio::test]
async fn what_was_stored_with_an_interval_to_adjust_beside_cron_can_be_changed_in_all_else() -> Result<()> {
    let vain = "spec.triage.allowAdjust: may list interval only beside spec.interval";
    let control_plane = ControlPlane::start(Options::BARE).await?;
    let schedules = Schedules::of(&Namespaced::on(&control_plane).await?).await?;
    install(&schedules.client, Some(vain)).await?;
    let established = ["wait", "crd/workflowschedules.kubernaut.ai", "--for=condition=Established", "--timeout=60s"];
    control_plane.kubectl(&established).await?;
    let old = but(by_cron()?, &[("triage/allowAdjust", json!(["interval", "timeout"]))])?;
    let name = schedules.create(old.clone()).await?;
    install(&schedules.client, None).await?;
    let ask = async || schedules.try_create(old.clone()).await;
    ask_until(DEADLINE, "the rule is in force", ask, Option::is_some).await?;
    let mut failures = Vec::new();
    for (spec, words) in [
        (json!({"suspend": true}), &[][..]),
        (json!({"hint": {"reason": "another"}}), &[]),
        (json!({"cron": "0 3 * * *"}), &[]),
        (json!({"triage": {"after": 2}}), &[]),
        (json!({"triage": {"allowAdjust": ["interval"]}}), &[vain]),
        (json!({"triage": {"allowAdjust": ["timeout"]}}), &[]),
        (json!({"triage": {"allowAdjust": ["timeout", "interval"]}}), &[vain]),
    ] {
        expect(&mut failures, &spec.to_string(), words, schedules.try_spec(&name, spec.clone()).await?);
        // A write as the operator sends it.
        let status = Patch::Merge(json!({"status": {"revision": format!("{:016x}", failures.len())}}));
        let answer = schedules.api.patch_status(&name, &PatchParams::default(), &status).await;
        expect(&mut failures, &format!("the status, after {spec}"), &[], refusal(answer)?);
    }
    report(&failures)
}

#[tokio::test]
async fn a_triage_that_is_only_just_good_is_accepted() -> Result<()> {
    let all: Map<_, _> = (0..16).map(|n| (longest_key(n), json!("x"))).collect();
    let rows: &[Row<'_>] = &[
        (&[("triage", json!({}))], &[]),
        (&[("triage", json!({"analyst": "Off"}))], &[]),
        (&[("triage", json!({"analyst": "BuiltIn", "after": 1, "allowAdjust": ["timeout"]}))], &[]),
        (&[("triage", json!({"after": 10, "allowAdjust": []}))], &[]),
        (&[("triage/timeout", json!("1m"))], &[]),
        (&[("triage/timeout", json!("60s"))], &[]),
        (&[("triage/timeout", json!("1h"))], &[]),
        (&[("triage/timeout", json!(null)), ("triage/serviceAccountName", json!(null))], &[]),
        (&[("triage/serviceAccountName", json!("a"))], &[]),
        (&[("template/spec/parameters", Value::Object(all)), ("triage/allowAdjust", most_adjustable())], &[]),
    ];
    check(&good(), rows).await
}

#[tokio::test]
async fn a_resume_names_its_author_and_its_reason_and_is_restored_from_a_backup() -> Result<()> {
    let resume = json!({"triage": "nightly-1767323045", "reason": "mended", "resumedBy": "jane"});
    let schedules = Schedules::new().await?;
    let name = schedules.create(but(good(), &[("resume", resume.clone())])?).await?;
    let mut failures = Vec::new();
    for (field, value, words) in [
        ("triage", json!(null), &["spec.resume.triage: Required value"][..]),
        ("triage", json!(""), &["spec.resume.triage", "at least 1"]),
        ("triage", json!("x".repeat(254)), &["spec.resume.triage: Too long"]),
        ("reason", json!(null), &["spec.resume.reason: Required value"]),
        ("reason", json!(""), &["spec.resume.reason", "at least 1"]),
        ("reason", json!("x".repeat(1025)), &["spec.resume.reason: Too long"]),
        ("resumedBy", json!(null), &["spec.resume.resumedBy: Required value"]),
        ("resumedBy", json!(""), &["spec.resume.resumedBy", "at least 1"]),
        ("resumedBy", json!("x".repeat(1025)), &["spec.resume.resumedBy: Too long"]),
        ("reason", json!("x".repeat(1024)), &[]),
    ] {
        let mut resume = resume.clone();
        resume[field] = value;
        let row = format!("{:.100}", resume.to_string());
        expect(&mut failures, &row, words, schedules.try_spec(&name, json!({"resume": resume})).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn the_record_of_a_triage_has_limits_and_no_other_ones() -> Result<()> {
    let schedules = Schedules::new().await?;
    let name = schedules.create(good()).await?;
    let time = "2026-01-02T03:04:05Z";
    let least = json!({"of": "nightly-1767323045", "at": time, "analyst": "BuiltIn", "state": "Analysing"});
    let parameters: Map<_, _> = (0..64).map(|n| (longest_key(n), json!("x".repeat(700)))).collect();
    let with = |field: &str, value: Value| {
        let mut triage = least.clone();
        triage[field] = value;
        json!({"triage": triage})
    };
    let mut failures = Vec::new();
    for (status, words) in [
        (json!({"triage": least}), &[][..]),
        (with("of", json!(null)), &["status.triage.of: Required value"]),
        (with("at", json!(null)), &["status.triage.at: Required value"]),
        (with("analyst", json!(null)), &["status.triage.analyst: Required value"]),
        (with("state", json!(null)), &["status.triage.state: Required value"]),
        (with("state", json!("Asleep")), &["status.triage.state: Unsupported value"]),
        (with("verdict", json!("Restart")), &["status.triage.verdict: Unsupported value"]),
        (with("run", json!({"name": "a-1-triage"})), &["status.triage.run.uid: Required value"]),
        (with("run", json!({"name": "a-1-triage", "uid": "u"})), &[]),
        (with("fingerprint", json!("\u{e4}".repeat(320))), &[]),
        (with("fingerprint", json!("x".repeat(321))), &["status.triage.fingerprint: Too long"]),
        (with("evidence", json!("0f".repeat(32))), &[]),
        (with("evidence", json!("0".repeat(65))), &["status.triage.evidence: Too long"]),
        (with("why", json!("\u{1f980}".repeat(1000))), &[]),
        (with("why", json!("x".repeat(1001))), &["status.triage.why: Too long"]),
        (with("fix", json!("\u{1f980}".repeat(4000))), &[]),
        (with("fix", json!("x".repeat(4001))), &["status.triage.fix: Too long"]),
        (with("refused", json!(vec!["x".repeat(512); 16])), &[]),
        (with("refused", json!(vec!["x"; 17])), &["status.triage.refused: Too many"]),
        (with("refused", json!(["x".repeat(513)])), &["status.triage.refused[0]: Too long"]),
        (json!({"adjust": {"parameters": {"ready": "1"}}}), &["status.adjust.parameters: keys must be UPPER_SNAKE"]),
        (json!({"adjust": {"parameters": {"K": "x".repeat(8193)}}}), &["status.adjust.parameters.K: Too long"]),
        (json!({"adjust": {"interval": "720h", "timeout": "24h", "parameters": parameters}}), &[]),
        (json!({"adjust": {"interval": "1h0m0s", "timeout": "1s"}}), &[]),
        (json!({"adjust": {"interval": "0s"}}), &["status.adjust.interval: must be a duration in whole seconds"]),
        (json!({"adjust": {"timeout": "24h1s"}}), &["status.adjust.timeout: must be a duration in whole seconds"]),
        (json!({"lastRun": {"slot": time, "fingerprint": "x".repeat(320)}}), &[]),
        (json!({"lastRun": {"fingerprint": "x".repeat(321)}}), &["status.lastRun.fingerprint: Too long"]),
        (json!({"lastRun": {"fingerprint": ""}}), &["status.lastRun.fingerprint", "at least 1"]),
    ] {
        let patch = Patch::Merge(json!({"status": status}));
        let answer = schedules.api.patch_status(&name, &PatchParams::default(), &patch).await;
        expect(&mut failures, &format!("{:.100}", status.to_string()), words, refusal(answer)?);
    }
    // A patch with nulls removes the triage's record and the adjusted values.
    let patch = Patch::Merge(json!({"status": {"triage": null, "adjust": null}}));
    let after = schedules.api.patch_status(&name, &PatchParams::default(), &patch).await?;
    ensure!(after.data["status"]["triage"].is_null() && after.data["status"]["adjust"].is_null(), "{:#}", after.data);
    report(&failures)
}

/// Everything together is within the limits of the rules and of the size: spec, record, adjusted values and resume.
#[tokio::test]
async fn the_largest_triage_fits_into_one_object() -> Result<()> {
    let schedules = Schedules::new().await?;
    let all: Map<_, _> = (0..16).map(|n| (longest_key(n), json!("x".repeat(3800)))).collect();
    let changes = [("template/spec/parameters", Value::Object(all)), ("triage/allowAdjust", most_adjustable())];
    let name = schedules.create(but(good(), &changes)?).await?;
    let overlay: Map<_, _> = (0..16).map(|n| (longest_key(n), json!("y".repeat(3800)))).collect();
    let status = json!({"status": {
        "triage": {
            "of": "n".repeat(253), "at": "2026-01-02T03:04:05Z", "analyst": "Pipeline",
            "run": {"name": "n".repeat(253), "uid": "u".repeat(128)}, "fingerprint": "f".repeat(320),
            "evidence": "0f".repeat(32), "verdict": "AdjustConfig", "why": "w".repeat(1000), "fix": "x".repeat(4000),
            "refused": vec!["r".repeat(512); 16], "state": "Adjusted",
        },
        "adjust": {"interval": "720h", "timeout": "24h", "parameters": overlay},
    }});
    schedules.api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    let resume =
        json!({"resume": {"triage": "n".repeat(253), "reason": "r".repeat(1024), "resumedBy": "u".repeat(1024)}});
    ensure!(schedules.try_spec(&name, resume).await?.is_none(), "cannot be resumed");
    Ok(())
}
