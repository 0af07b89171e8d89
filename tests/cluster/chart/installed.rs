//! The chart under the real Helm on a separate control plane: installed, upgraded and uninstalled. The operator runs as
//! the chart's Deployment specifies.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::TimeDelta;
use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{ControlPlane, Operator, Options, Outcome, Pipeline, World, look, manifests};

use super::{Helm, NAMESPACE, RELEASE, chart, dry_run, owners, people};
use crate::admission::marks;
use crate::admission::objects::says;
use crate::history::past::{Past, past};
use crate::kubectl_wfe::doctor;

const EXECUTION_NAMESPACE: &str = "kubernaut-workflows";
const GONE_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test]
async fn the_operator_runs_as_it_is_installed_and_what_it_did_outlives_it() -> Result<()> {
    let control_plane = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
    let helm = Helm::on(&control_plane, "installed")?;
    let package = helm.package()?;
    let on_release = |words: &[&str]| {
        let usual = ["--namespace", NAMESPACE, "--wait", "--timeout", "2m"];
        helm.run(&[words, &usual].concat())
    };

    doctor::finds_nothing_before(&control_plane).await?;
    let notes = on_release(&["install", RELEASE, &older_chart(&helm)?, "--create-namespace"])?;
    for command in [
        "rollout status deployment/wfe-operator",
        "helm test wfe-operator --namespace kubernaut-system",
        "--serviceaccount kubernaut-workflows:kubernaut-workflow-runner",
        "kubectl get workflowexecutions --all-namespaces",
    ] {
        ensure!(notes.contains(command), "{notes}");
    }
    let short_names = async || {
        let crd = ["get", "crd", "workflowexecutions.kubernaut.ai", "--output", "jsonpath={.spec.names.shortNames}"];
        control_plane.kubectl(&crd).await
    };
    ensure!(!notes.contains("no Tekton"), "{notes}");
    assert_eq!(short_names().await?, "", "the older CRD");
    let values = ["upgrade", RELEASE, &package, "--set", "podMonitor.enabled=true"];
    let (ok, refusal) = helm.try_run(&[&values[..], &["--namespace", NAMESPACE]].concat())?;
    ensure!(!ok && refusal.contains("podMonitor.enabled: needs the Prometheus operator"), "{refusal}");
    on_release(&["upgrade", RELEASE, &package, "--set-json", "config.cooldown-period=0"])?;
    assert_eq!(short_names().await?, r#"["wfe"]"#, "the CRD after the upgrade");

    let manifest = manifests::parse(&helm.run(&["get", "manifest", RELEASE, "--namespace", NAMESPACE])?)?;
    let deployment = manifest.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    let world = World::on(&control_plane, "deployed").await?;
    past(&world, "broken", "node/n", "other", 1, TimeDelta::hours(1), Past::Ran).await?;
    let operator = Operator::deployed(&control_plane, deployment).await?;
    a_workflow_completes_twice(&world).await?;
    doctor::finds_no_error(&control_plane).await?;
    owners::helm_test_finds_no_error(&helm, &world).await?;
    owners::a_second_manager_finds_no_conflict_and_no_difference(&world, &manifest).await?;
    owners::the_api_server_accepts_every_object_of_the_fullest_values(&helm, &world).await?;
    people::each_role_gives_what_its_name_says(&world).await?;
    dry_run::the_policies_refuse(&world).await?;
    // Each upgrade is expensive for the API server, so one upgrade sets several values that do not affect each other.
    let upgrade = |values: &[&str]| on_release(&[&["upgrade", RELEASE, &package, "--reuse-values"], values].concat());
    let on_call = r#"oncall=[{"kind": "Group", "name": "sre"}]"#;
    upgrade(&["--set-json", on_call, "--set", "rbac.aggregateEdit=true,admissionPolicies.dryRun=true"])?;
    people::the_people_on_call_read_and_change_nothing(&world).await?;
    people::edit_is_aggregated(&world, true).await?;
    dry_run::the_policies_warn(&world).await?;
    upgrade(&["--set", "rbac.aggregateEdit=false,admissionPolicies.dryRun=false"])?;
    people::edit_is_aggregated(&world, false).await?;
    dry_run::the_policies_refuse(&world).await?;
    a_mark_is_kept_from_an_administrator_of_the_namespace(&world).await?;
    no_pod_of_a_workflow_gets_at_its_node(&world).await?;
    let endless = world.push_pipeline("held", &Pipeline::new().task("apply", Outcome::Hold)).await?;
    for name in ["runs-on", "runs-on-too"] {
        world.wfe(name).target(&format!("node/{name}")).image(&endless).create().await?;
        world.await_phase(name, "Running").await?;
    }
    let broken = world.push_pipeline("broken", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    world.wfe("blocks").target("node/blocks").image(&broken).create().await?;
    world.await_wfe("blocks", "blocks its target", blocks).await?;
    ensure!(operator.terminate().await?.success(), "it was terminated and did not end well");
    world.wfe("undecided").target("node/undecided").create().await?;

    on_release(&["uninstall", RELEASE])?;
    what_stays_is_what_was_kept(&world, &manifest).await?;
    let gone = async |what: &[&str]| control_plane.kubectl(&[&["delete", "--timeout=1m"], what].concat()).await;
    gone(&["workflowexecution", "runs-on", "--namespace", world.namespace()]).await?;
    // A new installation takes over the objects that were kept.
    on_release(&["install", RELEASE, &package])?;
    assert_eq!(world.get_wfe("first").await?["status"]["phase"], "Completed");
    // Everything is deleted while no operator runs. There are executions in several phases, and their runs.
    on_release(&["uninstall", RELEASE])?;
    gone(&["crd", "workflowexecutions.kubernaut.ai", "workflowschedules.kubernaut.ai"]).await?;
    gone(&["namespace", EXECUTION_NAMESPACE, NAMESPACE, world.namespace()]).await?;
    world.close().await
}

fn blocks(wfe: &Value) -> bool {
    let conditions = wfe["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Blocked" && one["status"] == "True")
}

/// Builds the chart of an earlier version, whose CRD lacks a part.
fn older_chart(helm: &Helm) -> Result<String> {
    let older = helm.dir.join("older");
    copy(Path::new(&chart()), &older)?;
    let change = |file: &str, from: &str, to: &str| -> Result<()> {
        let text = fs::read_to_string(older.join(file))?;
        ensure!(text.contains(from), "no {from:?} in {file}");
        Ok(fs::write(older.join(file), text.replace(from, to))?)
    };
    change("Chart.yaml", concat!("\nversion: ", env!("CARGO_PKG_VERSION")), "\nversion: 0.0.1")?;
    change("files/crds/kubernaut.ai_workflowexecutions.yaml", "    shortNames:\n    - wfe\n", "")?;
    Ok(older.to_string_lossy().into_owned())
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// The second execution completes because the release's `ConfigMap` sets no cooldown.
async fn a_workflow_completes_twice(world: &World) -> Result<()> {
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    for name in ["first", "again"] {
        world.wfe(name).image(&bundle).create().await?;
        let wfe = world.await_terminal(name).await?;
        ensure!(wfe["status"]["phase"] == "Completed", "{wfe:#}");
        assert_eq!(wfe["status"]["pipelineRunRef"]["namespace"], EXECUTION_NAMESPACE);
    }
    let runs = world.api(&look::pipeline_runs(), EXECUTION_NAMESPACE).list(&ListParams::default()).await?;
    assert_eq!(runs.items.len(), 2);
    for run in runs {
        let account = &run.data["spec"]["taskRunTemplate"]["serviceAccountName"];
        assert_eq!(account, "kubernaut-workflow-runner");
    }
    Ok(())
}

/// An administrator of the execution namespace may write everything there by RBAC. Tekton and the operator have written
/// their labels and annotations.
async fn a_mark_is_kept_from_an_administrator_of_the_namespace(world: &World) -> Result<()> {
    let client = world.client();
    let admin = marks::As { client: &client, user: "runs-admin", namespace: EXECUTION_NAMESPACE };
    marks::give(&client, EXECUTION_NAMESPACE, "admin", &[admin.user]).await?;
    for resource in [look::pipeline_runs(), look::pods()] {
        let listed = world.api(&resource, EXECUTION_NAMESPACE).list(&ListParams::default()).await?;
        let one = listed.items.into_iter().next().context("nothing ran")?;
        let label = "kubernaut.ai/workflow-execution";
        ensure!(one.metadata.labels.iter().flatten().any(|(key, _)| key == label), "{:#?}", one.metadata);
        let name = one.metadata.name.context("no name")?;
        let patch = |label: &str| json!({"metadata": {"labels": {label: null}}});
        let may_patch = async || admin.patch(&resource, &name, false, patch("team")).await;
        ask_until(GONE_WITHIN, "the role of the administrator is in force", may_patch, Option::is_none).await?;
        let words = format!("runs-admin may not set, change or remove {label} in namespace {EXECUTION_NAMESPACE}");
        let refusal = admin.patch(&resource, &name, false, patch(label)).await?;
        ensure!(says(&words)(&refusal), "{refusal:?}");
    }
    Ok(())
}

async fn no_pod_of_a_workflow_gets_at_its_node(world: &World) -> Result<()> {
    let pod = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "escapes"}, "spec": {
            "containers": [{"name": "main", "image": "registry.example/x:1", "securityContext": {"privileged": true}}],
        },
    }))?;
    let answer = world.api(&look::pods(), EXECUTION_NAMESPACE).create(&PostParams::default(), &pod).await;
    people::refused("violates PodSecurity \"baseline:latest\"", answer)
}

