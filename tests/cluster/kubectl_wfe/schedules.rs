//! `kubectl wfe schedule` for people with the shipped roles, together with a real operator.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{Proxy, When, World, wfe};

use super::{Caller, guard_resumes, has, said};
use crate::expect::text;
use crate::history::short;
use crate::schedules::{await_children, await_held, await_outcome, await_schedule, create};

/// The role of a person who may read, run, suspend and resume schedules.
const EDITOR: &str = "wfe-edit";

/// A person with a kubeconfig, who works in the namespace of a world.
struct Person<'w> {
    world: &'w World,
    kubeconfig: PathBuf,
}

impl<'w> Person<'w> {
    async fn new(world: &'w World, name: &str, roles: &[&str]) -> Result<Self> {
        Ok(Self { world, kubeconfig: world.person(name, roles, None).await? })
    }

    /// Runs `kubectl wfe schedule`, which must end with this exit code. Returns the output.
    async fn says(&self, code: i32, words: &[&str]) -> Result<String> {
        let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
        command.arg("schedule").args(words).args(["--namespace", self.world.namespace()]);
        command.env("KUBECONFIG", &self.kubeconfig);
        said(command, code).await
    }
}

#[tokio::test]
async fn a_run_that_is_asked_for_comes_at_once_and_is_shown() -> Result<()> {
    let world = World::new("plugin-run").await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    let (editor, viewer) =
        (Person::new(&world, "editor", &[EDITOR]).await?, Person::new(&world, "viewer", &["wfe-view"]).await?);
    has(&viewer.says(0, &["list"]).await?, &["There is no WorkflowSchedule in ", world.namespace()]);
    create(&world, "weekly", "node/worker", &bundle, &json!({"interval": "168h", "minInterval": "1s"})).await?;
    await_schedule(&world, "weekly", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;

    has(
        &viewer.says(2, &["run", "weekly"]).await?,
        &["cannot patch resource", "ask for the rights of the ClusterRole"],
    );
    has(&editor.says(0, &["run", "weekly", "--reason", "asked at night"]).await?, &["is asked to run now: at "]);
    let done = await_outcome(&world, "weekly", "Completed").await?;
    assert_eq!(done["spec"]["hint"]["reason"], "asked at night", "{done:#}");
    await_children(&world, "weekly", 1).await?;
    let listed = viewer.says(0, &["list"]).await?;
    has(&listed, &["NAME", "weekly", "168h", "Completed", "in 6d23h", "runs"]);
    let wide = viewer.says(0, &["list", "-o", "wide"]).await?;
    has(&wide, &["NAME", "weekly", "168h", "Completed", text(&done["status"]["nextRunTime"])]);
    let rows: Value = serde_json::from_str(&viewer.says(0, &["list", "-o", "json"]).await?)?;
    let rows = &rows["items"];
    assert_eq!((&rows[0]["name"], &rows[0]["last"]), (&json!("weekly"), &json!("Completed")), "{rows:#}");
    has(&editor.says(2, &["run", "daily"]).await?, &["there is no WorkflowSchedule daily", "kubectl get wfs"]);
    world.close().await
}

#[tokio::test]
async fn what_is_suspended_is_shown_and_resumed() -> Result<()> {
    let world = World::new("plugin-suspend").await?;
    let bundle = short(&world).await?;
    let _operator = world.operator().start().await?;
    let editor = Person::new(&world, "editor", &[EDITOR]).await?;
    let explainer = Caller::new(&world, "explainer", &["wfe-explain"]).await?;
    create(&world, "hourly", "node/worker", &bundle, &json!({"interval": "1h", "minInterval": "1s"})).await?;
    await_schedule(&world, "hourly", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    has(&explainer.says(0, &["schedule", "explain", "hourly"]).await?, &["runs next at", "Interval"]);

    has(&editor.says(0, &["suspend", "hourly"]).await?, &["is suspended: nothing new runs"]);
    await_held(&world, "hourly", "Suspended").await?;
    has(&editor.says(0, &["suspend", "hourly"]).await?, &["is suspended already; nothing was written"]);
    has(&editor.says(1, &["run", "hourly"]).await?, &["a hint does not lift that", "schedule resume hourly"]);
    has(&editor.says(0, &["list"]).await?, &["hourly", "Suspended"]);
    has(&explainer.says(1, &["schedule", "explain", "hourly"]).await?, &["Suspended", "spec.suspend is true"]);
    await_children(&world, "hourly", 0).await?;

    has(&editor.says(0, &["resume", "hourly"]).await?, &["is resumed: its plan begins anew"]);
    let resumed =
        await_schedule(&world, "hourly", "is planned again", |it| it["status"]["nextRunTime"].is_string()).await?;
    let told = explainer.says(0, &["schedule", "explain", "hourly", "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&told)?;
    assert_eq!(told["held"], Value::Null, "{told:#}");
    assert_eq!(told["slots"][0]["utc"], resumed["status"]["nextRunTime"], "{told:#}");
    world.close().await
}

/// No operator runs, so the status stays as the test has written it.
#[tokio::test]
async fn what_a_triage_has_paused_is_resumed_with_a_reason_and_by_who_may() -> Result<()> {
    let world = World::new("plugin-resume").await?;
    let spec = json!({"interval": "1h", "suspend": true});
    let target = format!("{}/deployment/api", world.namespace());
    create(&world, "sick", &target, "registry.invalid/w:1", &spec).await?;
    let triage = json!({
        "of": "sick-1767323045", "at": "2026-01-02T03:04:05Z", "analyst": "BuiltIn", "state": "Paused",
        "verdict": "PauseAndNotify", "why": "each run broke\u{1b}[2J",
    });
    let schedules: Api<DynamicObject> = world.api(&wfe::schedules(), world.namespace());
    let status = Patch::Merge(json!({"status": {"triage": triage}}));
    schedules.patch_status("sick", &PatchParams::default(), &status).await?;
    guard_resumes(&world, "sick").await?;
    let viewer = Person::new(&world, "viewer", &["wfe-view"]).await?;
    let sre = Person::new(&world, "sre", &["wfe-view", "wfe-clear"]).await?;

    has(&sre.says(0, &["list", "-o", "wide"]).await?, &["TRIAGE", "Paused"]);
    let asks = sre.says(2, &["resume", "sick"]).await?;
    has(&asks, &["sick-1767323045 has paused it: each run broke\\u{1b}[2J", "add --reason"]);
    let refused = viewer.says(2, &["resume", "sick", "--reason", "it is fine"]).await?;
    has(&refused, &["was not changed", "cannot patch resource", "the ClusterRole wfe-edit or wfe-clear gives"]);
    let found = serde_json::to_value(schedules.get("sick").await?)?;
    assert!(found["spec"]["suspend"] == true && found["spec"]["resume"].is_null(), "{found:#}");

    let resumed = sre.says(0, &["resume", "sick", "--reason", "the disk was replaced"]).await?;
    has(&resumed, &["is resumed as ", "The pause by the triage of sick-1767323045 is lifted."]);
    let found = serde_json::to_value(schedules.get("sick").await?)?;
    let resume =
        json!({"triage": "sick-1767323045", "reason": "the disk was replaced", "resumedBy": world.user("sre")});
    assert_eq!((&found["spec"]["suspend"], &found["spec"]["resume"]), (&json!(false), &resume), "{found:#}");
    has(&sre.says(0, &["resume", "sick"]).await?, &["is resumed already, and no operator has recorded that yet"]);
    world.close().await
}

/// A file is explained before the schedule is created, together with existing schedules.
#[tokio::test]
async fn a_file_is_explained() -> Result<()> {
    let world = World::new("plugin-file").await?;
    let bundle = short(&world).await?;
    let explainer = Caller::new(&world, "explainer", &["wfe-explain"]).await?;
    let schedule = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule",
        "metadata": {"name": "nightly", "namespace": world.namespace()},
        "spec": {"cron": "0 2 * * *", "timeZone": "Europe/Berlin", "template": {"spec": {
            "targetResource": "node/worker",
            "workflowRef": {"workflowId": "nightly", "version": "1.0.0", "containerImage": bundle},
        }}},
    });
    let path = world.control_plane().dir().join("worlds").join(world.namespace()).join("nightly.json");
    let file = path.to_string_lossy().into_owned();
    std::fs::write(&path, schedule.to_string())?;
    has(&explainer.says(0, &["schedule", "explain", "-f", &file]).await?, &["nightly", "Cron", "02:00"]);
    let mut bad = schedule;
    bad["spec"]["cron"] = json!("0 2 31 2 *");
    std::fs::write(&path, bad.to_string())?;
    has(&explainer.says(1, &["schedule", "explain", "-f", &file]).await?, &["its spec cannot be used", "cron"]);
    std::fs::write(&path, "kind: Pod")?;
    has(&explainer.says(2, &["schedule", "explain", "-f", &file]).await?, &["WorkflowSchedule"]);
    world.close().await
}

/// The tool writes nothing if the schedule has changed since the tool read it.
#[tokio::test]
async fn a_change_in_between_is_told_and_nothing_is_written() -> Result<()> {
    let world = World::new("plugin-conflict").await?;
    create(&world, "shared", "node/worker", "registry.invalid/w:1", &json!({"interval": "1h"})).await?;
    let first = Person::new(&world, "first", &[EDITOR]).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let late = Person { world: &world, kubeconfig: world.person_at("first", &proxy.url()).await? };
    let mut gate = proxy.hold(When::Before, |request| request.what() == "patch workflowschedules");
    let meanwhile = async {
        gate.reached().await.context("the patch of the second")?;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
        let schedules: Api<DynamicObject> = world.api(&wfe::schedules(), world.namespace());
        schedules.patch("shared", &PatchParams::default(), &patch).await?;
        gate.open();
        anyhow::Ok(())
    };
    let (told, changed) = tokio::join!(late.says(2, &["suspend", "shared"]), meanwhile);
    changed?;
    has(&told?, &["was not changed", "it has changed since it was read; try again"]);
    let still = await_schedule(&world, "shared", "is there", |_| true).await?;
    assert!(!still["spec"]["suspend"].as_bool().unwrap_or_default(), "{still:#}");
    has(&first.says(0, &["suspend", "shared"]).await?, &["is suspended"]);
    world.close().await
}
