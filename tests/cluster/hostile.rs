//! Hostile input: a bundle with our labels and annotations, and the most executions of the largest size that a user may
//! create (section 17).

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::{ControlPlane, Operator, Options, Outcome, Pipeline, World, look};

use crate::expect::{condition, text};
use crate::history::short;

/// Returns the forged labels and annotations of a bundle. They name another execution on another target, released long
/// ago and cancelled by the operator.
fn marks(victim: &Value) -> Value {
    let of = |field: &str| text(&victim["metadata"][field]).to_owned();
    json!({
        "kubernaut.ai/workflow-execution": "victim",
        "kubernaut.ai/workflow-execution-uid": of("uid"),
        "kubernaut.ai/workflow-id": "another",
        "kubernaut.ai/target-resource": "victim",
        "kubernaut.ai/source-namespace": of("namespace"),
        "kubernaut.ai/run-sequence": "999",
        "kubernaut.ai/cancel-reason": "DeadlineExceeded",
        "kubernaut.ai/released-at": "2020-01-01T00:00:00Z",
        "kubernaut.ai/cancelled-at": "2020-01-01T00:00:00Z",
        "kubernaut.ai/cancel-asked": "7",
        "app.kubernetes.io/managed-by": "somebody",
    })
}

/// The labels and annotations that the operator reads on the objects of a run.
const LABELS: [&str; 5] = ["workflow-execution", "workflow-id", "target-resource", "source-namespace", "run-sequence"];
const ANNOTATIONS: [&str; 8] = [
    "workflow-execution",
    "workflow-execution-uid",
    "workflow-id",
    "target-resource",
    "released-at",
    "cancel-reason",
    "cancelled-at",
    "cancel-asked",
];

#[tokio::test]
async fn a_bundle_that_carries_our_marks_passes_for_nothing_but_what_it_is() -> Result<()> {
    let world = World::new("marked").await?;
    let works = short(&world).await?;
    let _operator = world.operator().start().await?;
    let victim = world.wfe("victim").target("node/victim").image(&works).create().await?;
    let victim = serde_json::to_value(victim)?;
    world.await_phase("victim", "Completed").await?;

    let marks = marks(&victim);
    let carries = |object: &mut Value| {
        for field in ["labels", "annotations"] {
            let known = object[field].as_object().cloned().unwrap_or_default();
            let mut all = marks.as_object().cloned().unwrap_or_default();
            // A time is not a valid label value.
            all.retain(|_, value| field == "annotations" || !text(value).contains(':'));
            all.extend(known);
            object[field] = json!(all);
        }
    };
    let pipeline = Pipeline::new().task("apply", Outcome::Hold);
    let mut rendered = pipeline.patch(|task| carries(&mut task["taskSpec"]["metadata"])).render("workflow");
    carries(&mut rendered["metadata"]);
    let bundle = world.push_objects("marked", &[rendered]).await?;
    world.wfe("hostile").target("node/hostile").image(&bundle.image).create().await?;
    world.await_phase("hostile", "Running").await?;
    let is_its = |object: &Value| text(&object["metadata"]["name"]).starts_with("wfe-");
    let pod = world.await_pod("runs", |pod| is_its(pod) && pod["status"]["phase"] == "Running").await?;
    let run = world.await_run("is the hostile one's", |run| !run["status"]["completionTime"].is_string()).await?;
    for object in [&run, &pod] {
        for (field, keys) in [("labels", &LABELS[..]), ("annotations", &ANNOTATIONS)] {
            for key in keys.iter().map(|key| format!("kubernaut.ai/{key}")) {
                let (found, forged) = (&object["metadata"][field][&key], &marks[&key]);
                // Both executions are in the same namespace, so these values are equal.
                let is_same = key.ends_with("source-namespace");
                assert!(found.is_string() && (found != forged || is_same), "{field} {key} is {found} on {object:#}");
            }
        }
    }

    // While the hostile run is in progress, the target of the victim is free. The target of the hostile execution is
    // not.
    world.wfe("beside").target("node/victim").workflow("other").image(&works).create().await?;
    world.await_phase("beside", "Completed").await?;
    world.wfe("rival").target("node/hostile").workflow("other").image(&works).create().await?;
    let rival = world.await_terminal("rival").await?;
    assert_eq!(rival["status"]["skipDetails"]["reason"], "ResourceBusy", "{rival:#}");
    world.set_outcome(text(&pod["metadata"]["name"]), "ok").await?;
    world.await_phase("hostile", "Completed").await?;
    world.close().await
}

