//! What old executions cost: memory, starting time, and idle load with many ended executions and their runs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::Value;
use wfe_core::target::TargetName;
use wfe_testkit::World;

use crate::Bench;
use crate::api;
use crate::counters::Counters;
use crate::etcd::{self, Etcd};
use crate::numbers::{float, millis, per_second};
use crate::player::{self, Mode, Player};
use crate::subject::{Operator, cpu_seconds, resident_bytes};
use crate::template::{Names, Text};

/// The number of executions that one transaction writes to etcd, each with its run.
const BATCH: usize = etcd::AT_ONCE / 2;
/// How long an operator is left alone before its memory is measured. It has then freed what it allocated for its start.
const SETTLE: Duration = Duration::from_secs(3);
/// The execution that is copied.
const SAMPLE: &str = "sampled";

/// The values in etcd of an execution that an operator has completed, and of its run.
struct Sample {
    etcd: Etcd,
    names: Names,
    execution: Text,
    run: Text,
}

impl Sample {
    /// Lets an operator run one execution, and reads the execution and its run from etcd.
    async fn take(bench: &Bench, world: &World) -> Result<Self> {
        let etcd = world.control_plane().etcd().context("the past is written to etcd, which is not ours here")?;
        let etcd = Etcd::new(etcd)?;
        let operator = Operator::start(world, &bench.subjects.program, None).await?;
        let player = Player::start(world.client(), &world.execution_namespace(), Mode::Plain);
        player::execution(world, SAMPLE, &target(SAMPLE)).create().await?;
        let execution = world.await_phase(SAMPLE, "Completed").await?;
        let run = world.runs().await?.pop().context("no run")?;
        world.await_event(SAMPLE, "WorkflowCompleted").await?;
        operator.stop().await?;
        drop(player);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = Names {
            namespace: world.namespace().to_owned(),
            execution_namespace: world.execution_namespace(),
            wfe: SAMPLE.to_owned(),
            wfe_uid: text(&execution["metadata"]["uid"]),
            run: text(&run["metadata"]["name"]),
            run_uid: text(&run["metadata"]["uid"]),
            ..Names::default()
        };
        let [execution, run] = keys(&names);
        let (execution, run) = (etcd.get(&execution).await?, etcd.get(&run).await?);
        let (execution, run) = (Text::of(&execution, &names), Text::of(&run, &names));
        player::clear(world).await?;
        Ok(Self { etcd, names, execution, run })
    }

    /// Writes executions and their runs to etcd, from one number up to another. A hundred thousand would take half an
    /// hour through the API server.
    async fn copy(&self, from: usize, to: usize) -> Result<()> {
        for first in (from..to).step_by(BATCH) {
            let mut values = Vec::new();
            for number in first..to.min(first + BATCH) {
                let names = self.names_of(number)?;
                let [execution, run] = keys(&names);
                values.push((execution, self.execution.render(&names)));
                values.push((run, self.run.render(&names)));
            }
            self.etcd.create(values).await?;
        }
        Ok(())
    }

    fn names_of(&self, number: usize) -> Result<Names> {
        let wfe = format!("past-{number:06}");
        // The uids of the API server are random, so the uids of the copies are scattered too.
        let scattered = u32::try_from(number)?.wrapping_mul(0x9e37_79b9);
        Ok(Names {
            run: TargetName::parse(&target(&wfe))?.chain().run(1),
            wfe,
            wfe_uid: format!("{scattered:08x}-7a0e-4b9f-9a33-0000{number:08x}"),
            run_uid: format!("{scattered:08x}-7a0e-4b9f-9a33-0001{number:08x}"),
            ..self.names.clone()
        })
    }
}

fn target(name: &str) -> String {
    format!("node/{name}")
}

/// Returns the etcd keys of an execution and its run.
fn keys(names: &Names) -> [String; 2] {
    let Names { namespace, execution_namespace, wfe, run, .. } = names;
    [
        format!("/registry/{}/workflowexecutions/{namespace}/{wfe}", wfe_api::GROUP),
        format!("/registry/{}/{}/{execution_namespace}/{run}", wfe_tekton::GROUP, wfe_tekton::PLURAL),
    ]
}

/// Lists all collections that an operator lists, at the same time and without keeping the objects.
async fn bare_list(world: &World) -> Result<Duration> {
    let (client, begun) = (world.client(), Instant::now());
    let watched = api::watched(world.namespace(), &world.execution_namespace());
    futures::future::try_join_all(watched.iter().map(|collection| collection.list_bare(&client))).await?;
    Ok(begun.elapsed())
}

/// Measures starts, memory and idle load with each of these numbers of executions.
pub(crate) async fn past(bench: &mut Bench, counts: &[usize], starts: usize, idle: Duration) -> Result<()> {
    let world = bench.worlds.past.clone();
    let sample = Sample::take(bench, &world).await?;
    let mut there = 0;
    for count in counts.iter().copied() {
        let begun = Instant::now();
        sample.copy(there, count).await?;
        // After this list, the API server has the objects in its caches.
        bare_list(&world).await?;
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

/// Measures a bare list, and the start of an operator with the same objects. Then reads the operator's memory.
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

/// Lets an operator that leads by election idle, and measures its load.
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
