//! The files in `deploy/gitops`, and the effects of GitOps tools on a cluster:
//! - the health of both kinds by the Lua scripts for Argo CD and the expressions for Flux;
//! - the fields that a person's commands write in a schedule that a tool owns.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use cel::{Context, Program, Value as Cel};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use mlua::{Lua, LuaSerdeExt as _};
use serde_json::{Value, json};
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{Outcome, Pipeline, World, manifests, repository, wfe};

use crate::schedules::{await_held, await_schedule};

/// Returns the health status and message that the script for Argo CD computes.
fn argo_cd(kind: &str, object: &Value) -> Result<(String, String)> {
    let name = format!("deploy/gitops/argocd-health-{}.lua", kind.to_lowercase());
    let script = fs::read_to_string(repository().join(&name))?;
    let lua = Lua::new();
    let health = lua
        .to_value(object)
        .and_then(|object| lua.globals().set("obj", object))
        .and_then(|()| lua.load(&script).eval::<mlua::Table>())
        .and_then(|health| Ok((health.get("status")?, health.get("message")?)));
    health.map_err(|error| anyhow::anyhow!("{name}: {error}"))
}

/// Returns the first of Flux's expressions that is true for an object. If an expression cannot be evaluated, Flux
/// retries.
fn flux(kind: &str, object: &Value) -> Result<&'static str> {
    let path = repository().join("deploy/gitops/flux-health.yaml");
    let spec = manifests::read(&path)?.into_iter().next().context("an empty file")?;
    let checks = spec["healthCheckExprs"].as_array().context("no expressions")?;
    let check = checks.iter().find(|check| check["kind"] == kind).context("no expressions for this kind")?;
    let mut context = Context::default();
    for (field, value) in object.as_object().context("no object")? {
        context.add_variable(field.as_str(), value).map_err(|error| anyhow::anyhow!("{field}: {error}"))?;
    }
    for (name, found) in [("inProgress", "in progress"), ("failed", "failed"), ("current", "current")] {
        let Some(expression) = check[name].as_str() else { continue };
        let program = Program::compile(expression).map_err(|error| anyhow::anyhow!("{expression}: {error}"))?;
        match program.execute(&context) {
            Ok(Cel::Bool(true)) => return Ok(found),
            Ok(Cel::Bool(false)) => {}
            Ok(other) => anyhow::bail!("{expression} is {other:?}"),
            Err(_) => return Ok("unknown"),
        }
    }
    Ok("in progress")
}

#[test]
fn each_phase_of_an_execution_has_its_health() -> Result<()> {
    let failed = json!({"phase": "Failed", "summary": "Exit 1: restart", "failureDetails": {
        "naturalLanguageSummary": "Step restart failed.",
    }});
    for (status, argo_cd_says, message, flux_says) in [
        (json!({}), "Progressing", "no operator has decided on it", "unknown"),
        (json!({"phase": "Pending", "summary": "Paused"}), "Progressing", "Pending: Paused", "in progress"),
        (json!({"phase": "Running", "summary": ""}), "Progressing", "Running", "in progress"),
        (json!({"phase": "Completed", "summary": "took 1s"}), "Healthy", "Completed: took 1s", "current"),
        (json!({"phase": "Skipped", "summary": "ResourceBusy"}), "Healthy", "Skipped: ResourceBusy", "current"),
        (json!({"phase": "Failed"}), "Degraded", "Failed", "failed"),
        (failed, "Degraded", "Step restart failed.", "failed"),
    ] {
        let object = json!({"metadata": {"generation": 1}, "status": status});
        let health = argo_cd("WorkflowExecution", &object)?;
        assert_eq!((&*health.0, &*health.1), (argo_cd_says, message), "{status}");
        assert_eq!(flux("WorkflowExecution", &object)?, flux_says, "{status}");
    }
    let new = json!({"metadata": {"generation": 1}});
    assert_eq!(argo_cd("WorkflowExecution", &new)?.0, "Progressing");
    assert_eq!(flux("WorkflowExecution", &new)?, "unknown");
    Ok(())
}

