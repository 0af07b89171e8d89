//! The attempts of an execution only progress, and no attempt has two runs.

use anyhow::{Context as _, Result};
use kube::api::PostParams;
use serde_json::{Value, json};

use super::objects::{Namespaced, entering, expect, failure_details, good, report, run_ref};

const FIRST: &str = "2026-01-02T03:04:05Z";
const LATER: &str = "2026-01-02T04:00:00Z";
const LAST: &str = "2026-01-02T05:00:00Z";

/// An attempt in progress.
fn running(number: u32) -> Value {
    let mut attempt = json!({"attempt": number, "pipelineRun": format!("wfe-{number}"), "startTime": FIRST});
    if number > 1 {
        attempt["delay"] = json!("1s");
        attempt["notBefore"] = json!(FIRST);
    }
    attempt
}

/// An attempt that has failed.
fn ended(number: u32) -> Value {
    over(running(number))
}

fn over(attempt: Value) -> Value {
    and(attempt, json!({"completionTime": LATER, "started": "False", "reason": "ImagePullBackOff", "message": "m"}))
}

/// An attempt that has not begun yet.
fn waiting(number: u32) -> Value {
    json!({"attempt": number, "delay": "1s", "notBefore": FIRST})
}

/// Returns the object with these fields added or replaced. Null removes a field.
fn and(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
        object.retain(|_, value| !value.is_null());
    }
    object
}

fn attempts(list: &[Value]) -> Value {
    json!({"attempts": list})
}

/// The last status of a legal sequence, at which a test starts.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Attempt 1 runs.
    One,
    /// The execution waits for attempt 2.
    Wait,
    /// Attempt 2 runs.
    Two,
    /// The execution has failed with attempt 2.
    End,
}

/// The legal sequence of statuses for an execution with two attempts.
fn sequence() -> [Value; 4] {
    let first = and(entering("Running"), attempts(&[running(1)]));
    let second = and(attempts(&[ended(1), running(2)]), json!({"pipelineRunRef": run_ref(2)}));
    let last = and(entering("Failed"), attempts(&[ended(1), ended(2)]));
    [first, attempts(&[ended(1), waiting(2)]), second, last]
}

async fn create_at(namespaced: &Namespaced, at: At) -> Result<String> {
    let name = namespaced.create_in("").await?;
    for status in sequence().into_iter().take(at as usize + 1) {
        namespaced.must(&name, status).await?;
    }
    Ok(name)
}

#[tokio::test]
async fn attempts_that_follow_each_other_are_accepted() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    create_at(&namespaced, At::End).await?;

    // The run of the third attempt is refused, but the fourth attempt succeeds.
    let name = create_at(&namespaced, At::Two).await?;
    let refused = over(waiting(3));
    let list = [ended(1), ended(2), refused.clone(), running(4)];
    namespaced.must(&name, attempts(&[ended(1), ended(2), waiting(3)])).await?;
    namespaced.must(&name, attempts(&[ended(1), ended(2), refused.clone(), waiting(4)])).await?;
    namespaced
        .must(&name, and(attempts(&list), json!({"pipelineRunRef": run_ref(4), "pipelineRunStatus": null})))
        .await?;
    // Changes that do not affect the attempts.
    namespaced.must(&name, json!({"pipelineRunStatus": {"status": "Unknown"}})).await?;
    namespaced.must(&name, attempts(&list)).await?;
    let succeeded = and(running(4), json!({"completionTime": LATER, "started": "True"}));
    let list = [ended(1), ended(2), refused, succeeded];
    namespaced.must(&name, and(entering("Completed"), attempts(&list))).await?;

    // An execution that ends while it waits for an attempt.
    let name = create_at(&namespaced, At::Wait).await?;
    namespaced.must(&name, entering("Failed")).await?;
    // Executions that never start or are skipped have no attempts.
    for phase in ["Failed", "Skipped"] {
        let name = namespaced.create_in("").await?;
        namespaced.must(&name, entering(phase)).await?;
    }
    // An execution that an earlier version has started. Its first attempt is recorded when the attempt has ended.
    let name = namespaced.create_in("Running").await?;
    namespaced.must(&name, attempts(&[ended(1), waiting(2)])).await?;
    Ok(())
}

