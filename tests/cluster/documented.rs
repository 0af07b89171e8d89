//! The documented commands, run exactly as written on separate control planes:
//! - Helm installs, and the configuration is changed by hand and by Helm;
//! - kustomize installs and removes;
//! - the README's steps for your own cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{
    ControlPlane, Options, Outcome, Pipeline, Terminal, World, bundle, look, manifests, process, repository,
};

use crate::chart::{Helm, NAMESPACE, RELEASE};
use crate::expect::condition;

/// The cluster-scoped kinds of which the release has objects.
const CLUSTER_WIDE: [(&str, &str, &str); 5] = [
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
];

/// How long the demo's samples may take with simulated pods.
const SEEN_WITHIN: Duration = Duration::from_mins(1);
/// How long it may take until the Lease of a killed operator expires, a Deployment is deleted, or the demo ends.
const FREE_WITHIN: Duration = Duration::from_mins(3);

#[tokio::test]
async fn the_commands_of_the_documentation_work_in_their_order() -> Result<()> {
    let control_plane = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
    let helm = Helm::on(&control_plane, "documented")?;
    let reader = Reader::new(&control_plane, helm.home(), helm.program())?;
    let chart = repository().join("deploy/chart").to_string_lossy().into_owned();
    let release = |words: &[&str]| helm.try_run(&[words, &["--namespace", NAMESPACE, "--timeout", "2m"]].concat());
    let set = |value: &str| release(&["upgrade", RELEASE, &chart, "--reset-then-reuse-values", "--set", value]);
    let run = async |page: &str, heading: &str| reader.run(&commands(page, heading)?).await.context(heading.to_owned());
    let blocks = blocks("deploy/README.md")?;
    // No container engine is available here, so the test does not build and push the image.
    let [_image, install, kustomize, oncall, bind, upgrade, uninstall, remove, parts, all] = &blocks[..] else {
        bail!("deploy/README.md has {} blocks of commands; play the new ones here", blocks.len())
    };

    reader.run(install).await?;
    the_demo_says_why_it_does_not_play(&reader).await?;
    reader.run(oncall).await?;
    run("docs/configuration.md", "# Configuration").await?;
    run("docs/configuration.md", "### With Helm").await?;
    // A pause, and its end. During the pause, an upgrade must fail instead of ending the pause as a side effect.
    // Afterwards it succeeds again.
    let pausing = commands("docs/configuration.md", "## Pausing")?;
    let [pause, go_on] = &pausing[..] else { bail!("not two commands: {pausing:?}") };
    reader.shell(pause).await?;
    let (ok, said) = set("config.paused=false")?;
    ensure!(!ok && said.contains("conflict"), "the upgrade does not stop: {said}");
    reader.shell(go_on).await?;
    let (ok, said) = set("config.paused=false")?;
    ensure!(ok, "after the pause, the upgrade does not go through: {said}");
    reader.run(upgrade).await?;
    reader.run(uninstall).await?;
    the_demo_plays_beside_what_helm_keeps(&reader).await?;
    // The demo has installed the operator with kustomize, and leaves it installed.
    reader.run(parts).await?;
    reader.run(remove).await?;
    assert_eq!(left(&control_plane.client().await?).await?, Vec::<String>::new());

    reader.run(kustomize).await?;
    reader.run(bind).await?;
    reader.shell("kubectl delete clusterrolebinding wfe-oncall").await?;
    reader.run(parts).await?;
    let crds =
        ["workflowexecutions", "workflowschedules"].map(|it| format!("CustomResourceDefinition {it}.kubernaut.ai"));
    assert_eq!(left(&control_plane.client().await?).await?, crds, "as Helm keeps them");
    reader.run(all).await?;
    assert_eq!(left(&control_plane.client().await?).await?, Vec::<String>::new());
    Ok(())
}

