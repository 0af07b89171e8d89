//! Schedules on real Tekton: pacing, holds, hints, history and faults (section 12).
//!
//! No test waits for an interval. Hints request runs at once (`hurry`), and statuses with past times are written while
//! no operator runs.

mod admission;
mod analysts;
mod cast;
mod holds;
mod objects;
mod plans;
mod policies;
mod restored;
mod resume;
mod tools;
mod triage;
mod triage_limits;
mod upgrade;

use anyhow::{Context as _, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::World;
use wfe_testkit::awaits::Objects;
use wfe_testkit::wfe::schedules as resource;

use crate::expect::text;

/// A child's label with the name of its schedule.
const SCHEDULE: &str = "kubernaut.ai/schedule";

pub(crate) fn schedules(world: &World) -> Api<DynamicObject> {
    world.api(&resource(), world.namespace())
}

/// Creates a schedule for a workflow with this bundle. `spec` contains further fields.
pub(crate) async fn create(world: &World, name: &str, target: &str, bundle: &str, spec: &Value) -> Result<Value> {
    let mut schedule = json!({
        "apiVersion": "kubernaut.ai/v1alpha1",
        "kind": "WorkflowSchedule",
        "metadata": {"name": name, "namespace": world.namespace()},
        "spec": {"template": {"spec": {
            "targetResource": target,
            "workflowRef": {"workflowId": name, "version": "1.0.0", "containerImage": bundle},
        }}},
    });
    merge(&mut schedule["spec"], spec);
    let object = serde_json::from_value(schedule)?;
    Ok(serde_json::to_value(schedules(world).create(&PostParams::default(), &object).await?)?)
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

/// Changes the spec of a schedule.
async fn edit(world: &World, name: &str, spec: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "spec": spec }));
    schedules(world).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Requests a run at once, as `kubectl wfe schedule run` does.
pub(crate) async fn hurry(world: &World, name: &str) -> Result<()> {
    let planned = await_schedule(world, name, "is planned", |it| it["status"]["plannedFrom"].is_string()).await?;
    // The time must be after the second in which the plan began, which may be the current second.
    let at = Utc::now().max(moment(&planned["status"]["plannedFrom"])?) + TimeDelta::seconds(1);
    edit(world, name, json!({"hint": hint(&json!({"nextRunAt": shown(at)}))})).await
}

/// Returns a hint that is valid for ten minutes.
fn hint(wish: &Value) -> Value {
    let mut hint = json!({"expiresAt": shown(Utc::now() + TimeDelta::minutes(10)), "reason": "a test asks"});
    merge(&mut hint, wish);
    // A hint has either a run time or an interval.
    for other in ["nextRunAt", "interval"].iter().filter(|other| wish[**other].is_null()) {
        hint[*other] = Value::Null;
    }
    hint
}

fn shown(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

pub(crate) fn moment(value: &Value) -> Result<DateTime<Utc>> {
    Ok(DateTime::parse_from_rfc3339(text(value)).with_context(|| format!("not a time: {value}"))?.into())
}

/// Waits until `is` accepts a schedule, and returns the schedule. `what` completes the error "awaited that it ...".
pub(crate) async fn await_schedule(
    world: &World,
    name: &str,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    world.await_one(&resource(), world.namespace(), name, what, is).await
}

/// Waits until this many runs in a row have failed, and the outcome of the last one is recorded.
async fn await_failures(world: &World, name: &str, failures: u32) -> Result<Value> {
    let what = format!("has failed {failures} times in a row");
    await_schedule(world, name, &what, |it| {
        it["status"]["failureCount"] == failures && it["status"]["lastRun"]["outcome"].is_string()
    })
    .await
}

pub(crate) async fn await_outcome(world: &World, name: &str, outcome: &str) -> Result<Value> {
    let is = |it: &Value| it["status"]["lastRun"]["outcome"] == outcome;
    await_schedule(world, name, &format!("says that its last run is {outcome}"), is).await
}

pub(crate) async fn await_held(world: &World, name: &str, reason: &str) -> Result<Value> {
    let held = format!("True {reason}");
    await_schedule(world, name, &format!("is held: {reason}"), |it| crate::expect::condition(it, "Held") == held).await
}

/// Returns those executions that are children of a schedule.
pub(crate) fn children<'a>(all: &'a Objects, schedule: &str) -> Vec<&'a Value> {
    all.values().filter(|wfe| wfe["metadata"]["labels"][SCHEDULE] == *schedule).collect()
}

/// Waits until a schedule has this many children, and returns them.
pub(crate) async fn await_children(world: &World, schedule: &str, count: usize) -> Result<Vec<Value>> {
    let what = format!("{count} children of {schedule}");
    let all = world.await_wfes(&what, |all| children(all, schedule).len() == count).await?;
    Ok(children(&all, schedule).into_iter().cloned().collect())
}

/// Writes fields of a schedule's status as if time had passed. No operator may run meanwhile.
async fn write_status(world: &World, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    schedules(world).patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Returns the time from the end of a schedule's last run until its next run.
fn wait_after_end(schedule: &Value) -> Result<TimeDelta> {
    let status = &schedule["status"];
    Ok(moment(&status["nextRunTime"])? - moment(&status["lastRun"]["endedAt"])?)
}

/// Waits until a child's pod runs, and ends all of the child's pods.
async fn end_child(world: &World, child: &str, outcome: &str) -> Result<()> {
    let of_it = |pod: &Value| pod["metadata"]["labels"]["kubernaut.ai/workflow-execution"] == *child;
    world.await_pod(&format!("of {child} runs"), |pod| of_it(pod) && pod["status"]["phase"] == "Running").await?;
    world.set_outcome(&format!("kubernaut.ai/workflow-execution={child}"), outcome).await?;
    Ok(())
}

/// Waits until the status names a child without an outcome, and returns its name.
async fn await_at_work(world: &World, name: &str) -> Result<String> {
    let is = |it: &Value| it["status"]["lastRun"]["name"].is_string() && it["status"]["lastRun"]["outcome"].is_null();
    let schedule = await_schedule(world, name, "has a child at work", is).await?;
    Ok(text(&schedule["status"]["lastRun"]["name"]).to_owned())
}
