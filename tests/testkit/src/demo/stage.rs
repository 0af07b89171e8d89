//! The cluster of the demo: the one that `KUBECONFIG` names, or a control plane of the demo's own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::screen::{Screen, Tone};
use crate::assets::{Assets, repository};
use crate::awaits::ask_until;
use crate::control_plane::ControlPlane;
use crate::stack::{Options, Tekton};
use crate::{bundle, given, manifests};

/// The namespace of the demo's `WorkflowExecutions`.
pub(super) const NAMESPACE: &str = "wfe-demo";
/// The namespace of all runs, as in `config/base`.
pub(super) const EXECUTION_NAMESPACE: &str = "kubernaut-workflows";
/// How long the API server may take to read the `ConfigMap` of a policy. An idle API server needs less than a second.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

/// A cluster that is ready for the demo.
pub(super) struct Stage {
    pub(super) client: Client,
    place: Place,
    bundles: Bundles,
}

enum Place {
    /// A control plane that the demo starts, and that ends with the demo.
    Own(Box<ControlPlane>),
    /// The cluster of `KUBECONFIG`. Its pods are real.
    Given,
}

/// The images of the two sample workflows.
struct Bundles {
    restart: String,
    disk_cleanup: String,
}

impl Stage {
    /// Finds or starts the cluster, and pushes the sample workflows to the registry of its Tekton.
    pub(super) async fn set(screen: &Screen) -> Result<Self> {
        if set_variable("KUBECONFIG").is_some() { Self::given(screen).await } else { Self::own(screen).await }
    }

    async fn own(screen: &Screen) -> Result<Self> {
        let parts = "etcd, API server, controllers, scheduler, Tekton, registry, kwok";
        screen.line("control plane", "starting", Tone::Busy, parts)?;
        let own = ControlPlane::start(Options { crd: false, ..Options::default() }).await?;
        let client = own.client().await?;
        let version = client.apiserver_version().await?.git_version;
        screen.line(
            "control plane",
            "ready",
            Tone::Good,
            &format!("Kubernetes {version} with Tekton, {}", own.url()),
        )?;
        // The demo decides when the pods of this control plane end.
        let bundles = Bundles::push(&own.registry(), true).await?;
        Ok(Self { client, place: Place::Own(Box::new(own)), bundles })
    }

    async fn given(screen: &Screen) -> Result<Self> {
        let registry = set_variable("DEMO_REGISTRY");
        let image = set_variable("DEMO_BUNDLE");
        if registry.is_none() && image.is_none() {
            bail!(
                "KUBECONFIG names a cluster, so say where its Tekton pulls the sample workflow from: DEMO_BUNDLE=<image> \
                 (config/samples/pipeline-disk-cleanup.yaml, pushed as a Tekton bundle) or DEMO_REGISTRY=<host:port> (a \
                 registry that this machine may push to over plain HTTP); or unset KUBECONFIG to use a control plane of \
                 the demo's own"
            );
        }
        let config = kube::Config::from_kubeconfig(&KubeConfigOptions::default()).await.context("KUBECONFIG")?;
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config)?;
        let version =
            client.apiserver_version().await.context("the cluster of KUBECONFIG does not answer")?.git_version;
        screen.line("cluster", "found", Tone::Good, &format!("Kubernetes {version}, {url}"))?;
        let kinds: Api<DynamicObject> =
            Api::all_with(client.clone(), &manifests::resource("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
        ensure!(
            kinds.get_opt("pipelineruns.tekton.dev").await?.is_some(),
            "the cluster of KUBECONFIG has no Tekton: see https://tekton.dev/docs/installation/pipelines"
        );
        nobody_else_operates(&client).await?;
        let bundles = match (image, registry) {
            (Some(image), _) => Bundles { restart: image.clone(), disk_cleanup: image },
            (None, Some(registry)) => Bundles::push(&registry, false).await?,
            (None, None) => bail!("neither DEMO_BUNDLE nor DEMO_REGISTRY is set"),
        };
        Ok(Self { client, place: Place::Given, bundles })
    }

    /// Returns whether an annotation decides when the pods of this cluster end.
    pub(super) fn pods_obey(&self) -> bool {
        matches!(self.place, Place::Own(_))
    }

    /// Installs what the operator needs, with `kubectl` as a person would. Removes the objects of an earlier demo.
    pub(super) async fn install(&self) -> Result<()> {
        let base = repository().join("config/base");
        self.kubectl(&["apply", "--server-side", "-k", &base.to_string_lossy()]).await?;
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", "crd/workflowexecutions.kubernaut.ai"])
            .await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        manifests::apply(&self.client, &namespace).await?;
        self.policies_have_their_lists().await?;
        self.remove_executions().await
    }

    /// Waits until the API server has read the `ConfigMap` of the newly installed policies. Until then the policies
    /// refuse every execution.
    async fn policies_have_their_lists(&self) -> Result<()> {
        let sample = self.sample("payment-restart.yaml")?.into_iter().next().context("the sample holds no object")?;
        let sample: DynamicObject = serde_json::from_value(sample)?;
        let (api, params) = (self.executions(), PostParams { dry_run: true, ..PostParams::default() });
        let ask = async || {
            let refused = api.create(&params, &sample).await.err();
            anyhow::Ok(refused.map(|error| error.to_string()).unwrap_or_default())
        };
        let is = |refused: &String| !refused.contains("no params found");
        ask_until(LISTED_WITHIN, "the admission policies find their lists", ask, is).await.map(drop).context(
            "the API server does not find the ConfigMap of the admission policies: where the operator was uninstalled \
             from this cluster before, restart the API server (deploy/README.md, Uninstall)",
        )
    }

    /// Returns the flags for the operator. In a given cluster, the operator watches only the demo's namespace and takes
    /// part in no leader election.
    pub(super) fn operator_args(&self) -> &'static [&'static str] {
        match self.place {
            Place::Own(_) => &[],
            Place::Given => &["--watch-namespace", NAMESPACE, "--leader-elect=false"],
        }
    }

