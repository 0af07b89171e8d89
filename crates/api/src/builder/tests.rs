//! Wrong fields are refused by name, values at a limit are accepted, and no object of the builder breaks the schema.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::retry::Retry;
use crate::{FailureDetails, TargetError, limits};

const DIGEST: &str = "sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f";

fn good() -> WorkflowExecutionBuilder {
    WorkflowExecution::builder("payment-restart").target("payment/deployment/payment-api").workflow(
        "deployment-restart",
        "1.0",
        "registry.example/workflows/deployment-restart:1.0",
    )
}

fn moment(text: &str) -> Time {
    Time(text.parse().unwrap())
}

fn long(length: u32) -> String {
    "x".repeat(usize::try_from(length).unwrap())
}

fn reference() -> RemediationRequestRef {
    RemediationRequestRef { name: "rr-1".to_owned(), ..RemediationRequestRef::default() }
}

/// An execution that failed, either half way (`ran`) or before anything ran.
fn failed(ran: bool) -> WorkflowExecution {
    let mut failed = good().namespace("payment").build().unwrap();
    let details: FailureDetails = serde_json::from_value(json!({
        "failedTaskIndex": 1, "failedTaskName": "apply", "reason": "Unknown", "message": "m",
        "failedAt": "2026-01-02T03:04:05Z", "executionTimeBeforeFailure": "45s", "naturalLanguageSummary": "s",
        "wasExecutionFailure": ran, "requiresManualReview": ran,
    }))
    .unwrap();
    let status = failed.status.get_or_insert_default();
    status.phase = Some(Phase::Failed);
    status.failure_details = Some(details);
    failed
}

#[test]
fn what_was_said_stands_in_the_object() {
    let built = good()
        .namespace("payment")
        .digest(DIGEST)
        .parameter("READY_TIMEOUT", "60s")
        .parameter("READY_TIMEOUT", "90s")
        .requested_by(RemediationRequestRef { kind: Some("RemediationRequest".to_owned()), ..reference() })
        .confidence(0.92)
        .rationale("the pods are out of memory")
        .timeout(Duration::from_mins(90))
        .service_account("runner")
        .start_before(moment("2026-01-02T03:04:05Z"))
        .recovery_of("payment-scale")
        .ttl_seconds_after_finished(604_800)
        .build()
        .unwrap();
    let expected = json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowExecution",
        "metadata": {"name": "payment-restart", "namespace": "payment"},
        "spec": {
            "remediationRequestRef": {"kind": "RemediationRequest", "name": "rr-1"},
            "workflowRef": {
                "workflowId": "deployment-restart", "version": "1.0",
                "containerImage": "registry.example/workflows/deployment-restart:1.0", "containerDigest": DIGEST,
            },
            "targetResource": "payment/deployment/payment-api",
            "parameters": {"READY_TIMEOUT": "90s"},
            "confidence": 0.92,
            "rationale": "the pods are out of memory",
            "executionConfig": {"timeout": "1h30m", "serviceAccountName": "runner"},
            "startBefore": "2026-01-02T03:04:05Z",
            "recoveryOf": "payment-scale",
            "ttlSecondsAfterFinished": 604_800,
        },
    });
    assert_eq!(serde_json::to_value(built).unwrap(), expected);
}

/// Seven parameters of 8192 characters including their keys, and one whose value has the length `last`.
fn large(last: u32) -> WorkflowExecutionBuilder {
    let all = (0..7).fold(good(), |builder, n| builder.parameter(format!("K{n}"), long(8190)));
    all.parameter("K7", long(last))
}

