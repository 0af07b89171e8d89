//! The basis of all other tests: the control plane starts, simulates pods, and leaves nothing behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use wfe_testkit::{Bundle, ControlPlane, Options, Outcome, Pipeline, World, WorldOptions, look};

async fn run_bundle(world: &World, name: &str, bundle: &Bundle) -> Result<()> {
    let run: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {"name": name},
        "spec": {
            "pipelineRef": {"resolver": "bundles", "params": [
                {"name": "bundle", "value": bundle.image},
                {"name": "name", "value": "workflow"},
                {"name": "kind", "value": "pipeline"},
            ]},
            "params": [{"name": "TARGET_RESOURCE", "value": "payment/deployment/api"}],
            "taskRunTemplate": {"serviceAccountName": "kubernaut-workflow-runner"},
        },
    }))?;
    world.api(&look::pipeline_runs(), &world.execution_namespace()).create(&PostParams::default(), &run).await?;
    Ok(())
}

async fn push(world: &World, name: &str, pipeline: &Pipeline) -> Result<Bundle> {
    world.push_objects(name, &[pipeline.render("workflow")]).await
}

fn condition(run: &Value) -> (Option<&str>, Option<&str>) {
    let condition = &run["status"]["conditions"][0];
    (condition["status"].as_str(), condition["reason"].as_str())
}

fn is_done(run: &Value, name: &str) -> bool {
    run["metadata"]["name"] == name && matches!(condition(run).0, Some("True" | "False"))
}

#[tokio::test]
async fn a_bundle_of_two_tasks_succeeds_on_tekton() -> Result<()> {
    let world = World::new("two-tasks").await?;
    let pipeline = Pipeline::new().task("check", Outcome::Ok).task("apply", Outcome::Ok).saying("applied");
    let bundle = push(&world, "two-tasks", &pipeline).await?;
    let recording = world.record().await?;
    let begun = Instant::now();
    run_bundle(&world, "ok", &bundle).await?;
    let run = world.await_run("ok is done", |run| is_done(run, "ok")).await?;
    println!("two tasks took {:?}", begun.elapsed());
    assert_eq!(condition(&run), (Some("True"), Some("Succeeded")), "{run:#}");
    assert_eq!(run["status"]["childReferences"].as_array().map(Vec::len), Some(2));
    let recorded = recording.stop().await?;
    assert!(recorded.len() >= 3 && recorded.iter().all(|one| one.kind == "PipelineRun"), "{}", recorded.len());
    assert_eq!(recorded.last().map(|last| &last.object), Some(&run));
    let creates = world.audit().await?;
    let creates = creates.iter().filter(|entry| entry.verb == "create" && entry.resource == "pipelineruns");
    assert_eq!(
        creates.map(|entry| (entry.user.as_str(), entry.name.as_str(), entry.code)).collect::<Vec<_>>(),
        [("admin", "ok", 201)]
    );
    world.close().await
}

#[tokio::test]
async fn pods_end_as_their_annotations_say() -> Result<()> {
    let world = World::new("outcomes").await?;
    for (name, outcome) in [("exit-1", Outcome::Exit(1)), ("oom", Outcome::Oom), ("image-pull", Outcome::ImagePull)] {
        let bundle = push(&world, name, &Pipeline::new().task("only", outcome)).await?;
        run_bundle(&world, name, &bundle).await?;
    }
    for name in ["exit-1", "oom", "image-pull"] {
        let run = world.await_run(&format!("{name} is done"), |run| is_done(run, name)).await?;
        assert_eq!(condition(&run), (Some("False"), Some("Failed")), "{run:#}");
    }
    world.close().await
}

#[tokio::test]
async fn a_held_pod_runs_until_its_outcome_is_set() -> Result<()> {
    let world = World::new("held").await?;
    let bundle = push(&world, "held", &Pipeline::new().task("only", Outcome::Hold).lasting("100ms")).await?;
    run_bundle(&world, "held", &bundle).await?;
    world.await_pod("runs", |pod| pod["status"]["phase"] == "Running").await?;
    assert_eq!(world.set_outcome("", "ok").await?, 1);
    let run = world.await_run("held is done", |run| is_done(run, "held")).await?;
    assert_eq!(condition(&run).1, Some("Succeeded"));
    world.close().await
}

#[tokio::test]
async fn a_component_can_be_stopped_and_started() -> Result<()> {
    let begun = Instant::now();
    let control_plane = ControlPlane::start(Options::BARE).await?;
    println!("a bare control plane took {:?}", begun.elapsed());
    let client = control_plane.client().await?;
    control_plane.component("kube-apiserver").kill().await?;
    ensure!(client.apiserver_version().await.is_err(), "a killed API server answers");
    control_plane.component("kube-apiserver").start().await?;
    client.apiserver_version().await?;
    let error = control_plane.component("kubelet").stop().await.expect_err("there is no kubelet");
    assert!(format!("{error:#}").contains("kube-apiserver"), "{error:#}");
    let nodes = control_plane.kubectl(&["get", "nodes", "-o", "name"]).await?;
    assert_eq!(nodes, "");
    Ok(())
}

