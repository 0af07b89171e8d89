//! The commands in the runbooks, run exactly as written by a person who has only the role of the person on call.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{World, manifests, repository, rights_of_people};

use crate::expect::text;
use crate::history::unusable;
use crate::schedules::create;

/// The commands of `kubectl` and of the plugin that only read.
const READS: [&str; 12] = [
    "get",
    "describe",
    "logs",
    "wfe circuits",
    "wfe config",
    "wfe explain",
    "wfe history",
    "wfe list",
    "wfe logs",
    "wfe schedule explain",
    "wfe schedule list",
    "wfe status",
];

/// Commands that write, and commands for an administrator. The test does not run them.
const WRITES: [&str; 11] = [
    "annotate",
    "apply",
    "delete",
    "exec",
    "patch",
    "port-forward",
    "wfe cancel",
    "wfe clear",
    "wfe schedule resume",
    "wfe schedule run",
    "wfe schedule suspend",
];

/// Code spans that only name a program or a command, without arguments.
const NAMES: [&str; 2] = ["kubectl wfe", "kubectl wfe explain"];

/// Parts of commands that read objects of other projects. Such a command may be in a sentence only, because its reader
/// needs additional permissions.
const OTHERS: [&str; 2] = ["--namespace tekton-pipelines", "get node "];

/// A command of a runbook.
struct Written {
    page: PathBuf,
    command: String,
    /// Whether the command is in a fenced block, and not in a sentence.
    is_fenced: bool,
}

#[tokio::test]
async fn the_person_on_call_may_do_what_the_runbooks_ask() -> Result<()> {
    let world = World::new("runbooks").await?;
    let operator = world.operator().start().await?;
    let target = format!("node/{}", world.namespace());
    unusable(world.wfe("failed").target(&target)).create().await?;
    let failed = world.await_phase("failed", "Failed").await?;
    assert_eq!(text(&failed["status"]["target"]), target);
    // The schedule has the name of the execution, so that NAME may stand for either.
    let suspended = json!({"interval": "1h", "suspend": true});
    create(&world, "failed", &target, "registry.invalid/w:1", &suspended).await?;
    pods_to_ask(&world).await?;

    let home = world.control_plane().dir().join("worlds").join(world.namespace()).join("runbooks");
    fs::create_dir_all(&home)?;
    symlink(world.control_plane().kubectl_path(), home.join("kubectl"))?;
    symlink(workspace_binary("kubectl-wfe")?, home.join("kubectl-wfe"))?;
    let on_call = world.person("on-call", &["wfe-oncall"], None).await?;
    // Words that only a refusal to this person has. A list may also show the messages of other tests.
    let lacks = [&*world.user("on-call"), "Error from server (Forbidden)", "as you may not get"];

    let (mut tried, mut elsewhere) = (0, BTreeSet::new());
    for written in written()? {
        let Written { page, command, is_fenced } = &written;
        if let Some(others) = OTHERS.iter().find(|others| command.contains(*others)) {
            ensure!(!is_fenced, "{}: the roles wfe-oncall do not give this: {command}", page.display());
            elsewhere.insert(*others);
            continue;
        }
        if !written.reads()? {
            continue;
        }
        let line = command
            .replace(" TARGET", &format!(" {target}"))
            .replace(" NAME ", " failed ")
            .replace(" EXECUTION ", " failed ")
            .replace(" POD ", " on-no-node ")
            .replace(" RUN ", " no-such-run ")
            .replace("--namespace NAMESPACE", &format!("--namespace {}", world.namespace()))
            .replace("=RUN", "=no-such-run")
            .replace("kubernaut-workflows", &world.execution_namespace())
            .replace("kubernaut-system", &world.system_namespace());
        let (code, said) = run(&world, &home, &on_call, &line).await?;
        ensure!(!lacks.iter().any(|words| said.contains(words)), "{}: {command}\n{said}", page.display());
        // A prediction that nothing would run is an answer too, and has the exit code 1. Logs are not available without
        // a kubelet, and no run and no Lease exist.
        let is_answer = match code {
            0 => true,
            1 if command.starts_with("kubectl wfe ") => true,
            _ => written.is("logs") || said.contains("Error from server (NotFound)"),
        };
        ensure!(is_answer, "{}: {command}\nends with {code}: {said}", page.display());
        tried += 1;
    }
    assert!(tried >= 30, "only {tried} commands were found");
    assert_eq!(elsewhere, BTreeSet::from(OTHERS), "no runbook asks for the others: take them out of OTHERS");
    operator.terminate().await?;
    world.close().await
}

