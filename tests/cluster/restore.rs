//! A backup restores executions in every phase, with and without their statuses, as docs/operations.md describes.
//! Nothing runs that must not run, and blocks stay in force.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Error, Result, ensure};
use chrono::{TimeDelta, Utc};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::Objects;
use wfe_testkit::{Outcome, Pipeline, World, repository, wfe};

use crate::audited::audited;
use crate::clearing::clear;
use crate::configuration::pause::{annotate, is_paused};
use crate::expect::{condition, text, unwritten};
use crate::history::past::{Past, ended, running, time, write};
use crate::history::{assert_skipped, short};

#[tokio::test]
async fn what_comes_back_without_a_status_runs_only_in_time_and_after_the_pause_once_on_a_target() -> Result<()> {
    let world = World::new("restored").await?;
    let recording = world.record().await?;
    let image = short(&world).await?;
    let target = |name: &str| if name.ends_with("running") { "node/other" } else { "node/one" }.to_owned();
    in_every_phase(&world, &image, "", target, &Value::Null).await?;
    in_every_phase(&world, &image, "late-", target, &json!(time(Utc::now() - TimeDelta::seconds(1)))).await?;
    let backup = taken_and_lost(&world).await?;

    annotate(&world, json!("restore")).await?;
    let _operator = world.operator().start().await?;
    let mut refused = BTreeMap::new();
    for object in backup.values() {
        if let Err(refusal) = create(&world, object).await? {
            refused.insert(text(&object["metadata"]["name"]), refusal);
        }
    }
    assert!(refused.keys().eq(["cancelled", "cleared", "late-cancelled", "late-cleared"].iter()), "{refused:?}");
    let is_as_paused = |(name, wfe): (&String, &Value)| match name.strip_prefix("late-") {
        Some(_) => wfe["status"]["failureDetails"]["reason"] == "DeadlineExceeded",
        None => is_paused(wfe),
    };
    let all = world.await_wfes("late ones failed, and others waiting", |all| all.iter().all(is_as_paused)).await?;
    assert_eq!(all.len(), backup.len() - refused.len());
    assert_eq!(world.runs().await?.len(), 0, "nothing starts");
    for late in all.values().filter(|wfe| wfe["status"]["phase"] == "Failed") {
        assert_eq!(late["status"]["failureDetails"]["wasExecutionFailure"], false, "{late:#}");
        assert_eq!(late["status"]["nextAllowedExecution"], Value::Null, "it does not count: {late:#}");
    }

    annotate(&world, Value::Null).await?;
    let all = world.await_wfes("all over", |all| all.values().all(wfe_testkit::is_terminal)).await?;
    let ran = all.values().filter(|wfe| wfe["status"]["phase"] == "Completed");
    let mut ran: Vec<&str> = ran.map(|wfe| text(&wfe["spec"]["targetResource"])).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["node/one", "node/other"], "once on each target");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn what_comes_back_with_its_status_is_as_it_was_and_what_ran_has_failed() -> Result<()> {
    let world = World::new("restored-status").await?;
    let recording = world.record().await?;
    let image = short(&world).await?;
    in_every_phase(&world, &image, "", |name| format!("node/{name}"), &Value::Null).await?;
    let backup = taken_and_lost(&world).await?;

    let mut refused = BTreeMap::new();
    for (name, object) in &backup {
        let restored = match create(&world, object).await? {
            Ok(created) => update_status(&world, created, object).await?,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = restored {
            refused.insert(name.as_str(), refusal);
        }
    }
    let expected = [
        ("cancelled", "spec.cancellation: may not be set when the object is created"),
        ("cleared", "spec.clearance: may not be set when the object is created"),
        ("completed", "status.phase: may go from none to"),
    ];
    assert!(refused.keys().eq(expected.iter().map(|(name, _)| name)), "{refused:?}");
    for (name, why) in expected {
        assert!(refused[name].contains(why), "{name}: {}", refused[name]);
    }
    delete_as_the_page_says(&world).await?;
    let left: BTreeSet<String> = names(&world).await?;
    assert!(left.iter().eq(["failed-early", "failed-late", "pending", "running", "skipped"].iter()), "{left:?}");

    let _operator = world.operator().start().await?;
    world.await_phase("pending", "Completed").await?;
    let lost = world.await_phase("running", "Failed").await?;
    assert_eq!(lost["status"]["failureDetails"]["wasExecutionFailure"], true, "{lost:#}");
    for name in ["failed-early", "failed-late", "skipped"] {
        assert_eq!(settled(&world.get_wfe(name).await?), settled(&backup[name]));
    }
    for (reason, on) in [
        ("PreviousExecutionFailed", "failed-late"),
        ("PreviousExecutionFailed", "running"),
        ("RecentlyRemediated", "failed-early"),
    ] {
        let name = format!("after-{on}");
        world.wfe(&name).target(&format!("node/{on}")).image(&image).create().await?;
        assert_skipped(&world, &name, reason, on).await?;
    }
    assert_eq!(world.runs().await?.len(), 1, "that of the one which had been waiting");
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn what_comes_back_as_running_has_failed_and_its_run_that_still_goes_on_is_cancelled() -> Result<()> {
    let world = World::new("restored-run").await?;
    let recording = world.record().await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let operator = world.operator().start().await?;
    world.wfe("running").target("node/one").image(&held).create().await?;
    world.await_running_step().await?;
    operator.kill().await?;
    let backup = taken_and_lost(&world).await?;
    let created = create(&world, &backup["running"]).await?.map_err(Error::msg)?;
    update_status(&world, created, &backup["running"]).await?.map_err(Error::msg)?;

    let _operator = world.operator().start().await?;
    let failed = world.await_phase("running", "Failed").await?;
    let details = &failed["status"]["failureDetails"];
    assert_eq!(details["wasExecutionFailure"], true, "{failed:#}");
    assert!(text(&details["message"]).contains("a backup brought this status back"), "{failed:#}");
    world.await_run("is cancelled", |run| run["status"]["conditions"][0]["reason"] == "Cancelled").await?;
    world.await_wfe("running", "blocks", |wfe| condition(wfe, "Blocked") == "True PreviousExecutionFailed").await?;
    assert_eq!(world.runs().await?.len(), 1);
    audited(&world, recording).await?;
    world.close().await
}

/// Creates an execution in each phase while no operator runs.
async fn in_every_phase(
    world: &World,
    image: &str,
    prefix: &str,
    target: impl Fn(&str) -> String,
    start_before: &Value,
) -> Result<()> {
    let create = async |name: &str| {
        let name = format!("{prefix}{name}");
        let wfe = world.wfe(&name).target(&target(&name)).image(image);
        wfe.patch(|wfe| wfe["spec"]["startBefore"] = start_before.clone()).create().await?;
        anyhow::Ok(name)
    };
    let (minute, now) = (TimeDelta::minutes(1), time(Utc::now()));
    create("undecided").await?;
    write(world, &create("pending").await?, &[json!({"phase": "Pending"})]).await?;
    let name = create("running").await?;
    write(world, &name, &[running(world, &name, 1, Utc::now() - minute)]).await?;
    ended(world, &create("completed").await?, 1, minute, Past::Completed).await?;
    ended(world, &create("failed-early").await?, 1, minute, Past::NothingRan(1, TimeDelta::hours(1))).await?;
    ended(world, &create("failed-late").await?, 1, minute, Past::Ran).await?;
    let name = create("cleared").await?;
    ended(world, &name, 1, minute, Past::Ran).await?;
    clear(world, &name, "looked at").await?;
    let name = create("cancelled").await?;
    let cancellation = json!({"spec": {"cancellation": {"reason": "why", "requestedBy": "jo@example.com"}}});
    let api = world.api(&wfe::resource(), world.namespace());
    api.patch(&name, &PatchParams::default(), &Patch::Merge(cancellation)).await?;
    ended(world, &name, 1, minute, Past::Ran).await?;
    let skip = json!({"reason": "ResourceBusy", "message": "in the past", "skippedAt": now});
    let skipped = json!({"phase": "Skipped", "completionTime": now, "skipDetails": skip});
    write(world, &create("skipped").await?, &[skipped]).await
}

/// Returns all executions, and then deletes them.
async fn taken_and_lost(world: &World) -> Result<Objects> {
    let backup = world.await_wfes("all", |_| true).await?;
    let api = world.api(&wfe::resource(), world.namespace());
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    world.await_wfes("none", Objects::is_empty).await?;
    Ok(backup)
}

/// Creates an object as a backup tool does. The API server drops the object's status.
async fn create(world: &World, backup: &Value) -> Result<Result<DynamicObject, String>> {
    let mut object = backup.clone();
    for server_made in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove(server_made));
    }
    let api = world.api(&wfe::resource(), world.namespace());
    let created = refusal(api.create(&PostParams::default(), &serde_json::from_value(object)?).await)?;
    if let Ok(created) = &created {
        ensure!(created.data["status"] == unwritten(), "{created:#?}");
    }
    Ok(created)
}

