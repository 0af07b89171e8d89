//! The commands that the documentation gives, as they stand there, on a control plane of its own: installed by Helm,
//! changed by hand and by Helm, and installed and removed by kustomize.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use wfe_testkit::{ControlPlane, Options, process, repository};

use crate::chart::{Helm, NAMESPACE, RELEASE};

/// Kinds of the whole cluster of which the release has objects.
const CLUSTER_WIDE: [(&str, &str, &str); 5] = [
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
];

#[tokio::test]
async fn the_commands_of_the_documentation_work_in_their_order() -> Result<()> {
    let control_plane = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
    let helm = Helm::on(&control_plane, "documented")?;
    let chart = repository().join("deploy/chart").to_string_lossy().into_owned();
    let release = |words: &[&str]| helm.try_run(&[words, &["--namespace", NAMESPACE, "--timeout", "2m"]].concat());
    let set = |value: &str| release(&["upgrade", RELEASE, &chart, "--reset-then-reuse-values", "--set", value]);
    let run = async |page: &str, heading: &str| run(&control_plane, &helm, page, heading).await;

    let (ok, said) = release(&["install", RELEASE, &chart, "--create-namespace"])?;
    ensure!(ok, "{said}");
    run("docs/configuration.md", "# Configuration").await?;
    run("docs/configuration.md", "### With Helm").await?;
    // The pause, and its end: while it lasts, no upgrade ends it by the way, and afterwards one goes through again.
    let pausing = commands("docs/configuration.md", "## Pausing")?;
    let [pause, go_on] = &pausing[..] else { anyhow::bail!("not two commands: {pausing:?}") };
    shell(&control_plane, &helm, pause).await?;
    let (ok, said) = set("config.paused=false")?;
    ensure!(!ok && said.contains("conflict"), "the upgrade does not stop: {said}");
    shell(&control_plane, &helm, go_on).await?;
    let (ok, said) = set("config.paused=false")?;
    ensure!(ok, "after the pause, the upgrade does not go through: {said}");
    run("deploy/README.md", "## Uninstall").await?;
    assert_eq!(left(&control_plane.client().await?).await?, Vec::<String>::new());

    shell(&control_plane, &helm, "kubectl apply --server-side -k config/default").await?;
    let removal = commands("deploy/README.md", "### With kustomize")?;
    let (all, parts) = removal.split_last().context("no command removes it")?;
    for command in parts {
        shell(&control_plane, &helm, command).await?;
    }
    let crds =
        ["workflowexecutions", "workflowschedules"].map(|it| format!("CustomResourceDefinition {it}.kubernaut.ai"));
    assert_eq!(left(&control_plane.client().await?).await?, crds, "as Helm keeps them");
    shell(&control_plane, &helm, all).await?;
    assert_eq!(left(&control_plane.client().await?).await?, Vec::<String>::new());
    Ok(())
}

/// Returns the commands of a page below a heading, up to the next one.
fn commands(page: &str, heading: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(repository().join(page))?;
    let (_, below) = text.split_once(&format!("{heading}\n")).with_context(|| format!("{page} has no {heading}"))?;
    let (mut commands, mut in_block) = (Vec::new(), false);
    for line in below.lines() {
        match line {
            "```sh" => in_block = true,
            "```" => in_block = false,
            _ if in_block => commands.push(line.to_owned()),
            _ if line.starts_with('#') => break,
            _ => {}
        }
    }
    ensure!(!commands.is_empty(), "{page} has no commands below {heading}");
    Ok(commands)
}

async fn run(control_plane: &ControlPlane, helm: &Helm, page: &str, heading: &str) -> Result<()> {
    for command in commands(page, heading)? {
        shell(control_plane, helm, &command).await.with_context(|| format!("{page}, {heading}"))?;
    }
    Ok(())
}

/// Runs a command as somebody does who stands in the checkout.
async fn shell(control_plane: &ControlPlane, helm: &Helm, line: &str) -> Result<()> {
    let folder = |program: &Path| program.parent().map(|it| it.display().to_string()).unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{}:{path}", folder(control_plane.kubectl_path()), folder(helm.program()));
    let mut command = process::command("bash")?;
    command.args(["-c", line]).current_dir(repository()).env("PATH", path).env("HOME", helm.home());
    command.env("KUBECONFIG", control_plane.kubeconfig());
    let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    ensure!(output.status.success(), "{line}\nends with {}: {said}", output.status);
    Ok(())
}

/// Returns what is there of ours in the whole cluster.
async fn left(client: &Client) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for (group, version, kind) in CLUSTER_WIDE {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let listed = Api::<DynamicObject>::all_with(client.clone(), &resource).list(&ListParams::default()).await?;
        let names = listed.items.into_iter().filter_map(|object| object.metadata.name);
        let ours = names.filter(|name| name.starts_with("wfe-") || name.ends_with("kubernaut.ai"));
        left.extend(ours.map(|name| format!("{kind} {name}")));
    }
    Ok(left)
}
