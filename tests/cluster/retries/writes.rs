//! The writes and events of an execution that fails three times. Each occurs once, in this order.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wfe_testkit::proxy::Request;
use wfe_testkit::{Fault, Outcome, Pipeline, Proxy, Recording, WfeBuilder, World};

use super::{RETRYING, attempts, with_retry};
use crate::expect::{condition, text};
use crate::faults::judge::History;

/// Pushes a pipeline with one task that always fails.
async fn exits(world: &World) -> Result<String> {
    world.push_pipeline("exits", &Pipeline::new().task("apply", Outcome::Exit(1)).lasting("100ms")).await
}

/// Prepares an execution with three attempts that all fail.
fn hopeless(world: &World, name: &str, bundle: &str) -> WfeBuilder {
    let policy = json!({"initialDelay": "1s", "maxDelay": "1s", "retryExecutionFailures": true});
    with_retry(world.wfe(name).target(&format!("node/{name}")).image(bundle), &policy)
}

/// Returns what a write does in the life of an execution, with the number of the attempt. For example, `retry 1`
/// records that attempt 1 has ended and that a second attempt follows.
fn sign(request: &Request) -> String {
    let number = || request.name.rsplit('-').next().unwrap_or_default();
    let status = &request.body["status"];
    let listed = status["attempts"].as_array().map_or(&[][..], Vec::as_slice);
    match request.what().as_str() {
        "create pipelineruns" => format!("create {}", number()),
        "patch pipelineruns" if request.body.to_string().contains("released-at") => format!("release {}", number()),
        "patch workflowexecutions/status" => match (text(&status["phase"]), listed) {
            ("Running", [.., _]) => format!("commit {}", listed.len()),
            ("", [.., last]) if last["startTime"].is_null() => format!("retry {}", listed.len() - 1),
            ("", _) => "progress".to_owned(),
            (phase, _) => phase.to_owned(),
        },
        // NAME.UID.REASON, followed by the attempt's number
        "create events" => request.name.splitn(3, '.').last().unwrap_or_default().to_owned(),
        what => what.to_owned(),
    }
}

/// The writes of a [`hopeless`] execution in order, without the events.
const STEPS: [&str; 12] = [
    "create 1",
    "commit 1",
    "release 1",
    "retry 1",
    "create 2",
    "commit 2",
    "release 2",
    "retry 2",
    "create 3",
    "commit 3",
    "release 3",
    "Failed",
];
/// The events, each with the write that it reports.
const EVENTS: [(&str, &str); 12] = [
    ("pipelineruncreated", "commit 1"),
    ("attemptfailed.1", "retry 1"),
    ("stepretry.1", "retry 1"),
    ("pipelineruncreated.2", "commit 2"),
    ("attemptfailed.2", "retry 2"),
    ("stepretry.2", "retry 2"),
    ("pipelineruncreated.3", "commit 3"),
    ("attemptfailed.3", "Failed"),
    ("stepretryexhausted.3", "Failed"),
    ("stepfailedterminal.3", "Failed"),
    ("workflowfailed", "Failed"),
    ("targetblocked", "Failed"),
];

/// Returns all writes of a [`hopeless`] execution, including the events.
fn writes() -> Vec<String> {
    STEPS.iter().copied().chain(EVENTS.iter().map(|(event, _)| *event)).map(str::to_owned).collect()
}

/// Fails unless an execution had three attempts, each with one run, and the waits between them.
fn check(history: &History, wfe: &Value) {
    assert_eq!(condition(wfe, RETRYING), "False Exhausted", "{wfe:#}");
    let delays: Vec<&str> = attempts(wfe).iter().map(|attempt| text(&attempt["delay"])).collect();
    assert_eq!(delays, ["", "1s", "1s"], "{wfe:#}");
    let runs: Vec<&str> = attempts(wfe).iter().map(|attempt| text(&attempt["pipelineRun"])).collect();
    assert!(runs.iter().zip(1..).all(|(run, number)| run.ends_with(&format!("-{number}"))), "{wfe:#}");
    assert_eq!(history.created_for(wfe), 3, "{wfe:#}");
}

/// Judges a recording that contains only [`hopeless`] executions. The auditor also checks that no wait changed
/// afterwards.
async fn check_all<'a>(
    world: &World,
    recording: Recording,
    wfes: impl ExactSizeIterator<Item = &'a Value>,
) -> Result<()> {
    let history = History::judged(world, recording).await?;
    assert_eq!(history.released(), wfes.len() * 3);
    wfes.for_each(|wfe| check(&history, wfe));
    Ok(())
}

#[tokio::test]
async fn three_attempts_take_twelve_writes_and_twelve_events() -> Result<()> {
    let world = World::new("retry-writes").await?;
    let recording = world.record().await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let signs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&signs);
    proxy.on(move |request| {
        if request.is_write() {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(sign(request));
        }
        Fault::Pass
    });
    let operator = world.operator().through(&proxy).start().await?;
    let bundle = exits(&world).await?;
    hopeless(&world, "undisturbed", &bundle).create().await?;
    let failed = world.await_phase("undisturbed", "Failed").await?;
    world.await_event("undisturbed", "TargetBlocked").await?;
    operator.terminate().await?;
    let mut signs = signs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    signs.retain(|sign| sign != "progress");
    let of_steps: Vec<&String> = signs.iter().filter(|sign| STEPS.contains(&sign.as_str())).collect();
    ensure!(of_steps == STEPS.iter().collect::<Vec<_>>(), "{signs:#?}");
    signs.sort_unstable();
    let mut known = writes();
    known.sort_unstable();
    ensure!(signs == known, "{signs:#?}");
    check_all(&world, recording, [&failed].into_iter()).await?;
    world.close().await
}