/// Runs each block of the README's section about your own cluster, as an administrator whose `~/.kube/config` names the
/// cluster.
#[tokio::test]
async fn the_readme_leads_onto_ones_own_cluster() -> Result<()> {
    let blocks = blocks("README.md")?;
    let [first_minute, operator, plugin, samples, demos] = &blocks[..] else {
        bail!("README.md has {} blocks of commands; play the new ones here", blocks.len())
    };
    let control_plane = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let mut reader = Reader::new(&control_plane, &home, control_plane.kubectl_path())?;

    reader.run(first_minute).await?;

    let (run, before) = operator.split_last().context("no command")?;
    reader.run(before).await?;
    let log = home.join("operator.log");
    let file = fs::File::create(&log)?;
    let mut command = reader.command(run)?;
    command.env("WFE_METRICS_ADDRESS", "127.0.0.1:0").env("WFE_HEALTH_ADDRESS", "127.0.0.1:0");
    command.stdout(file.try_clone()?).stderr(file);
    let mut running = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    let played = async {
        let world = World::on(&control_plane, "readme").await?;
        a_target_is_explained_and_cleared(&mut reader, &world, plugin).await?;
        ten_alerts_for_one_node(&reader, samples).await
    };
    let played: Result<()> = played.await;
    played.with_context(|| process::last_lines(&log, 20))?;

    let [with_registry, with_bundle] = &demos[..] else { bail!("not two demos: {demos:?}") };
    let refused = reader.shell(with_registry).await.err().context("the demo plays beside another operator")?;
    ensure!(format!("{refused:#}").contains("an operator leads already"), "{refused:#}");
    running.kill().await?;
    // The Lease expires some time after the operator was killed.
    let plays = async || anyhow::Ok(reader.shell(with_registry).await.err().map(|error| format!("{error:#}")));
    let is = |refused: &Option<String>| !refused.as_ref().is_some_and(|why| why.contains("an operator leads already"));
    let failed = ask_until(FREE_WITHIN, "the demo plays", plays, is).await?;
    ensure!(failed.is_none(), "{with_registry}: {}", failed.unwrap_or_default());
    reader.shell(with_bundle).await
}

/// Runs the commands on a target that is blocked because a workflow failed there.
async fn a_target_is_explained_and_cleared(reader: &mut Reader, world: &World, block: &[String]) -> Result<()> {
    let [build, path, explain, clear] = block else { bail!("other commands: {block:?}") };
    let bundle = world.push_pipeline("other", &Pipeline::new().task("apply", Outcome::Exit(1))).await?;
    world.wfe("broken").target("node/worker-1").workflow("other").image(&bundle).create().await?;
    world.await_wfe("broken", "blocks", |wfe| condition(wfe, "Blocked").starts_with("True")).await?;
    reader.shell(build).await?;
    reader.export(path)?;
    let explained = reader.shell(explain).await.err().context("a blocked target would run")?;
    ensure!(format!("{explained:#}").contains("PreviousExecutionFailed"), "{explained:#}");
    let mut terminal = Terminal::start(reader.command(clear)?)?;
    terminal.await_text("Clear it? [y/N] ").await?;
    terminal.type_line("y")?;
    let (status, screen) = terminal.ended().await?;
    ensure!(status.success() && screen.contains("The clearance has lifted the block."), "{status}: {screen}");
    reader.shell(explain).await
}

/// One execution runs, nine are skipped, and `--watch` shows this.
async fn ten_alerts_for_one_node(reader: &Reader, block: &[String]) -> Result<()> {
    let [push, create, watch] = block else { bail!("other commands: {block:?}") };
    reader.push_bundle(push).await?;
    reader.shell(create).await?;
    let mut command = reader.command(watch)?;
    command.stdout(std::process::Stdio::piped());
    let mut watching = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    let mut lines = BufReader::new(watching.stdout.take().context("no output")?).lines();
    let mut seen = Vec::<String>::new();
    let is_told = |seen: &[String]| {
        let of = |phase: &str| -> BTreeSet<&str> {
            seen.iter().filter(|line| line.contains(phase)).filter_map(|line| line.split(' ').next()).collect()
        };
        of(" Completed ").len() == 1 && of(" Skipped ").len() == 9
    };
    let told = async {
        while !is_told(&seen) {
            seen.push(lines.next_line().await?.context("kubectl watches no more")?);
        }
        anyhow::Ok(())
    };
    let told = tokio::time::timeout(SEEN_WITHIN, told).await;
    told.with_context(|| format!("one ran, nine were skipped within {SEEN_WITHIN:?}: {}", seen.join("\n")))??;
    watching.kill().await.context("kubectl has ended")
}