#[test]
fn each_condition_of_a_schedule_has_its_health() -> Result<()> {
    let one = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "why"});
    let ready = || one("Ready", "True", "Usable");
    for (conditions, argo_cd_says, message, flux_says) in [
        (json!([ready()]), "Healthy", "runs next at 2026-01-02T03:04:05Z", "current"),
        (
            json!([ready(), one("Held", "False", "WouldBeHeld")]),
            "Healthy",
            "runs next at 2026-01-02T03:04:05Z",
            "current",
        ),
        (json!([one("Held", "True", "ResourceBusy"), ready()]), "Healthy", "ResourceBusy: why", "current"),
        (json!([ready(), one("Held", "True", "CircuitOpen")]), "Healthy", "CircuitOpen: why", "current"),
        (json!([ready(), one("Held", "True", "Suspended")]), "Suspended", "Suspended: why", "current"),
        (json!([ready(), one("Held", "True", "TriagePaused")]), "Degraded", "TriagePaused: why", "current"),
        (
            json!([ready(), one("Held", "True", "PreviousExecutionFailed")]),
            "Degraded",
            "PreviousExecutionFailed: why",
            "current",
        ),
        (json!([ready(), one("Held", "True", "ExhaustedRetries")]), "Degraded", "ExhaustedRetries: why", "current"),
        (json!([one("Ready", "False", "InvalidSpec")]), "Degraded", "why", "failed"),
        (json!([]), "Progressing", "the operator has not read this version of it", "in progress"),
    ] {
        let status = json!({"observedGeneration": 3, "nextRunTime": "2026-01-02T03:04:05Z", "conditions": conditions});
        let object = json!({"metadata": {"generation": 3}, "status": status});
        let health = argo_cd("WorkflowSchedule", &object)?;
        assert_eq!((&*health.0, &*health.1), (argo_cd_says, message), "{conditions}");
        assert_eq!(flux("WorkflowSchedule", &object)?, flux_says, "{conditions}");
        let edited = json!({"metadata": {"generation": 4}, "status": object["status"]});
        assert_eq!(argo_cd("WorkflowSchedule", &edited)?.0, "Progressing", "{conditions}");
        assert_eq!(flux("WorkflowSchedule", &edited)?, "in progress", "{conditions}");
    }
    assert_eq!(argo_cd("WorkflowSchedule", &json!({"metadata": {"generation": 1}}))?.0, "Progressing");
    Ok(())
}

/// Applies a manifest as Argo CD does: server-side, without force.
async fn sync(schedules: &Api<DynamicObject>, manifest: &Value) -> Result<DynamicObject> {
    let params = PatchParams::apply("argocd-controller");
    Ok(schedules.patch("hourly", &params, &Patch::Apply(manifest)).await?)
}

/// Returns the fields of the spec that a manager owns.
fn owned(object: &DynamicObject, manager: &str) -> BTreeSet<String> {
    let entries = object.metadata.managed_fields.iter().flatten();
    let entries = entries.filter(|entry| entry.manager.as_deref() == Some(manager) && entry.subresource.is_none());
    let fields = entries.filter_map(|entry| entry.fields_v1.as_ref()?.0.get("f:spec")?.as_object().cloned());
    fields.flat_map(|spec| spec.into_iter().map(|(field, _)| field.replacen("f:", "", 1))).collect()
}

/// Argo CD owns a schedule whose manifest has no `suspend`, while a person uses the plugin's commands.
#[tokio::test]
async fn what_a_person_sets_outlives_the_next_sync() -> Result<()> {
    let world = World::new("gitops").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let _operator = world.operator().start().await?;
    let editor = world.person("editor", &["wfe-edit"], None).await?;
    let schedules: Api<DynamicObject> = world.api(&wfe::schedules(), world.namespace());
    let manifest = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "WorkflowSchedule", "metadata": {"name": "hourly"},
        "spec": {"interval": "1h", "minInterval": "1s", "template": {"spec": {
            "targetResource": "node/worker",
            "workflowRef": {"workflowId": "short", "version": "1.0", "containerImage": bundle},
        }}},
    });
    sync(&schedules, &manifest).await?;
    let planned = await_schedule(&world, "hourly", "is planned", |it| it["status"]["nextRunTime"].is_string()).await?;
    assert_eq!(argo_cd("WorkflowSchedule", &planned)?.0, "Healthy", "{planned:#}");
    assert_eq!(flux("WorkflowSchedule", &planned)?, "current", "{planned:#}");

    for (words, fields) in
        [(&["suspend"][..], &["suspend"][..]), (&["resume"], &["suspend"]), (&["run"], &["hint", "suspend"])]
    {
        let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
        command.arg("schedule").args(words).args(["hourly", "--namespace", world.namespace()]);
        command.env("KUBECONFIG", &editor);
        let said = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
        ensure!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        let before = schedules.get("hourly").await?;
        assert_eq!(owned(&before, "kubectl-wfe"), fields.iter().map(ToString::to_string).collect(), "{words:?}");
        let after = sync(&schedules, &manifest).await?;
        assert_eq!(after.data["spec"], before.data["spec"], "{words:?}");
        if words == ["suspend"] {
            let held = await_held(&world, "hourly", "Suspended").await?;
            assert_eq!(argo_cd("WorkflowSchedule", &held)?.0, "Suspended", "{held:#}");
        }
    }
    world.close().await
}

/// The operator itself writes the statuses in this test.
#[tokio::test]
async fn executions_have_their_health_while_an_operator_decides() -> Result<()> {
    let world = World::new("gitops-health").await?;
    let short = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    let held = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    let _operator = world.operator().start().await?;
    for (name, target, bundle, phase, argo_cd_says, flux_says) in [
        ("completes", "node/a", &short, "Completed", "Healthy", "current"),
        ("is-skipped", "node/a", &short, "Skipped", "Healthy", "current"),
        ("fails", "node/b", &broken, "Failed", "Degraded", "failed"),
        ("runs", "node/c", &held, "Running", "Progressing", "in progress"),
    ] {
        world.wfe(name).target(target).image(bundle).create().await?;
        let found = world.await_phase(name, phase).await?;
        assert_eq!(argo_cd("WorkflowExecution", &found)?.0, argo_cd_says, "{found:#}");
        assert_eq!(flux("WorkflowExecution", &found)?, flux_says, "{found:#}");
    }
    world.close().await
}