#[tokio::test]
async fn what_contradicts_the_attempts_is_refused() -> Result<()> {
    let order: &[&str] = &["status.attempts: must be in the order of their numbers, from 1 without a gap"];
    let removed: &[&str] = &["status.attempts: none may be removed"];
    let open: &[&str] = &["status.attempts: all but the last must have a completionTime"];
    let over: &[&str] = &["status.attempts: one that has a completionTime may not change"];
    let pair: &[&str] = &["pipelineRun", "status.attempts.pipelineRun: must be present exactly when startTime is"];
    let verdict: &[&str] = &["status.attempts.started: must be present exactly when completionTime is"];
    let another: &[&str] = &["status.pipelineRunRef: may change only to the run of an attempt that was waited for"];
    let fixed: &[&str] = &["may not change once phase is Completed, Failed or Skipped"];
    let run = |number: u32| json!({"pipelineRunRef": run_ref(number)});
    let both = |number: u32, list: &[Value]| and(attempts(list), run(number));
    let set_once = |field: &str| vec![format!("status.attempts.{field}: may not change or be removed once set")];
    let one = |change: Value| attempts(&[and(running(1), change)]);
    let two = |change: Value| attempts(&[ended(1), and(running(2), change)]);
    let many = |count: u32| -> Vec<Value> { (1..=count).map(ended).collect() };
    let unknown = json!({"name": "wfe-1", "uid": "another", "namespace": "kubernaut-workflows"});

    let mut rows: Vec<(At, Value, Vec<String>)> = Vec::new();
    let mut row = |at: At, status: Value, words: &[&str]| {
        rows.push((at, status, words.iter().map(|&word| word.to_owned()).collect()));
    };
    // The numbers of the attempts.
    row(At::One, attempts(&[ended(1), waiting(3)]), order);
    row(At::One, attempts(&[running(2)]), order);
    // A new order alone would be no change, because the API server compares the items of this list by their keys.
    row(At::One, attempts(&[waiting(2), ended(1)]), order);
    row(At::One, attempts(&[ended(1), ended(1)]), &["status.attempts[1]: Duplicate value"]);
    row(
        At::One,
        attempts(&[and(running(1), json!({"attempt": 0}))]),
        &["attempts[0].attempt", "greater than or equal to 1"],
    );
    row(At::One, attempts(&[json!({"startTime": FIRST})]), &["status.attempts[0].attempt: Required value"]);
    row(At::One, attempts(&many(21)), &["status.attempts: Too many: 21: must have at most 20 items"]);
    // Attempts that are removed.
    row(At::Wait, attempts(&[ended(1)]), removed);
    row(At::Wait, attempts(&[]), removed);
    row(At::Wait, json!({"attempts": null}), &["status.attempts: may not be removed once written"]);
    let mut forgotten = entering("Failed");
    forgotten["attempts"] = Value::Null;
    row(At::Two, forgotten, &["status.attempts: may not be removed once written"]);
    // Only the last attempt may be open, and an attempt that has ended must not change.
    row(At::One, attempts(&[running(1), waiting(2)]), open);
    row(At::One, attempts(&[ended(1), waiting(2), waiting(3)]), open);
    for change in [
        json!({"message": "another"}),
        json!({"started": "True"}),
        json!({"reason": "Unknown"}),
        json!({"completionTime": LAST}),
        json!({"completionTime": null, "started": null}),
        json!({"delay": "1s"}),
    ] {
        row(At::Wait, attempts(&[and(ended(1), change), waiting(2)]), over);
    }
    // Fields that must exist together.
    row(At::Wait, attempts(&[ended(1), and(waiting(2), json!({"startTime": FIRST}))]), pair);
    row(At::Wait, attempts(&[ended(1), and(waiting(2), json!({"pipelineRun": "wfe-2"}))]), pair);
    row(At::One, one(json!({"started": "False"})), verdict);
    row(At::One, one(json!({"completionTime": LATER})), verdict);
    // A run that does not belong to the last attempt.
    row(At::One, run(2), another);
    row(At::One, json!({"pipelineRunRef": unknown}), another);
    row(At::One, both(2, &[ended(1), running(2)]), another);
    row(At::One, both(2, &[ended(1), waiting(2)]), another);
    row(At::Wait, run(2), another);
    row(At::Wait, both(3, &[ended(1), running(2)]), another);
    row(At::Wait, both(3, &[ended(1), ended(2), running(3)]), another);
    row(At::Two, run(3), another);
    row(At::Two, run(1), another);
    row(At::Two, both(3, &[ended(1), ended(2), running(3)]), another);
    row(
        At::Two,
        json!({"pipelineRunRef": null}),
        &["status.pipelineRunRef: may not be removed while phase is Running"],
    );
    // Changes after the end.
    row(At::End, attempts(&[ended(1), ended(2), waiting(3)]), fixed);
    row(At::End, run(3), fixed);
    // Formats and sizes.
    row(At::One, one(json!({"delay": "-1s"})), &["status.attempts", "must be a Go duration that is not negative"]);
    row(At::One, one(json!({"delay": "banana"})), &["status.attempts", "must be a Go duration that is not negative"]);
    row(At::One, one(json!({"started": "Maybe"})), &["status.attempts[0].started: Unsupported value"]);
    row(At::One, one(json!({"reason": "Error"})), &["status.attempts[0].reason: Unsupported value"]);
    row(At::One, one(json!({"message": "x".repeat(1025)})), &["status.attempts[0].message: Too long"]);
    row(At::One, one(json!({"pipelineRun": ""})), &["status.attempts[0].pipelineRun", "at least 1"]);
    // A value that is set must not change.
    for (field, value) in [
        ("delay", json!("2s")),
        ("delay", json!(null)),
        ("notBefore", json!(LATER)),
        ("notBefore", json!(null)),
        ("pipelineRun", json!("wfe-3")),
        ("startTime", json!(LATER)),
    ] {
        rows.push((At::Two, two(json!({field: value})), set_once(field)));
    }
    rows.push((At::Two, attempts(&[ended(1), waiting(2)]), [set_once("pipelineRun"), set_once("startTime")].concat()));
    rows.push((At::Wait, attempts(&[ended(1), and(running(2), json!({"delay": "2s"}))]), set_once("delay")));

    let namespaced = Namespaced::new().await?;
    let mut failures = Vec::new();
    for (at, status, words) in rows {
        let name = create_at(&namespaced, at).await?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let row = format!("{at:?}, then {:.200}", status.to_string());
        expect(&mut failures, &row, &words, namespaced.try_status(&name, status).await?);
    }
    report(&failures)
}

