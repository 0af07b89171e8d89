//! What schedules cost: at rest nothing, and how late their children are made when many fall due together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{World, manifests};

use crate::api::{self, changes};
use crate::numbers::{float, millis, percentile};
use crate::player::{Mode, PARALLEL, Player};
use crate::subject::Operator;
use crate::{Bench, player};

/// How many fall due together.
const TOGETHER: usize = 50;
/// Before they do, all of them have been asked to, and the operator has planned them.
const AHEAD: TimeDelta = TimeDelta::seconds(8);

/// Measures with so many schedules: the requests in a time of rest, and rounds of many that fall due together.
pub(crate) async fn schedules(bench: &mut Bench, count: usize, rounds: usize, rest: Duration) -> Result<()> {
    let world = Arc::clone(&bench.worlds.operator);
    let operator = Operator::start(&world, &bench.subjects.program, None).await?;
    let _player = Player::start(bench.client.clone(), &world.execution_namespace(), Mode::Plain);
    let measured = async {
        let begun = Instant::now();
        create_all(&world, count).await?;
        await_planned(&world, count).await?;
        bench.results.add("schedules/planned", "ms each", millis(begun.elapsed()) / float(count));
        let before = operator.requests().await?;
        tokio::time::sleep(rest).await; // the time of rest is what is measured
        bench.results.add("schedules/requests_at_rest", "", operator.requests().await? - before);
        let mut delays = Vec::new();
        for round in 0..rounds {
            delays.extend(fall_due(bench, &world, round, count).await?);
        }
        bench.results.add("schedules/creation/p50", "ms", percentile(&delays, 0.5));
        bench.results.add("schedules/creation/p99", "ms", percentile(&delays, 0.99));
        bench.say(&format!(
            "{count} schedules, {TOGETHER} due together: p50 {:.0} ms after the slot, p99 {:.0} ms",
            percentile(&delays, 0.5),
            percentile(&delays, 0.99)
        ));
        anyhow::Ok(())
    }
    .await;
    operator.stop().await?;
    clear(&world).await?;
    measured
}

fn objects(world: &World) -> Api<DynamicObject> {
    world.api(&manifests::resource("kubernaut.ai/v1alpha1", "WorkflowSchedule"), world.namespace())
}

fn name(number: usize) -> String {
    format!("schedule-{number}")
}

async fn create_all(world: &World, count: usize) -> Result<()> {
    let of_an_execution = player::execution(world, "template", "node/template").json();
    let all = (0..count).map(|number| {
        let mut template = of_an_execution["spec"].clone();
        template["targetResource"] = json!(format!("node/{}", name(number)));
        json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowSchedule",
            "metadata": {"name": name(number), "namespace": world.namespace()},
            "spec": {"interval": "24h", "minInterval": "1s", "template": {"spec": template}},
        })
    });
    let schedules = objects(world);
    stream::iter(all)
        .map(|schedule| {
            let schedules = schedules.clone();
            async move {
                let schedule = serde_json::from_value(schedule)?;
                anyhow::Ok(schedules.create(&PostParams::default(), &schedule).await.map(drop)?)
            }
        })
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

/// Waits until each has its next run in its status.
async fn await_planned(world: &World, count: usize) -> Result<()> {
    let resource = manifests::resource("kubernaut.ai/v1alpha1", "WorkflowSchedule");
    let is_planned = |it: &Value| it["status"]["nextRunTime"].is_string();
    let all = |all: &wfe_testkit::awaits::Objects| all.values().filter(|it| is_planned(it)).count() == count;
    world.await_many(&resource, world.namespace(), "all schedules planned", all).await.map(drop)
}

/// Has some fall due at one moment, and returns how many milliseconds after it each child was seen.
async fn fall_due(bench: &Bench, world: &World, round: usize, count: usize) -> Result<Vec<f64>> {
    let slot = Utc::now() + AHEAD;
    let slot = DateTime::<Utc>::from_timestamp(slot.timestamp(), 0).context("no such time")?;
    let chosen: Vec<usize> = (0..TOGETHER.min(count)).map(|nth| (round * TOGETHER + nth) % count).collect();
    let mut awaited: BTreeSet<String> =
        chosen.iter().map(|number| format!("{}-{}", name(*number), slot.timestamp())).collect();
    let hint = json!({
        "nextRunAt": slot.to_rfc3339_opts(SecondsFormat::Secs, true),
        "expiresAt": (slot + TimeDelta::minutes(10)).to_rfc3339_opts(SecondsFormat::Secs, true),
        "reason": "the benchmark asks",
    });
    let schedules = objects(world);
    stream::iter(chosen)
        .map(|number| {
            let (schedules, hint) = (schedules.clone(), hint.clone());
            async move {
                let patch = Patch::Merge(json!({"spec": {"hint": hint}}));
                anyhow::Ok(schedules.patch(&name(number), &PatchParams::default(), &patch).await.map(drop)?)
            }
        })
        .buffer_unordered(PARALLEL)
        .try_collect::<()>()
        .await?;
    let mut seen = std::pin::pin!(changes(api::executions(world.namespace()).watch(&bench.client, "").await?));
    let mut delays = Vec::new();
    while !awaited.is_empty() {
        let change = tokio::time::timeout(Duration::from_mins(1), seen.next()).await.context("a child was not made")?;
        let object = change.context("the watch ended")??.object;
        if awaited.remove(&object.metadata.name) {
            delays.push(millis((Utc::now() - slot).to_std().unwrap_or_default()));
        }
    }
    Ok(delays)
}

async fn clear(world: &World) -> Result<()> {
    let path = format!("/apis/kubernaut.ai/v1alpha1/namespaces/{}/workflowschedules", world.namespace());
    api::send(&world.client(), "DELETE", &path, "", String::new()).await?;
    player::clear(world).await
}
