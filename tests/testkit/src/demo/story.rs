//! The story and its claims: what must have happened for the demo to end well.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::figures::Figures;
use super::follow::{Follower, Statuses, phase};
use super::operator::Operator;
use super::screen::{Screen, Tone};
use super::stage::{EXECUTION_NAMESPACE, NAMESPACE, Stage};
use crate::manifests;

/// How long a decision may take. A decision takes milliseconds, but the machine may be busy.
const DECIDED_WITHIN: Duration = Duration::from_secs(30);
/// How long a workflow may take with simulated pods: two tasks of half a second each.
const PLAYED_WITHIN: Duration = Duration::from_mins(2);
/// How long a workflow may take with real pods that pull their image.
const RUN_WITHIN: Duration = Duration::from_mins(10);
/// How long the last counter may take. The operator increments it after the change of phase that the demo observes.
const COUNTED_WITHIN: Duration = Duration::from_secs(10);

/// Plays the story.
pub(super) async fn tell(screen: &Screen, stage: &Stage, operator: &Operator) -> Result<()> {
    let before = operator.figures().await?;
    let mut follower = Follower::begin(screen, stage).await?;

    screen.title("One workflow, through real Tekton")?;
    one_workflow(screen, stage, &mut follower).await?;

    screen.title("Ten alerts for one node, at the same moment")?;
    ten_at_once(screen, stage, &mut follower).await?;

    screen.title(&format!("$ kubectl get wfe --namespace {NAMESPACE}"))?;
    let table = stage.kubectl(&["get", "wfe", "--namespace", NAMESPACE]).await?;
    screen.plain(&table)?;
    for (word, times) in [("Completed", 2), ("Skipped", 9), ("ResourceBusy", 9)] {
        let seen = table.lines().filter(|line| line.contains(word)).count();
        ensure!(seen == times, "kubectl shows {word} {seen} times, not {times}");
    }

    screen.title("Metrics that moved")?;
    let after = await_counts(operator, &before).await?;
    for change in after.changes(&before) {
        screen.plain(&change)?;
    }
    screen.plain("")?;
    Ok(())
}

/// Act one: an execution changes from no phase to Running and then to Completed.
async fn one_workflow(screen: &Screen, stage: &Stage, follower: &mut Follower<'_>) -> Result<()> {
    let sample = stage.sample("payment-restart.yaml")?;
    let [object] = sample.as_slice() else { bail!("config/samples/payment-restart.yaml holds not one object") };
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let spec = |pointer: &str| object["spec"].pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let asks = format!("{} on {}", spec("/workflowRef/workflowId"), spec("/targetResource"));
    screen.line(&name, "created", Tone::Plain, &asks)?;
    stage.create_all(&sample).await?;

    let within = if stage.pods_obey() { PLAYED_WITHIN } else { RUN_WITHIN };
    let ended = |status: &Value| matches!(phase(status), "Completed" | "Failed" | "Skipped");
    follower.until(&format!("{name} ends"), within, |seen| seen.get(&name).is_some_and(ended)).await?;
    let status = &follower.statuses[&name];
    ensure!(phase(status) == "Completed", "{name} ended {}, not Completed: {status}", phase(status));
    let run = runs_of(stage, std::slice::from_ref(&name)).await?;
    let [run] = run.as_slice() else { bail!("{} PipelineRuns were made for {name}, not one", run.len()) };
    ensure!(
        status["pipelineRunRef"]["name"].as_str() == run.metadata.name.as_deref(),
        "{name} names another PipelineRun than the one that ran: {status}"
    );
    let succeeded = run.data.pointer("/status/conditions/0/status").and_then(Value::as_str);
    ensure!(succeeded == Some("True"), "Tekton does not say that the run succeeded: {}", run.data["status"]);
    Ok(())
}

