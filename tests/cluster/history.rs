//! Which executions the history of a target forbids (sections 6 and 7), with the shipped binary and its default
//! settings.
//!
//! No test waits for time to pass. Either executions are written with past times while no operator runs (`past`). Or an
//! operator runs, and the test ends runs with past times in Tekton's place (`player`).

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

/// Returns the verb in a skip's message that tells the reader what to do: to clear a block, or to delete an execution
/// with a wrong time.
pub(crate) fn way_out(reason: &str) -> &'static str {
    match reason {
        "PreviousExecutionFailed" | "ExhaustedRetries" => "clear",
        _ => "delete",
    }
}

/// Asserts that an execution was skipped for this reason, and that the message names the execution `on`.
pub(crate) async fn assert_skipped(world: &World, name: &str, reason: &str, on: &str) -> Result<Value> {
    let skipped = world.await_terminal(name).await?;
    let details = &skipped["status"]["skipDetails"];
    assert_eq!((&skipped["status"]["phase"], &details["reason"]), (&json!("Skipped"), &json!(reason)), "{skipped:#}");
    assert_eq!(details["recentRemediation"]["name"], on, "{details:#}");
    assert_eq!(skipped["status"]["pipelineRunRef"], Value::Null);
    Ok(details.clone())
}

/// Asserts that an execution failed before anything ran as the n-th in a row, and that the target backs off for this
/// long. Returns the time at which the next execution may run.
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

/// The waits after the first to the fifth failure in a row, by the default settings.
const WAITS: [TimeDelta; 5] = [
    TimeDelta::minutes(1),
    TimeDelta::minutes(2),
    TimeDelta::minutes(4),
    TimeDelta::minutes(8),
    TimeDelta::minutes(10),
];

/// Pushes a pipeline that succeeds after 100 ms.
pub(crate) async fn short(world: &World) -> Result<String> {
    world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok).lasting("100ms")).await
}

/// Returns an execution that the CRD accepts but that cannot run, because its two digests contradict each other.
pub(crate) fn unusable(wfe: WfeBuilder) -> WfeBuilder {
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    wfe.image(&format!("registry.invalid/w@{}", digest("a"))).digest(&digest("b"))
}

/// Makes the API server refuse every run in this world.
async fn refuse_runs(world: &World) -> Result<()> {
    quota_of_none(world, "count/pipelineruns.tekton.dev", &look::pipeline_runs()).await
}
