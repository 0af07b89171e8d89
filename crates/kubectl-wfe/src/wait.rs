//! `kubectl wfe wait` and `kubectl wfe watch`: follow an execution to its end. The exit code is its outcome.

use anyhow::Result;
use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use wfe_api::conditions::{BLOCKED, RUNNING, STARTED, SUCCEEDED, WAITING};
use wfe_core::Time;

use crate::cli::{ClusterArgs, Format, WaitArgs};
use crate::connection::Connection;
use crate::execution::{End, Following, Outcome, full_name, how_far, target};
use crate::moment::{shown, span};
use crate::object::condition;
use crate::output::{line, output};

/// The exit code if the time is over.
const TIMED_OUT: u8 = 6;

/// The answer. `-o json` shows all of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    namespace: Option<String>,
    name: Option<String>,
    target: String,
    /// None if it has not ended in time.
    #[serde(flatten)]
    end: Option<End>,
    /// What it waits for, if it has not ended in time.
    waits: Option<String>,
    #[serde(skip)]
    told: String,
}

/// A change of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Change {
    at: String,
    what: &'static str,
    detail: String,
}

/// Waits, and returns the exit code.
pub(crate) async fn run(cluster: &ClusterArgs, args: &WaitArgs) -> Result<u8> {
    follow(&Connection::open(cluster).await?, args, |_, _, _| Ok(())).await
}

/// Waits and shows each change, and returns the exit code.
pub(crate) async fn watch(cluster: &ClusterArgs, args: &WaitArgs) -> Result<u8> {
    watch_on(&Connection::open(cluster).await?, args).await
}

/// Does the same as [`watch`] on an open connection.
pub(crate) async fn watch_on(connection: &Connection, args: &WaitArgs) -> Result<u8> {
    let mut known: Vec<Change> = Vec::new();
    follow(connection, args, |object, now, format| {
        let all = changes(object, now);
        for change in all.iter().filter(|it| !known.iter().any(|old| (old.what, &old.detail) == (it.what, &it.detail)))
        {
            match format {
                Some(Format::Json) => output().json("ExecutionChange", change)?,
                None => writeln!(output(), "{}  {:<9} {}", change.at, change.what, line(&change.detail))?,
            }
        }
        known = all;
        Ok(())
    })
    .await
}

/// Shows each version of the execution until it has ended, or the time is over.
async fn follow(
    connection: &Connection,
    args: &WaitArgs,
    mut show: impl FnMut(&DynamicObject, Time, Option<Format>) -> Result<()>,
) -> Result<u8> {
    let deadline = Instant::now() + args.timeout;
    let mut following = Following::begin(connection, &args.name).await?;
    let end = loop {
        show(following.seen(), connection.now(), args.output)?;
        match End::of(following.seen()) {
            Some(end) => break Some(end),
            None if !following.changes(deadline).await? => break None,
            None => {}
        }
    };
    let answer = Answer::of(following.seen(), end, args.timeout, connection.now());
    match args.output {
        Some(Format::Json) => output().json("Outcome", &answer)?,
        None => writeln!(output(), "{}", answer.told)?,
    }
    Ok(code(answer.end.map(|end| end.outcome)))
}

fn code(outcome: Option<Outcome>) -> u8 {
    match outcome {
        Some(Outcome::Completed) => 0,
        Some(Outcome::FailedNothingRan) => 3,
        Some(Outcome::FailedHalfWay) => 4,
        Some(Outcome::Skipped) => 5,
        None => TIMED_OUT,
    }
}

impl Answer {
    fn of(object: &DynamicObject, end: Option<End>, waited: std::time::Duration, now: Time) -> Self {
        let waits = end.is_none().then(|| how_far(object, now));
        let said = match (&end, &waits) {
            (Some(end), _) => end.told(),
            (None, waits) => format!("has not ended within {}: {}", span(waited), waits.as_deref().unwrap_or_default()),
        };
        Self {
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
            target: target(object).to_owned(),
            told: format!("{} on {}: {}", line(&full_name(object)), line(target(object)), line(&said)),
            end,
            waits,
        }
    }
}

/// Lists what has happened to an execution so far, except its end, as its status records it. If the status lacks a
/// time, the time is now.
fn changes(object: &DynamicObject, now: Time) -> Vec<Change> {
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let mut changes = Vec::new();
    let mut add = |what, at: &Value, detail: String| {
        let at = at.as_str().and_then(|at| at.parse().ok()).unwrap_or(now);
        changes.push(Change { at: shown(at), what, detail });
    };
    let created = object.metadata.creation_timestamp.as_ref().map(|it| it.0.to_string());
    let workflow = text(&spec["workflowRef"], "workflowId");
    add("created", &created.into(), format!("{workflow} on {}", target(object)));
    if let Some(waiting) = condition(object, WAITING).filter(|it| it["status"] == "True") {
        add("waits", &waiting["lastTransitionTime"], why(waiting));
    }
    let attempts = status["attempts"].as_array();
    for attempt in attempts.into_iter().flatten() {
        let number = &attempt["attempt"];
        match attempt["pipelineRun"].as_str() {
            Some(run) => add("runs", &attempt["startTime"], format!("attempt {number}, PipelineRun {run}")),
            None => add("waits", &Value::Null, format!("attempt {number}, not before {}", text(attempt, "notBefore"))),
        }
        if attempt["reason"].is_string() {
            add("failed", &attempt["completionTime"], format!("attempt {number}, {}", why(attempt)));
        }
    }
    let run = &status["pipelineRunRef"];
    if attempts.is_none() && run.is_object() {
        add("runs", &status["startTime"], format!("PipelineRun {}/{}", text(run, "namespace"), text(run, "name")));
    }
    let unfinished = condition(object, SUCCEEDED).filter(|it| it["status"] == "Unknown");
    if let Some(waits) = unfinished.filter(|it| status["phase"] == "Running" && it["reason"] != RUNNING) {
        add("waits", &Value::Null, why(waits));
    }
    if let Some(started) = condition(object, STARTED).filter(|it| it["status"] == "True") {
        add("started", &started["lastTransitionTime"], text(started, "message").to_owned());
    }
    let run = &status["pipelineRunStatus"];
    if let (Some(done), Some(all)) =
        (run["completedTasks"].as_u64().filter(|done| *done > 0), run["totalTasks"].as_u64())
    {
        add("tasks", &Value::Null, format!("{done} of {all} done"));
    }
    let by = &spec["cancellation"];
    if by.is_object() {
        add("cancelled", &Value::Null, format!("by {}: {}", text(by, "requestedBy"), text(by, "reason")));
    }
    if let Some(blocks) = condition(object, BLOCKED).filter(|it| it["status"] == "True") {
        add("blocks", &blocks["lastTransitionTime"], format!("{}, {}", target(object), text(blocks, "reason")));
    }
    changes
}