/// Act two: one execution runs, and nine are skipped because the target is busy.
async fn ten_at_once(screen: &Screen, stage: &Stage, follower: &mut Follower<'_>) -> Result<()> {
    let sample = stage.sample("disk-pressure-storm.yaml")?;
    let names: Vec<String> =
        sample.iter().filter_map(|object| object["metadata"]["name"].as_str()).map(str::to_owned).collect();
    ensure!(names.len() == 10, "config/samples/disk-pressure-storm.yaml holds {} objects, not ten", names.len());
    let asks = "node-disk-cleanup on node/worker-node-1, ten times";
    screen.line("disk-pressure-*", "created", Tone::Plain, asks)?;
    stage.create_all(&sample).await?;

    let count = |seen: &Statuses, wanted: &str| {
        names.iter().filter(|name| seen.get(*name).is_some_and(|status| phase(status) == wanted)).count()
    };
    let decided = |seen: &Statuses| count(seen, "") == 0 && names.iter().all(|name| seen.contains_key(name));
    follower.until("all ten are decided", DECIDED_WITHIN, decided).await?;
    ensure!(count(&follower.statuses, "Skipped") == 9, "not nine of the ten were skipped");
    let holder = names.iter().find(|name| phase(&follower.statuses[*name]) != "Skipped").context("none of ten runs")?;

    for name in names.iter().filter(|name| *name != holder) {
        let status = &follower.statuses[name];
        let details = &status["skipDetails"];
        ensure!(details["reason"] == "ResourceBusy", "{name} was skipped for another reason: {details}");
        ensure!(details["conflictingWorkflow"]["name"] == **holder, "{name} names another rival: {details}");
        ensure!(details["message"].as_str().is_some_and(|text| text.contains(holder.as_str())), "{name}: {details}");
        ensure!(status.get("pipelineRunRef").is_none(), "{name} was skipped and has a PipelineRun: {status}");
    }
    screen.note("one runs, nine are Skipped; each of the nine says, in status.skipDetails.message:")?;
    let skipped = names.iter().find(|name| *name != holder).map(|name| &follower.statuses[name]["skipDetails"]);
    for part in skipped.and_then(|details| details["message"].as_str()).unwrap_or_default().split_inclusive("; ") {
        screen.note(&format!("  {}", part.trim_end()))?;
    }

    if stage.pods_obey() {
        let run = follower.statuses[holder]["pipelineRunRef"]["name"].as_str().unwrap_or_default().to_owned();
        let pod = let_go(stage, &run).await?;
        screen.note(&format!("all are decided: pod {pod} may end"))?;
    }
    let within = if stage.pods_obey() { PLAYED_WITHIN } else { RUN_WITHIN };
    let ended = |seen: &Statuses| count(seen, "Running") == 0;
    follower.until(&format!("{holder} ends"), within, ended).await?;
    let status = &follower.statuses[holder];
    ensure!(phase(status) == "Completed", "{holder} ended {}, not Completed: {status}", phase(status));
    let runs = runs_of(stage, &names).await?.len();
    ensure!(runs == 1, "{runs} PipelineRuns are there for the ten, not one");
    Ok(())
}

/// Lists the runs that belong to these executions.
async fn runs_of(stage: &Stage, names: &[String]) -> Result<Vec<DynamicObject>> {
    let resource = manifests::resource("tekton.dev/v1", "PipelineRun");
    let api: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), EXECUTION_NAMESPACE, &resource);
    let executions = stage.executions().list(&ListParams::default()).await?;
    let asked = |object: &&DynamicObject| object.metadata.name.as_ref().is_some_and(|name| names.contains(name));
    let uids: Vec<&str> =
        executions.items.iter().filter(asked).filter_map(|object| object.metadata.uid.as_deref()).collect();
    let owner = |run: &DynamicObject| {
        run.metadata.annotations.as_ref().and_then(|all| all.get("kubernaut.ai/workflow-execution-uid").cloned())
    };
    let runs = api.list(&ListParams::default()).await?.items.into_iter();
    Ok(runs.filter(|run| owner(run).is_some_and(|uid| uids.contains(&uid.as_str()))).collect())
}

/// Lets the pod of a run succeed as soon as the pod exists.
async fn let_go(stage: &Stage, run: &str) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), EXECUTION_NAMESPACE);
    let of_run = ListParams::default().labels(&format!("tekton.dev/pipelineRun={run}"));
    let find = async {
        loop {
            if let Some(name) = pods.list(&of_run).await?.items.into_iter().find_map(|pod| pod.metadata.name) {
                return anyhow::Ok(name);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let name = tokio::time::timeout(PLAYED_WITHIN, find)
        .await
        .with_context(|| format!("Tekton made no pod for {run} within {PLAYED_WITHIN:?}"))??;
    let patch = json!({"metadata": {"annotations": {"test.kubernaut.ai/outcome": "ok"}}});
    pods.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(name)
}

/// Waits until the counters match the story, and returns the counters.
async fn await_counts(operator: &Operator, before: &Figures) -> Result<Figures> {
    const EXPECTED: [(&str, f64); 5] = [
        ("workflowexecution_total{outcome=\"Completed\"}", 2.0),
        ("workflowexecution_total{outcome=\"Failed\"}", 0.0),
        ("workflowexecution_total{outcome=\"Skipped\"}", 9.0),
        ("workflowexecution_skip_total{reason=\"ResourceBusy\"}", 9.0),
        ("workflowexecution_pipelinerun_creation_total", 2.0),
    ];
    let deadline = tokio::time::Instant::now() + COUNTED_WITHIN;
    loop {
        let figures = operator.figures().await?;
        let wrong = EXPECTED.iter().find(|(series, by)| (figures.moved(before, series) - by).abs() > 0.5);
        match wrong {
            None => return Ok(figures),
            Some((series, by)) if tokio::time::Instant::now() > deadline => {
                bail!("{series} moved by {}, not by {by}", figures.moved(before, series));
            }
            Some(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
