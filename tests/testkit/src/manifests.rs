//! Reads YAML files, and applies the objects in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, Config};
use serde_json::Value;

/// How long the API server may take until it serves a new kind.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// Reads all objects of a YAML file, or of all YAML files in a directory, sorted by file name.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    let mut files: Vec<PathBuf> = if path.is_dir() {
        fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?
    } else {
        vec![path.to_owned()]
    };
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        objects.extend(parse(&text).with_context(|| format!("{} is not YAML", file.display()))?);
    }
    Ok(objects)
}

/// Parses all objects of a YAML text. Empty documents are ignored.
pub fn parse(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(documents.into_iter().filter(|value| !value.is_null()).collect())
}

/// Returns the API resource of a kind, such as `("kubernaut.ai/v1alpha1", "WorkflowExecution")`.
#[must_use]
pub fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Applies an object (server-side, by force), in the namespace that its metadata names, if any.
pub async fn apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (field("/kind"), field("/metadata/name"));
    ensure!(!kind.is_empty() && !name.is_empty(), "an object without kind or name: {object}");
    let resource = resource(field("/apiVersion"), kind);
    let api: Api<DynamicObject> = match field("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    api.patch(name, &PatchParams::apply("wfe-testkit").force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("{kind} {name} cannot be applied"))
}

/// Applies objects one after the other, and waits until the API server serves new kinds among them.
pub async fn apply_all(client: &Client, objects: &[Value]) -> Result<()> {
    for object in objects {
        apply(client, object).await?;
    }
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for object in objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let established = await_condition(api.clone(), name, conditions::is_crd_established());
        tokio::time::timeout(ESTABLISHED_WITHIN, established)
            .await
            .with_context(|| format!("the CRD {name} is not served after {ESTABLISHED_WITHIN:?}"))??;
    }
    Ok(())
}

/// Creates a client from a kubeconfig file.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("{} cannot be read", kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