#[tokio::test]
async fn a_bundle_turns_no_persons_cancel_into_a_time_out() -> Result<()> {
    let world = World::new("forged-cancel").await?;
    let mut rendered = Pipeline::new().task("apply", Outcome::Waiting("ContainerCreating")).render("workflow");
    let forged = json!({"kubernaut.ai/cancel-reason": "DeadlineExceeded", "kubernaut.ai/foo": "x"});
    rendered["metadata"]["annotations"] = forged.clone();
    let bundle = world.push_objects("forged-cancel", &[rendered]).await?;
    let _operator = world.operator().start().await?;
    world.wfe("cancelled").image(&bundle.image).patch(|it| it["spec"]["retry"] = json!(3)).create().await?;
    world.await_pod("waits", |pod| pod["status"]["phase"] == "Pending").await?;
    let run = world.await_run("knows its pipeline", |run| run["status"]["pipelineSpec"].is_object()).await?;
    let annotations = &run["metadata"]["annotations"];
    assert_eq!(
        (&annotations["kubernaut.ai/cancel-reason"], &annotations["kubernaut.ai/foo"]),
        (&json!(""), &json!("x"))
    );
    let runs = world.api(&look::pipeline_runs(), &world.execution_namespace());
    let cancel = json!({"spec": {"status": "Cancelled"}});
    runs.patch(text(&run["metadata"]["name"]), &PatchParams::default(), &Patch::Merge(&cancel)).await?;
    let wfe = world.await_phase("cancelled", "Failed").await?;
    let shown = (condition(&wfe, "Succeeded"), condition(&wfe, "Retrying"));
    assert_eq!(shown, ("False Cancelled".to_owned(), "False Cancelled".to_owned()), "{wfe:#}");
    assert_eq!(wfe["status"]["attempts"].as_array().map(Vec::len), Some(1), "{wfe:#}");
    world.close().await
}

/// How many executions of the largest size the test creates.
const MANY: usize = 500;
const AT_ONCE: usize = 8;
/// The memory limit of the operator in the chart, in bytes.
const ALLOWED: u64 = 256 << 20;
const READY_WITHIN: Duration = Duration::from_mins(1);

/// Returns an execution of the largest size, with the characters that take the most bytes. It has its own target.
fn largest(world: &World, number: usize, image: &str) -> wfe_testkit::WfeBuilder {
    let wide = |count: usize| "\u{10348}".repeat(count);
    // All keys and values together have at most 65,536 characters, and each value at most 8,192. The eight keys here
    // have 6 characters each.
    let parameters: serde_json::Map<String, Value> =
        (0..8).map(|key| (format!("LARGE{key}"), json!(wide(8192 - 6)))).collect();
    let target = format!("{}/deployment/large-{number}", world.system_namespace());
    world.wfe(&format!("large-{number}")).target(&target).image(image).patch(move |it| {
        it["spec"]["parameters"] = json!(parameters);
        it["spec"]["rationale"] = json!(wide(32_768));
    })
}

fn resident(operator: &Operator) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", operator.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes << 10)
}

/// The operator can start and work with the number of largest executions that the quota in the docs allows in a
/// namespace. They are undecided, so the operator keeps their parameters in memory.
#[tokio::test]
async fn five_hundred_executions_of_the_largest_size_keep_nobody_waiting() -> Result<()> {
    if !crate::faults::all() {
        return Ok(());
    }
    // On the control plane that all tests share, each list of all namespaces would answer 200 MB more.
    let world = World::on(&ControlPlane::start(Options::default()).await?, "large").await?;
    let works = short(&world).await?;
    // During the pause, executions on targets in this namespace stay undecided.
    let annotations = json!({"metadata": {"annotations": {"kubernaut.ai/paused": "a test"}}});
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client());
    namespaces.patch(&world.system_namespace(), &PatchParams::default(), &Patch::Merge(&annotations)).await?;
    stream::iter((0..MANY).map(|number| largest(&world, number, &works)))
        .map(|wfe| async move { wfe.create().await.map(drop) })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    let begun = Instant::now();
    let operator = world.operator().start().await?;
    let took = begun.elapsed();
    let waits = |wfe: &Value| wfe["status"]["phase"] == "Pending";
    world.await_wfe(&format!("large-{}", MANY - 1), "is held back by the pause", waits).await?;
    let after = resident(&operator)?;
    // As a test of the long tier, it prints its measurements.
    println!("{MANY} largest executions: ready after {took:?}, {} MB resident", after >> 20);
    ensure!(took < READY_WITHIN, "ready after {took:?}");
    ensure!(after < ALLOWED, "{} MB are resident, of {} that the chart allows", after >> 20, ALLOWED >> 20);
    let small = Instant::now();
    world.wfe("small").target("node/small").image(&works).create().await?;
    world.await_phase("small", "Completed").await?;
    println!("another one took {:?} beside them", small.elapsed());
    world.close().await
}