/// Checks that the demo refuses to play beside an installed operator, which would decide on the demo's executions too.
async fn the_demo_says_why_it_does_not_play(reader: &Reader) -> Result<()> {
    let demo = &block_with("README.md", "make demo ")?[0];
    let refused = reader.shell(demo).await.err().context("the demo plays beside the chart")?;
    let said = format!("{refused:#}");
    for words in ["Deployment kubernaut-system/wfe-operator", "helm uninstall", "unset KUBECONFIG"] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    let client = reader.control_plane.client().await?;
    let runs = Api::<DynamicObject>::namespaced_with(client, "kubernaut-workflows", &look::pipeline_runs());
    ensure!(runs.list(&ListParams::default()).await?.items.is_empty(), "it has begun to play");
    Ok(())
}

/// Checks that the objects that Helm keeps when it uninstalls do not affect the demo.
async fn the_demo_plays_beside_what_helm_keeps(reader: &Reader) -> Result<()> {
    let client = reader.control_plane.client().await?;
    let deployments =
        Api::<DynamicObject>::namespaced_with(client, NAMESPACE, &manifests::resource("apps/v1", "Deployment"));
    let ask = async || anyhow::Ok(deployments.list(&ListParams::default()).await?.items.len());
    ask_until(FREE_WITHIN, "the Deployment is gone", ask, |left| *left == 0).await?;
    // This API server has seen the deletion of the last policy that reads a ConfigMap. It reads ConfigMaps for policies
    // again only after a restart (deploy/README.md).
    reader.control_plane.component("kube-apiserver").restart().await?;
    reader.shell(&block_with("README.md", "make demo ")?[0]).await
}

/// Returns the commands of a page from this heading to the next one.
fn commands(page: &str, heading: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(repository().join(page))?;
    let (_, below) = text.split_once(&format!("{heading}\n")).with_context(|| format!("{page} has no {heading}"))?;
    // A comment in a block of commands looks like a heading.
    let mut in_block = false;
    let section = below.lines().take_while(|line| {
        in_block ^= line.starts_with("```");
        in_block || !line.starts_with('#')
    });
    let section: Vec<&str> = section.collect();
    let commands = blocks_of(&section.join("\n")).concat();
    ensure!(!commands.is_empty(), "{page} has no commands below {heading}");
    Ok(commands)
}

/// Returns the commands of each block on a page.
fn blocks(page: &str) -> Result<Vec<Vec<String>>> {
    let text = fs::read_to_string(repository().join(page))?;
    Ok(blocks_of(&text))
}

/// Returns the commands of the only block on a page whose first command contains these words.
fn block_with(page: &str, words: &str) -> Result<Vec<String>> {
    let mut found = blocks(page)?.into_iter().filter(|block| block.first().is_some_and(|first| first.contains(words)));
    let block = found.next().with_context(|| format!("{page} has no block with {words:?}"))?;
    ensure!(found.next().is_none(), "{page} has more than one block with {words:?}");
    Ok(block)
}