#[test]
fn what_is_wrong_is_told_by_field() {
    let many = (0..65).fold(good(), |builder, n| builder.parameter(format!("KEY_{n}"), ""));
    let image = |image: &str| good().workflow("w", "1", image);
    let request = |change: fn(&mut RemediationRequestRef)| {
        let mut reference = reference();
        change(&mut reference);
        good().requested_by(reference)
    };
    for (builder, field, words) in vec![
        (WorkflowExecution::builder(""), "metadata.name", "DNS subdomain"),
        (WorkflowExecution::builder("Payment"), "metadata.name", "DNS subdomain"),
        (WorkflowExecution::builder(long(254)), "metadata.name", "DNS subdomain"),
        (WorkflowExecution::builder("a..b"), "metadata.name", "DNS subdomain"),
        (good().namespace(""), "metadata.namespace", "DNS label"),
        (WorkflowExecution::builder("a"), "spec.targetResource", "must be namespace/kind/name"),
        (good().target("payment/deployment/50%"), "spec.targetResource", "must have a name"),
        (good().workflow("", "1", "i"), "spec.workflowRef.workflowId", "is empty; give one, e.g. node-disk-cleanup"),
        (
            good().workflow(long(254), "1", "i"),
            "spec.workflowRef.workflowId",
            "has 254 characters; shorten it to at most",
        ),
        (good().workflow("w", "", "i"), "spec.workflowRef.version", "is empty"),
        (good().workflow("w", long(129), "i"), "spec.workflowRef.version", "at most 128"),
        (image(""), "spec.workflowRef.containerImage", "is empty"),
        (image("UPPER/x"), "spec.workflowRef.containerImage", "must be an image reference"),
        (good().target("deployment/api"), "spec.targetResource", "must be namespace/deployment/api"),
        (good().target("payment/nodes/a"), "spec.targetResource", "must be node/a"),
        (good().parameter("A", "$(context.pipelineRun.name)"), "spec.parameters.A", "a variable of Tekton"),
        (large(8191), "spec.parameters", "has 65537 characters in keys and values together"),
        (image(&long(513)), "spec.workflowRef.containerImage", "at most 512"),
        (good().digest(""), "spec.workflowRef.containerDigest", "sha256: followed by 64"),
        (good().digest(DIGEST.to_uppercase()), "spec.workflowRef.containerDigest", "sha256: followed by 64"),
        (good().digest(&DIGEST[..70]), "spec.workflowRef.containerDigest", "sha256: followed by 64"),
        (
            image(&format!("r/w@sha256:{}", "e".repeat(64))).digest(DIGEST),
            "spec.workflowRef.containerDigest",
            "give the digest once",
        ),
        (many, "spec.parameters", "has 65 entries; leave out all but 64"),
        (good().parameter("ready", ""), "spec.parameters", "UPPER_SNAKE_CASE"),
        (good().parameter("", ""), "spec.parameters", "UPPER_SNAKE_CASE"),
        (good().parameter("_A", ""), "spec.parameters", "UPPER_SNAKE_CASE"),
        (good().parameter("A".repeat(254), ""), "spec.parameters", "UPPER_SNAKE_CASE"),
        (good().parameter("TARGET_RESOURCE", "node/a"), "spec.parameters.TARGET_RESOURCE", "is reserved"),
        (good().parameter("BIG", long(8193)), "spec.parameters.BIG", "has 8193 characters"),
        (request(|it| it.name.clear()), "spec.remediationRequestRef.name", "is empty"),
        (request(|it| it.api_version = Some(long(318))), "spec.remediationRequestRef.apiVersion", "at most 317"),
        (request(|it| it.kind = Some(long(64))), "spec.remediationRequestRef.kind", "at most 63"),
        (request(|it| it.namespace = Some(long(64))), "spec.remediationRequestRef.namespace", "at most 63"),
        (request(|it| it.uid = Some(long(129))), "spec.remediationRequestRef.uid", "at most 128"),
        (good().confidence(1.01), "spec.confidence", "from 0 to 1"),
        (good().confidence(-0.01), "spec.confidence", "from 0 to 1"),
        (good().confidence(f64::NAN), "spec.confidence", "from 0 to 1"),
        (good().rationale(long(32_769)), "spec.rationale", "at most 32768"),
        (good().timeout(Duration::ZERO), "spec.executionConfig.timeout", "from 1s to 24h"),
        (good().timeout(Duration::from_millis(1500)), "spec.executionConfig.timeout", "whole seconds"),
        (good().timeout(Duration::from_secs(86_401)), "spec.executionConfig.timeout", "from 1s to 24h"),
        (good().timeout(Duration::MAX), "spec.executionConfig.timeout", "from 1s to 24h"),
        (good().service_account("run/ner"), "spec.executionConfig.serviceAccountName", "DNS subdomain"),
        (good().start_before(moment("1969-12-31T23:59:59Z")), "spec.startBefore", "1970 to 9998"),
        (good().start_before(moment("9999-01-01T00:00:00Z")), "spec.startBefore", "1970 to 9998"),
        (good().recovery_of(""), "spec.recoveryOf", "DNS subdomain"),
        (good().ttl_seconds_after_finished(-1), "spec.ttlSecondsAfterFinished", "0 or more"),
        (good().retry(0), "spec.retry", "must be true, a whole number of attempts from 1 to 20, or an object"),
        (good().retry("3"), "spec.retry", "must be true, a whole number of attempts from 1 to 20, or an object"),
        (good().retry(json!({"attempts": 3})), "spec.retry.attempts", "is not known; correct or remove it"),
        (
            good().retry(Retry::default().initial_delay(Duration::from_millis(1500))),
            "spec.retry.initialDelay",
            "must be a duration in whole seconds from 0s to 1h",
        ),
        (
            good().retry(Retry::default().max_duration(Duration::from_secs(3))),
            "spec.retry.maxDuration",
            "3s is too short, the waits alone may take 3s",
        ),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().starts_with(&format!("{field}: ")), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = good().target("a/b/c/d").build().unwrap_err();
    assert_eq!(error.problem, Problem::Target(TargetError::Parts));
}

#[test]
fn what_is_only_just_good_is_built() {
    let most = (0..64).fold(good(), |builder, n| builder.parameter(format!("KEY_{n}"), ""));
    let pinned = format!("registry.example/w@{DIGEST}");
    // The longest path and the longest tag that a registry accepts.
    let long_image = format!("registry.example/{}:{}@{DIGEST}", long(255), long(128));
    for builder in vec![
        good(),
        most,
        large(8190),
        good().parameter("A", "ä".repeat(8192)).parameter("A".repeat(253), "").parameter("A_1", ""),
        good().workflow(long(limits::NAME), long(limits::WORKFLOW_VERSION), long_image),
        good().workflow("w", "1", pinned.clone()),
        good().workflow("w", "1", pinned).digest(DIGEST),
        good().confidence(0.0),
        good().confidence(1.0),
        good().rationale(long(limits::RATIONALE)),
        good().timeout(Duration::from_secs(1)),
        good().timeout(Duration::from_hours(24)),
        good().service_account("a.b-c.d"),
        good().start_before(moment("1970-01-01T00:00:00Z")),
        good().start_before(moment("9998-12-31T23:59:59.9Z")),
        good().recovery_of(long(limits::NAME)),
        good().retry(20),
    ] {
        builder.build().unwrap();
    }
}

#[test]
fn a_retry_policy_is_kept_in_the_form_in_which_it_is_given() {
    let built = |builder: WorkflowExecutionBuilder| builder.build().unwrap().spec.retry;
    assert_eq!(built(good()), None);
    assert_eq!(built(good().retry(true)), Some(json!(true)));
    assert_eq!(built(good().retry(false)), Some(json!(false)));
    assert_eq!(built(good().retry(3)), Some(json!(3)));
    assert_eq!(built(good().retry(3).retry(Value::Null)), None);
    let policy = Retry::default().max_attempts(5).initial_delay(Duration::from_secs(90)).retry_when("exitCode == 75");
    let expected = json!({"maxAttempts": 5, "initialDelay": "1m30s", "retryWhen": "exitCode == 75"});
    assert_eq!(built(good().retry(policy)), Some(expected));
}

#[test]
fn durations_are_written_as_go_writes_them() {
    for (seconds, text) in [(1, "1s"), (90, "1m30s"), (600, "10m"), (3600, "1h"), (5430, "1h30m30s"), (86_400, "24h")] {
        assert_eq!(go_duration(Duration::from_secs(seconds)), text);
    }
}

#[test]
fn a_recovery_names_what_failed_and_takes_another_workflow() {
    let alternative = || good().workflow("deployment-scale", "1.0", "i");
    let built = alternative().recovers(&failed(true)).build().unwrap();
    assert_eq!(built.spec.recovery_of.as_deref(), Some("payment-restart"));
    assert_eq!(built.metadata.namespace.as_deref(), Some("payment"));

    let same_bundle = "registry.example/workflows/deployment-restart:2.0";
    let elsewhere = alternative().recovers(&failed(true)).namespace("other");
    let completed = {
        let mut completed = failed(true);
        completed.status.get_or_insert_default().phase = Some(Phase::Completed);
        completed
    };
    for (builder, problem) in [
        (good().recovers(&failed(true)), Problem::SameWorkflow("deployment-restart".to_owned())),
        (good().workflow("deployment-scale", "1.0", same_bundle).recovers(&failed(true)), Problem::SameBundle),
        (alternative().recovers(&failed(false)), Problem::NothingToRecover),
        (alternative().recovers(&completed), Problem::NothingToRecover),
        (alternative().recovers(&good().build().unwrap()), Problem::NothingToRecover),
        (elsewhere, Problem::OtherNamespace),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!((error.field.as_str(), error.problem), ("spec.recoveryOf", problem));
    }
}

/// Lists what the schema refuses in `value`: sizes, ranges, and missing or unknown fields.
fn refused(path: &str, schema: &Value, value: &Value, refusals: &mut Vec<String>) {
    let mut demand = |holds: bool, what: &str| {
        if !holds {
            refusals.push(format!("{path}: {what}"));
        }
    };
    let size = |limit: &str, or: u64| schema[limit].as_u64().unwrap_or(or);
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        demand((size("minLength", 0)..=size("maxLength", u64::MAX)).contains(&length), "length");
    }
    if let Some(number) = value.as_f64() {
        demand(number >= schema["minimum"].as_f64().unwrap_or(f64::MIN), "minimum");
        demand(number <= schema["maximum"].as_f64().unwrap_or(f64::MAX), "maximum");
    }
    if let Some(object) = value.as_object() {
        demand(object.len() as u64 <= size("maxProperties", u64::MAX), "maxProperties");
        for required in schema["required"].as_array().into_iter().flatten() {
            demand(object.contains_key(required.as_str().unwrap()), &format!("{required} is missing"));
        }
        for (name, field) in object {
            let property = [&schema["properties"][name], &schema["additionalProperties"]];
            match property.into_iter().find(|schema| schema.is_object()) {
                Some(schema) => refused(&format!("{path}.{name}"), schema, field, refusals),
                None => refusals.push(format!("{path}.{name}: is unknown")),
            }
        }
    }
}

