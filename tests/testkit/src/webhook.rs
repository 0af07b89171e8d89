//! Tekton's admission webhook outside the cluster: its certificate, and webhook configurations with its URL.
//!
//! Tekton's own configurations name a service, which does not exist here. The configurations of this module have other
//! names, so that the webhook's controllers do not change them.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::awaits::ask_until;
use crate::manifests;
use crate::pki::Pki;

const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// Applies the secret and the configurations for a webhook that will listen on `port`.
pub(crate) async fn configure(client: &Client, pki: &Pki, port: u16) -> Result<()> {
    let read = |path: std::path::PathBuf| {
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let authority = read(pki.authority())?;
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "webhook-certs", "namespace": "tekton-pipelines"},
        "stringData": {
            "ca-cert.pem": authority,
            "server-cert.pem": read(pki.server_certificate())?,
            "server-key.pem": read(pki.server_key())?,
        },
    });
    manifests::apply(client, &secret).await?;
    for (kind, name, path) in [
        ("MutatingWebhookConfiguration", "defaulting.test.kubernaut.ai", "defaulting"),
        ("ValidatingWebhookConfiguration", "validation.test.kubernaut.ai", "resource-validation"),
    ] {
        manifests::apply(client, &configuration(kind, name, path, port, &authority)).await?;
    }
    Ok(())
}

fn configuration(kind: &str, name: &str, path: &str, port: u16, authority: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [{
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}/{path}"),
                "caBundle": base64(authority.as_bytes()),
            },
            "rules": [{
                "apiGroups": ["tekton.dev"],
                "apiVersions": ["v1", "v1beta1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["pipelines", "pipelineruns", "pipelineruns/status", "tasks", "taskruns", "taskruns/status"],
                "scope": "Namespaced",
            }],
        }],
    })
}

/// Waits until the webhook answers: until a dry run with a time-out that only the webhook refuses is refused.
pub(crate) async fn await_answers(client: &Client) -> Result<()> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &manifests::resource("tekton.dev/v1", "PipelineRun"));
    let run: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "tekton.dev/v1",
        "kind": "PipelineRun",
        "metadata": {"name": "probe"},
        "spec": {"pipelineRef": {"name": "probe"}, "timeouts": {"pipeline": "-5m"}},
    }))?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let what = "Tekton's webhook judges (see logs/tekton-webhook.log)";
    let is = |answer: &kube::Result<_>| matches!(answer, Err(kube::Error::Api(status)) if status.code == 400);
    ask_until(ANSWERS_WITHIN, what, async || Ok(api.create(&dry, &run).await), is).await.map(drop)
}

/// Encodes as base64 with padding, the format of bytes in Kubernetes objects.
fn base64(bytes: &[u8]) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap_or_default()
}
