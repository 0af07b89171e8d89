//! `kubectl wfe` with the roles of `config/rbac/people`, never as an administrator: what it reports, clears and
//! refuses. Its predictions must match what an operator does afterwards.

mod clear;
mod conventions;
mod dashboard;
pub(crate) mod doctor;
mod histories;
mod hostile;
mod in_force;
mod lint;
mod one;
mod rights;
mod runs;
mod schedules;
mod six_questions;
mod status;
mod terminal;
mod what_if;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{SecondsFormat, TimeDelta, Utc};
use kube::api::{ApiResource, Patch, PatchParams};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::process::{self, workspace_binary};
use wfe_testkit::{World, manifests, repository, wfe};

use crate::expect::condition;

const TARGET: &str = "payment/deployment/payment-api";
/// The roles of a user who may clear, and who may therefore also explain.
const ROLES: [&str; 2] = ["wfe-explain", "wfe-clear"];
const IN_FORCE_WITHIN: Duration = Duration::from_secs(30);

/// A person who uses the tool in the namespaces of a world.
pub(crate) struct Caller<'w> {
    world: &'w World,
    kubeconfig: PathBuf,
}

impl<'w> Caller<'w> {
    /// Creates a person with these roles, in a world where a replica seems to lead.
    pub(crate) async fn new(world: &'w World, name: &str, roles: &[&str]) -> Result<Self> {
        somebody_leads(world).await?;
        Ok(Self { world, kubeconfig: world.person(name, roles, None).await? })
    }

    /// Prepares a command of the tool.
    fn command(&self, words: &[&str]) -> Result<Command> {
        let mut command = process::command(workspace_binary("kubectl-wfe")?)?;
        command.args(words).args(self.places()).env("KUBECONFIG", &self.kubeconfig);
        Ok(command)
    }

    /// Returns flags with the namespaces of the world's operator. There is no Deployment from which the tool could read
    /// them.
    fn places(&self) -> [String; 3] {
        let world = self.world;
        [
            format!("--watch-namespace={}", world.namespace()),
            format!("--execution-namespace={}", world.execution_namespace()),
            format!("--operator-namespace={}", world.system_namespace()),
        ]
    }

    /// Runs the tool without a terminal. The exit code must be this one. Returns the output.
    pub(crate) async fn says(&self, code: i32, words: &[&str]) -> Result<String> {
        said(self.command(words)?, code).await
    }
}

/// Writes the Lease of a leader. It stays valid for the whole test, because the operators of tests write none.
async fn somebody_leads(world: &World) -> Result<()> {
    let renewed = (Utc::now() + TimeDelta::hours(1)).to_rfc3339_opts(SecondsFormat::Micros, true);
    lease(world, "somebody", &renewed).await
}

async fn lease(world: &World, holder: &str, renewed: &str) -> Result<()> {
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 8, "renewTime": renewed});
    world.apply(&in_system(world, "coordination.k8s.io/v1", "Lease", "wfe-operator", "spec", &spec)).await
}

/// Returns an object with one field, in the operator's own namespace.
fn in_system(world: &World, version: &str, kind: &str, name: &str, field: &str, value: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": world.system_namespace()});
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, field: value})
}

/// Runs a program that must end with this exit code. Returns both outputs together.
async fn said(command: Command, code: i32) -> Result<String> {
    let (stdout, stderr) = outputs(command, &[code]).await?;
    Ok(format!("{stdout}{stderr}"))
}

/// Runs a program that must end with one of these exit codes. Returns both outputs separately.
async fn outputs(command: Command, codes: &[i32]) -> Result<(String, String)> {
    let shown = format!("{command:?}");
    let output = tokio::process::Command::from(command).kill_on_drop(true).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let is_expected = output.status.code().is_some_and(|code| codes.contains(&code));
    ensure!(is_expected, "{}, not one of {codes:?}: {shown}\n{stdout}{stderr}", output.status);
    ensure!(!stdout.contains('\u{1b}') && !stderr.contains('\u{1b}'), "colours where no terminal is: {stdout}{stderr}");
    Ok((stdout, stderr))
}

/// Asserts that a text contains all of these words.
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in:\n{text}");
    }
}

/// Puts the shipped policy for clearances into force in a world's namespace. `canary` is an execution there without a
/// clearance.
async fn guard_clearances(world: &World, canary: &str) -> Result<()> {
    let refused = json!({"spec": {"clearance": {"reason": "why", "clearedBy": "nobody"}}});
    guard(world, "clearance", &wfe::resource(), canary, refused).await
}

/// Puts the shipped policy for authors into force, which checks resumes. `canary` is a schedule there, which a triage
/// has paused.
async fn guard_resumes(world: &World, canary: &str) -> Result<()> {
    let refused = json!({"spec": {"resume": {"triage": "another", "reason": "why", "resumedBy": "nobody"}}});
    guard(world, "author", &wfe::schedules(), canary, refused).await
}

/// Puts a shipped policy into force in a world's namespace, and waits until it refuses this change.
async fn guard(world: &World, policy: &str, kind: &ApiResource, canary: &str, refused: Value) -> Result<()> {
    let name = format!("{policy}-{}", world.namespace());
    for file in [format!("{policy}_policy.yaml"), format!("{policy}_policy_binding.yaml")] {
        for mut object in manifests::read(&repository().join("config/admission").join(file))? {
            object["metadata"]["name"] = json!(name);
            if object["spec"]["policyName"].is_string() {
                let here = json!({"kubernetes.io/metadata.name": world.namespace()});
                object["spec"]["policyName"] = json!(name);
                object["spec"]["matchResources"] = json!({"namespaceSelector": {"matchLabels": here}});
            }
            world.apply(&object).await?;
        }
    }
    let (patch, params) = (Patch::Merge(refused), PatchParams { dry_run: true, ..PatchParams::default() });
    let objects = world.api(kind, world.namespace());
    let what = format!("the policy of the kind {policy} is in force");
    let ask = async || anyhow::Ok(objects.patch(canary, &params, &patch).await);
    ask_until(IN_FORCE_WITHIN, &what, ask, Result::is_err).await.map(drop)
}

/// Pauses the namespace of a world's executions.
async fn pause(world: &World, why: &str) -> Result<()> {
    let metadata = json!({"name": world.namespace(), "annotations": {"kubernaut.ai/paused": why}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    // This is not a server-side apply, because another client owns the namespace's labels.
    let api = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client());
    api.patch(world.namespace(), &PatchParams::default(), &Patch::Merge(&namespace)).await?;
    Ok(())
}

/// Returns what the status of an execution records about its clearance.
fn recorded(wfe: &Value) -> (&Value, String) {
    (&wfe["status"]["clearance"]["clearedBy"], condition(wfe, "ClearanceIneffective"))
}