/// The role `wfe-oncall` includes `wfe-explain`, and grants no permission to write.
#[test]
fn the_person_on_call_may_explain_and_changes_nothing() -> Result<()> {
    let given: BTreeSet<_> = rights_of_people("wfe-oncall")?.into_iter().collect();
    for right in rights_of_people("wfe-explain")? {
        ensure!(given.contains(&right), "wfe-explain gives what wfe-oncall does not: {right}");
    }
    for right in &given {
        ensure!(["get", "list", "watch"].contains(&&*right.verb), "wfe-oncall gives a right to write: {right}");
        ensure!(right.resource != "secrets" && right.resource != "*", "wfe-oncall gives too much: {right}");
    }
    let people = manifests::read(&repository().join("config/rbac/people"))?;
    let policies = |role: &str| {
        let is_it = |one: &&serde_json::Value| one["kind"] == "ClusterRole" && one["metadata"]["name"] == role;
        let rules = people.iter().find(is_it)?["rules"].as_array()?;
        let rule = rules.iter().find(|rule| rule["apiGroups"][0] == "admissionregistration.k8s.io")?;
        Some(rule["resourceNames"].clone())
    };
    let [explain, on_call] = ["wfe-explain", "wfe-oncall"].map(policies);
    assert_eq!(on_call.context("no policies")?, explain.context("no policies")?);
    Ok(())
}

impl Written {
    /// Returns whether this is a certain command of kubectl or of the plugin.
    fn is(&self, command: &str) -> bool {
        self.command.strip_prefix("kubectl ").is_some_and(|rest| format!("{rest} ").starts_with(&format!("{command} ")))
    }

    /// Returns whether the command only reads. An unknown command is an error, because it may read or write.
    fn reads(&self) -> Result<bool> {
        let reads = READS.iter().any(|it| self.is(it));
        let is_known = reads || WRITES.iter().any(|it| self.is(it));
        ensure!(is_known, "{}: does it read or write? {}", self.page.display(), self.command);
        Ok(reads)
    }
}

/// Finds all kubectl commands in the runbooks, in blocks and in sentences.
fn written() -> Result<Vec<Written>> {
    let mut written = Vec::new();
    for page in fs::read_dir(repository().join("docs/runbooks"))? {
        let page = page?.path();
        let mut is_fenced = false;
        for line in fs::read_to_string(&page)?.lines() {
            let line = line.trim();
            if line.starts_with("```") {
                is_fenced = !is_fenced;
                continue;
            }
            // Every second part of a sentence is between backticks.
            let spans: Vec<&str> = if is_fenced { vec![line] } else { line.split('`').skip(1).step_by(2).collect() };
            let commands = spans.into_iter().filter(|span| span.starts_with("kubectl "));
            let commands = commands.filter(|command| !NAMES.contains(command));
            written.extend(commands.map(|it| Written { page: page.clone(), command: it.to_owned(), is_fenced }));
        }
    }
    Ok(written)
}

/// Creates a pod in the operator's namespace and one in the namespace of the runs. They have no node and no logs, but
/// the API server still refuses a person who may not read logs.
async fn pods_to_ask(world: &World) -> Result<()> {
    for namespace in [world.system_namespace(), world.execution_namespace()] {
        let labels = json!({"app.kubernetes.io/name": "wfe-operator"});
        let container = json!({"name": "operator", "image": "registry.invalid/operator:1"});
        let spec = json!({"containers": [container], "nodeSelector": {"no-such": "node"}});
        let metadata = json!({"name": "on-no-node", "namespace": namespace, "labels": labels});
        world.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})).await?;
    }
    Ok(())
}

/// Runs a line in a shell, and returns the exit code and the output.
async fn run(world: &World, home: &Path, kubeconfig: &Path, line: &str) -> Result<(i32, String)> {
    let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = process::command("bash")?;
    command
        .args(["-c", &format!("set -o pipefail; {line}")])
        .env("PATH", path)
        .env("HOME", home)
        .env("KUBECONFIG", kubeconfig)
        .env("WFE_EXECUTION_NAMESPACE", world.execution_namespace())
        .env("WFE_OPERATOR_NAMESPACE", world.system_namespace());
    let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok((output.status.code().unwrap_or(-1), said))
}