/// Only those objects of the release remain that have the annotation `keep`. None of them is being deleted. No pods and
/// no executions remain.
async fn what_stays_is_what_was_kept(world: &World, manifest: &[Value]) -> Result<()> {
    let mut kept = Vec::new();
    for object in manifest {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
        let resource = manifests::resource(text("/apiVersion"), kind);
        let api: Api<DynamicObject> = match namespace {
            "" => Api::all_with(world.client(), &resource),
            _ => world.api(&resource, namespace),
        };
        let found = api.get_opt(name).await?;
        let keep = object["metadata"]["annotations"]["helm.sh/resource-policy"] == json!("keep");
        assert_eq!(found.is_some(), keep, "{kind} {namespace} {name} is there");
        if let Some(found) = found {
            assert_eq!(found.metadata.deletion_timestamp, None, "{kind} {namespace} {name}");
            kept.push(format!("{kind} {name}"));
        }
    }
    kept.sort();
    let expected = [
        "CustomResourceDefinition workflowexecutions.kubernaut.ai",
        "CustomResourceDefinition workflowschedules.kubernaut.ai",
        "Namespace kubernaut-workflows",
        "ServiceAccount kubernaut-workflow-runner",
    ];
    assert_eq!(kept, expected);
    let pods = world.api(&look::pods(), NAMESPACE);
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let left = pods.list(&ListParams::default()).await?.items;
        if left.is_empty() {
            break;
        }
        ensure!(Instant::now() < deadline, "pods are left of the release: {left:#?}");
        tokio::time::sleep(PAUSE).await;
    }
    for wfe in world.wfes().await? {
        assert_eq!(wfe["metadata"]["deletionTimestamp"], Value::Null, "{wfe:#}");
    }
    assert_eq!(world.get_wfe("first").await?["status"]["phase"], "Completed");
    Ok(())
}
