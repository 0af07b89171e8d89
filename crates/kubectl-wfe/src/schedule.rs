//! `kubectl wfe schedule`: shows schedules, explains when and why they run next, and changes them.

mod explain;
mod list;
mod next;
mod resume;
mod slots;
mod steer;

use anyhow::{Context, Result, bail};
use kube::api::{Api, DynamicObject, Patch};
use serde_json::{Value, json};
use wfe_api::workflow_schedule::conditions::HELD;
use wfe_view::call::{CallError, within};
use wfe_view::index::Kind;
use wfe_view::source::objects;

use crate::cli::{ClusterArgs, ScheduleCommand};
use crate::connection::{ANSWERS_WITHIN, Connection, advised, by_us};
use crate::object::condition;

/// Runs one of the commands. Yes: the change was made; for `explain`, nothing holds the schedule.
pub(crate) async fn run(cluster: &ClusterArgs, command: ScheduleCommand) -> Result<bool> {
    match command {
        ScheduleCommand::List(args) => list::run(cluster, &args).await,
        ScheduleCommand::Explain(args) => explain::run(cluster, &args).await,
        ScheduleCommand::Next(args) => next::run(cluster, &args).await,
        ScheduleCommand::Run(args) => steer::run(cluster, &args.name, &args.reason).await,
        ScheduleCommand::Suspend(args) => steer::suspend(cluster, &args.name).await,
        ScheduleCommand::Resume(args) => resume::run(cluster, &args.name, args.reason.as_deref()).await,
    }
}

/// Connects, and returns the schedules and the name of the selected namespace.
async fn open(cluster: &ClusterArgs) -> Result<(Api<DynamicObject>, String)> {
    let Connection { client, namespace, .. } = Connection::open(cluster).await?;
    Ok((objects(&client, Kind::Schedule, Some(&namespace)), namespace))
}

/// Reads a schedule.
async fn get(schedules: &Api<DynamicObject>, namespace: &str, name: &str) -> Result<DynamicObject> {
    // `kubectl get --output name` writes the kind before the name.
    let name = name.rsplit('/').next().unwrap_or(name);
    match within(ANSWERS_WITHIN, schedules.get_opt(name)).await {
        Ok(found) => found.with_context(|| no_such(namespace, name)),
        Err(error) => bail!("cannot read {namespace}/{name}: {}", said(&error)),
    }
}

/// Patches a schedule as it was read.
async fn patch(schedules: &Api<DynamicObject>, found: &DynamicObject, change: &Value) -> Result<(), CallError> {
    let patch = Patch::Merge(bound(found, change));
    let name = found.metadata.name.as_deref().unwrap_or_default();
    within(ANSWERS_WITHIN, schedules.patch(name, &by_us(), &patch)).await.map(|_| ())
}

/// Binds a change to an object as it was read: it is refused if the object was changed or replaced since.
fn bound(found: &DynamicObject, change: &Value) -> Value {
    let mut bound = change.clone();
    bound["metadata"] = json!({"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version});
    bound
}

fn describe(schedule: &DynamicObject) -> String {
    let meta = &schedule.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("WorkflowSchedule {}/{}", text(&meta.namespace), text(&meta.name))
}

fn no_such(namespace: &str, name: &str) -> String {
    format!(
        "there is no WorkflowSchedule {name} in the namespace {namespace}; choose another one with -n \
         (kubectl get wfs --all-namespaces)"
    )
}

/// Describes an error, with advice.
fn said(error: &CallError) -> String {
    advised(error, "the ClusterRole wfe-edit, or wfe-view to look")
}

/// Returns what holds a schedule, from its status.
fn held(schedule: &DynamicObject) -> Option<&str> {
    condition(schedule, HELD).filter(|held| held["status"] == "True")?["reason"].as_str()
}
