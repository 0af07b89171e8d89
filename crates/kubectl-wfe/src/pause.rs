//! `kubectl wfe pause` and `kubectl wfe resume`: pause a namespace, and end its pause, by its annotation.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch};
use serde_json::{Value, json};
use wfe_api::labels::ANNOTATION_PAUSED;
use wfe_view::call::{CallError, within};

use crate::cli::{ClusterArgs, PauseArgs, ResumeArgs};
use crate::connection::{ANSWERS_WITHIN, Connection, advised, by_us};
use crate::output::{line, output};

/// The permission for a pause. No role of the operator gives it, because a namespace has other annotations too.
const RIGHTS: &str = "an administrator of the namespace: get and patch of this namespace";

/// Pauses a namespace. Always yes.
pub(crate) async fn pause(cluster: &ClusterArgs, args: &PauseArgs) -> Result<bool> {
    change(cluster, &args.namespace_name, Some(&args.reason)).await
}

/// Ends the pause of a namespace. Always yes.
pub(crate) async fn resume(cluster: &ClusterArgs, args: &ResumeArgs) -> Result<bool> {
    change(cluster, &args.namespace_name, None).await
}

async fn change(cluster: &ClusterArgs, name: &str, reason: Option<&str>) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let namespaces: Api<Namespace> = Api::all(connection.client);
    let found = match within(ANSWERS_WITHIN, namespaces.get_opt(name)).await {
        Ok(found) => found.with_context(|| format!("there is no namespace {name}; see: kubectl get namespaces"))?,
        Err(error) => bail!("cannot read the namespace {name}: {}", said(&error)),
    };
    let is = found.metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION_PAUSED)).map(String::as_str);
    if let Some(change) = wanted(&found, is, reason) {
        let written = within(ANSWERS_WITHIN, namespaces.patch(name, &by_us(), &Patch::Merge(change))).await;
        if let Err(error) = written {
            bail!("the namespace {name} was not changed: {}", said(&error));
        }
    }
    write!(output(), "{}", told(name, is, reason))
        .with_context(|| format!("the namespace {name} is as asked for, and that could not be shown"))?;
    Ok(true)
}

/// Makes the patch of a namespace as it was read. None if nothing has to change.
fn wanted(found: &Namespace, is: Option<&str>, reason: Option<&str>) -> Option<Value> {
    let meta = &found.metadata;
    (is.is_some() != reason.is_some()).then(|| {
        json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": {ANNOTATION_PAUSED: reason},
        }})
    })
}

/// Describes what was done to a namespace with this pause.
fn told(name: &str, is: Option<&str>, reason: Option<&str>) -> String {
    match (is.map(line), reason) {
        (None, Some(_)) => format!(
            "The namespace {name} is paused: no execution starts in it, and none on a target in it.\nRunning executions \
             continue, and new ones wait. To end the pause: kubectl wfe resume {name}\n"
        ),
        (Some(why), Some(_)) => format!("The namespace {name} is paused already: {why}; nothing was written.\n"),
        (Some(why), None) => format!(
            "The pause of the namespace {name} has ended ({why}). Waiting executions are decided now, the oldest of a \
             target first.\n"
        ),
        (None, None) => format!("The namespace {name} is not paused; nothing was written.\n"),
    }
}

fn said(error: &CallError) -> String {
    advised(error, RIGHTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_is_written_and_it_is_bound_to_what_was_read() {
        let namespace: Namespace = serde_json::from_value(json!({
            "metadata": {"name": "payment", "uid": "u", "resourceVersion": "7"},
        }))
        .unwrap();
        let patch = |reason: Value| {
            json!({"metadata": {
                "uid": "u", "resourceVersion": "7", "annotations": {"kubernaut.ai/paused": reason},
            }})
        };
        for (is, reason, written, first) in [
            (
                None,
                Some("upgrade"),
                Some(patch(json!("upgrade"))),
                "The namespace payment is paused: no execution starts",
            ),
            (
                Some("move"),
                Some("upgrade"),
                None,
                "The namespace payment is paused already: move; nothing was written.",
            ),
            (Some("move"), None, Some(patch(Value::Null)), "The pause of the namespace payment has ended (move)."),
            (None, None, None, "The namespace payment is not paused; nothing was written."),
        ] {
            assert_eq!(wanted(&namespace, is, reason), written);
            assert!(told("payment", is, reason).starts_with(first), "{}", told("payment", is, reason));
        }
        assert!(told("payment", Some("a\nb"), None).contains("(a\\nb)"));
    }
}
