//! The analysts in `config/samples`, which run their own scripts, and an analyst that never ends (section 13.3).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::process::Command;
use wfe_testkit::{Outcome, Pipeline, World, is_terminal, look, manifests, repository};

use super::triage::{analysed, analyst, await_triage};
use super::{await_failures, await_schedule, create, hurry, wait_after_end};
use crate::audited::audited;
use crate::expect::{condition, text};
use crate::faults::all;

/// A replacement for curl that simulates a model: it stores the request, and returns the answer from a file. Like a
/// program that posts data, it reads all of its input.
const CURL: &str = r#"#!/bin/sh
set -eu
here=$(dirname "$0")
printf '%s\n' "$@" > "$here/asked"
cat > "$here/body"
while [ $# -gt 0 ]; do
    if [ "$1" = --output ]; then cp "$here/answer" "$2"; fi
    shift
done
"#;

/// An analyst from the samples, and a directory for running its script.
struct Sample {
    pipeline: Value,
    place: PathBuf,
}

impl Sample {
    /// Reads a sample. The analyst's pod is held until the test has run the script.
    fn read(world: &World, file: &str) -> Result<Self> {
        let mut objects = manifests::read(&repository().join("config/samples").join(file))?;
        let mut pipeline = objects.pop().filter(|_| objects.is_empty()).with_context(|| format!("{file}: not one"))?;
        let spec = &pipeline["spec"];
        let params = spec["params"].as_array().context("no params")?;
        let required: Vec<&str> =
            params.iter().filter(|it| it["default"].is_null()).map(|it| text(&it["name"])).collect();
        ensure!(required == ["EVIDENCE"], "{file}: the operator passes EVIDENCE alone, not {required:?}");
        ensure!(spec["results"].as_array().is_some_and(|all| all.len() == 1 && all[0]["name"] == "verdict"), "{file}");
        let outcome = pipeline
            .pointer_mut("/spec/tasks/0/taskSpec/metadata/annotations/test.kubernaut.ai~1outcome")
            .with_context(|| format!("{file} does not say how its task ends where nothing runs it"))?;
        *outcome = json!(Outcome::Hold.annotation());
        let place = world.control_plane().dir().join(format!("{}-{file}", world.namespace()));
        fs::create_dir_all(&place)?;
        Ok(Self { pipeline, place })
    }

    async fn push(&self, world: &World, name: &str) -> Result<String> {
        Ok(world.push_objects(name, std::slice::from_ref(&self.pipeline)).await?.image)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Sets the answer that the model gives.
    fn answers(&self, answer: &str) -> Result<()> {
        fs::write(self.file("answer"), answer)?;
        fs::write(self.file("curl"), CURL)?;
        fs::set_permissions(self.file("curl"), fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Runs the script of the analyst's step with this evidence, as Tekton would. Returns the exit code and the result.
    async fn run(&self, evidence: &str) -> Result<(i32, String)> {
        let step = &self.pipeline["spec"]["tasks"][0]["taskSpec"]["steps"][0];
        let verdict = self.file("verdict");
        fs::write(&verdict, "")?;
        let script = text(&step["script"]).replace("$(results.verdict.path)", &verdict.to_string_lossy());
        // The script names a path in the file system of its container.
        let script = script.replace("/tmp/answer", &self.file("answered").to_string_lossy());
        ensure!(!script.contains("$(params."), "text of others would be part of the program");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).kill_on_drop(true);
        for variable in step["env"].as_array().into_iter().flatten() {
            command.env(text(&variable["name"]), self.value(text(&variable["value"]), evidence)?);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.place.display()));
        let output = command.output().await?;
        let code = output.status.code().with_context(|| format!("{output:?}"))?;
        Ok((code, fs::read_to_string(&verdict)?))
    }

    /// Replaces `$(params.NAME)` by the parameter's value, as Tekton would.
    fn value(&self, value: &str, evidence: &str) -> Result<String> {
        let name = value.strip_prefix("$(params.").and_then(|rest| rest.strip_suffix(')')).context("no parameter")?;
        if name == "EVIDENCE" {
            return Ok(evidence.to_owned());
        }
        let params = self.pipeline["spec"]["params"].as_array().into_iter().flatten();
        let default = params.filter(|it| it["name"] == *name).map(|it| text(&it["default"]).to_owned()).next();
        default.with_context(|| format!("no parameter {name}"))
    }

    /// Waits for the analyst of a schedule, runs the script with the analyst's evidence, and ends the pod with the
    /// script's result. Returns the evidence.
    async fn plays(&self, world: &World, schedule: &str) -> Result<Value> {
        let named = |it: &Value| it["status"]["triage"]["run"]["name"].is_string();
        let analysing = await_schedule(world, schedule, "names its analyst", named).await?;
        let run = text(&analysing["status"]["triage"]["run"]["name"]);
        let analyst = world.await_wfe(run, "is there", |_| true).await?;
        let evidence = text(&analyst["spec"]["parameters"]["EVIDENCE"]).to_owned();
        let (code, verdict) = self.run(&evidence).await?;
        let runs = |pod: &Value| {
            pod["metadata"]["labels"]["kubernaut.ai/workflow-execution"] == *run && pod["status"]["phase"] == "Running"
        };
        let pod = world.await_pod("of the analyst runs", runs).await?;
        let outcome = if code == 0 { Outcome::Ok } else { Outcome::Exit(u8::try_from(code)?) };
        let said = json!([{"key": "verdict", "value": verdict, "type": 1}]).to_string();
        let annotations = json!({"test.kubernaut.ai/outcome": outcome.annotation(), "test.kubernaut.ai/message": said});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let pods = world.api(&look::pods(), &world.execution_namespace());
        pods.patch(text(&pod["metadata"]["name"]), &PatchParams::default(), &patch).await?;
        Ok(serde_json::from_str(&evidence)?)
    }
}

/// Returns the arguments of the request to the model, and its body.
fn asked(place: &Path) -> Result<(Vec<String>, Value)> {
    let words = fs::read_to_string(place.join("asked"))?;
    let body = serde_json::from_str(&fs::read_to_string(place.join("body"))?)?;
    Ok((words.lines().map(str::to_owned).collect(), body))
}

#[tokio::test]
async fn the_verdict_of_a_model_is_read_by_the_shipped_pipeline_validated_and_applied() -> Result<()> {
    let world = World::new("model").await?;
    let recording = world.record_all().await?;
    let sample = Sample::read(&world, "pipeline-triage-llm.yaml")?;
    let image = sample.push(&world, "llm").await?;
    let bundle = world.push_pipeline("exit-1", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let _operator = world.operator().start().await?;
    let good = json!({"verdict": "FileFix", "why": "the model says so", "fix": "ask the owner", "confidence": 0.9});
    let long = json!({"verdict": "PauseAndNotify", "why": "x".repeat(4000)});
    let talked_into = json!({"verdict": "AdjustConfig", "why": "told to", "adjust": {"parameters": {"LEVEL": "9"}}});
    for (name, answer, state, said) in [
        ("files", good.to_string(), "Filed", "ask the owner"),
        ("chats", "Certainly! Here is the verdict.".to_owned(), "Failed", "is no JSON"),
        // Tekton would truncate this answer, so the script refuses it.
        ("babbles", long.to_string(), "Failed", "ended without a verdict"),
        ("obeys", talked_into.to_string(), "Noted", "parameters.LEVEL: is not in"),
    ] {
        sample.answers(&answer)?;
        analysed(&world, name, &bundle, &image, &json!({})).await?;
        hurry(&world, name).await?;
        let evidence = sample.plays(&world, name).await?;
        let found = await_triage(&world, name, state).await.with_context(|| name.to_owned())?;
        let (status, triage) = (&found["status"], &found["status"]["triage"]);
        assert!(triage.to_string().contains(said), "{name}: {triage:#}");
        assert_eq!((&status["adjust"], condition(&found, "Held").starts_with("True")), (&Value::Null, false), "{name}");

        let (words, body) = asked(&sample.place)?;
        let endpoint = "https://analyst.example/verdict";
        assert!(words.iter().any(|word| word == endpoint) && words.iter().any(|word| word == "--fail"), "{words:?}");
        assert_eq!(body, evidence, "the evidence is what is posted");
        assert_eq!(evidence["subject"], format!("{}/{name}", world.namespace()), "{evidence:#}");
    }
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn the_shipped_script_reads_exit_codes_and_adjusts_what_its_schedule_lists() -> Result<()> {
    let world = World::new("script").await?;
    let recording = world.record_all().await?;
    let sample = Sample::read(&world, "pipeline-triage-shell.yaml")?;
    let image = sample.push(&world, "shell").await?;
    // The schedule in the sample. The test changes only its plan and its workflow.
    let path = repository().join("config/samples/nightly-disk-cleanup-triage.yaml");
    let shipped = manifests::read(&path)?.pop().context("no schedule")?;
    let _operator = world.operator().start().await?;
    for (name, code, state, said) in [
        ("full", 4, "Adjusted", "more of its disk than the threshold allows"),
        ("dead", 3, "Paused", "the disk of the node does not answer"),
        ("other", 1, "Noted", "of no kind that this analyst knows"),
    ] {
        let pipeline = Pipeline::new().param("DISK_THRESHOLD").task("clean", Outcome::Exit(code));
        let bundle = world.push_pipeline(name, &pipeline).await?;
        let mut spec = json!({"interval": "1h", "minInterval": "1s"});
        (spec["triage"], spec["template"]) = (shipped["spec"]["triage"].clone(), shipped["spec"]["template"].clone());
        spec["triage"]["after"] = json!(1);
        spec["triage"]["workflowRef"]["containerImage"] = json!(image);
        spec["template"]["spec"]["workflowRef"]["containerImage"] = json!(bundle);
        spec["template"]["spec"]["targetResource"] = json!(format!("node/{name}"));
        create(&world, name, "node/unused", &bundle, &spec).await?;
        hurry(&world, name).await?;
        let evidence = sample.plays(&world, name).await?;
        assert_eq!(evidence["failures"][0]["exitCode"], code, "{evidence:#}");
        let found = await_triage(&world, name, state).await.with_context(|| name.to_owned())?;
        let (status, triage) = (&found["status"], &found["status"]["triage"]);
        assert!(text(&triage["why"]).contains(said), "{name}: {triage:#}");
        let adjusted = if code == 4 { json!({"parameters": {"DISK_THRESHOLD": "95"}}) } else { Value::Null };
        assert_eq!(status["adjust"], adjusted, "{name}: {status:#}");
    }
    audited(&world, recording).await?;
    world.close().await
}

#[tokio::test]
async fn an_analyst_that_hangs_is_ended_in_time_and_its_schedule_backs_off_meanwhile() -> Result<()> {
    if !all() {
        return Ok(()); // the time-out is a minute at least
    }
    let world = World::new("hung-analyst").await?;
    let recording = world.record_all().await?;
    let bundle = world.push_pipeline("unpullable", &Pipeline::new().task("apply", Outcome::ImagePull)).await?;
    let image = analyst(&world, "hangs", Some(r#"{"verdict":"PauseAndNotify","why":"so"}"#), Outcome::Hold).await?;
    let operator = world.operator().start().await?;
    analysed(&world, "hangs", &bundle, &image, &json!({"timeout": "1m"})).await?;
    hurry(&world, "hangs").await?;
    let named = |it: &Value| it["status"]["triage"]["run"]["name"].is_string();
    let analysing = await_schedule(&world, "hangs", "names its analyst", named).await?;
    assert_eq!(wait_after_end(&analysing)?, TimeDelta::hours(2), "{analysing:#}");
    let run = text(&analysing["status"]["triage"]["run"]["name"]);
    world.await_running_step().await?;
    // The schedule does not wait for the analyst. While the analyst hangs, the next failure counts.
    hurry(&world, "hangs").await?;
    let second = await_failures(&world, "hangs", 2).await?;
    assert_eq!(
        (wait_after_end(&second)?, &second["status"]["triage"]["state"]),
        (TimeDelta::hours(4), &json!("Analysing"))
    );

    let ended = world.await_wfe_within(std::time::Duration::from_mins(3), run, "has ended", is_terminal).await?;
    assert_eq!(ended["status"]["failureDetails"]["reason"], "DeadlineExceeded", "{ended:#}");
    assert_eq!(condition(&ended, "Blocked"), condition(&ended, "absent"), "{ended:#}");
    let failed = await_triage(&world, "hangs", "Failed").await?;
    let why = text(&failed["status"]["triage"]["why"]);
    assert!(why.contains("ended without a verdict"), "{why}");
    let event = world.await_event("hangs", "Triaged").await?;
    assert_eq!(event["type"], "Warning", "{event:#}");
    let labels = [("analyst", "Pipeline"), ("state", "Failed")];
    operator.await_metrics("it is counted", |it| it.value("workflow_triage_total", &labels) >= 1.0).await?;
    // This was the only triage of the failure, and the only one within the cooldown.
    hurry(&world, "hangs").await?;
    let third = await_failures(&world, "hangs", 3).await?;
    assert_eq!(wait_after_end(&third)?, TimeDelta::hours(8), "{third:#}");
    assert_eq!(third["status"]["triage"], failed["status"]["triage"], "one shot");
    audited(&world, recording).await?;
    world.close().await
}
