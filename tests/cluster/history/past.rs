//! Writes past executions as an operator would have recorded them.

use anyhow::{Context as _, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{World, wfe};

/// How a past execution ended.
#[derive(Clone, Copy)]
pub(crate) enum Past {
    /// The execution completed.
    Completed,
    /// The execution failed before anything ran. The values are its number among such failures in a row, and the
    /// target's backoff.
    NothingRan(u32, TimeDelta),
    /// The execution failed after something ran.
    Ran,
}

/// Creates an execution that ended this long ago. A negative duration is an end in the future.
pub(crate) async fn past(
    world: &World,
    name: &str,
    target: &str,
    workflow: &str,
    number: u64,
    ago: TimeDelta,
    how: Past,
) -> Result<()> {
    world.wfe(name).target(target).workflow(workflow).create().await?;
    ended(world, name, number, ago, how).await
}

/// Writes the status of an execution that ended this long ago.
pub(crate) async fn ended(world: &World, name: &str, number: u64, ago: TimeDelta, how: Past) -> Result<()> {
    let ended = Utc::now() - ago;
    let started = running(world, name, number, ended);
    let steps = match how {
        Past::Completed => vec![started, json!({"phase": "Completed", "completionTime": time(ended)})],
        Past::Ran => vec![started, failed(number, ended, true)],
        Past::NothingRan(in_a_row, wait) => {
            let mut status = failed(number, ended, false);
            status["consecutiveFailures"] = json!(in_a_row);
            status["nextAllowedExecution"] = json!(time(ended + wait));
            vec![status]
        }
    };
    write(world, name, &steps).await
}

/// Returns the status of an execution that committed at this time to a run that does not exist.
pub(crate) fn running(world: &World, name: &str, number: u64, at: DateTime<Utc>) -> Value {
    let run = json!({"name": format!("past-{number}"), "uid": format!("past-{name}"), "namespace": world.execution_namespace()});
    json!({"phase": "Running", "startTime": time(at), "pipelineRunRef": run, "runSequence": number})
}

/// Creates five failures before anything ran, named `<name>-1` to `<name>-5`. The last one ended this long ago.
pub(crate) async fn five_failures(
    world: &World,
    name: &str,
    target: &str,
    first_number: u64,
    ago: TimeDelta,
) -> Result<()> {
    for (nth, wait) in (1..).zip(super::WAITS) {
        let ago = ago + TimeDelta::seconds(5 - i64::from(nth));
        let (name, number) = (format!("{name}-{nth}"), first_number + u64::from(nth) - 1);
        past(world, &name, target, &name, number, ago, Past::NothingRan(nth, wait)).await?;
    }
    Ok(())
}

fn failed(number: u64, at: DateTime<Utc>, ran: bool) -> Value {
    json!({
        "phase": "Failed", "completionTime": time(at), "runSequence": number,
        "failureDetails": {
            "failedTaskIndex": 0, "failedTaskName": "", "reason": "Unknown", "message": "in the past",
            "failedAt": time(at), "executionTimeBeforeFailure": "0s", "naturalLanguageSummary": "in the past",
            "wasExecutionFailure": ran, "requiresManualReview": ran,
        },
    })
}

/// Writes statuses to an execution, one after the other.
pub(crate) async fn write(world: &World, name: &str, steps: &[Value]) -> Result<()> {
    let executions = world.api(&wfe::resource(), world.namespace());
    for status in steps {
        let patch = Patch::Merge(json!({"status": status}));
        executions.patch_status(name, &PatchParams::default(), &patch).await.with_context(|| format!("past {name}"))?;
    }
    Ok(())
}

pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
