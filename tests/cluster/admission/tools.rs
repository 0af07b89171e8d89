//! How `kubectl` works with the CRD: it explains, selects and prints, and accepts the manifests of this repository.

use anyhow::{Result, ensure};
use kube::api::ListParams;
use serde_json::json;
use wfe_testkit::repository;

use super::objects::{Namespaced, entering};

/// Joins the lines that kubectl has wrapped.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn explain_teaches() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    for (field, words) in [
        ("wfe", "Runs one workflow (a Tekton pipeline) on one target"),
        ("wfe.spec.targetResource", "\"namespace/kind/name\", e.g. \"payment/deployment/payment-api\""),
        ("wfe.spec.targetResource", "\"kind/name\", e.g. \"node/worker-node-1\""),
        ("wfe.spec.executionConfig.timeout", "Absent: the operator's default-timeout"),
        ("wfe.spec.startBefore", "After this time the execution is Failed with DeadlineExceeded"),
        ("wfe.spec.cancellation", "Set it once, before phase is Completed, Failed or Skipped"),
        ("wfe.spec.cancellation", "requires permission to update workflowexecutions/cancellation"),
        ("wfe.spec.cancellation.requestedBy", "Your own user name, as \"kubectl auth whoami\" shows it"),
        ("wfe.spec.clearance", "Set it once, while the phase is Failed"),
        ("wfe.spec.clearance", "requires permission to update workflowexecutions/clearance"),
        ("wfe.spec.clearance.clearedBy", "Your own user name, as \"kubectl auth whoami\" shows it"),
        ("wfe.spec.retry", "true (all defaults), a whole number of attempts from 1 to 20, or an object"),
        ("wfe.spec.retry", "maxAttempts <integer>"),
        ("wfe.spec.retry", "initialDelay <string>"),
        ("wfe.spec.retry", "backoffMultiplier <number>"),
        ("wfe.spec.retry", "maxDelay <string>"),
        ("wfe.spec.retry", "jitter <boolean>"),
        ("wfe.spec.retry", "retryWhen <string>"),
        ("wfe.spec.retry", "stopWhen <string>"),
        ("wfe.spec.retry", "retryExecutionFailures <boolean>"),
        ("wfe.spec.retry", "maxDuration <string>"),
        ("wfe.spec.retry.retryExecutionFailures", "Set it only if every step may run twice"),
        ("wfe.spec.retry.maxDuration", "from 1s to 24h, e.g. \"2h\", counted from startTime"),
        ("wfe.status.attempts", "notBefore <string>"),
        ("wfe.status.attempts.started", "True, False, or Unknown if the operator cannot tell"),
        ("wfe.status.pipelineRunRef.namespace", "The execution namespace of the PipelineRun"),
        ("wfe.status.phase", "Skipped (see skipDetails)"),
        ("wfe.status.failureDetails.reason", "OOMKilled: a container exceeded its memory limit"),
    ] {
        let text = namespaced.control_plane.kubectl(&["explain", field]).await?;
        ensure!(unwrapped(&text).contains(words), "{field}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn field_selectors_find_what_was_written() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let waiting = namespaced.create_in("").await?;
    let running = namespaced.create_in("").await?;
    let mut status = entering("Running");
    status["target"] = json!("payment/deployment/payment-api");
    namespaced.must(&running, status).await?;
    for (selector, expected) in [
        ("spec.targetResource=payment/deployment/payment-api", vec![&waiting, &running]),
        ("spec.targetResource=node/worker-1", vec![]),
        ("spec.remediationRequestRef.name=rr-1", vec![&waiting, &running]),
        ("spec.remediationRequestRef.name=rr-2", vec![]),
        ("status.target=payment/deployment/payment-api", vec![&running]),
        ("status.phase=Running", vec![&running]),
        ("status.phase!=Running", vec![&waiting]),
        ("status.phase=Running,spec.targetResource=node/worker-1", vec![]),
    ] {
        let list = namespaced.api.list(&ListParams::default().fields(selector)).await?;
        let mut found: Vec<_> = list.items.iter().map(kube::ResourceExt::name_any).collect();
        let mut expected: Vec<_> = expected.into_iter().cloned().collect();
        found.sort();
        expected.sort();
        ensure!(found == expected, "{selector}: {found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_table_shows_why() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let name = namespaced.create_in("").await?;
    let mut status = entering("Failed");
    status["nextAllowedExecution"] = json!("2099-01-01T00:00:00Z");
    status["summary"] = json!("ImagePullBackOff");
    status["conditions"] = json!([{
        "type": "Succeeded", "status": "False", "reason": "ImagePullBackOff", "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    namespaced.must(&name, status).await?;
    let table = namespaced.control_plane.kubectl(&["get", "wfe", "-o", "wide", "-n", &namespaced.namespace]).await?;
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    ensure!(
        header
            == [
                "NAME",
                "PHASE",
                "WHY",
                "BLOCKS",
                "TARGET",
                "AGE",
                "WORKFLOW",
                "REASON",
                "DURATION",
                "PIPELINERUN",
                "NEXT-ALLOWED"
            ],
        "{table}"
    );
    let row = lines.next().unwrap_or_default();
    let (target, reason) = ("payment/deployment/payment-api", "ImagePullBackOff");
    ensure!(row.starts_with(&[&name, "Failed", reason, target]), "{table}");
    ensure!(row.last() == Some(&"2099-01-01T00:00:00Z"), "{table}");
    // By the short name, and by the category.
    let arguments = ["get", "kubernaut", "-o", "name", "-n", &namespaced.namespace];
    let category = namespaced.control_plane.kubectl(&arguments).await?;
    ensure!(category.trim() == format!("workflowexecution.kubernaut.ai/{name}"));
    Ok(())
}

#[tokio::test]
async fn the_manifests_of_the_repository_are_accepted() -> Result<()> {
    let namespaced = Namespaced::new().await?;
    let base = repository().join("config/base");
    let rendered = namespaced.control_plane.kubectl(&["kustomize", &base.to_string_lossy()]).await?;
    for kind in [
        "CustomResourceDefinition",
        "ClusterRole",
        "ClusterRoleBinding",
        "Namespace",
        "Role",
        "RoleBinding",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ] {
        ensure!(rendered.lines().any(|line| line == format!("kind: {kind}")), "no {kind} in {rendered}");
    }
    for (sample, count) in
        [("payment-restart.yaml", 1), ("payment-restart-retry.yaml", 1), ("disk-pressure-storm.yaml", 10)]
    {
        let path = repository().join("config/samples").join(sample);
        let path = path.to_string_lossy();
        let arguments =
            ["apply", "--dry-run=server", "--validate=strict", "-o", "name", "-n", &namespaced.namespace, "-f", &path];
        let names = namespaced.control_plane.kubectl(&arguments).await?;
        ensure!(names.lines().count() == count, "{sample}: {names}");
    }
    Ok(())
}
