//! `spec.retry` has no type. The schema checks numbers and the fields of an object, and a policy checks the rest. Both
//! together refuse what the builder of `wfe-api` refuses.

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use wfe_api::retry;

use super::objects::{Namespaced, Refusal, expect, good_but, refusal, report};
use super::people::{self, Stage};

const POLICY: &str = "ValidatingAdmissionPolicy 'retry.workflowexecutions.kubernaut.ai'";
const DENIED: &str = "denied request: ";
const RETRY: &str = "/spec/retry";

/// Returns a valid object with this retry policy.
fn with(retry: &Value) -> Result<Value> {
    let mut object = good_but(RETRY, Value::Null)?;
    object["spec"]["retry"] = retry.clone();
    Ok(object)
}

/// Returns accepted values of every form and at every limit.
pub(crate) fn good_policies() -> Vec<Value> {
    vec![
        json!(true),
        json!(false),
        json!(1),
        json!(3),
        json!(20),
        json!({}),
        json!({"maxAttempts": 1}),
        json!({"maxAttempts": 20}),
        json!({"initialDelay": "0s"}),
        json!({"initialDelay": "1h"}),
        json!({"initialDelay": "1m30s", "maxDelay": "1m30s"}),
        json!({"backoffMultiplier": 1}),
        json!({"backoffMultiplier": 1.5}),
        json!({"backoffMultiplier": 10}),
        json!({"maxDelay": "1s"}),
        json!({"maxDelay": "1h"}),
        json!({"jitter": true, "retryExecutionFailures": false}),
        json!({"retryWhen": "reason != 'ConfigurationError'", "stopWhen": "x".repeat(512)}),
        json!({"maxDuration": "24h"}),
        json!({"maxDuration": "4s"}),
        json!({"initialDelay": "10s", "backoffMultiplier": 1, "maxAttempts": 4, "maxDuration": "31s"}),
        json!({
            "maxAttempts": 5, "initialDelay": "5s", "backoffMultiplier": 1.5, "maxDelay": "1m", "jitter": true,
            "retryWhen": "exitCode == 75", "stopWhen": "attempt == 4", "retryExecutionFailures": true,
            "maxDuration": "2h",
        }),
    ]
}

