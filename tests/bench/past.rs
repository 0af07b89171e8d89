//! What a cluster's past costs: memory, starts and idle time with many executions that have ended, and their runs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};
use wfe_testkit::World;

use crate::Bench;
use crate::api::{self, Answer};
use crate::counters::Counters;
use crate::numbers::{float, millis, per_second};
use crate::player;
use crate::subject::{Operator, cpu_seconds, resident_bytes};
use crate::template::{Names, Step, Templates};

const JSON: &str = "application/json";
/// How many requests of the filling are under way at once.
const PARALLEL: usize = 32;
/// How long an operator is left alone before its memory is read: what a start allocates is given back by then.
const SETTLE: Duration = Duration::from_secs(3);

/// Creates executions that have completed, with their runs, from one number up to another.
async fn fill(bench: &Bench, world: &World, from: usize, to: usize) -> Result<()> {
    let (client, templates) = (world.client(), bench.subjects.templates()?);
    stream::iter(from..to)
        .map(|number| one(&client, world, &templates, number))
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await
}

async fn one(client: &Client, world: &World, templates: &Templates, number: usize) -> Result<()> {
    let name = format!("past-{number:06}");
    let wfe = player::execution(world, &name, &format!("node/{name}")).json();
    let uri = api::executions(world.namespace()).path;
    let wfe = api::send(client, "POST", &uri, JSON, wfe.to_string()).await?;
    let mut names = Names {
        namespace: world.namespace().to_owned(),
        execution_namespace: world.execution_namespace(),
        run: format!("past-{name}-1"),
        wfe_uid: wfe.object()?.metadata.uid,
        wfe: name,
        ..Names::default()
    };
    let create = templates.render(Step::Create, &names)?;
    let mut run: Value = serde_json::from_str(&create.body)?;
    run["spec"]["status"].take();
    let run = api::send(client, "POST", &create.uri, JSON, run.to_string()).await?;
    names.run_uid = run.object()?.metadata.uid;
    replace_status(client, &create.uri, &run, player::succeeded()["status"].take()).await?;
    let mut status: Value = serde_json::from_str(&templates.render(Step::End, &names)?.body)?;
    status["status"]["completionTime"] = json!(chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
    // A phase goes to Completed by way of Running only.
    let wfe = replace_status(client, &uri, &wfe, json!({"phase": "Running"})).await?;
    replace_status(client, &uri, &wfe, status["status"].take()).await?;
    Ok(())
}

/// Replaces the status of an object as it was answered: for the API server half the work of a patch.
async fn replace_status(client: &Client, collection: &str, object: &Answer, status: Value) -> Result<Answer> {
    let collection = collection.split('?').next().unwrap_or_default();
    let uri = format!("{collection}/{}/status", object.object()?.metadata.name);
    let mut object: Value = serde_json::from_slice(&object.body)?;
    object["status"] = status;
    let answer = api::send(client, "PUT", &uri, JSON, object.to_string()).await?;
    answer.object().context("a status")?;
    Ok(answer)
}

/// Lists what an operator lists, at the same time as it does, and keeps nothing.
async fn bare_list(world: &World) -> Result<Duration> {
    let (client, begun) = (world.client(), Instant::now());
    let watched = api::watched(world.namespace(), &world.execution_namespace());
    futures::future::try_join_all(watched.iter().map(|collection| collection.list_bare(&client))).await?;
    Ok(begun.elapsed())
}

/// Measures starts, memory and idle time at each number of executions.
pub(crate) async fn past(bench: &mut Bench, counts: &[usize], starts: usize, idle: Duration) -> Result<()> {
    let world = bench.worlds.past.clone();
    let mut there = 0;
    for count in counts.iter().copied() {
        let begun = Instant::now();
        fill(bench, &world, there, count).await?;
        bench.say(&format!("{count} executions are there ({:.0}/s)", per_second(count - there, begun.elapsed())));
        there = count;
        for _ in 0..starts {
            start(bench, &world, count).await?;
        }
        if count > 0 {
            rest(bench, &world, count, idle).await?;
        }
    }
    let results = &mut bench.results;
    let empty = results.get("memory/resident/0").map(super::results::Measure::median).unwrap_or_default();
    for count in counts.iter().copied().filter(|count| *count > 0) {
        let full = results.get(&format!("memory/resident/{count}")).map(super::results::Measure::median);
        let each = (full.unwrap_or_default() - empty) * 1e6 / float(count);
        results.add(&format!("memory/each/{count}"), "bytes per execution", each);
    }
    Ok(())
}

/// Starts an operator beside a bare list of the same, and reads its memory.
async fn start(bench: &mut Bench, world: &World, count: usize) -> Result<()> {
    let listed = bare_list(world).await?;
    let before = Counters::read(&bench.client).await?;
    let mut operator = Operator::spawn(world, &bench.subjects.program, None).await?;
    let begun = Instant::now();
    operator.await_ready().await?;
    let ready = begun.elapsed();
    tokio::time::sleep(SETTLE).await;
    let writes: f64 = before
        .since(&bench.client)
        .await?
        .requests
        .iter()
        .filter(|(request, _)| ["pipelineruns", "workflowexecutions", "events"].iter().any(|it| request.contains(it)))
        .filter(|(request, _)| ["create", "patch", "update", "delete"].iter().any(|it| request.starts_with(it)))
        .fold(0.0, |all, (_, times)| all + times);
    let resident = resident_bytes(operator.pid())? / 1e6;
    operator.stop().await?;
    let results = &mut bench.results;
    let ratio = ready.as_secs_f64() / listed.as_secs_f64();
    results.add(&format!("start/ratio/{count}"), "times a bare list", ratio);
    results.add(&format!("start/ready_ms/{count}"), "ms", millis(ready));
    results.add(&format!("start/list_ms/{count}"), "ms", millis(listed));
    results.add(&format!("start/writes/{count}"), "writes", writes);
    results.add(&format!("memory/resident/{count}"), "MB", resident);
    bench.say(&format!(
        "start with {count}: ready after {:.2} s, a bare list takes {:.2} s, {ratio:.2} times; {resident:.0} MB; {writes} writes",
        ready.as_secs_f64(),
        listed.as_secs_f64()
    ));
    Ok(())
}

/// Leaves an operator that leads by election alone, and sees what it uses.
async fn rest(bench: &mut Bench, world: &World, count: usize, idle: Duration) -> Result<()> {
    let mut operator = Operator::spawn_replica(world, &bench.subjects.program).await?;
    operator.await_ready().await?;
    tokio::time::sleep(SETTLE).await;
    let (cpu, begun) = (cpu_seconds(operator.pid())?, Instant::now());
    tokio::time::sleep(idle).await;
    let used = (cpu_seconds(operator.pid())? - cpu) / begun.elapsed().as_secs_f64() * 100.0;
    operator.stop().await?;
    bench.results.add(&format!("idle/cpu/{count}"), "% of a core", used);
    bench.say(&format!("idle with {count}: {used:.2}% of a core"));
    Ok(())
}