#[tokio::test]
async fn tektons_webhook_judges() -> Result<()> {
    let options = Options { webhook: true, crd: false, ..Options::default() };
    let control_plane = ControlPlane::start(options).await?;
    let world = World::with(&control_plane, "webhook", WorldOptions::default()).await?;
    let bundle = push(&world, "webhook", &Pipeline::new().task("only", Outcome::Ok)).await?;
    run_bundle(&world, "webhook", &bundle).await?;
    let run = world.await_run("is done", |run| is_done(run, "webhook")).await?;
    assert_eq!(condition(&run).1, Some("Succeeded"));
    // Only Tekton's webhook sets these fields.
    assert!(run["metadata"]["annotations"].is_object() || run["spec"]["timeouts"].is_object(), "{run:#}");
    Ok(())
}

/// A helper process in the form of a test. It fails if the next test starts it.
#[tokio::test]
async fn failure() -> Result<()> {
    if std::env::var(ROLE).as_deref() != Ok("failure") {
        return Ok(());
    }
    let options = Options { crd: true, ..Options::BARE };
    let world = World::on(&ControlPlane::start(options).await?, "failure").await?;
    let what = "has a phase that it never gets";
    world.wfe("seen-in-the-dump").create().await?;
    world.await_wfe_within(Duration::from_secs(1), "seen-in-the-dump", what, |_| false).await?;
    Ok(())
}

#[tokio::test]
async fn a_failed_await_says_what_it_saw_and_prints_the_world() -> Result<()> {
    let output = tokio::process::Command::new(std::env::current_exe()?)
        .args(["--exact", "control_plane::failure", "--nocapture"])
        .env(ROLE, "failure")
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for part in [
        "awaited for 1s, in vain: WorkflowExecution seen-in-the-dump has a phase",
        "=== dump of failure-",
        "--- kubectl get workflowexecutions",
        "name: seen-in-the-dump",
        "=== end of the dump",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    Ok(())
}

/// A helper process in the form of a test, which the next test kills. If that test starts it, it runs for ever.
#[tokio::test]
async fn victim() -> Result<()> {
    if std::env::var(ROLE).as_deref() != Ok("victim") {
        return Ok(());
    }
    let control_plane = ControlPlane::start(Options::BARE).await?;
    let mut child = wfe_testkit::process::command("sleep")?.arg("1000").spawn()?;
    println!("victim {} {}", child.id(), control_plane.dir().display());
    child.wait().context("nobody killed the child")?;
    Ok(())
}

/// The variable that selects which of these helpers a process is.
const ROLE: &str = "WFE_TEST_ROLE";

#[tokio::test]
async fn a_killed_test_leaves_no_process_and_no_directory() -> Result<()> {
    let mut test = Command::new(std::env::current_exe()?)
        .args(["--exact", "control_plane::victim", "--nocapture"])
        .env(ROLE, "victim")
        .stdout(Stdio::piped())
        .spawn()?;
    let output = BufReader::new(test.stdout.take().context("no output")?);
    let words = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("victim ").map(|(_, words)| words.to_owned()))
        .context("the victim said nothing")?;
    let (child, dir) = words.split_once(' ').context("the victim said too little")?;
    let (child, dir) = (Path::new("/proc").join(child), Path::new(dir).to_owned());
    ensure!(child.exists() && dir.exists());
    let running = processes_of(&dir);
    ensure!(running.len() >= 3, "etcd, API server and controller-manager run: {running:?}");

    test.kill()?;
    test.wait()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while child.exists() || dir.exists() || !processes_of(&dir).is_empty() {
        ensure!(Instant::now() < deadline, "left behind: {:?} in {}", processes_of(&dir), dir.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_killed_supervisor_takes_the_components_with_it() -> Result<()> {
    let control_plane = ControlPlane::start(Options::BARE).await?;
    ensure!(processes_of(control_plane.dir()).len() >= 3);
    let supervisor = control_plane.supervisor_pid().context("a supervisor")?.to_string();
    ensure!(Command::new("kill").args(["-9", &supervisor]).status()?.success());
    let deadline = Instant::now() + Duration::from_secs(10);
    while !processes_of(control_plane.dir()).is_empty() {
        ensure!(Instant::now() < deadline, "left behind: {:?}", processes_of(control_plane.dir()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The killed supervisor could not remove the directory. A later start would do so.
    std::fs::remove_dir_all(control_plane.dir())?;
    Ok(())
}

/// Lists the processes whose command line contains the run directory.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.display().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&dir))
        .collect()
}