/// Returns values that the schema or the policy refuses.
pub(crate) fn bad_policies() -> Vec<(Value, &'static [&'static str])> {
    let form: &[&str] =
        &[POLICY, "spec.retry: must be true, a whole number of attempts from 1 to 20, or an object, e.g."];
    let least: &[&str] = &["spec.retry: Invalid value", "greater than or equal to 1"];
    let most: &[&str] = &["spec.retry: Invalid value", "less than or equal to 20"];
    let delay: &[&str] =
        &[POLICY, "spec.retry.initialDelay: must be a duration in whole seconds from 0s to 1h, e.g. 5s"];
    let max_delay: &[&str] = &[POLICY, "spec.retry.maxDelay: must be a duration in whole seconds from 1s to 1h"];
    let max_duration: &[&str] = &[POLICY, "spec.retry.maxDuration: must be a duration in whole seconds from 1s to 24h"];
    let below: &[&str] = &[POLICY, "spec.retry.maxDelay: must not be below initialDelay; raise it"];
    let too_short: &[&str] = &[POLICY, "spec.retry.maxDuration: is too short, the waits of initialDelay between"];
    let unnamed: &[&str] = &[POLICY, "spec.retry: has a field that is not known; correct or remove it, the fields are"];
    vec![
        (json!(0), least),
        (json!(-1), least),
        (json!(21), most),
        (json!(2.5), &["spec.retry: Invalid value", "a multiple of 1"]),
        (json!(1e300), most),
        (json!("3"), form),
        (json!(""), form),
        (json!([]), form),
        (json!([3]), form),
        (
            json!({"maxAttempt": 3, "zz": 1}),
            &[
                POLICY,
                "spec.retry.maxAttempt: is not known; correct or remove it, the fields are maxAttempts, initialDelay, \
                 backoffMultiplier, maxDelay, jitter, retryWhen, stopWhen, retryExecutionFailures, maxDuration",
            ],
        ),
        (json!({"x": null}), &[POLICY, "spec.retry.x: is not known"]),
        (json!({"": 1}), unnamed),
        (json!({"a b": 1}), unnamed),
        (json!({"a\nb": 1}), unnamed),
        (json!({"x".repeat(65): 1}), unnamed),
        (json!({"initialDelay": "-1s"}), delay),
        (json!({"initialDelay": "1500ms"}), delay),
        (json!({"initialDelay": "banana"}), delay),
        (json!({"initialDelay": "99999999999999999999h"}), delay),
        (json!({"initialDelay": ""}), delay),
        (json!({"initialDelay": "2h"}), delay),
        (json!({"initialDelay": "99999h99999m99999s"}), delay),
        (json!({"initialDelay": "5s\n"}), delay),
        (json!({"initialDelay": "1s1m"}), delay),
        (json!({"initialDelay": 5}), &["spec.retry.initialDelay", "must be of type string"]),
        (json!({"initialDelay": "0".repeat(33)}), &["spec.retry.initialDelay: Too long"]),
        (json!({"maxDelay": "0s"}), max_delay),
        (json!({"maxDelay": "1h1s"}), max_delay),
        (json!({"maxDuration": "0s"}), max_duration),
        (json!({"maxDuration": "24h1s"}), max_duration),
        (json!({"maxDuration": "1.5h"}), max_duration),
        (json!({"backoffMultiplier": 0.5}), &["spec.retry.backoffMultiplier", "greater than or equal to 1"]),
        (json!({"backoffMultiplier": 1e300}), &["spec.retry.backoffMultiplier", "less than or equal to 10"]),
        (json!({"backoffMultiplier": "2"}), &["spec.retry.backoffMultiplier", "must be of type number"]),
        (json!({"maxAttempts": 0}), &["spec.retry.maxAttempts", "greater than or equal to 1"]),
        (json!({"maxAttempts": 21}), &["spec.retry.maxAttempts", "less than or equal to 20"]),
        (json!({"maxAttempts": 2.5}), &["spec.retry.maxAttempts", "must be of type integer"]),
        (json!({"maxAttempts": "3"}), &["spec.retry.maxAttempts", "must be of type integer"]),
        (json!({"jitter": "yes"}), &["spec.retry.jitter", "must be of type boolean"]),
        (json!({"retryExecutionFailures": 1}), &["spec.retry.retryExecutionFailures", "must be of type boolean"]),
        (json!({"retryWhen": ""}), &["spec.retry.retryWhen", "at least 1"]),
        (json!({"retryWhen": "x".repeat(513)}), &["spec.retry.retryWhen: Too long"]),
        (json!({"stopWhen": true}), &["spec.retry.stopWhen", "must be of type string"]),
        (json!({"initialDelay": "2m", "maxDelay": "1m"}), below),
        (json!({"initialDelay": "61s", "maxDelay": "60s"}), below),
        (json!({"initialDelay": "10s", "maxAttempts": 4, "maxDuration": "30s"}), too_short),
        (json!({"maxDuration": "1s"}), too_short),
        (json!({"initialDelay": "1h", "maxDuration": "1h", "maxAttempts": 2}), too_short),
    ]
}

#[tokio::test]
async fn what_is_no_retry_policy_is_refused_by_its_field() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let mut failures = Vec::new();
    for (retry, words) in bad_policies() {
        let row = format!("{:.80}", retry.to_string());
        expect(&mut failures, &row, words, stage.try_create(with(&retry)?).await?);
    }
    report(&failures)
}

