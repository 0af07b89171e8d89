//! Trouble that no operator can report in a status: an API server whose certificate is not trusted, and the last second
//! of a process. One more test: a restart beside three hundred ended executions writes nothing.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};
use chrono::{TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use wfe_testkit::awaits::{DEADLINE, ask_until};
use wfe_testkit::{AuditEntry, Fault, Metrics, Operator, Outcome, Pipeline, Proxy, Refusal, World};

use crate::expect::{condition, text};
use crate::history::past::{Past, past};

/// Waits until `is` accepts the answer of `/readyz`, and returns the answer.
pub(crate) async fn await_readyz(operator: &Operator, what: &str, is: impl Fn(u16, &str) -> bool) -> Result<String> {
    // The server may not accept connections yet.
    let ask = async || anyhow::Ok(operator.get("health", "/readyz").await);
    let is = |said: &Result<(u16, String)>| said.as_ref().is_ok_and(|(status, said)| is(*status, said));
    let what = format!("{what} in /readyz; the log is {}", operator.log_path().display());
    let (_, said) = ask_until(DEADLINE, &what, ask, is).await??;
    Ok(said)
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_named_where_people_look() -> Result<()> {
    let world = World::new("untrusted").await?;
    let path = world.control_plane().dir().join(format!("{}.untrusting", world.namespace()));
    world.write_operator_kubeconfig(None, &path).await?;
    // Without its authority, the kubeconfig does not trust the certificate of this API server.
    let kubeconfig = fs::read_to_string(&path)?;
    let left: Vec<&str> = kubeconfig.lines().filter(|line| !line.contains("certificate-authority")).collect();
    ensure!(left.len() < kubeconfig.lines().count(), "no authority in {kubeconfig}");
    fs::write(&path, left.join("\n"))?;
    let operator = world.operator().kubeconfig(&path).spawn().await?;
    let said =
        await_readyz(&operator, "the cause", |status, said| status == 503 && said.contains("UnknownIssuer")).await?;
    assert_eq!(said.matches("client error (Connect)").count(), 1, "{said}");
    let names_it = |line: &Value| text(&line["fields"]["error"]).contains("UnknownIssuer");
    operator.await_line("names the cause", names_it).await?;
    operator.terminate().await?;
    world.close().await
}

#[tokio::test]
async fn the_events_of_the_last_second_before_sigterm_are_written() -> Result<()> {
    let world = World::new("last-events").await?;
    let bundle = world.push_pipeline("short", &Pipeline::new().task("apply", Outcome::Ok)).await?;
    let proxy = Proxy::start(world.control_plane()).await?;
    let operator = world.operator().through(&proxy).start().await?;
    // The API server throttles the first write of each event. The operator writes the event again, even after it was
    // asked to stop.
    let mut refused = BTreeSet::new();
    proxy.on(move |request| {
        let is_new = request.is("create events") && refused.insert(request.name.clone());
        if is_new { Fault::Refuse(Refusal::throttled(2)) } else { Fault::Pass }
    });
    world.wfe("last").image(&bundle).create().await?;
    world.await_phase("last", "Completed").await?;
    assert!(operator.terminate().await?.success());
    let events = world.events().await?;
    let told: BTreeSet<&str> = events.iter().map(|event| text(&event["reason"])).collect();
    assert_eq!(told, BTreeSet::from(["PipelineRunCreated", "WorkflowCompleted"]), "{events:#?}");
    world.close().await
}

#[tokio::test]
async fn a_restart_among_three_hundred_ended_executions_writes_nothing() -> Result<()> {
    const ENDED: usize = 300;
    let world = World::new("quiet").await?;
    let ways = [Past::Completed, Past::Ran, Past::NothingRan(1, TimeDelta::minutes(1))];
    stream::iter((0..ENDED).map(|n| {
        let (world, way) = (&world, ways[n % ways.len()]);
        async move { past(world, &format!("old-{n}"), &format!("node/n-{n}"), "w", 1, TimeDelta::days(2), way).await }
    }))
    .buffer_unordered(16)
    .try_collect::<()>()
    .await?;
    // The first operator completes the records, so that executions that block say so.
    let first = world.operator().start().await?;
    let is_blocking = |wfe: &&Value| condition(wfe, "Blocked") == "True PreviousExecutionFailed";
    world
        .await_wfes("those that ran say that they block", |all| all.values().filter(is_blocking).count() == ENDED / 3)
        .await?;
    assert!(first.terminate().await?.success());

    let begun = Utc::now().to_rfc3339();
    let second = world.operator().start().await?;
    let has_looked = |metrics: &Metrics| {
        let decided = metrics.value("workflowexecution_decision_duration_seconds_count", &[]);
        decided >= 300.0 && metrics.value("workflowexecution_queue_depth", &[]) == 0.0
    };
    second.await_metrics("a decision on each", has_looked).await?;
    assert!(second.terminate().await?.success());
    let audit = world.audit().await?;
    let user = world.operator_user();
    let is_its_write = |entry: &&AuditEntry| entry.user == user && entry.is_write() && entry.received_at > begun;
    let writes: Vec<&AuditEntry> = audit.iter().filter(is_its_write).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert!(world.events().await?.is_empty());
    world.close().await
}
