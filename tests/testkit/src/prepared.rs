//! The prepared copy: an etcd directory that already has Tekton's kinds, its configuration and a ready node.
//!
//! Applying all of that takes many seconds, copying a directory a fraction of one. Each set of assets has one copy,
//! which is made once and kept beside the assets. A lock prevents two test runs from making it at the same time.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, DeleteParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::pki::Pki;
use crate::place::Place;
use crate::stack::{Audit, Stack};
use crate::{components, manifests, random};

/// The version of the copy. Increase this number when the applied objects change.
const FORMAT: u32 = 3;
/// The one node.
const NODE: &str = "node-1";
const NODE_READY_WITHIN: Duration = Duration::from_mins(1);

/// The manifests that Tekton needs, in the order in which they must be applied.
const TEKTON: [&str; 5] =
    ["tekton/100-namespace", "tekton/300-crds", "tekton/resolvers/100-namespace.yaml", "tekton", "tekton/resolvers"];

/// The kinds of Tekton's manifests that are not applied: Tekton runs here as processes, and its webhook is optional.
const NOT_APPLIED: [&str; 6] = [
    "Deployment",
    "Service",
    "HorizontalPodAutoscaler",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "Secret",
];

/// Fills the etcd and key directories of `place` with copies of the prepared directories. If there are none, they are
/// made first.
pub(crate) async fn copy_to(place: &Place) -> Result<()> {
    let source = directory(place)?;
    if !source.exists() {
        make(place, &source).await.context("the prepared copy could not be made")?;
    }
    for part in ["etcd", "pki"] {
        copy(&source.join(part), &place.dir.join(part)).context("the prepared copy could not be copied")?;
    }
    Ok(())
}

fn directory(place: &Place) -> Result<PathBuf> {
    let assets = place.assets.dir();
    let cache = assets.parent().context("the assets directory has no parent")?;
    let mut hasher = DefaultHasher::new();
    (FORMAT, assets, node().to_string()).hash(&mut hasher);
    Ok(cache.join(format!("prepared-{:016x}", hasher.finish())))
}

async fn make(place: &Place, target: &Path) -> Result<()> {
    let lock = fs::File::create(target.with_extension("lock"))?;
    // The wait must not block the thread, because the supervisor must still react to its parent.
    while lock.try_lock().is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if target.exists() {
        return Ok(());
    }
    // No other process makes the copy now. The directory may be left from an attempt that was killed.
    let temporary = target.with_extension("new");
    drop(fs::remove_dir_all(&temporary));
    let mut stack = Stack::new(place.create_for_copy(temporary.clone())?);
    let filled = fill(&mut stack).await;
    // A graceful stop lets etcd and the API server write out their data.
    stack.stop(filled.is_ok()).await;
    if let Err(error) = filled {
        stack.place.remove(false);
        return Err(error);
    }
    let clean = target.with_extension("clean");
    drop(fs::remove_dir_all(&clean));
    fs::create_dir(&clean)?;
    for part in ["etcd", "pki"] {
        fs::rename(temporary.join(part), clean.join(part))?;
    }
    stack.place.remove(false);
    fs::rename(&clean, target).context("the prepared copy could not be put into its place")
}

async fn fill(stack: &mut Stack) -> Result<()> {
    Pki::create(&stack.place.dir.join("pki"))?;
    stack.start_api(Audit::Bodies).await?;
    let client = manifests::client(&stack.place.kubeconfig("admin")).await?;
    stack.spawn(|place| Ok(components::controller_manager(place)))?;
    stack.launch(|place| Ok(components::kwok(place, random::free_port()?))).await?;
    for name in TEKTON {
        let mut objects = manifests::read(&stack.place.assets.manifest(name))?;
        objects.retain(|object| !NOT_APPLIED.iter().any(|kind| object["kind"] == *kind));
        objects.iter_mut().filter(|object| object["kind"] == "CustomResourceDefinition").for_each(without_conversion);
        manifests::apply_all(&client, &objects).await?;
    }
    await_node(&client).await?;
    // If kwok starts while an old lease exists that it has not seen, it fails to create one, and retries only after 10
    // s. Until then no pod runs.
    stack.component("kwok")?.stop(true).await;
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    leases.delete(NODE, &DeleteParams::default()).await.context("the node's lease cannot be deleted")?;
    Ok(())
}

/// Removes the conversion by Tekton's webhook, which is not reachable here, from a kind. Runs are then served in their
/// stored version only: for each further version, the API server would list all runs again each second.
fn without_conversion(kind: &mut Value) {
    if let Some(spec) = kind["spec"].as_object_mut() {
        spec.remove("conversion");
    }
    let is_run =
        ["pipelineruns.tekton.dev", "taskruns.tekton.dev"].iter().any(|name| kind["metadata"]["name"] == *name);
    for version in kind["spec"]["versions"].as_array_mut().into_iter().flatten().filter(|_| is_run) {
        version["served"] = version["storage"].clone();
    }
}

fn node() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
    })
}

/// Creates the node if it is missing. Waits until pods can be scheduled on the node and kwok simulates them.
pub(crate) async fn await_node(client: &Client) -> Result<()> {
    let started = Instant::now();
    manifests::apply(client, &node()).await?;
    let schedulable = |node: Option<&Node>| {
        node.is_some_and(|node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).is_some_and(|all| !all.is_empty());
            let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
            let ready =
                conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"));
            ready && !taints
        })
    };
    let all = async {
        await_condition(Api::<Node>::all(client.clone()), NODE, schedulable).await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
        await_condition(leases, NODE, |lease: Option<&Lease>| lease.is_some()).await
    };
    match tokio::time::timeout(NODE_READY_WITHIN, Box::pin(all)).await {
        Ok(result) => result.map(drop).context("the node cannot be watched"),
        Err(_) => bail!(
            "the node is not ready after {:?}: see the logs of kwok and the controller-manager",
            started.elapsed()
        ),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    // etcd requires that its data directory is not readable by other users.
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(())
}