fn why(value: &Value) -> String {
    format!("{}: {}", text(value, "reason"), text(value, "message"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::execution::tests::execution;

    fn now() -> Time {
        "2026-01-02T03:30:00Z".parse().unwrap()
    }

    fn lines(status: &Value) -> Vec<String> {
        let changes = changes(&execution(status), now());
        changes.into_iter().map(|it| format!("{} {} {}", &it.at[11..19], it.what, it.detail)).collect()
    }

    #[test]
    fn each_change_is_a_line_with_its_time() {
        let at = |time: &str| format!("2026-01-02T{time}Z");
        let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": at("03:05:00")});
        assert_eq!(lines(&json!({})), ["03:04:05 created drain on Node/n"]);
        let waits = json!({"phase": "Pending", "conditions": [condition("Waiting", "True", "Turn")]});
        assert_eq!(lines(&waits)[1..], ["03:05:00 waits Turn: m"]);
        let run = json!({"name": "r-1", "uid": "u", "namespace": "exec"});
        let begins = json!({
            "phase": "Running", "startTime": at("03:06:00"), "pipelineRunRef": run,
            "conditions": [condition("Succeeded", "Unknown", "Starting")],
        });
        assert_eq!(lines(&begins)[1..], ["03:06:00 runs PipelineRun exec/r-1", "03:30:00 waits Starting: m"]);
        let ended = json!({
            "phase": "Failed", "target": "node/n", "startTime": at("03:06:00"), "completionTime": at("03:08:00"),
            "pipelineRunRef": run, "duration": "2m0s", "pipelineRunStatus": {"completedTasks": 1, "totalTasks": 2},
            "failureDetails": {"reason": "Unknown", "message": "exit 1", "wasExecutionFailure": true},
            "conditions": [
                condition("Succeeded", "False", "Unknown"), condition("Started", "True", "StepEnded"),
                condition("Blocked", "True", "PreviousExecutionFailed"),
            ],
        });
        assert_eq!(
            lines(&ended),
            [
                "03:04:05 created drain on node/n",
                "03:06:00 runs PipelineRun exec/r-1",
                "03:05:00 started m",
                "03:30:00 tasks 1 of 2 done",
                "03:05:00 blocks node/n, PreviousExecutionFailed",
            ]
        );
    }

    #[test]
    fn each_attempt_has_its_lines() {
        let status = json!({
            "phase": "Running", "pipelineRunRef": {"name": "r-1", "uid": "u", "namespace": "exec"},
            "attempts": [
                {"attempt": 1, "pipelineRun": "r-1", "startTime": "2026-01-02T03:06:00Z", "started": "False",
                    "completionTime": "2026-01-02T03:07:00Z", "reason": "ImagePullBackOff", "message": "no image"},
                {"attempt": 2, "notBefore": "2026-01-02T03:08:00Z"},
            ],
        });
        assert_eq!(
            lines(&status)[1..],
            [
                "03:06:00 runs attempt 1, PipelineRun r-1",
                "03:07:00 failed attempt 1, ImagePullBackOff: no image",
                "03:30:00 waits attempt 2, not before 2026-01-02T03:08:00Z",
            ]
        );
    }

    #[test]
    fn the_exit_code_is_the_outcome() {
        let all = [Outcome::Completed, Outcome::FailedNothingRan, Outcome::FailedHalfWay, Outcome::Skipped];
        assert_eq!(all.map(|it| code(Some(it))), [0, 3, 4, 5]);
        assert_eq!(code(None), TIMED_OUT);
    }

    #[test]
    fn the_last_line_tells_the_end_or_what_is_missing() {
        let told = |status: &Value| {
            let object = execution(status);
            let answer = Answer::of(&object, End::of(&object), Duration::from_mins(30), now());
            (answer.told.clone(), serde_json::to_value(answer).unwrap())
        };
        let (text, json) = told(&json!({"phase": "Completed", "target": "node/n", "duration": "2s"}));
        assert_eq!(text, "ns/a on node/n: Completed after 2s");
        assert_eq!((&json["outcome"], &json["waits"]), (&json!("Completed"), &Value::Null));
        let (text, json) = told(&json!({"phase": "Running"}));
        assert_eq!(text, "ns/a on Node/n: has not ended within 30m: Running");
        assert_eq!((&json["outcome"], &json["waits"]), (&Value::Null, &json!("Running")));
    }
}