/// Generates texts with lengths around the limits and with every kind of character.
fn text() -> impl Strategy<Value = String> {
    let length =
        prop_oneof![0..5_usize, 60..66_usize, 125..131_usize, 250..256_usize, 510..514_usize, 8190..8194_usize];
    prop_oneof![
        4 => "[a-z0-9]([-a-z0-9.]{0,6}[a-z0-9])?",
        2 => "[A-Z][A-Z_0-9]{0,6}",
        2 => "\\PC{0,12}",
        2 => length.prop_map(|length| "x".repeat(length)),
        2 => "[a-zA-Z0-9./%:_-]{0,20}",
        1 => Just(DIGEST.to_owned()),
        1 => Just("payment/deployment/payment-api".to_owned()),
    ]
}

proptest! {
    #[test]
    fn what_is_built_fits_the_schema_and_nothing_panics(
        names in [text(), text(), text(), text(), text()],
        workflow in [text(), text(), text(), text()],
        parameters in prop::collection::vec((text(), text()), 0..3),
        reference in [text(), text(), text(), text(), text()],
        confidence in any::<f64>(),
        timeout in prop_oneof![(0..100_000_u64).prop_map(Duration::from_secs), any::<Duration>()],
        attempts in -2..25_i64,
        factor in 0.0..12.0,
        // Most of these texts are invalid. Each object sets only some of them, and thus some objects are valid.
        chosen in any::<u32>(),
    ) {
        let set = |bit: u32| chosen & (1 << bit) != 0;
        let mut builder = good();
        if set(0) { builder = WorkflowExecution::builder(names[0].clone()).target(names[2].clone()); }
        if set(1) { builder = builder.namespace(names[1].clone()); }
        if set(2) { builder = builder.target(names[2].clone()); }
        if set(3) { builder = builder.service_account(names[3].clone()); }
        if set(4) { builder = builder.recovery_of(names[4].clone()); }
        let [id, version, image, digest] = workflow;
        if set(5) { builder = builder.workflow(id, version, image); }
        if set(6) { builder = builder.digest(digest); }
        if set(7) { builder = parameters.into_iter().fold(builder, |builder, (key, value)| builder.parameter(key, value)); }
        let [name, api_version, kind, namespace, uid] = reference;
        let some = |bit, text| set(bit).then_some(text);
        if set(8) {
            builder = builder.requested_by(RemediationRequestRef {
                name, api_version: some(9, api_version), kind: some(10, kind), namespace: some(11, namespace), uid: some(12, uid),
            });
        }
        if set(13) { builder = builder.confidence(confidence); }
        if set(14) { builder = builder.timeout(timeout); }
        if set(15) { builder = builder.retry(attempts); }
        if set(16) {
            builder = builder.retry(Retry::default().max_delay(timeout).backoff_multiplier(factor).retry_when(names[4].clone()));
        }
        if let Ok(built) = builder.build() {
            let crd = serde_json::to_value(crate::crds().remove(0)).unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let mut refusals = Vec::new();
            refused("spec", schema, &serde_json::to_value(&built.spec).unwrap(), &mut refusals);
            prop_assert!(refusals.is_empty(), "{refusals:?}");
            prop_assert!(built.status.is_none());
        }
    }
}

#[test]
fn all_faults_of_an_object_from_a_file_are_listed() {
    let mut execution = good().build().unwrap();
    assert_eq!(execution.faults(), []);
    execution.spec.target_resource = "payment-api".to_owned();
    execution.spec.workflow_ref.container_image = "Restart".to_owned();
    execution.spec.parameters = [("lower".to_owned(), "secret".to_owned())].into();
    execution.spec.execution_config =
        Some(ExecutionConfig { timeout: Some("25h".to_owned()), ..ExecutionConfig::default() });
    execution.spec.clearance = Some(crate::Clearance::default());
    let faults = execution.faults();
    let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.targetResource",
            "spec.workflowRef.containerImage",
            "spec.parameters",
            "spec.executionConfig.timeout",
            "spec.clearance",
        ]
    );
    assert!(faults.iter().all(|fault| !fault.to_string().contains("secret")), "{faults:?}");
}
