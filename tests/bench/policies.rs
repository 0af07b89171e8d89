//! How much time all admission policies together cost the creator of an execution. Batches with and without the
//! policies are measured in turns, on a separate API server without other clients.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{Audit, ControlPlane, Options, manifests, repository, wfe};

use crate::numbers::{float, median, millis};
use crate::{Bench, player};

/// The number of executions in a batch.
const BATCH: usize = 40;
const CLIENTS: usize = 8;
const IN_FORCE_WITHIN: Duration = Duration::from_mins(1);
/// A user who may create executions for every target.
const USER: &str = "orchestrator";
/// A user who may create executions, but has no permission for targets in other namespaces.
const WRITER: &str = "writer";
const OPERATOR: &str = "system:serviceaccount:kubernaut-system:wfe-operator";

struct Measured {
    client: Client,
    /// The namespace with all policies. The namespace `without` has none.
    with: String,
    without: String,
    /// An execution with a retry policy and a target in another namespace.
    good: Value,
}

impl Measured {
    /// Starts an API server with everything in `config/base`, and creates a user with permission for every target.
    async fn new(good: Value) -> Result<(Self, ControlPlane)> {
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
                "metadata": {"name": format!("policies-{role}")}, "subjects": subjects,
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            });
            manifests::apply(&client, &binding).await?;
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let [mut with, mut without] = [String::new(), String::new()];
        for name in [&mut with, &mut without] {
            let namespace = serde_json::from_value(json!({"metadata": {"generateName": "policies-"}}))?;
            *name = namespaces.create(&PostParams::default(), &namespace).await?.name_any();
        }
        for mut binding in manifests::read(&repository().join("config/admission"))? {
            if binding["kind"] == "ValidatingAdmissionPolicyBinding" && binding["spec"]["matchResources"].is_null() {
                let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": with}});
                binding["spec"]["matchResources"] = json!({"namespaceSelector": selector});
                manifests::apply(&client, &binding).await?;
            }
        }
        let measured = Self { client, with, without, good };
        measured.await_in_force().await?;
        Ok((measured, control_plane))
    }

    async fn await_in_force(&self) -> Result<()> {
        for (namespace, bound) in [(&self.with, true), (&self.without, false)] {
            // Each policy on creations refuses one of these objects. The policy on targets refuses an object of a user
            // without the permission.
            let but = |fields: &[&str], value: Value| {
                let mut object = self.good.clone();
                object["spec"]["targetResource"] = json!(format!("{namespace}/deployment/api"));
                *fields.iter().fold(&mut object["spec"], |at, field| &mut at[*field]) = value;
                object
            };
            let asked = [
                (USER, but(&["remediationRequestRef", "kind"], json!("WorkflowSchedule"))),
                (USER, but(&["retry"], json!({"initialDelay": "2h"}))),
                (USER, but(&["executionConfig", "serviceAccountName"], json!("unknown"))),
                (WRITER, self.good.clone()),
                (WRITER, but(&["recoveryOf"], json!("another"))),
                (OPERATOR, self.good.clone()),
            ];
            for (user, object) in asked {
                let ask = async || self.create(namespace, user, &object, true).await;
                ask_until(IN_FORCE_WITHIN, &format!("bound: {bound}, for {user}"), ask, |refused| {
                    let by_policy = refused.as_ref().is_some_and(|why| why.contains("ValidatingAdmissionPolicy"));
                    by_policy == bound && (bound || refused.is_none())
                })
                .await?;
            }
        }
        Ok(())
    }

    /// Creates one execution. Returns the message if it is refused.
    async fn create(&self, namespace: &str, user: &str, object: &Value, dry_run: bool) -> Result<Option<String>> {
        let url = DynamicObject::url_path(&wfe::resource(), Some(namespace));
        let params = PostParams { dry_run, ..PostParams::default() };
        let mut request = Request::new(url).create(&params, serde_json::to_vec(object)?)?;
        request.headers_mut().insert("Impersonate-User", user.parse()?);
        match self.client.request::<DynamicObject>(request).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => Ok(Some(status.message.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the duration of a batch of executions with targets in another namespace.
    async fn batch(&self, namespace: &str) -> Result<Duration> {
        let begun = Instant::now();
        try_join_all((0..CLIENTS).map(|_| async {
            for _ in 0..BATCH / CLIENTS {
                let refused = self.create(namespace, USER, &self.good, false).await?;
                ensure!(refused.is_none(), "{refused:?}");
            }
            Ok(())
        }))
        .await?;
        Ok(begun.elapsed())
    }
}

/// Measures this many batches with the policies, and the same number without.
pub(crate) async fn policies(bench: &mut Bench, batches: usize) -> Result<()> {
    let mut good = player::execution(&bench.worlds.floor, "unnamed", "payment/deployment/payment-api").json();
    good["metadata"] = json!({"generateName": "wfe-"});
    good["spec"]["remediationRequestRef"] = json!({
        "apiVersion": "kubernaut.ai/v1alpha1", "kind": "RemediationRequest", "name": "rr-1", "namespace": "payment",
        "uid": "0d3b9a52-7a0e-4b9f-9a33-5d0a3a1f2c11",
    });
    good["spec"]["retry"] = json!({"maxAttempts": 3, "initialDelay": "1s"});
    let (measured, control_plane) = Measured::new(good).await?;
    // In each namespace, the first batches are slower.
    for namespace in [&measured.without, &measured.with] {
        for _ in 0..3 {
            measured.batch(namespace).await?;
        }
    }
    let each = |took: Duration| millis(took) / float(BATCH);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..batches {
        without.push(each(measured.batch(&measured.without).await?));
        with.push(each(measured.batch(&measured.with).await?));
    }
    drop(control_plane);
    let (without, with) = (median(&without), median(&with));
    bench.results.add("policies/without", "ms per creation", without);
    bench.results.add("policies/added", "ms per creation", with - without);
    bench.say(&format!("a creation without policies {without:.2} ms, with all of them {with:.2} ms"));
    Ok(())
}
