//! Other programs that work on a release: a second manager with server-side apply, such as Argo CD or Flux, and the pod
//! of `helm test`.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{World, look, manifests, repository};

use super::{Helm, NAMESPACE, RELEASE, chart};
use crate::kubectl_wfe::doctor;

const MADE_WITHIN: Duration = Duration::from_secs(30);

/// Checks that another manager can apply the objects that Helm has installed, without force and without a change.
pub(super) async fn a_second_manager_finds_no_conflict_and_no_difference(
    world: &World,
    manifest: &[Value],
) -> Result<()> {
    let plain = |object: DynamicObject| -> Result<Value> {
        let mut object = serde_json::to_value(object)?;
        object["status"] = Value::Null;
        for changing in ["managedFields", "resourceVersion"] {
            object["metadata"][changing] = Value::Null;
        }
        Ok(object)
    };
    for object in manifest {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let resource = manifests::resource(text("/apiVersion"), kind);
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            "" => Api::all_with(world.client(), &resource),
            namespace => world.api(&resource, namespace),
        };
        let before = plain(api.get(name).await?)?;
        let params = PatchParams::apply("argocd-controller").dry_run();
        let after = api.patch(name, &params, &Patch::Apply(object)).await.with_context(|| format!("{kind} {name}"))?;
        assert_eq!(plain(after)?, before, "{kind} {name}");
    }
    Ok(())
}

/// Checks that the API server accepts every object that the fullest set of values renders, without unknown fields.
/// Kinds of the Prometheus operator are left out, because they are not installed here.
pub(super) async fn the_api_server_accepts_every_object_of_the_fullest_values(
    helm: &Helm,
    world: &World,
) -> Result<()> {
    let values = repository().join("tests/golden/chart/everything.values.yaml").to_string_lossy().into_owned();
    let rendered =
        helm.run(&["template", RELEASE, &chart(), "--namespace", NAMESPACE, "--values", &values, "--skip-tests"])?;
    for namespace in ["remedy-runs", "payment"] {
        world.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
    }
    let mut params = PatchParams::apply("wfe-testkit").force().dry_run();
    params.field_validation = Some(ValidationDirective::Strict);
    for object in manifests::parse(&rendered)? {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        if version.starts_with("monitoring.coreos.com/") {
            continue;
        }
        let resource = manifests::resource(version, kind);
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            "" => Api::all_with(world.client(), &resource),
            namespace => world.api(&resource, namespace),
        };
        api.patch(name, &params, &Patch::Apply(&object)).await.with_context(|| format!("{kind} {name}"))?;
    }
    world.control_plane().kubectl(&["delete", "namespace", "remedy-runs", "payment", "--timeout=1m"]).await.map(drop)
}

/// Runs `helm test`. Pods do not run here, so the function does a kubelet's work: it runs the pod's command as the
/// pod's account, and ends the pod.
pub(super) async fn helm_test_finds_no_error(helm: &Helm, world: &World) -> Result<()> {
    let mut command =
        tokio::process::Command::from(helm.command(&["test", RELEASE, "--namespace", NAMESPACE, "--timeout", "2m"]));
    let testing = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
    let pods = world.api(&look::pods(), NAMESPACE);
    let ask = async || anyhow::Ok(pods.get_opt("wfe-operator-test").await?);
    let pod = ask_until(MADE_WITHIN, "helm test makes a pod", ask, Option::is_some).await?.context("no pod")?;
    let container = &pod.data["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["/kubectl-wfe"]));
    let mut words: Vec<String> = serde_json::from_value(container["args"].clone())?;
    let account = pod.data["spec"]["serviceAccountName"].as_str().context("no account")?;
    words.push(format!("--as=system:serviceaccount:{NAMESPACE}:{account}"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = doctor::asks(world.control_plane(), 0, &words).await?;
    for seen in [
        " replicas of the Deployment kubernaut-system/wfe-operator are ready\n",
        " leads\n",
        " are as they ship\n",
        "kubernaut-workflows enforces Pod Security: baseline\n",
        "not seen: what kubernaut-workflows/kubernaut-workflow-runner may do",
        "\n0 errors, ",
    ] {
        ensure!(said.contains(seen), "not {seen:?}: {said}");
    }
    let ends = json!({"metadata": {"annotations": {"test.kubernaut.ai/outcome": "ok"}}});
    pods.patch("wfe-operator-test", &PatchParams::default(), &Patch::Merge(&ends)).await?;
    let output = testing.wait_with_output().await?;
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    ensure!(output.status.success() && said.contains("Succeeded"), "{}: {said}", output.status);
    Ok(())
}