/// Restores an object's status, as Velero does with `--restore-status`.
async fn update_status(
    world: &World,
    mut created: DynamicObject,
    backup: &Value,
) -> Result<Result<DynamicObject, String>> {
    if backup["status"] == unwritten() {
        return Ok(Ok(created));
    }
    created.data["status"] = backup["status"].clone();
    let api = world.api(&wfe::resource(), world.namespace());
    let name = text(&backup["metadata"]["name"]);
    refusal(api.replace_status(name, &PostParams::default(), &created).await)
}

/// Deletes the executions without a phase by the command in docs/operations.md.
async fn delete_as_the_page_says(world: &World) -> Result<()> {
    let page = std::fs::read_to_string(repository().join("docs/operations.md"))?;
    let command = page.lines().find_map(|line| line.trim_start().strip_prefix("kubectl delete workflowexecutions "));
    let command = command.context("the page does not say how to delete what has no phase")?;
    let command = command.replace("--all-namespaces", &format!("--namespace {}", world.namespace()));
    let words: Vec<&str> = ["delete", "workflowexecutions"].into_iter().chain(command.split_whitespace()).collect();
    world.control_plane().kubectl(&words).await.map(drop)
}

/// Returns a refusal and its message as a value, and any other error as an error.
fn refusal<T>(answer: kube::Result<T>) -> Result<Result<T, String>> {
    match answer {
        Ok(object) => Ok(Ok(object)),
        Err(kube::Error::Api(refusal)) if refusal.code == 422 => Ok(Err(refusal.message)),
        Err(error) => Err(error.into()),
    }
}

async fn names(world: &World) -> Result<BTreeSet<String>> {
    Ok(world.wfes().await?.iter().map(|wfe| text(&wfe["metadata"]["name"]).to_owned()).collect())
}

/// Returns those fields of an ended execution's status that never change.
fn settled(wfe: &Value) -> Value {
    let mut status = wfe["status"].clone();
    for free in ["conditions", "nextStep", "observedGeneration"] {
        status.as_object_mut().map(|status| status.remove(free));
    }
    status
}