/// Without the policy, the schema accepts some values that the policy refuses. The operator itself then refuses them.
#[tokio::test]
async fn without_the_policy_the_schema_refuses_what_it_can() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for (retry, words) in bad_policies() {
        let words = if words.contains(&POLICY) { &[] } else { words };
        let row = format!("{:.80}", retry.to_string());
        expect(&mut failures, &row, words, namespaced.try_create(with(&retry)?).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn every_form_is_created_and_applied_as_it_is() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let api = &stage.namespaced.api;
    let apply = PatchParams::apply("test");
    let mut failures = Vec::new();
    for (number, retry) in good_policies().into_iter().enumerate() {
        let created = api.create(&PostParams::default(), &serde_json::from_value(with(&retry)?)?).await;
        let created = created.with_context(|| format!("create {retry}"))?;
        let name = format!("applied-{number}");
        let mut object = with(&retry)?;
        object["metadata"] = json!({"name": name});
        let applied = api.patch(&name, &apply, &Patch::Apply(&object)).await;
        let applied = applied.with_context(|| format!("apply {retry}"))?;
        // The first write after the creation stores the default of the status. Further writes change nothing.
        let applied_again = api.patch(&name, &apply, &Patch::Apply(&object)).await?;
        let again = api.patch(&name, &apply, &Patch::Apply(&object)).await?;
        ensure!(
            again.resource_version() == applied_again.resource_version(),
            "{retry}: a third time changes something"
        );
        for (how, object) in [("created", created), ("applied", applied)] {
            if object.data["spec"]["retry"] != retry {
                failures.push(format!("{how} {retry}: {}", object.data["spec"]["retry"]));
            }
        }
    }
    // Null values are removed.
    for (retry, kept) in [(json!(null), json!(null)), (json!({"maxAttempts": null}), json!({})), (json!(3.0), json!(3))]
    {
        let created = api.create(&PostParams::default(), &serde_json::from_value(with(&retry)?)?).await?;
        if created.data["spec"]["retry"] != kept {
            failures.push(format!("{retry}: {}", created.data["spec"]["retry"]));
        }
    }
    report(&failures)
}

/// Returns values around the limits, generated from a seed.
fn generated(seed: u64, count: usize) -> Vec<Value> {
    let mut random = fastrand::Rng::with_seed(seed);
    let texts =
        ["0s", "1s", "2s", "59s", "60s", "1m1s", "1h", "1h1s", "24h", "24h1s", "", "s", "1.5s", "1500ms", "-1s"];
    let durations = ["initialDelay", "maxDelay", "maxDuration"];
    let one = |random: &mut fastrand::Rng| {
        let mut object = serde_json::Map::new();
        for field in durations {
            if random.u8(..3) > 0 {
                object.insert(field.to_owned(), json!(texts[random.usize(..texts.len())]));
            }
        }
        if random.bool() {
            object.insert("maxAttempts".to_owned(), json!(random.u8(1..=20)));
        }
        if random.bool() {
            object.insert("jitter".to_owned(), json!(random.bool()));
        }
        if random.u8(..6) == 0 {
            object.insert(["backoff", "maxattempts", "x y"][random.usize(..3)].to_owned(), json!(1));
        }
        Value::Object(object)
    };
    std::iter::repeat_with(|| one(&mut random)).take(count).collect()
}

/// Describes how the builder and the API server disagree about a value. Both must accept or both refuse a value, and
/// the policy must use the builder's words. Only the builder checks the sum of growing waits.
fn disagreement(retry: &Value, refusal: &Refusal) -> Option<String> {
    let read = retry::read(Some(retry));
    let same = match (&read, refusal) {
        (Ok(_), None) => true,
        (Err(why), None) => why.contains("the waits alone may take"),
        (Err(why), Some(refusal)) => match refusal.split_once(DENIED) {
            Some((_, told)) => told == why,
            None => refusal.contains(why.split(": ").next().unwrap_or("?")),
        },
        (Ok(_), Some(_)) => false,
    };
    (!same).then(|| format!("{:.100}: {read:?}, but {refusal:?}", retry.to_string()))
}

#[tokio::test]
async fn the_policy_refuses_in_the_words_of_the_builder() -> Result<()> {
    let stage = Stage::new("clearance").await?;
    let mut values: Vec<Value> = bad_policies().into_iter().map(|(retry, _)| retry).chain(good_policies()).collect();
    values.extend(generated(0x5eed, 400));
    let judge = async |retry: Value| -> Result<_> {
        let refusal = stage.try_create(with(&retry)?).await?;
        Ok((refusal.is_some(), disagreement(&retry, &refusal)))
    };
    let judged: Vec<(bool, Option<String>)> =
        stream::iter(values).map(judge).buffer_unordered(16).try_collect().await?;
    let refused = judged.iter().filter(|(refused, _)| *refused).count();
    ensure!((100..judged.len() - 50).contains(&refused), "{refused} of {} were refused", judged.len());
    report(&judged.into_iter().filter_map(|(_, failure)| failure).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_retry_policy_never_changes() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let immutable: &[&str] = &["spec.retry: is immutable once created; create another WorkflowExecution"];
    let policy = json!({"maxAttempts": 3, "initialDelay": "5s"});
    let mut failures = Vec::new();
    for (from, to) in [
        (json!(null), json!(true)),
        (json!(null), json!(false)),
        (json!(true), json!(null)),
        (json!(true), json!(false)),
        (json!(3), json!(4)),
        (json!(3), json!({"maxAttempts": 3})),
        (policy.clone(), json!({"maxAttempts": 4})),
        (policy.clone(), json!({"initialDelay": null})),
        (policy.clone(), json!({"jitter": false})),
        (policy.clone(), json!({"x": 1})),
        (policy.clone(), json!(null)),
    ] {
        let name = created(&namespaced.api, &from).await?;
        let row = format!("{from} to {to}");
        let patch = Patch::Merge(json!({"spec": {"retry": to}}));
        let answer = namespaced.api.patch(&name, &PatchParams::default(), &patch).await;
        expect(&mut failures, &row, immutable, refusal(answer)?);
        // If the write also changes another immutable field, the refusal names that field.
        let patch = Patch::Merge(json!({"spec": {"retry": to, "confidence": 0.9}}));
        let answer = refusal(namespaced.api.patch(&name, &PatchParams::default(), &patch).await)?;
        expect(&mut failures, &row, &["spec.confidence: is immutable once created"], answer);
    }
    // A write without a change, and a write of another field.
    let name = created(&namespaced.api, &policy).await?;
    for patch in [json!({"spec": {"retry": policy}}), json!({"metadata": {"labels": {"team": "payment"}}})] {
        let answer = namespaced.api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        expect(&mut failures, &patch.to_string(), &[], refusal(answer)?);
    }
    let patch = Patch::Merge(json!({"spec": {"confidence": 0.9}}));
    let answer = refusal(namespaced.api.patch(&name, &PatchParams::default(), &patch).await)?;
    ensure!(answer.as_ref().is_some_and(|why| !why.contains("spec.retry")), "{answer:?}");
    let cancellation = json!({"reason": "wrong cluster", "requestedBy": "jane"});
    let patch = Patch::Merge(json!({"spec": {"cancellation": cancellation}}));
    expect(
        &mut failures,
        "a cancellation",
        &[],
        refusal(namespaced.api.patch(&name, &PatchParams::default(), &patch).await)?,
    );
    report(&failures)
}

async fn created(api: &Api<kube::api::DynamicObject>, retry: &Value) -> Result<String> {
    Ok(api.create(&PostParams::default(), &serde_json::from_value(with(retry)?)?).await?.name_any())
}

#[tokio::test]
async fn the_policy_on_retries_fits_the_kind() -> Result<()> {
    people::expect_no_warnings("retry").await
}