/// Returns the commands of each block in a text. A command with continuation lines is one command.
fn blocks_of(text: &str) -> Vec<Vec<String>> {
    let (mut blocks, mut in_block, mut goes_on) = (Vec::<Vec<String>>::new(), false, false);
    for line in text.lines() {
        match (line, blocks.last_mut()) {
            ("```sh", _) => {
                in_block = true;
                blocks.push(Vec::new());
            }
            ("```", _) => in_block = false,
            (_, Some(block)) if in_block && !line.starts_with('#') => {
                let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
                match block.last_mut().filter(|_| goes_on) {
                    Some(command) => command.push_str(part),
                    None => block.push(part.to_owned()),
                }
                goes_on = more;
            }
            _ => {}
        }
    }
    blocks
}

/// A person who types the commands of the pages in the checkout.
///
/// The programs have been built before the test. `tkn` is not available, so the test itself does what its only command
/// does.
struct Reader {
    control_plane: ControlPlane,
    home: PathBuf,
    path: String,
}

impl Reader {
    /// Creates a reader with a home directory, the administrator's kubeconfig in it, and a further program next to
    /// kubectl.
    fn new(control_plane: &ControlPlane, home: &Path, program: &Path) -> Result<Self> {
        fs::create_dir_all(home.join(".kube"))?;
        fs::copy(control_plane.kubeconfig(), home.join(".kube/config"))?;
        let folder = |program: &Path| program.parent().map(|it| it.display().to_string()).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", folder(control_plane.kubectl_path()), folder(program));
        Ok(Self { control_plane: control_plane.clone(), home: home.to_owned(), path })
    }

    /// Prepares a shell command.
    fn command(&self, line: &str) -> Result<std::process::Command> {
        let binary = |name: &str| process::workspace_binary(name);
        let operator = binary("wfe-operator")?;
        let release = operator.parent().context("a binary without a directory")?.display().to_string();
        let line = line
            .replace("cargo run --package kubectl-wfe --", &binary("kubectl-wfe")?.display().to_string())
            .replace("target/release", &release)
            .replace("target/operator.kubeconfig", "~/operator.kubeconfig")
            .replace("make demo", &binary("demo")?.display().to_string())
            .replace("registry.local:5000", &self.control_plane.registry())
            .replace("REGISTRY/", &format!("{}/", self.control_plane.registry()))
            .replace("#REGISTRY#", &format!("#{}#", self.control_plane.registry()));
        let line = if line.starts_with("cargo build --release ") { "true".to_owned() } else { line };
        let mut command = process::command("bash")?;
        command.args(["-o", "pipefail", "-c", &line]);
        command.current_dir(repository()).env("PATH", &self.path).env("HOME", &self.home).env_remove("KUBECONFIG");
        Ok(command)
    }

    /// Runs a shell command, which must succeed.
    async fn shell(&self, line: &str) -> Result<()> {
        let output = tokio::process::Command::from(self.command(line)?).kill_on_drop(true).output().await?;
        let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        ensure!(output.status.success(), "{line}\nends with {}: {said}", output.status);
        Ok(())
    }

    async fn run(&self, commands: &[String]) -> Result<()> {
        for command in commands {
            self.shell(command).await?;
        }
        Ok(())
    }

    /// Adds the built programs to the path of all later commands.
    fn export(&mut self, line: &str) -> Result<()> {
        ensure!(line == r#"export PATH="$PWD/target/release:$PATH""#, "another variable: {line}");
        let built = process::workspace_binary("kubectl-wfe")?;
        let built = built.parent().context("a binary without a directory")?;
        self.path = format!("{}:{}", built.display(), self.path);
        Ok(())
    }

    /// Does what `tkn bundle push IMAGE --filenames FILE` does.
    async fn push_bundle(&self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["tkn", "bundle", "push", image, "--filenames", file] = words[..] else { bail!("no bundle: {line}") };
        let repository_of = image.strip_prefix("REGISTRY/").with_context(|| format!("no registry in {line}"))?;
        let objects: Vec<Value> = manifests::read(&repository().join(file))?;
        bundle::push(&self.control_plane.registry(), repository_of, &objects).await.map(drop)
    }
}

/// Returns the operator's objects that exist in the cluster.
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
