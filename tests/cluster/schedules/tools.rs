//! How `kubectl` works with the kind: it explains and prints schedules, and accepts the samples.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use wfe_testkit::repository;

use super::objects::{Schedules, but, by_cron};

#[tokio::test]
async fn explain_teaches() -> Result<()> {
    let schedules = Schedules::new().await?;
    for (field, words) in [
        ("wfs", "Runs one workflow on one target repeatedly"),
        ("wfs.spec.interval", "in whole seconds from 1s to 720h, e.g. \"5m\" or \"1h30m\""),
        ("wfs.spec.cron", "\"0 2 * * MON-FRI\""),
        ("wfs.spec.timeZone", "IANA name, e.g. \"Europe/Berlin\""),
        ("wfs.spec.suspend", "Slots during the suspension are lost"),
        ("wfs.spec.hint", "Setting it requires permission to patch the schedule"),
        ("wfs.spec.hint.expiresAt", "Until when the hint holds"),
        ("wfs.spec.template.spec", "requires permission to create workflowexecutions in this namespace"),
        ("wfs.spec.template.spec.workflowRef.containerImage", "Tekton bundle"),
        ("wfs.spec.template.spec.retry", "maxAttempts <integer>"),
        ("wfs.spec.history", "3 that Completed and 3 others"),
        ("wfs.status.lastRun.outcome", "Refused (it could not be created)"),
        ("wfs.status.nextRunReason", "Backoff: a longer wait after failures"),
        ("wfs.status.conditions", "Held: something keeps the schedule from running now"),
    ] {
        let text = schedules.control_plane.kubectl(&["explain", field]).await?;
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(unwrapped.contains(words), "{field}: {text}");
    }
    Ok(())
}

#[tokio::test]
async fn a_table_shows_when_and_why() -> Result<()> {
    let schedules = Schedules::new().await?;
    let name = schedules.create(but(by_cron()?, &[("cron", json!("0 2 * * *"))])?).await?;
    let time = "2026-01-02T03:04:05Z";
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": time});
    let status = json!({
        "failureCount": 2, "lastRun": {"slot": time}, "nextRunTime": "2099-01-01T02:00:00Z", "nextRunReason": "Cron",
        "conditions": [condition("Ready", "Planned"), condition("Held", "ResourceBusy")],
    });
    let patch = Patch::Merge(json!({"status": status}));
    schedules.api.patch_status(&name, &PatchParams::default(), &patch).await?;
    let namespace = &schedules.namespace;
    let control_plane = &schedules.control_plane;
    let table = control_plane.kubectl(&["get", "wfs", "-o", "wide", "-n", namespace]).await?;
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    ensure!(
        header
            == [
                "NAME", "EVERY", "CRON", "SUSPEND", "FAILURES", "LAST", "NEXT", "WHY", "READY", "HELD", "AGE", "ZONE",
                "TARGET", "TRIAGE"
            ],
        "{table}"
    );
    for word in ["0 2 * * *", "false", "2099-01-01T02:00:00Z", "Cron", "ResourceBusy", "Europe/Berlin"] {
        ensure!(table.contains(word), "{word}: {table}");
    }
    let category = control_plane.kubectl(&["get", "kubernaut", "-o", "name", "-n", namespace]).await?;
    ensure!(category.trim() == format!("workflowschedule.kubernaut.ai/{name}"), "{category}");
    Ok(())
}

#[tokio::test]
async fn the_samples_are_accepted() -> Result<()> {
    let schedules = Schedules::new().await?;
    for sample in ["nightly-disk-cleanup.yaml", "nightly-disk-cleanup-triage.yaml", "hourly-restart.yaml"] {
        let path = repository().join("config/samples").join(sample);
        let path = path.to_string_lossy();
        let namespace = &schedules.namespace;
        let arguments = ["apply", "--dry-run=server", "--validate=strict", "-o", "name", "-n", namespace, "-f", &path];
        let names = schedules.control_plane.kubectl(&arguments).await?;
        ensure!(names.starts_with("workflowschedule.kubernaut.ai/"), "{sample}: {names}");
    }
    Ok(())
}