    /// Writes a kubeconfig for this cluster, with a token of the operator's service account as its only credentials.
    pub(super) async fn write_operator_kubeconfig(&self, path: &Path) -> Result<()> {
        let token = self
            .kubectl(&["create", "token", "wfe-operator", "--namespace=kubernaut-system", "--duration=12h"])
            .await
            .context("no token for the operator's service account")?;
        let cluster = match &self.place {
            Place::Own(own) => json!({"server": own.url(), "certificate-authority": own.authority()}),
            Place::Given => serde_json::to_value(given::current_cluster(Kubeconfig::read().context("KUBECONFIG")?)?)?,
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "demo", "cluster": cluster}],
            "users": [{"name": "demo", "user": {"token": token.trim()}}],
            "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
            "current-context": "demo",
        });
        std::fs::write(path, config.to_string()).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Reads the `WorkflowExecutions` of a sample file, and gives them the image that this cluster can pull.
    pub(super) fn sample(&self, file: &str) -> Result<Vec<Value>> {
        let mut samples = manifests::read(&repository().join("config/samples").join(file))?;
        for sample in &mut samples {
            sample["metadata"]["namespace"] = NAMESPACE.into();
            let workflow = &mut sample["spec"]["workflowRef"];
            let image = match workflow["workflowId"].as_str() {
                Some("deployment-restart") => &self.bundles.restart,
                Some("node-disk-cleanup") => &self.bundles.disk_cleanup,
                other => bail!("config/samples/{file} asks for {other:?}, which the demo did not push"),
            };
            workflow["containerImage"] = image.as_str().into();
        }
        Ok(samples)
    }

    /// Creates objects, all at once.
    pub(super) async fn create_all(&self, objects: &[Value]) -> Result<()> {
        let api = self.executions();
        let params = PostParams::default();
        futures::future::try_join_all(objects.iter().map(|object| async {
            let object: DynamicObject = serde_json::from_value(object.clone())?;
            let name = object.metadata.name.clone().unwrap_or_default();
            api.create(&params, &object).await.with_context(|| format!("WorkflowExecution {name} was refused"))
        }))
        .await?;
        Ok(())
    }

    /// Returns the API of the demo's `WorkflowExecutions`.
    pub(super) fn executions(&self) -> Api<DynamicObject> {
        let kind = manifests::resource("kubernaut.ai/v1alpha1", "WorkflowExecution");
        Api::namespaced_with(self.client.clone(), NAMESPACE, &kind)
    }

    /// Calls kubectl, and returns its output.
    pub(super) async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let output = tokio::process::Command::from(self.kubectl_command(args))
            .output()
            .await
            .context("kubectl is needed and cannot be started")?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        String::from_utf8(output.stdout).context("kubectl printed what is not UTF-8")
    }

    fn kubectl_command(&self, args: &[&str]) -> Command {
        match &self.place {
            Place::Own(own) => own.kubectl_command(args),
            Place::Given => {
                let found = Command::new("kubectl").arg("version").arg("--client").output();
                let program = match (found, Assets::find(Tekton::Current)) {
                    (Err(_), Ok(assets)) => assets.program("kubectl"),
                    _ => "kubectl".into(),
                };
                let mut command = Command::new(program);
                command.args(args);
                command
            }
        }
    }

    /// Returns the commands with which a person can inspect a cluster that was kept.
    pub(super) fn how_to_use(&self) -> String {
        match &self.place {
            Place::Own(own) => format!(
                "export KUBECONFIG={}\nkubectl get wfe --namespace {NAMESPACE} --output wide",
                own.kubeconfig().display()
            ),
            Place::Given => format!("kubectl get wfe --namespace {NAMESPACE} --output wide"),
        }
    }

    /// Ends the demo's own control plane, or removes the demo's executions from a given cluster. Returns a description
    /// of what remains.
    pub(super) async fn leave(self) -> Result<String> {
        match self.place {
            Place::Own(own) => {
                let dir = own.dir().to_owned();
                drop(own);
                let ended = "the operator and the control plane have ended";
                Ok(if dir.exists() {
                    format!("{ended}, their logs are in {}", dir.display())
                } else {
                    ended.to_owned()
                })
            }
            Place::Given => {
                self.remove_executions().await?;
                Ok("the operator has ended, `kubectl delete -k config/base` removes what was installed".to_owned())
            }
        }
    }

    async fn remove_executions(&self) -> Result<()> {
        // Deletes by name instead of deleting all executions, because a person may have created others in the
        // namespace.
        let api = self.executions();
        for object in api.list(&ListParams::default()).await? {
            let name = object.metadata.name.unwrap_or_default();
            if name == "payment-restart" || name.starts_with("disk-pressure-") {
                api.delete(&name, &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}

/// Checks that no other operator runs in the cluster. Two operators would both decide the demo's executions, and
/// neither would count all of them.
async fn nobody_else_operates(client: &Client) -> Result<()> {
    const INSTEAD: &str =
        "it would play in the demo, too; or unset KUBECONFIG to use a control plane of the demo's own";
    let deployments: Api<DynamicObject> = Api::all_with(client.clone(), &manifests::resource("apps/v1", "Deployment"));
    let ours = ListParams::default().labels("app.kubernetes.io/name=wfe-operator");
    let found = deployments.list(&ours).await.context("the Deployments of the cluster cannot be listed")?.items;
    if let Some(one) = found.into_iter().next() {
        let (namespace, name) = (one.metadata.namespace.unwrap_or_default(), one.metadata.name.unwrap_or_default());
        bail!(
            "Deployment {namespace}/{name} runs an operator in this cluster: remove it first (`helm uninstall {name} \
             --namespace {namespace}`, or `kubectl delete -k config/manager`), as {INSTEAD}"
        );
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kubernaut-system");
    let lease = leases.get_opt("wfe-operator").await.context("the Lease of an operator cannot be read")?;
    let held = lease.and_then(|lease| lease.spec).and_then(|spec| {
        let until = spec.renew_time?.0 + SignedDuration::from_secs(i64::from(spec.lease_duration_seconds?));
        (until > Timestamp::now()).then_some(spec.holder_identity?)
    });
    match held.filter(|holder| !holder.is_empty()) {
        None => Ok(()),
        Some(holder) => {
            bail!(
                "an operator leads already ({holder}, by Lease kubernaut-system/wfe-operator): stop it first, as {INSTEAD}"
            )
        }
    }
}

impl Bundles {
    /// Pushes the bundles of both sample workflows. With `held`, the first task of the clean-up runs until the demo
    /// ends it.
    async fn push(registry: &str, held: bool) -> Result<Self> {
        let read = |file: &str| manifests::read(&repository().join("config/samples").join(file));
        let restart = bundle::push(registry, "workflows/deployment-restart", &read("pipeline-restart.yaml")?).await?;
        let mut pipeline = read("pipeline-disk-cleanup.yaml")?;
        if held {
            let outcome = "/spec/tasks/0/taskSpec/metadata/annotations/test.kubernaut.ai~1outcome";
            let outcome = pipeline.first_mut().and_then(|pipeline| pipeline.pointer_mut(outcome));
            *outcome.context("config/samples/pipeline-disk-cleanup.yaml does not say how its first task ends")? =
                "hold".into();
        }
        let disk_cleanup = bundle::push(registry, "workflows/node-disk-cleanup", &pipeline).await?;
        Ok(Self { restart: restart.image, disk_cleanup: disk_cleanup.image })
    }
}

/// Returns an environment variable if it is set and not empty.
fn set_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
