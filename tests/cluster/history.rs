//! What the history of a target forbids (sections 6 and 7), by the shipped binary at its default settings.
//!
//! Time is moved in two ways, and never by waiting: histories are written with past times while no operator runs
//! (`past`), and runs are ended in Tekton's place at past times while one does (`player`).

mod backoff;
mod blocks;
mod cooldown;
mod odd;
pub(crate) mod past;
mod player;
mod unresolved;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, WfeBuilder, World, look};
use wfe_tests::quota_of_none;

use crate::expect::text;

/// The word by which the message of a skip says how to go on: a block is cleared, and a time that somebody has written
/// wrongly goes with its execution.
pub(crate) fn way_out(reason: &str) -> &'static str {
    match reason {
        "PreviousExecutionFailed" | "ExhaustedRetries" => "clear",
        _ => "delete",
    }
}

/// Asserts that an execution was skipped for this reason, on this execution.
pub(crate) async fn assert_skipped(world: &World, name: &str, reason: &str, on: &str) -> Result<Value> {
    let skipped = world.await_terminal(name).await?;
    let details = &skipped["status"]["skipDetails"];
    assert_eq!((&skipped["status"]["phase"], &details["reason"]), (&json!("Skipped"), &json!(reason)), "{skipped:#}");
    assert_eq!(details["recentRemediation"]["name"], on, "{details:#}");
    assert_eq!(skipped["status"]["pipelineRunRef"], Value::Null);
    Ok(details.clone())
}

/// Asserts that an execution failed before anything ran, as the n-th in a row, and for how long the target backs off.
/// Returns the time from which on the next one may run.
#[track_caller]
fn assert_charged(failed: &Value, nth: usize, wait: TimeDelta) -> Result<DateTime<Utc>> {
    let status = &failed["status"];
    assert_eq!(status["failureDetails"]["wasExecutionFailure"], false, "{failed:#}");
    assert_eq!(status["consecutiveFailures"], nth, "{failed:#}");
    let failed_at = moment(&status["failureDetails"]["failedAt"])?;
    if nth == WAITS.len() {
        assert_eq!(status["nextAllowedExecution"], Value::Null, "no time lifts it: {failed:#}");
        return Ok(failed_at + wait);
    }
    let next = moment(&status["nextAllowedExecution"])?;
    assert_eq!(next - failed_at, wait, "{failed:#}");
    Ok(next)
}

fn moment(value: &Value) -> Result<DateTime<Utc>> {
    Ok(DateTime::parse_from_rfc3339(text(value))?.into())
}

/// How long the n-th failure in a row makes the next execution wait: the table of 000.
const WAITS: [TimeDelta; 5] = [
    TimeDelta::minutes(1),
    TimeDelta::minutes(2),
    TimeDelta::minutes(4),
    TimeDelta::minutes(8),
    TimeDelta::minutes(10),
];

/// Pushes a pipeline that ends well after a moment.
pub(crate) async fn short(world: &World) -> Result<String> {
    world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await
}

/// Makes a spec that fits the CRD and that nobody can use: its two digests contradict each other.
pub(crate) fn unusable(wfe: WfeBuilder) -> WfeBuilder {
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    wfe.image(&format!("registry.invalid/w@{}", digest("a"))).digest(&digest("b"))
}

/// Has the API server refuse every run of this world.
async fn refuse_runs(world: &World) -> Result<()> {
    quota_of_none(world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await
}