#[tokio::test]
async fn without_a_policy_there_is_one_run() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let name = namespaced.create_in("Running").await?;
    let mut failures = Vec::new();
    let words = ["status.pipelineRunRef: may change only to the run of an attempt that was waited for"];
    let answer = namespaced.try_status(&name, json!({"pipelineRunRef": run_ref(2)})).await?;
    expect(&mut failures, "another run", &words, answer);
    expect(&mut failures, "the same", &[], namespaced.try_status(&name, json!({"pipelineRunRef": run_ref(1)})).await?);
    report(&failures)
}

/// The API server stops a rule that takes too long. Even the largest legal status must not take that long.
#[tokio::test]
async fn the_largest_status_can_be_written_and_changed() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let object = serde_json::from_value(good())?;
    let name = namespaced.api.create(&PostParams::default(), &object).await?.metadata.name.context("no name")?;
    let message = "\u{1f980}".repeat(1024);
    let long = |number: u32| {
        let run = format!("wfe-{}-{number}", "x".repeat(240));
        and(ended(number), json!({"message": message, "pipelineRun": run}))
    };
    let mut list: Vec<Value> = (1..=19).map(long).collect();
    list.push(waiting(20));
    namespaced.must(&name, and(entering("Running"), attempts(&list))).await?;
    list[19] = running(20);
    namespaced.must(&name, and(attempts(&list), json!({"pipelineRunRef": run_ref(20)}))).await?;
    list[19] = and(running(20), json!({"completionTime": LATER, "started": "True", "message": message}));
    let details = and(failure_details(), json!({"message": "\u{1f980}".repeat(32_768)}));
    namespaced.must(&name, and(entering("Failed"), and(attempts(&list), json!({"failureDetails": details})))).await?;
    namespaced.must(&name, json!({"observedGeneration": 1})).await
}
