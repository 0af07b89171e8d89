//! The cost of schedules, which is nothing while they are idle. Also how late their children are created when many are
//! due at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Api, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{World, manifests};

use crate::api::{self, changes};
use crate::numbers::{float, millis, percentile};
use crate::player::{Mode, PARALLEL, Player};
use crate::subject::Operator;
use crate::{Bench, player};

/// The number of schedules that are due at the same time.
const TOGETHER: usize = 50;
/// The number of connections of the client that creates as many executions as the schedules did.
const CONNECTIONS: usize = 8;
/// The pause between the deletion of the children and their creation by a client.
const REST: Duration = Duration::from_secs(5);
/// How long before the slot the schedules get their hints. The operator has planned all of them by then.
const AHEAD: TimeDelta = TimeDelta::seconds(8);

/// Measures the requests of this many idle schedules, and rounds in which many of them are due at the same time.
pub(crate) async fn schedules(bench: &mut Bench, count: usize, rounds: usize, rest: Duration) -> Result<()> {
    let world = Arc::clone(&bench.worlds.operator);
    let operator = Operator::start(&world, &bench.subjects.program, None).await?;
    let _player = Player::start(bench.client.clone(), &world.execution_namespace(), Mode::Plain);
    let measured = async {
        let begun = Instant::now();
        create(&world, count, &json!({"interval": "24h", "minInterval": "1s"})).await?;
        await_planned(&world, count).await?;
        bench.results.add("schedules/planned", "ms each", millis(begun.elapsed()) / float(count));
        let before = operator.requests().await?;
        tokio::time::sleep(rest).await; // this idle time is what is measured
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

/// Measures schedules that are all due at the same full minute, in this many rounds. After each round, a client creates
/// the same executions on eight connections. Both measurements end when a watch has shown the last execution. They
/// begin at the minute, or when the client starts.
pub(crate) async fn minute(bench: &mut Bench, count: usize, rounds: usize) -> Result<()> {
    let world = Arc::clone(&bench.worlds.operator);
    let mut measured = Ok(());
    for _ in 0..rounds {
        measured = round(bench, &world, count).await;
        clear(&world).await?;
        if measured.is_err() {
            break;
        }
    }
    measured
}

async fn round(bench: &mut Bench, world: &World, count: usize) -> Result<()> {
    let operator = Operator::start(world, &bench.subjects.program, None).await?;
    let _player = Player::start(bench.client.clone(), &world.execution_namespace(), Mode::Plain);
    let measured = async {
        // The schedules are suspended, so that none is due during the creation.
        create(world, count, &json!({"cron": "* * * * *", "suspend": true})).await?;
        let second = Utc::now().timestamp() % 60;
        if second > 30 {
            tokio::time::sleep(Duration::from_secs(u64::try_from(62 - second)?)).await;
        }
        let slot = Utc::now().timestamp() / 60 * 60 + 60;
        let slot = DateTime::<Utc>::from_timestamp(slot, 0).context("no such time")?;
        patch_all(world, 0..count, &json!({"suspend": false})).await?;
        await_planned(world, count).await?;
        anyhow::ensure!(Utc::now() < slot, "the schedules were not planned before the minute");
        let delays = children(bench, world, 0..count, slot).await?;
        anyhow::Ok((delays.into_iter().fold(0.0, f64::max), slot))
    }
    .await;
    operator.stop().await?;
    let (last, slot) = measured?;
    let created = world.api(&wfe_testkit::wfe::resource(), world.namespace()).list(&ListParams::default()).await?.items;
    clear(world).await?;
    tokio::time::sleep(REST).await; // deleted objects no longer slow the client down
    let begun = Utc::now();
    let clients = create_again(world, created.into_iter().map(as_created).collect());
    let seen = children(bench, world, 0..count, slot);
    let ((), delays) = tokio::try_join!(clients, seen)?;
    let until_last = delays.into_iter().fold(0.0, f64::max);
    let client = until_last - millis((begun - slot).to_std()?);
    bench.results.add("schedules/minute/last", "ms", last);
    bench.results.add("schedules/minute/client", "ms", client);
    bench.results.add("schedules/minute/ratio", "times the client", last / client);
    bench.say(&format!(
        "{count} schedules due at one minute: the last child after {last:.0} ms, a client on {CONNECTIONS} connections \
         needs {client:.0} ms"
    ));
    Ok(())
}

/// Creates these objects on a few connections. Each connection creates one object after the other.
async fn create_again(world: &World, all: Vec<DynamicObject>) -> Result<()> {
    let executions = world.api(&wfe_testkit::wfe::resource(), world.namespace());
    let clients = all.chunks(all.len().div_ceil(CONNECTIONS).max(1)).map(|of_one| {
        let executions = executions.clone();
        async move {
            for execution in of_one {
                executions.create(&PostParams::default(), execution).await?;
            }
            anyhow::Ok(())
        }
    });
    futures::future::try_join_all(clients).await.map(drop)
}

/// Removes the status and the metadata that a client does not send in a create.
fn as_created(mut object: DynamicObject) -> DynamicObject {
    let ObjectMeta { name, namespace, labels, annotations, .. } = object.metadata;
    object.metadata = ObjectMeta { name, namespace, labels, annotations, ..ObjectMeta::default() };
    if let Some(data) = object.data.as_object_mut() {
        data.remove("status");
    }
    object
}

fn objects(world: &World) -> Api<DynamicObject> {
    world.api(&manifests::resource("kubernaut.ai/v1alpha1", "WorkflowSchedule"), world.namespace())
}

fn name(number: usize) -> String {
    format!("schedule-{number}")
}

fn target(number: usize) -> String {
    format!("node/{}", name(number))
}

/// Creates this many schedules with the same plan.
async fn create(world: &World, count: usize, plan: &Value) -> Result<()> {
    let of_an_execution = player::execution(world, "template", "node/template").json();
    let all = (0..count).map(|number| {
        let mut template = of_an_execution["spec"].clone();
        template["targetResource"] = json!(target(number));
        let mut schedule = json!({
            "apiVersion": "kubernaut.ai/v1alpha1",
            "kind": "WorkflowSchedule",
            "metadata": {"name": name(number), "namespace": world.namespace()},
            "spec": plan,
        });
        schedule["spec"]["template"] = json!({"spec": template});
        schedule
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

/// Waits until the status of each schedule contains its next run.
async fn await_planned(world: &World, count: usize) -> Result<()> {
    let resource = manifests::resource("kubernaut.ai/v1alpha1", "WorkflowSchedule");
    let is_planned = |it: &Value| it["status"]["nextRunTime"].is_string();
    let all = |all: &wfe_testkit::awaits::Objects| all.values().filter(|it| is_planned(it)).count() == count;
    world.await_many(&resource, world.namespace(), "all schedules planned", all).await.map(drop)
}

/// Makes some schedules due at the same moment. Returns the delay of each child in milliseconds.
async fn fall_due(bench: &Bench, world: &World, round: usize, count: usize) -> Result<Vec<f64>> {
    let slot = Utc::now() + AHEAD;
    let slot = DateTime::<Utc>::from_timestamp(slot.timestamp(), 0).context("no such time")?;
    let chosen: Vec<usize> = (0..TOGETHER.min(count)).map(|nth| (round * TOGETHER + nth) % count).collect();
    let hint = json!({
        "nextRunAt": slot.to_rfc3339_opts(SecondsFormat::Secs, true),
        "expiresAt": (slot + TimeDelta::minutes(10)).to_rfc3339_opts(SecondsFormat::Secs, true),
        "reason": "the benchmark asks",
    });
    patch_all(world, chosen.iter().copied(), &json!({"hint": hint})).await?;
    children(bench, world, chosen, slot).await
}

/// Patches the specs of schedules.
async fn patch_all(world: &World, which: impl IntoIterator<Item = usize>, spec: &Value) -> Result<()> {
    let schedules = objects(world);
    stream::iter(which)
        .map(|number| {
            let (schedules, patch) = (schedules.clone(), Patch::Merge(json!({"spec": spec})));
            async move { anyhow::Ok(schedules.patch(&name(number), &PatchParams::default(), &patch).await.map(drop)?) }
        })
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

/// Returns how many milliseconds after the slot each child was created, according to a watch.
async fn children(
    bench: &Bench,
    world: &World,
    of: impl IntoIterator<Item = usize>,
    slot: DateTime<Utc>,
) -> Result<Vec<f64>> {
    let mut awaited: BTreeSet<String> =
        of.into_iter().map(|number| format!("{}-{}", name(number), slot.timestamp())).collect();
    let mut seen = std::pin::pin!(changes(api::executions(world.namespace()).watch(&bench.client, "").await?));
    let mut delays = Vec::new();
    while !awaited.is_empty() {
        let change = tokio::time::timeout(Duration::from_mins(2), seen.next()).await.context("a child was not made")?;
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
