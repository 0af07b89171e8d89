//! Retries of executions on real Tekton: timelines, conditions, events during the wait, and faults (section 11).
//!
//! The pods of most workflows in these tests wait for their image until the test ends the attempt.

mod conditions;
mod neighbours;
mod timelines;
mod upgrade;
mod waits;
mod writes;

use anyhow::{Context as _, Result, bail, ensure};
use chrono::{DateTime, FixedOffset, TimeDelta};
use futures::try_join;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{Outcome, Pipeline, WfeBuilder, World, look};

use crate::expect::{condition, text};

/// How late an attempt may start.
const LATE: TimeDelta = TimeDelta::seconds(2);
/// How many times a pod's state is written again after kwok has overwritten it.
const REWRITTEN: usize = 5;
/// The condition that reports the retries of an execution.
const RETRYING: &str = "Retrying";

/// Adds a retry policy to an execution.
fn with_retry(wfe: WfeBuilder, policy: &Value) -> WfeBuilder {
    wfe.patch(|wfe| wfe["spec"]["retry"] = policy.clone())
}

/// Pushes a pipeline with one task, whose pods wait for their image until [`end`] is called.
pub(crate) async fn undecided(world: &World) -> Result<String> {
    let waiting = Pipeline::new().task("apply", Outcome::Waiting("ContainerCreating")).lasting("100ms");
    world.push_pipeline("undecided", &waiting).await
}

/// Pushes a pipeline with one task whose image cannot be pulled, so that every attempt fails before anything ran.
pub(crate) async fn unpullable(world: &World) -> Result<String> {
    world.push_pipeline("unpullable", &Pipeline::new().task("apply", Outcome::ImagePull)).await
}

/// Ends an attempt, given by the number of its run. Its pod either gets the image and ends with this outcome, or never
/// gets the image.
pub(crate) async fn end(world: &World, wfe: &str, number: u32, outcome: Outcome) -> Result<()> {
    let sequence = number.to_string();
    let of_it = |object: &Value| {
        let label = |name: &str| text(&object["metadata"]["labels"][name]);
        label("kubernaut.ai/workflow-execution") == wfe && label("kubernaut.ai/run-sequence") == sequence
    };
    let state = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
    let what = format!("of run {sequence} of {wfe} waits for its image");
    let mut pod = world.await_pod(&what, |pod| of_it(pod) && state(pod).is_object()).await?;
    if outcome != Outcome::ImagePull {
        return world.set_outcome(text(&pod["metadata"]["name"]), &outcome.annotation()).await.map(drop);
    }
    let (tasks, ended) = (look::task_runs(), format!("of run {sequence} of {wfe} ended"));
    let is_over = |task: &Value| of_it(task) && task["status"]["completionTime"].is_string();
    let is_as_before = |pod: &Value| of_it(pod) && state(pod)["reason"] == "ContainerCreating";
    // kwok may still overwrite the state with the earlier one, which the test cannot prevent.
    for _ in 0..REWRITTEN {
        pull_fails(world, &pod).await?;
        tokio::select! {
            ended = world.await_some(&tasks, &ended, is_over) => return ended.map(drop),
            again = world.await_pod(&what, is_as_before) => pod = again?,
        }
    }
    bail!("the state of the pod of run {sequence} of {wfe} was written over {REWRITTEN} times");
}

/// Writes a pod's status as a kubelet does if it cannot pull the image.
async fn pull_fails(world: &World, pod: &Value) -> Result<()> {
    let mut containers = pod["status"]["containerStatuses"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        container["state"] = json!({"waiting": {"reason": "ImagePullBackOff", "message": "played by a test"}});
    }
    let patch = Patch::Merge(json!({"status": {"containerStatuses": containers}}));
    let pods = world.api(&look::pods(), &world.execution_namespace());
    pods.patch_status(text(&pod["metadata"]["name"]), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Returns the attempts in an execution's status.
fn attempts(wfe: &Value) -> &[Value] {
    wfe["status"]["attempts"].as_array().map_or(&[], Vec::as_slice)
}

/// Lets an attempt fail before anything ran, and returns the execution while it waits for this next attempt.
async fn fails(world: &World, wfe: &str, number: u32, next: usize) -> Result<Value> {
    // A wait may last only a second. The watch therefore begins before the attempt ends.
    let ((), waits) = try_join!(end(world, wfe, number, Outcome::ImagePull), await_wait(world, wfe, next))?;
    Ok(waits)
}

/// Waits until an execution waits for this attempt, and returns the execution.
async fn await_wait(world: &World, wfe: &str, attempt: usize) -> Result<Value> {
    let waits = |wfe: &Value| {
        let last = attempts(wfe).last().filter(|_| attempts(wfe).len() == attempt);
        last.is_some_and(|last| last["notBefore"].is_string() && last["startTime"].is_null())
    };
    let wfe = world.await_wfe(wfe, &format!("waits for attempt {attempt}"), waits).await?;
    ensure!(condition(&wfe, RETRYING) == "True Backoff", "{wfe:#}");
    ensure!((condition(&wfe, "TargetLocked"), text(&wfe["status"]["phase"])) == ("True Held".into(), "Running"));
    Ok(wfe)
}

/// Returns the message of a condition.
fn message<'a>(wfe: &'a Value, kind: &str) -> &'a str {
    let conditions = wfe["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|condition| condition["type"] == kind).map_or("", |condition| text(&condition["message"]))
}

fn time(value: &Value) -> Result<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text(value)).with_context(|| format!("not a time: {value}"))
}

/// Fails unless each attempt started on time after its wait, and its run was not created or released earlier.
async fn check_starts(world: &World, wfe: &Value) -> Result<()> {
    let runs = world.runs().await?;
    for attempt in attempts(wfe).iter().skip(1).filter(|attempt| attempt["startTime"].is_string()) {
        let run = runs.iter().find(|run| run["metadata"]["name"] == attempt["pipelineRun"]).context("no run")?;
        let (not_before, begun) = (time(&attempt["notBefore"])?, time(&attempt["startTime"])?);
        let created = time(&run["metadata"]["creationTimestamp"])?;
        let released = time(&run["metadata"]["annotations"]["kubernaut.ai/released-at"])?;
        ensure!(not_before <= created && not_before <= released, "{attempt:#} {run:#}");
        ensure!(not_before <= begun && begun <= not_before + LATE, "{attempt:#}");
    }
    Ok(())
}

/// Returns the reason and the attempt of each event about an execution, such as `StepRetry 1`, in order of time.
async fn events_of(world: &World, wfe: &str) -> Result<Vec<String>> {
    let mut events = world.events().await?;
    events.retain(|event| event["regarding"]["name"] == wfe);
    events.sort_by_key(|event| text(&event["eventTime"]).to_owned());
    let times: Vec<&str> = events.iter().map(|event| text(&event["eventTime"])).collect();
    ensure!(times.is_sorted_by(|one, next| one < next), "two at one time: {times:?}");
    let told = events.iter().map(|event| {
        let reason = text(&event["reason"]);
        let attempt = text(&event["metadata"]["name"]).rsplit('.').next().filter(|last| last.parse::<u32>().is_ok());
        attempt.map_or_else(|| reason.to_owned(), |attempt| format!("{reason} {attempt}"))
    });
    Ok(told.collect())
}
