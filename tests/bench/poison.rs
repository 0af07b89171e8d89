//! How much one object of each kind of poison slows the other executions down. A cold start and a storm are measured
//! with and without the poison, in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use chrono::{SecondsFormat, TimeDelta, Utc};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wfe_core::target::TargetName;
use wfe_testkit::look::pipeline_runs;
use wfe_testkit::{World, wfe};

use crate::numbers::millis;
use crate::subject::{Kind, Operator};
use crate::{Bench, player, rounds};

/// The number of executions of the largest size. A page with all of them would have some six megabytes.
const LARGE: usize = 50;
/// The depth of the most deeply nested object. No JSON parser with a depth limit accepts the object.
const DEPTH: usize = 400;
/// A finalizer that the benchmark removes at the end of the round.
const FINALIZER: &str = "example.com/held";

/// Measures a cold start and a storm, both with and without the poison.
pub(crate) async fn poison(bench: &mut Bench, count: usize, pairs: usize) -> Result<()> {
    let world = Arc::clone(&bench.worlds.operator);
    for number in 0..pairs {
        let mut order = [false, true];
        if !number.is_multiple_of(2) {
            order.reverse();
        }
        let (mut starts, mut storms) = ([Duration::ZERO; 2], [Duration::ZERO; 2]);
        for is_poisoned in order {
            if is_poisoned {
                plant(&world).await.context("planting the poison")?;
            }
            let begun = Instant::now();
            let operator = Operator::start(&world, &bench.subjects.program, None).await?;
            starts[usize::from(is_poisoned)] = begun.elapsed();
            operator.stop().await?;
            let storm = rounds::one_storm(bench, &world, Kind::Operator, count).await;
            pull_up(&world).await?;
            storms[usize::from(is_poisoned)] = storm?.0;
        }
        for (name, [clean, poisoned]) in [("start", starts), ("storm", storms)] {
            let ratio = poisoned.as_secs_f64() / clean.as_secs_f64();
            bench.results.add(&format!("poison/{name}_ratio"), "times without", ratio);
            bench.say(&format!(
                "{name} beside poison {}/{pairs}: {:.0} ms, without {:.0} ms, ratio {ratio:.2}",
                number + 1,
                millis(poisoned),
                millis(clean)
            ));
        }
    }
    Ok(())
}

/// Creates one object of each kind of poison.
async fn plant(world: &World) -> Result<()> {
    let long_ago = Utc::now() - TimeDelta::days(3);
    // The parameters' names are so long that a message would overflow if names replaced the values in it.
    let names: Vec<String> = (0..5).map(|nth| format!("{}{nth}", "N".repeat(252))).collect();
    let parameters: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "0000"})).collect();
    let words = json!({
        "spec": {"params": parameters},
        "status": done(long_ago, "False", "TaskRunImagePullFailed", &"0".repeat(1000)),
    });
    run(world, "poison-words", words).await?;
    let held = json!({
        "metadata": {"finalizers": [FINALIZER]},
        "status": done(long_ago, "True", "Succeeded", "done"),
    });
    run(world, "poison-held", held).await?;
    let deep = (0..DEPTH).fold(json!("deep"), |inner, _| json!({"a": inner}));
    run(world, "poison-deep", json!({"spec": {"taskRunSpecs": [{"pipelineTaskName": "a", "metadata": deep}]}})).await?;
    for number in 0..LARGE {
        let name = format!("poison-large-{number}");
        let large = player::execution(world, &name, &format!("node/{name}")).patch(|wfe| {
            wfe["spec"]["parameters"] = (0..7).map(|nth| (format!("P{nth}"), json!("x".repeat(8000)))).collect();
            wfe["spec"]["rationale"] = json!("x".repeat(32_000));
        });
        large.create().await?;
        let over = json!({"phase": "Completed", "completionTime": time(long_ago)});
        status(world, &name, &json!({"phase": "Running", "startTime": time(long_ago)})).await?;
        status(world, &name, &over).await?;
    }
    Ok(())
}

/// Deletes all poison, including the objects with the finalizer.
async fn pull_up(world: &World) -> Result<()> {
    player::clear(world).await?;
    let runs = world.api(&pipeline_runs(), &world.execution_namespace());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for held in runs.list(&kube::api::ListParams::default()).await?.items {
        let name = held.metadata.name.unwrap_or_default();
        match runs.patch(&name, &PatchParams::default(), &free).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Creates the first run on a target, whose owner does not exist.
async fn run(world: &World, name: &str, more: Value) -> Result<()> {
    let target = TargetName::parse(&format!("node/{name}"))?;
    let run = target.chain().run(1);
    let mut object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {
            "name": run,
            "labels": {wfe_api::labels::LABEL_WORKFLOW_EXECUTION: name},
            "annotations": {
                wfe_api::labels::ANNOTATION_UID: "00000000-0000-4000-8000-000000000000",
                wfe_api::labels::ANNOTATION_WORKFLOW_EXECUTION: format!("{}/{name}", world.namespace()),
                wfe_api::labels::ANNOTATION_TARGET: target.as_str(),
            },
        },
        "spec": {"pipelineRef": {"name": "none"}},
    });
    for (part, fields) in more.as_object().into_iter().flatten().filter(|(part, _)| *part != "status") {
        for (key, value) in fields.as_object().into_iter().flatten() {
            object[part][key] = value.clone();
        }
    }
    let runs = world.api(&pipeline_runs(), &world.execution_namespace());
    runs.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    if let Some(status) = more.get("status") {
        runs.patch_status(&run, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    }
    Ok(())
}

async fn status(world: &World, name: &str, status: &Value) -> Result<()> {
    let executions = world.api(&wfe::resource(), world.namespace());
    executions.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    Ok(())
}

fn done(at: chrono::DateTime<Utc>, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "startTime": time(at), "completionTime": time(at),
        "conditions": [{"type": "Succeeded", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": time(at)}],
    })
}

fn time(at: chrono::DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
