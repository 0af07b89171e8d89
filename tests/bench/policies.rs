//! What all policies together cost whoever creates an execution. Only with `WFE_TEST_ALL=1`: it measures, so that
//! nothing else may run beside it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures::future::try_join_all;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, Request};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use wfe_api::WorkflowExecution;
use wfe_testkit::{Audit, ControlPlane, Options, manifests, repository};

use super::objects::{Namespaced, Refusal, good, good_but, refusal};
use crate::faults::all;

/// So many with the policies and as many without, in turn, so that whatever else is done here slows both alike.
const CREATIONS: u32 = 1000;
const BATCH: u32 = 40;
const CLIENTS: u32 = 8;
const TRIES: u32 = 5;
/// What all policies together may add to a creation.
const BUDGET: Duration = Duration::from_micros(500);
const IN_FORCE_WITHIN: Duration = Duration::from_mins(1);
/// May create executions for every target.
const USER: &str = "orchestrator";
/// May create executions for targets beside them.
const WRITER: &str = "writer";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";

struct Measured {
    client: Client,
    /// Where all policies hold, and where none does.
    with: String,
    without: String,
}

impl Measured {
    /// An API server with everything that `config/base` installs, and a program that may have every target.
    async fn new() -> Result<(Self, ControlPlane)> {
        let control_plane = ControlPlane::start(Options { audit: Audit::Counts, ..Options::BARE }).await?;
        let base = repository().join("config/base");
        control_plane.kubectl(&["apply", "--server-side", "-k", &base.to_string_lossy()]).await?;
        let crds = ["crd/workflowexecutions.kubernaut.ai", "crd/workflowschedules.kubernaut.ai"];
        let wait = ["wait", "--for=condition=Established", "--timeout=30s"];
        control_plane.kubectl(&[&wait[..], &crds].concat()).await?;
        let client = control_plane.client().await?;
        let group = "rbac.authorization.k8s.io";
        for (role, users) in [("wfe-edit", &[USER, WRITER][..]), ("wfe-target-any", &[USER])] {
            let subjects: Vec<_> =
                users.iter().map(|user| json!({"apiGroup": group, "kind": "User", "name": user})).collect();
            let binding = json!({
                "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("cost-{role}")}, "subjects": subjects,
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            });
            manifests::apply(&client, &binding).await?;
        }
        let with = Namespaced::on(&control_plane).await?.namespace;
        let without = Namespaced::on(&control_plane).await?.namespace;
        for mut binding in manifests::read(&repository().join("config/admission"))? {
            if binding["kind"] == "ValidatingAdmissionPolicyBinding" && binding["spec"]["matchResources"].is_null() {
                let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": with}});
                binding["spec"]["matchResources"] = json!({"namespaceSelector": selector});
                manifests::apply(&client, &binding).await?;
            }
        }
        let measured = Self { client, with, without };
        measured.await_in_force().await?;
        Ok((measured, control_plane))
    }

    async fn await_in_force(&self) -> Result<()> {
        for (namespace, bound) in [(&self.with, true), (&self.without, false)] {
            // What each of the policies on a creation has something against; that on targets, of who lacks the right.
            let own = good_but("/spec/targetResource", json!(format!("{namespace}/deployment/api")))?;
            let (mut of_schedule, mut retries, mut account, elsewhere) = (own.clone(), own.clone(), own, good());
            of_schedule["spec"]["remediationRequestRef"]["kind"] = json!("WorkflowSchedule");
            retries["spec"]["retry"] = json!({"initialDelay": "2h"});
            account["spec"]["executionConfig"]["serviceAccountName"] = json!("unknown");
            let asked =
                [(USER, of_schedule), (USER, retries), (USER, account), (WRITER, elsewhere), (OPERATOR, good())];
            for (user, object) in asked {
                let deadline = Instant::now() + IN_FORCE_WITHIN;
                loop {
                    let refused = self.create(namespace, user, &object, true).await?;
                    let by_policy = refused.as_ref().is_some_and(|why| why.contains("ValidatingAdmissionPolicy"));
                    if by_policy == bound && (bound || refused.is_none()) {
                        break;
                    }
                    ensure!(Instant::now() < deadline, "bound: {bound}, but {user}: {refused:?}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        Ok(())
    }

    async fn create(&self, namespace: &str, user: &str, object: &Value, dry_run: bool) -> Result<Refusal> {
        let url = DynamicObject::url_path(&ApiResource::erase::<WorkflowExecution>(&()), Some(namespace));
        let params = PostParams { dry_run, ..PostParams::default() };
        let mut request = Request::new(url).create(&params, serde_json::to_vec(object)?)?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        refusal(self.client.request::<DynamicObject>(request).await.map(|made| made.name_any()))
    }

    /// Says how long it takes to create a batch, each for a target elsewhere.
    async fn batch(&self, namespace: &str) -> Result<Duration> {
        let object = good_but("/spec/targetResource", json!("payment/deployment/payment-api"))?;
        let begun = Instant::now();
        try_join_all((0..CLIENTS).map(|_| async {
            for _ in 0..BATCH / CLIENTS {
                let refused = self.create(namespace, USER, &object, false).await?;
                ensure!(refused.is_none(), "{refused:?}");
            }
            Ok(())
        }))
        .await?;
        Ok(begun.elapsed())
    }
}

/// The time for one creation, by the batch that a quarter of them were faster than: many have been slowed by something
/// else, and the fastest few are luck.
fn each(mut batches: Vec<Duration>) -> Duration {
    batches.sort();
    batches.get(batches.len() / 4).copied().unwrap_or_default() / BATCH
}

#[tokio::test]
async fn all_policies_together_add_at_most_half_a_millisecond_to_a_creation() -> Result<()> {
    if !all() {
        return Ok(());
    }
    let (measured, _control_plane) = Measured::new().await?;
    // The first are slower, wherever.
    for namespace in [&measured.without, &measured.with] {
        for _ in 0..3 {
            measured.batch(namespace).await?;
        }
    }
    let mut tries = Vec::new();
    // Work beside it only makes it more.
    for _ in 0..TRIES {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..CREATIONS / BATCH {
            without.push(measured.batch(&measured.without).await?);
            with.push(measured.batch(&measured.with).await?);
        }
        let (without, with) = (each(without), each(with));
        println!("{CREATIONS} creations by {CLIENTS} clients: {without:?} each without, {with:?} with");
        if with.saturating_sub(without) <= BUDGET {
            return Ok(());
        }
        tries.push((without, with));
    }
    bail!("the policies add more than {BUDGET:?} to a creation, which takes so long without and with them: {tries:?}")
}
